#!/usr/bin/env bash
# Makes dist/iodock-agent-VERSION-x86_64-static.tar.gz: the agent with musl inside, for machines whose glibc is older than 2.28.
# Needs Rust's library for musl (rustup target add x86_64-unknown-linux-musl), VENV with requirements-wheel.txt, and the
# wheel in dist/ for the manual page and the licences.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=$(realpath "${VENV:-.venv-wheel}")
export PATH="$venv/bin:$PATH"
target=x86_64-unknown-linux-musl
work=build/static
wheel=${WHEEL:-$(ls -t dist/iodock-*.whl 2>/dev/null | head -n 1 || true)}
[ -n "$wheel" ] || { echo "error: no wheel in dist/; make wheel" >&2; exit 1; }
[ -d "$(rustc --print sysroot)/lib/rustlib/$target" ] ||
    { echo "skipped: no Rust library for musl here, so no static agent; rustup target add $target" && exit 0; }
IODOCK_COMMIT=$(tools/commit.sh)
export IODOCK_COMMIT

rm -rf "$work" && mkdir -p "$work/wheel"
maturin build --release --locked --zig --target $target --compatibility musllinux_1_2 \
    --manifest-path crates/iodock-agent/Cargo.toml --out "$work"
python -m zipfile -e "$work"/iodock_agent-*.whl "$work/agent"
python -m zipfile -e "$wheel" "$work/wheel"
about=$(echo "$work"/wheel/*.dist-info)
version=$(sed -n 's/^Version: //p' "$about/METADATA")
name=iodock-agent-$version-x86_64-static
mkdir "$work/$name"
install -m 755 "$work"/agent/*.data/scripts/iodock-agent "$work/$name/"
if readelf -d "$work/$name/iodock-agent" | grep -q NEEDED; then
    echo "error: the agent is not static" >&2
    exit 1
fi
install -m 644 integrations/systemd/iodock-agent.service packaging/README-agent "$about"/licenses/* \
    "$work"/wheel/*.data/data/share/man/man1/iodock-agent.1 "$work/$name/"
# musl is in the program, and its licence (MIT) asks to be named.
install -m 644 "$(python -c 'import pathlib, ziglang; print(pathlib.Path(ziglang.__file__).parent)')/lib/libc/musl/COPYRIGHT" \
    "$work/$name/LICENSE.musl"
tar --owner=0 --group=0 --sort=name --mtime="$(git log -1 --format=%aI)" -C "$work" -czf "dist/$name.tar.gz" "$name"
ls -l "dist/$name.tar.gz"
