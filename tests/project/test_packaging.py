"""Tests the tools that build and check the packages."""

from __future__ import annotations

import importlib.util
import sys
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

from places import ROOT


def tool(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    # The tool's data classes look up their module in sys.modules.
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


METADATA = b"Metadata-Version: 2.4\nName: iodock\nLicense-File: LICENSE\n\ntext\n"


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    path = tmp_path / "iodock-1-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("iodock/__init__.py", "")
        archive.writestr("iodock-1.dist-info/METADATA", METADATA)
        archive.writestr("iodock-1.dist-info/RECORD", "iodock-1.dist-info/METADATA,sha256=x,1\n")
    return path


def test_files_added_to_a_wheel_are_recorded(wheel: Path, tmp_path: Path) -> None:
    share = tmp_path / "share"
    (share / "man" / "man1").mkdir(parents=True)
    (share / "man" / "man1" / "iodock.1").write_text(".TH x")
    licence = tmp_path / "OTHERS.txt"
    licence.write_text("MIT")
    files = tool("wheel_files")
    files.put(wheel, {**files.below(share), "scripts/run": (b"\x7fELF", files._PROGRAM)}, licence)
    with zipfile.ZipFile(wheel) as archive:
        assert archive.getinfo("iodock-1.data/scripts/run").external_attr >> 16 == 0o100755
        assert archive.read("iodock-1.data/data/share/man/man1/iodock.1") == b".TH x"
        metadata = archive.read("iodock-1.dist-info/METADATA").decode()
        assert "License-File: OTHERS.txt\nLicense-File: LICENSE\n" in metadata
        lines = archive.read("iodock-1.dist-info/RECORD").decode().splitlines()
        record = dict(line.split(",", 1) for line in lines)
        for name in set(archive.namelist()) - {"iodock/__init__.py", "iodock-1.dist-info/RECORD"}:
            assert files.recorded(name, archive.read(name)) == f"{name},{record[name]}"
    with pytest.raises(SystemExit, match="already"):
        files.put(wheel, {"scripts/run": (b"", files._PROGRAM)})


def test_manual_pages_contain_the_help_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    import click

    from iodock.cli import application

    pages = tool("man_pages")
    root = application()
    written = dict(pages.pages(root, click.Context(root, info_name="iodock")))
    record = written["iodock-record.1"]
    assert ".SH SYNOPSIS\n\\fBiodock record\\fR" in record
    assert "\\fB\\-\\-backend NAME\\fR" in record and "iodock record \\-p 4711" in record
    assert {"iodock.1", "iodock-show-summary.1", "iodock-monitor-serve.1"} <= set(written)
    assert all(text.startswith(".TH ") and "\b" not in text for text in written.values())


def test_a_manual_line_that_begins_with_a_dot_is_text() -> None:
    assert tool("man_pages").escaped(".so x\n'y \\z") == "\\&.so x\n\\&'y \\ez"


def test_the_required_glibc_version_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("elftools", reason="requirements-wheel.txt is not installed")
    versions = tool("glibc_versions")
    program = Path("/bin/sh").resolve()
    needed = versions.needed(program.read_bytes())
    assert needed is not None and needed > (2, 0)
    wheel = tmp_path / "some.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.write(program, "bin/sh")
    assert versions.main(".".join(map(str, needed)), [str(wheel)]) == 0
    assert versions.main("2.0", [str(wheel)]) == 1
    assert "NEWER" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("licence", "is_allowed"),
    [
        ("MIT OR GPL-3.0-only", True),
        ("MIT AND GPL-3.0-only", False),
        ("MIT/Apache-2.0", True),
        ("(MIT OR Apache-2.0) AND Unicode-3.0", True),
        ("nonsense", False),
    ],
)
def test_licences_of_included_code_are_accepted(licence: str, is_allowed: bool) -> None:
    pytest.importorskip("license_expression", reason="requirements-wheel.txt is not installed")
    licences = tool("licences")
    assert licences.is_allowed(licence, licences.settings()["allowed"]) == is_allowed
