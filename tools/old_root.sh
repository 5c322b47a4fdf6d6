#!/usr/bin/env bash
# Prints the folder of a root of the oldest Debian that can be had here, with a Python for iodock in it (/opt/python)
# and no compiler: `make test-wheel` tries the wheel there. Makes it if it is not there. Its last line on stderr names it.
#
#   tools/old_root.sh [FOLDER]        build/roots without one
#
# Debian 11 has Python 3.9 only, so the source package of Debian 12's 3.11 is built, in a copy of the root.
# Needs root, debootstrap and a mirror (MIRROR); ends with 3 where one of them is missing.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$(realpath -m "${1:-build/roots}")
mirror=${MIRROR:-http://deb.debian.org/debian}
sums=dists/bookworm/main/source/Sources.xz

give_up() { echo "skipped: $*" >&2; exit 3; }

oldest_suite() {
    local suite
    for suite in buster bullseye bookworm; do
        curl -fsS -o /dev/null --max-time 30 "$mirror/dists/$suite/Release" 2>/dev/null && echo "$suite" && return
    done
    return 1
}

# The folder of the source package, out of the archive's index.
sources_of_python() {
    curl -fsS --max-time 120 "$mirror/$sums" | xz -dc |
        awk -v RS= '/^Package: python3\.11\n/' >"$folder/python.dsc.txt"
    local place
    place=$(sed -n 's/^Directory: //p' "$folder/python.dsc.txt")
    # Lines of "Checksums-Sha256:" are: sum, size, file.
    sed -n '/^Checksums-Sha256:/,/^[A-Z]/p' "$folder/python.dsc.txt" | awk '$3 ~ /\.orig\.tar\.[gx]z$/ {print $1, $3}' |
        while read -r sum file; do
            curl -fsS --max-time 300 -o "$folder/python.tar" "$mirror/$place/$file"
            echo "$sum  $folder/python.tar" | sha256sum --check --quiet
        done
}

build_python() {
    local builder=$folder/builder
    [ -d "$builder" ] || cp -a "$1" "$builder"
    chroot "$builder" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
        gcc libc6-dev make zlib1g-dev libffi-dev libssl-dev libbz2-dev liblzma-dev >"$folder/apt.log" 2>&1
    mkdir -p "$builder/build" && tar -xf "$folder/python.tar" -C "$builder/build" --strip-components=1
    chroot "$builder" sh -ec "cd /build && ./configure --quiet --prefix=/opt/python --disable-test-modules &&
        make --silent -j$(nproc) && make --silent install" >"$folder/python.log" 2>&1
    cp -a "$builder/opt/python" "$1/opt/"
    rm -rf "$builder"
}

[ "$(id -u)" = 0 ] || give_up "test-wheel, only root can make a root of its own"
command -v debootstrap >/dev/null || give_up "test-wheel, debootstrap is not installed"
mkdir -p "$folder"
if [ ! -e "$folder/root/opt/python/bin/python3" ]; then
    suite=$(oldest_suite) || give_up "test-wheel, there is no Debian mirror to be had here"
    # What an earlier call left unfinished is gone on with, from its last whole step.
    [ -e "$folder/new/.whole" ] || rm -rf "$folder/new" "$folder/builder"
    [ -e "$folder/new/.whole" ] || debootstrap --variant=minbase --include=libssl1.1,libffi7,libbz2-1.0,liblzma5,procps "$suite" "$folder/new" "$mirror" \
        >"$folder/debootstrap.log" 2>&1
    touch "$folder/new/.whole"
    sources_of_python
    build_python "$folder/new"
    rm -rf "$folder/root" && mv "$folder/new" "$folder/root"
fi
libc=$(chroot "$folder/root" ldd --version | sed -n '1s/.* //p')
echo "$(. "$folder/root/etc/os-release" && echo "$PRETTY_NAME"), glibc $libc," \
    "$(chroot "$folder/root" /opt/python/bin/python3 --version)" >&2
echo "$folder/root"
