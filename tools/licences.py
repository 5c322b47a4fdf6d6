"""Collects the licences of the Rust crates and other code inside the wheel, and fails if one is not
compatible with Apache-2.0.

    tools/licences.py --check          prints the number of parts, and an error for each that is not allowed
    tools/licences.py --write FILE     writes the notice for the wheel, with every text

packaging/licences.toml lists the allowed licences. Needs requirements-wheel.txt.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import subprocess
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from license_expression import ExpressionError, get_spdx_licensing

ROOT = Path(__file__).parent.parent
IN_THE_WHEEL = ("iodock-python", "iodock-agent")
NAMES = ("LICENSE", "LICENCE", "COPYING", "NOTICE", "UNLICENSE", "COPYRIGHT")
_SPDX = get_spdx_licensing()


@dataclass(frozen=True, slots=True)
class Part:
    """A crate, or other code, inside the wheel."""

    name: str
    licence: str
    texts: tuple[str, ...]


def settings() -> dict[str, Any]:
    return tomllib.loads((ROOT / "packaging" / "licences.toml").read_text())


def is_allowed(expression: str, allowed: list[str]) -> bool:
    """Returns whether the ALLOWED licences satisfy an SPDX expression. In old expressions, `/` means OR."""
    try:
        parsed = _SPDX.parse(expression.replace("/", " OR "), validate=True)
    except ExpressionError:
        return False
    known = {_SPDX.parse(one): _SPDX.TRUE for one in allowed}
    return bool(parsed is not None and parsed.subs(known).simplify() == _SPDX.TRUE)


def metadata() -> dict[str, Any]:
    """Returns cargo's metadata of all crates. Raises CalledProcessError."""
    command = ["cargo", "metadata", "--locked", "--format-version", "1"]
    command += ["--filter-platform", "x86_64-unknown-linux-gnu"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=120)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def linked(found: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Returns the external packages that the wheel's programs depend on, without those needed only for tests
    or builds."""
    packages = {one["id"]: one for one in found["packages"]}
    nodes = {one["id"]: one for one in found["resolve"]["nodes"]}
    seen = {one["id"] for one in found["packages"] if one["name"] in IN_THE_WHEEL}
    waiting = list(seen)
    while waiting:
        for needed in nodes[waiting.pop()]["deps"]:
            if needed["pkg"] not in seen and any(one["kind"] is None for one in needed["dep_kinds"]):
                seen.add(needed["pkg"])
                waiting.append(needed["pkg"])
    others = [packages[one] for one in seen if packages[one]["source"]]
    return sorted(others, key=lambda one: (one["name"], one["version"]))


def crate(package: Mapping[str, Any], known: Mapping[str, Any]) -> Part:
    """Returns a crate with the licence texts in its folder. Raises SystemExit if the crate has none."""
    name, folder = package["name"], Path(package["manifest_path"]).parent
    texts = []
    for path in sorted(folder.rglob("*")):
        place = f"{name}/{path.relative_to(folder).as_posix()}"
        is_left_out = any(fnmatch.fnmatch(place, one) for one in known["left_out"])
        if path.is_file() and path.name.upper().startswith(NAMES) and not is_left_out:
            texts.append(path.read_text(encoding="utf-8", errors="replace").strip())
    if not texts and name not in known["without_file"]:
        raise SystemExit(f"error: {name} has no licence file: see without_file in packaging/licences.toml")
    if not texts:
        texts = [f"{package['license']}, by {', '.join(package['authors']) or name}: {package['repository']}"]
        texts += [rust_text(f"{known['without_file'][name]}.txt")]
    return Part(f"{name} {package['version']}", package["license"] or "", tuple(texts))


def rust_text(name: str) -> str:
    """Returns a licence text that comes with Rust."""
    command = ["rustc", "--print", "sysroot"]
    sysroot = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout.strip()
    return (Path(sysroot) / "share" / "doc" / "rust" / "licenses" / name).read_text().strip()


def bundled(known: Mapping[str, Any], *, with_texts: bool) -> Iterator[Part]:
    """Yields the parts of the wheel that are no crates."""
    for one in known["bundled"]:
        texts = [rust_text(name) for name in one.get("rust", ())] if with_texts else []
        if with_texts and "zig" in one:
            import ziglang  # type: ignore[import-untyped]

            zig = Path(ziglang.__file__).parent
            texts += [(zig / name).read_text(errors="replace").strip() for name in one["zig"]]
        yield Part(one["name"], one["licence"], tuple(texts))


def notice(parts: list[Part]) -> str:
    """Returns a notice that lists all parts, and then every text once with the parts it applies to."""
    of: dict[str, list[str]] = defaultdict(list)
    for part in parts:
        for text in part.texts:
            of[text].append(part.name)
    lines = ["The programs and libraries of iodock hold code of others, under these licences.", ""]
    lines += [f"{part.name}: {part.licence}" for part in parts]
    for text, names in of.items():
        lines += ["", "=" * 80, ", ".join(dict.fromkeys(names)), "=" * 80, "", text]
    return "\n".join([*lines, ""])


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--write", type=Path, metavar="FILE")
    given = parser.parse_args(arguments)
    known = settings()
    parts = [crate(package, known) for package in linked(metadata())]
    parts += bundled(known, with_texts=given.write is not None)
    wrong = [part for part in parts if not is_allowed(part.licence, known["allowed"])]
    for part in wrong:
        print(f"error: {part.name}: {part.licence or 'no licence'} is not allowed", file=sys.stderr)
    if given.write and not wrong:
        given.write.parent.mkdir(parents=True, exist_ok=True)
        given.write.write_text(notice(parts), encoding="utf-8")
    print(f"{len(parts)} parts, {len(wrong)} with a licence that is not allowed")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
