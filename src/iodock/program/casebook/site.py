"""A site's own cases. Each has two anonymised stores, and texts on what the site learned."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from iodock import _native
from iodock.program.casebook.case import OWN_CASES, TEXTS, site_folder
from iodock.program.diagnosis import diagnose
from iodock.program.store import Store
from iodock.program.store.anonymous import Anonymiser, anonymous_copy
from iodock.shared.errors import IodockError, RequestError
from iodock.shared.settings import Settings


def add_case(
    name: str, before: Path, after: Path, texts: Mapping[str, str], settings: Settings, force: bool = False
) -> Path:
    """Adds a case to the site's folder and returns the case's folder. BEFORE and AFTER: its stores. TEXTS:
    texts for keys of `TEXTS`, at least `title`. Raises RequestError, IodockError, StoreError."""
    _check(name, texts)
    folder = site_folder() / name
    if folder.exists() and not force:
        raise IodockError(f"{folder}: exists", "--force replaces it")
    _check_own(folder)
    part = folder.with_name(f".{name}.part")
    shutil.rmtree(part, ignore_errors=True)
    try:
        rules = _copy(before, after, part, settings)
        (part / "case.toml").write_text(_toml(texts, rules), encoding="utf-8")
        _check_own(folder)
        shutil.rmtree(folder, ignore_errors=True)
        part.rename(folder)
    except OSError as error:
        raise IodockError(
            f"{folder}: {error.strerror or error}", "name another folder: IODOCK_CASES=DIR"
        ) from error
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return folder


def _check_own(folder: Path) -> None:
    """Raises IodockError if the folder contains something that `add_case` did not write."""
    if not os.path.lexists(folder):
        return
    stores = [folder / name for name in ("before.iodock", "after.iodock")]
    foreign = [folder] if folder.is_symlink() or not folder.is_dir() else [
        one for one in folder.iterdir()
        if one not in stores and (one.name != "case.toml" or one.is_symlink() or not one.is_file())
    ]  # fmt: skip
    for store in stores:
        if not foreign and os.path.lexists(store):
            foreign += _native.foreign_in_store(store)
    if foreign:
        named = ", ".join(str(one) for one in sorted(foreign)[:5])
        raise IodockError(
            f"{folder}: contains files that are not part of a case, so it is not replaced: {named}",
            "remove it yourself, or choose another name",
        )


def _check(name: str, texts: Mapping[str, str]) -> None:
    if not name or any(not (letter.isalnum() or letter == "-") for letter in name):
        raise RequestError(f"{name!r} is not a name for a case", "small letters, digits and hyphens")
    if (OWN_CASES / name).exists():
        raise RequestError(f"{name}: iodock includes a case of that name", "choose another name")
    title = texts.get("title", "")
    if not title.strip() or not title.isprintable():
        raise RequestError(f"{title!r} can't be a title", "one line that says what the case is about")


def _copy(before: Path, after: Path, part: Path, settings: Settings) -> list[str]:
    """Copies both stores in anonymised form, and returns the rules that find something in the first store but
    not in the second."""
    # Both stores get the same made-up names, so that their files can be matched.
    mounts: set[str] = set()
    found = []
    for store in (before, after):
        with Store.open(store) as opened:
            rows = opened.rows("SELECT DISTINCT mount_point FROM files WHERE mount_point IS NOT NULL")
            mounts |= {row["mount_point"] for row in rows}
            found.append({one.rule for one in diagnose(opened, settings).worth_changing})
    names = Anonymiser(mounts)
    part.mkdir(parents=True)
    anonymous_copy(before, part / "before.iodock", names)
    anonymous_copy(after, part / "after.iodock", names)
    return sorted(found[0] - found[1])


def _toml(texts: Mapping[str, str], rules: list[str]) -> str:
    # A JSON string, and a JSON list of strings, are valid in TOML, too.
    lines = [f"{key} = {json.dumps(texts.get(key, ''), ensure_ascii=False)}" for key in TEXTS]
    return "\n".join([*lines, f"rules = {json.dumps(rules)}"]) + "\n"
