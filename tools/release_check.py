"""Checks the requirements of a release, and prints one line for each: `make release-check`.

Each check returns its problems, one line each. A check that cannot run here is reported, and does not count
as passed.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parent.parent
LONGEST_CHANGELOG = 80
"""Lines for one release."""
LARGEST_WHEEL = 20_000_000
GLIBC = "2.28"
IN_WHEEL = (
    ".data/scripts/iodock-agent",
    ".data/data/share/man/man1/iodock.1",
    ".data/data/share/man/man1/iodock-agent.1",
    ".data/data/share/bash-completion/completions/iodock",
    ".dist-info/licenses/LICENSE",
    ".dist-info/licenses/THIRD_PARTY_LICENSES.txt",
    "iodock/locale/ja/LC_MESSAGES/iodock.mo",
)
"""Ends of names of files that must be in a wheel."""


class NotChecked(Exception):
    """A program or file that the check needs is missing on this machine."""


def run(*command: str) -> list[str]:
    """Runs a command. Returns the last lines that it printed if it failed."""
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=900, check=False)
    except FileNotFoundError as error:
        raise NotChecked(f"{error.filename} is not here") from None
    lines = (done.stdout + done.stderr).strip().splitlines()
    return [] if done.returncode == 0 else lines[-8:] or [f"{command[0]}: status {done.returncode}"]


def output(*command: str) -> str:
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=True).stdout


def tests(*files: str) -> list[str]:
    return run(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *files)


def python_text(pattern: str, path: str) -> str:
    found = re.search(pattern, (ROOT / path).read_text(), re.MULTILINE)
    return found[1] if found else ""


def versions() -> list[str]:
    """All files have the same version, and the changelog has a heading for it."""
    found = {
        "pyproject.toml": tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"],
        "Cargo.toml": tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"],
        "src/iodock/__init__.py": python_text(r'^__version__ = "(.*)"', "src/iodock/__init__.py"),
        "crates/iodock-agent/pyproject.toml": python_text(
            r'^version = "(.*)"', "crates/iodock-agent/pyproject.toml"
        ),
        "packaging/spack/packages/iodock/package.py": python_text(
            r'^    version\("(.*?)"', "packaging/spack/packages/iodock/package.py"
        ),
        "packaging/conda/recipe.yaml": python_text(r'^  version: "(.*)"', "packaging/conda/recipe.yaml"),
    }
    version = found["pyproject.toml"]
    others = {path: one for path, one in found.items() if one != version}
    wrong = [f"{path} says {one or 'nothing'}, pyproject.toml {version}" for path, one in others.items()]
    if not re.search(rf"^## {re.escape(version)}\b", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE):
        wrong.append(f"CHANGELOG.md has no heading for {version}")
    return wrong


def changelog() -> list[str]:
    """The changelog's new part is short and has the day of the release."""
    parts = re.split(r"^## ", (ROOT / "CHANGELOG.md").read_text(), flags=re.MULTILINE)[1:]
    heading, *lines = parts[0].splitlines()
    is_long = len(lines) >= LONGEST_CHANGELOG
    wrong = [f"{heading} has {len(lines)} lines: fewer than {LONGEST_CHANGELOG} are read"] * is_long
    return wrong + (["still says (unreleased): name the day"] if "unreleased" in heading else [])


def notes() -> list[str]:
    """This version has release notes."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    path = ROOT / "docs" / "releases" / f"{version}.md"
    return [] if path.is_file() else [f"{path.relative_to(ROOT)} is not there"]


def languages() -> list[str]:
    """Every text is translated, with the same facts as the English one."""
    return tests("tests/project/test_languages.py")


def documents() -> list[str]:
    """Generated pages are up to date, and links have targets."""
    return tests("tests/project/test_reference.py")


def site() -> list[str]:
    """The site builds without a warning, so each link and each page's place are valid."""
    return run("make", "--no-print-directory", "site")


def licences() -> list[str]:
    """The licences of all code in the wheel are compatible with Apache-2.0."""
    return run(tool_python(), "tools/licences.py", "--check")


def tool_python() -> str:
    """Returns the Python of `make wheel`. Raises NotChecked if it is missing."""
    python = ROOT / ".venv-wheel" / "bin" / "python"
    if not python.exists():
        raise NotChecked("make wheel makes .venv-wheel")
    return str(python)


def newest_wheel() -> Path:
    """Returns the newest wheel in dist/. Raises NotChecked if there is none."""
    wheels = sorted((ROOT / "dist").glob("iodock-*.whl"), key=lambda path: path.stat().st_mtime)
    if not wheels:
        raise NotChecked("no wheel in dist/: make wheel")
    return wheels[-1]


def wheel_content() -> list[str]:
    """The wheel contains programs, pages and licences, and is small enough."""
    wheel = newest_wheel()
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    lacking = [end for end in IN_WHEEL if not any(one.endswith(end) for one in names)]
    wrong = [f"no file that ends in {end}" for end in lacking]
    size = wheel.stat().st_size
    return wrong + ([f"{size:,} bytes: {LARGEST_WHEEL:,} at most"] if size > LARGEST_WHEEL else [])


def wheel_symbols() -> list[str]:
    """No program in the wheel needs a newer glibc."""
    return run(tool_python(), "tools/glibc_versions.py", GLIBC, str(newest_wheel()))


def wheel_commit() -> list[str]:
    """The wheel was built from the commit that is checked out, without changes."""
    commit = output("tools/commit.sh").strip()
    with zipfile.ZipFile(newest_wheel()) as archive:
        native = next(name for name in archive.namelist() if name.endswith("_native.abi3.so"))
        is_of_it = commit.encode() in archive.read(native)
    wrong = [] if is_of_it else [f"not of {commit}: make wheel again"]
    return wrong + (["files are changed that no commit has"] if commit.endswith("+") else [])


def binaries() -> list[str]:
    """git contains no program except the recorder for the kernel, which has its sources and its own check."""
    kept = output("git", "ls-files", "-z")
    allowed = {"crates/iodock-bpf/recorder.bpf.o"}
    found = [one for one in kept.split("\0") if one and (ROOT / one).is_file() and one not in allowed]
    return [one for one in found if (ROOT / one).open("rb").read(4) == b"\x7fELF"]


CHECKS: tuple[Callable[[], list[str]], ...] = (
    versions,
    changelog,
    notes,
    languages,
    documents,
    site,
    licences,
    binaries,
    wheel_content,
    wheel_symbols,
    wheel_commit,
)


def main(names: list[str]) -> int:
    """Runs all checks, or those with these names. Returns 1 if something is wrong or was not checked."""
    status = 0
    for check in CHECKS:
        if names and check.__name__ not in names:
            continue
        about = " ".join((check.__doc__ or "").split())
        try:
            wrong, word = check(), "WRONG"
        except NotChecked as error:
            wrong, word = [str(error)], "not checked"
        print(f"{word if wrong else 'ok':<12} {check.__name__:<14} {about}")
        for line in wrong:
            print(f"{'':<12} {line}")
        status |= bool(wrong)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
