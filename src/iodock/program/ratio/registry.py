"""Lists all readers, and chooses the reader for a file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from iodock.program.ratio import (
    acct,
    csh_time,
    dump_acct,
    gnu_time,
    iodock_store,
    pjm,
    sacct,
    shell_time,
    time_format,
)
from iodock.program.ratio.reader import Reader, Sample
from iodock.program.ratio.source import RatioError, Source
from iodock.shared.errors import RequestError, meant

READERS: tuple[Reader, ...] = (
    gnu_time.VERBOSE,
    gnu_time.DEFAULT,
    shell_time.READER,
    csh_time.CSH,
    csh_time.ZSH,
    time_format.READER,
    dump_acct.READER,
    acct.READER,
    sacct.READER,
    pjm.READER,
    iodock_store.READER,
)
_LEAST = 0.3
"""If no reader is at least this certain, the format is not known."""
_TIE = 0.04


def names() -> tuple[str, ...]:
    """Returns the names of the readers, which are the values of `--from`."""
    return tuple(reader.name for reader in READERS)


def find(name: str) -> Reader:
    """Returns the reader of this name. Raises RequestError if there is none."""
    for reader in READERS:
        if reader.name == name:
            return reader
    raise RequestError(f"no such format: {name}", meant(name, names(), f"formats: {', '.join(names())}"))


def recognise(source: Source) -> tuple[Reader, tuple[Reader, ...]]:
    """Returns the reader that fits the file best, and the other readers that recognise something in it.
    Raises RatioError if no reader fits, or if two fit equally well."""
    sample = Sample(source.path, b"" if source.is_folder else source.sample(), source.is_folder)
    sure = sorted(((reader.sniff(sample), reader) for reader in READERS), key=lambda one: -one[0])
    best, second = sure[0], sure[1]
    if best[0] < _LEAST:
        raise _nothing(source, sample)
    if best[0] - second[0] <= _TIE:
        alike = [reader.name for confidence, reader in sure if best[0] - confidence <= _TIE]
        raise RatioError(
            f"{source.path}: holds times of several kinds: {', '.join(alike)}",
            f"choose one: --from {alike[0]}",
        )
    return best[1], tuple(reader for confidence, reader in sure[1:] if confidence > _LEAST)


def _nothing(source: Source, sample: Sample) -> RatioError:
    what = "is empty" if not sample.data and not sample.is_folder else "contains no recognised times"
    if sample.is_folder:
        what = "is a folder but not a store of iodock"
    return RatioError(f"{source.path}: {what}", f"give its kind: --from {'|'.join(names())}")


def node_names(paths: Sequence[str]) -> list[str]:
    """Returns a short name for each file: the part of its path that is left when the folders that all paths
    share at the start and end are removed. If the files are of different nodes, this is the name of the
    node."""
    parts = [Path(path).parts for path in paths]
    if len(set(parts)) < 2:
        return [Path(path).name for path in paths]
    shortest = min(map(len, parts))
    front = next((at for at in range(shortest) if len({one[at] for one in parts}) > 1), shortest)
    back = next((at for at in range(shortest) if len({one[-1 - at] for one in parts}) > 1), shortest)
    return ["/".join(one[front : len(one) - back]) or one[-1] for one in parts]
