"""Tests that the reference agrees with the code, and that the code is documented."""

from __future__ import annotations

import importlib.util
import re
from types import ModuleType

import pytest

from places import ROOT


def generator(name: str = "reference") -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("page", sorted(generator().pages()))
def test_the_generated_reference_is_up_to_date(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    written = (ROOT / "docs" / "reference" / page).read_text()
    assert written == generator().pages()[page], "run `make reference`"


def test_the_generated_case_pages_are_up_to_date() -> None:
    folder = ROOT / "docs" / "cases"
    pages = generator("casebook").documents()
    by_hand = {"index.md", "ja/index.md"}
    assert {path.relative_to(folder).as_posix() for path in folder.rglob("*.md")} - by_hand == set(pages)
    lagging = [name for name, text in pages.items() if (folder / name).read_text(encoding="utf-8") != text]
    assert not lagging, "run `make reference`"


def test_links_between_documents_work() -> None:
    broken = []
    for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", path.read_text()):
            if "://" not in target and not (path.parent / target).exists():
                broken.append(f"{path.relative_to(ROOT)}: {target}")
    assert not broken, broken
