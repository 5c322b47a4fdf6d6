"""Tests input that is endless, endlessly nested, or of another kind: iodock prints one line of error and uses
little memory."""

from __future__ import annotations

import ast
import gzip
import lzma
import os
import re
import signal
import subprocess
import sys
import threading
import zlib
from pathlib import Path

import pytest

from iodock.program.capture import import_logs
from iodock.shared.bounded import documents, files, limits
from iodock.shared.bounded.commands import answer_of
from iodock.shared.bounded.limits import MIB, Limit
from iodock.shared.bounded.packed import unpacked
from iodock.shared.errors import RequestError
from places import SOURCE

MOST_KIB = 1 << 20
"""1 GiB."""
VERBS: dict[str, tuple[str, ...]] = {
    "import": ("import", "INPUT", "-o", "made.iodock"),
    "ratio": ("ratio", "INPUT"),
    "ratio, several": ("ratio", "INPUT", "INPUT"),
    **{
        f"ratio --from {form}": ("ratio", "--from", form, "INPUT")
        for form in ("sacct", "pjm", "acct", "dump-acct", "gnu-time", "shell-time", "csh-time")
    },
    "ratio of standard input": ("ratio", "-"),
    "bench show": ("bench", "show", "INPUT"),
    "bench show --from fio": ("bench", "show", "--from", "fio", "INPUT"),
    "bench show --from iodock": ("bench", "show", "--from", "iodock", "INPUT"),
    "bench ior": ("bench", "ior", "INPUT"),
    "health show": ("health", "show", "INPUT"),
    "health compare": ("health", "compare", "INPUT", "INPUT"),
    "health report": ("health", "report", "INPUT"),
    "health run --workload": ("health", "run", ".", "--workload", "INPUT", "--dry-run"),
    "fs typical": ("fs", "typical", "INPUT"),
    "monitor import-sar": ("monitor", "import-sar", "--store", "monitor", "INPUT"),
    "monitor serve --tokens": ("monitor", "serve", "--store", "monitor", "--tokens", "INPUT"),
    "monitor serve --pull-list": ("monitor", "serve", "--store", "monitor", "--pull-list", "INPUT"),
    "monitor top": ("monitor", "top", "INPUT", "--once"),
    "probe show": ("probe", "show", "INPUT"),
    "show": ("show", "summary", "INPUT"),
    "diagnose": ("diagnose", "INPUT"),
    "diff": ("diff", "INPUT", "INPUT"),
    "query": ("query", "INPUT", "SELECT 1"),
    "report": ("report", "INPUT"),
    "bundle": ("bundle", "INPUT"),
    "diagnose --settings": ("diagnose", "small.iodock", "--settings", "INPUT"),
}


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("inputs")
    made = {
        "an endless device": Path("/dev/zero"),
        "an endless line": folder / "line",
        "nested JSON": folder / "deep.json",
        "nested TOML": folder / "deep.toml",
        "a directory": folder / "directory",
        "a binary file": folder / "binary",
        "a packed bomb": folder / "bomb.gz",
    }
    # The line of 2 GiB is in a sparse file, which needs no space on the disk.
    with made["an endless line"].open("wb") as out:
        out.write(b"JobID|")
        out.truncate(2 << 30)
    made["nested JSON"].write_text('{"sysstat":' + "[" * 200_000 + "]" * 200_000 + "}")
    made["nested TOML"].write_text("a = " + "[" * 200_000 + "]" * 200_000 + "\n")
    made["a directory"].mkdir()
    made["a binary file"].write_bytes(os.urandom(1 << 20))
    with gzip.open(made["a packed bomb"], "wb", compresslevel=1) as out:
        for _ in range(400):
            out.write(bytes(MIB))
    return made


@pytest.mark.parametrize("verb", VERBS)
def test_commands_refuse_unbounded_input(verb: str, inputs: dict[str, Path], tmp_path: Path) -> None:
    (tmp_path / "small.log").write_text("1 1700000000.1 close(3) = 0 <0.1>\n")
    import_logs([str(tmp_path / "small.log")], tmp_path / "small.iodock")
    for name, path in inputs.items():
        words = [str(path) if word == "INPUT" else word for word in VERBS[verb]]
        given = path if "-" in words and not path.is_dir() else Path(os.devnull)
        with given.open("rb") as standard_input:
            status, said, rss_kib = measured(words, standard_input.fileno(), tmp_path)
        assert status in (1, 2), (name, status, said)
        assert re.search(r"^error: .+", said, re.MULTILINE), (name, said)
        assert "Traceback" not in said and "has a bug" not in said and len(said) < 5000, (name, said)
        assert rss_kib < MOST_KIB, (name, rss_kib)


# A forked process inherits the peak memory of its parent, here a test runner with the peak of earlier tests.
# So a small program starts iodock and measures it.
_MEASURES = """import os, sys
process = os.posix_spawn(sys.executable, [sys.executable, "-m", "iodock", *sys.argv[2:]], os.environ)
_, status, usage = os.wait4(process, 0)
open(sys.argv[1], "w").write(str(usage.ru_maxrss))
sys.exit(os.waitstatus_to_exitcode(status) % 256)"""


def measured(words: list[str], standard_input: int, folder: Path) -> tuple[int, str, int]:
    """Runs iodock with these WORDS. Returns exit status, stderr and peak memory."""
    with (folder / "said").open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-c", _MEASURES, str(folder / "rss"), *words], start_new_session=True,
            stdin=standard_input, stdout=subprocess.DEVNULL, stderr=out, cwd=folder,
        )  # fmt: skip
        ends = threading.Timer(100, os.killpg, (process.pid, signal.SIGKILL))
        ends.start()
        status = process.wait()
        ends.cancel()
    return status, (folder / "said").read_text(), int((folder / "rss").read_text())


def test_files_up_to_their_limit_are_read_completely(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"a" * 2 * MIB)
    assert files.content(path, Limit("a test", 2 * MIB)) == b"a" * 2 * MIB
    with pytest.raises(RequestError, match="file: larger than 1 MiB, the limit for a test") as raised:
        files.content(path, Limit("a test", MIB, "do this"))
    assert raised.value.hint == "do this"


def test_pipes_are_read_to_their_end(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Timer(0.3, (tmp_path / "pipe").write_bytes, [b"some text"])
    writer.start()
    assert files.content(tmp_path / "pipe", limits.SETTINGS) == b"some text"
    writer.join()


def test_pipes_without_a_writer_are_abandoned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "pipe")
    monkeypatch.setattr(files, "WRITER_PATIENCE_S", 0.2)
    with pytest.raises(OSError, match="no program writes to"):
        files.content(tmp_path / "pipe", limits.SETTINGS)


def test_long_lines_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MOST_LINE_BYTES", MIB)
    path = tmp_path / "lines"
    path.write_bytes(b"short\n" + b"a" * (MIB - 1) + b"\n" + b"b" * MIB + b"c\n")
    with path.open("rb") as file:
        lines = files.lines(file, path)
        assert [len(next(lines)), len(next(lines))] == [6, MIB]
        with pytest.raises(RequestError, match="lines:3: a line of more than 1 MiB"):
            next(lines)


def test_xz_data_is_decompressed_as_by_the_library(tmp_path: Path) -> None:
    parts = [os.urandom(3000), b"", b"text " * 1_000_000]
    path = tmp_path / "packed"
    path.write_bytes(b"\0\0\0\0".join(map(lzma.compress, parts)))
    with path.open("rb") as raw, unpacked(raw) as stream:
        assert stream.read() == b"".join(parts)
    path.write_bytes(lzma.compress(parts[2])[:-30])
    with path.open("rb") as raw, unpacked(raw) as stream, pytest.raises(EOFError):
        stream.read()


def test_xz_that_needs_much_memory_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "packed"
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 3 << 20}]
    content = bytearray(lzma.compress(os.urandom(5 << 20), filters=filters))
    # The test sets the dictionary size in the block's header to 1.5 GiB, and corrects the header's checksum.
    at = content.index(b"\x21\x01", 12)
    content[at + 2] = 39
    size = (content[12] + 1) * 4
    content[12 + size - 4 : 12 + size] = zlib.crc32(content[12 : 12 + size - 4]).to_bytes(4, "little")
    path.write_bytes(content)
    with path.open("rb") as raw, unpacked(raw) as stream, pytest.raises(lzma.LZMAError, match="emory"):
        stream.read()
    status, said, _ = measured(["import", str(path)], 0, tmp_path)
    assert status == 1 and "more than 128 MiB of memory" in said


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ("[" * 102 + "]" * 102, "nested too deeply"),
        ('{"a":' * 5000 + "1" + "}" * 5000, "nested too deeply"),
        ("[" + "[]," * 3_000_000 + "1]", "more than 3,000,000 values"),
        ("[1" + "0" * 5000 + "]", "is not JSON"),
        ('{"a": \x00}', "is not JSON"),
        ("", "is not JSON"),
        (b"\xff\xfe\xff", "is not JSON"),
    ],
)
def test_json_beyond_its_limits_gives_an_error(document: str | bytes, said: str) -> None:
    with pytest.raises(documents.DocumentError, match=said):
        documents.from_json(document)


def test_documents_within_the_limits_are_read() -> None:
    deep = "[" * 100 + "]" * 100
    assert documents.from_json(deep) is not None
    assert documents.from_toml("a.b = 1\n") == {"a": {"b": 1}}


@pytest.mark.parametrize("document", ["a = " + "[" * 5000 + "]" * 5000, ".".join("a" * 5000) + " = 1"])
def test_toml_beyond_its_limits_gives_an_error(document: str) -> None:
    with pytest.raises(documents.DocumentError, match="nested too deeply"):
        documents.from_toml(document)


def test_external_commands_with_endless_output_are_ended() -> None:
    assert answer_of(["yes"], Limit("a test", MIB), 60).outcome == "endless"
    assert answer_of(["sleep", "60"], Limit("a test", MIB), 0.2).outcome == "silent"
    answer = answer_of(["echo", "so"], Limit("a test", MIB), 60)
    assert (answer.outcome, answer.status, answer.said) == ("answered", 0, "so\n")


OWN = {
    "cli/digest_bundle.py",
    "program/casebook/run.py",
    "cli/health_run.py",
    "file_system/health/engine.py",
    "file_system/health/results.py",
    "file_system/probe/worker.py",
    "file_system/health/sweeps/runs.py",
}
"""These read output of iodock's own processes, or a file that they have just written."""
KERNEL = {
    "program/doctor.py",
    "program/volume/tree.py",
    "program/volume/sources.py",
    "file_system/probe/leftovers.py",
    "file_system/health/mounts.py",
    "file_system/health/run.py",
    "file_system/health/card.py",
    "cli/recording.py",
}
"""These read files of the kernel."""
PACKAGE = (
    "centre/portal/rendering.py",
    "shared/language.py",
    "program/exports/flame_svg.py",
    "program/views/",
    "file_system/views/",
    "centre/views/",
    "shared/pages/",
    "shared/tables/",
    "shared/charts/",
    "simulation/",
    "program/reference.py",
    "program/relations/derived.py",
    "shared/bounded/",
)
"""These read files of the package; the last one serves all readers."""


def test_only_one_module_reads_input_files() -> None:
    names = {"read_text", "read_bytes", "readline", "loads"}
    for path in sorted(SOURCE.rglob("*.py")):
        place = str(path.relative_to(SOURCE))
        if "cases" in path.parts or place in OWN | KERNEL or place.startswith(PACKAGE):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                owner = node.func.value.id if isinstance(node.func.value, ast.Name) else ""
                if node.func.attr in names and owner != "ior_text" and (place, node.func.attr) not in ALLOWED:
                    pytest.fail(
                        f"{place}:{node.lineno}: {node.func.attr}: read it through iodock.shared.bounded"
                    )


ALLOWED = {("centre/monitor/access.py", "loads"), ("program/store/guard.py", "loads")}
"""Not from a file: a name is examined, and the engine's output for a statement, whose depth is limited
there."""
