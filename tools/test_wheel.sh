#!/usr/bin/env bash
# Tries the newest wheel of dist/ in the oldest root that can be had here, as a user without a compiler: `make test-wheel`.
# ROOT=FOLDER names another root, with Python 3.11 or newer at /opt/python/bin/python3.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=${VENV:-.venv-wheel}
wheels=build/wheelhouse

wheel=$(ls -t dist/iodock-*.whl 2>/dev/null | head -n 1 || true)
[ -n "$wheel" ] || { echo "error: no wheel in dist/; make wheel" >&2; exit 1; }
root=${ROOT:-$(tools/old_root.sh)} || { [ $? = 3 ] && exit 0; exit 1; }

# The packages that iodock needs, in builds for as old a glibc: the root reaches no registry.
mkdir -p "$wheels"
"$venv/bin/python" -m pip download --quiet --disable-pip-version-check --only-binary :all: --implementation cp \
    --python-version 3.11 --abi cp311 --abi abi3 --abi none \
    --platform manylinux_2_28_x86_64 --platform manylinux_2_17_x86_64 --platform manylinux2014_x86_64 \
    --dest "$wheels" -r requirements.txt

place=$root/try
rm -rf "$place" && mkdir -p "$place/wheels"
cp "$wheels"/*.whl "$wheel" "$place/wheels/"
cp tools/wheel_smoke.sh "$place/"
chown -R 1000:1000 "$place"
# Its own /proc and processes; nothing that is started there outlives it.
unshare --mount --pid --fork --kill-child sh -ec "
    mkdir -p '$root/proc' '$root/dev/shm'
    mount -t proc proc '$root/proc'
    mount --bind /dev '$root/dev'
    mount -t tmpfs tmpfs '$root/dev/shm'
    exec chroot --userspec 1000:1000 '$root' env -i HOME=/try PATH=/usr/bin:/bin LC_ALL=C.UTF-8 sh /try/wheel_smoke.sh"
