#!/usr/bin/env bash
# Prints the folders with IOR and mdtest, one for each MPI here (build/ior/openmpi, build/ior/mpich): the release 4.0.0 of
# github.com/hpc/ior, whose commit is checked, with HDF5 where the parallel one of that MPI is installed. Nothing is
# installed. IOR_REPOSITORY names another git repository that has the release.
# Exit 3: there are no sources or no MPI, or IOR can't be built here.
set -euo pipefail
cd "$(dirname "$0")/.."
RELEASE=4.0.0
COMMIT=967a9f65109760db8a3ac14a7fdd007f337d2960
place=$PWD/build/ior

lacks() {
    echo "$1" >&2
    exit 3
}

kinds=
for kind in openmpi mpich; do
    command -v "mpicc.$kind" "mpirun.$kind" >/dev/null && kinds="$kinds $kind"
done
[ -n "$kinds" ] || lacks "no MPI is installed: neither mpicc.openmpi nor mpicc.mpich"

sources() {
    local from=${IOR_REPOSITORY:-https://github.com/hpc/ior}
    rm -rf "$place/sources"
    # (Neither a question nor a silent server may hold this up.)
    GIT_TERMINAL_PROMPT=0 timeout 300 git -c advice.detachedHead=false clone --quiet --depth 1 --branch "$RELEASE" "$from" "$place/sources" 2>"$place/log" ||
        lacks "the sources of IOR can't be had from $from: $(tail -n 1 "$place/log")"
    [ "$(git -C "$place/sources" rev-parse HEAD)" = "$COMMIT" ] || {
        rm -rf "$place/sources"
        echo "error: $RELEASE of $from is not the commit $COMMIT" >&2
        exit 1
    }
    (cd "$place/sources" && ./bootstrap) >"$place/log" 2>&1 || {
        tail -n 20 "$place/log" >&2
        rm -rf "$place/sources"
        lacks "IOR's configure can't be made here"
    }
}

build() {
    local kind=$1 work options=()
    work=$(mktemp -d)
    # A folder of object files for each: the sources stay as they are.
    if pkg-config --exists "hdf5-$kind" 2>/dev/null; then
        options=(--with-hdf5 "CPPFLAGS=$(pkg-config --cflags "hdf5-$kind")" "LDFLAGS=$(pkg-config --libs-only-L "hdf5-$kind")")
    fi
    (cd "$work" && "$place/sources/configure" "CC=mpicc.$kind" "MPICC=mpicc.$kind" "${options[@]}" --prefix="$place/$kind" \
        --quiet && make --silent -j2 && make --silent install) >"$place/log" 2>&1 || {
        tail -n 20 "$place/log" >&2
        rm -rf "$work"
        lacks "IOR can't be built here with $kind"
    }
    rm -rf "$work"
}

mkdir -p "$place"
for kind in $kinds; do
    if [ ! -x "$place/$kind/bin/ior" ]; then
        for program in git autoreconf make; do
            command -v "$program" >/dev/null || lacks "$program is not installed, which builds IOR"
        done
        [ -x "$place/sources/configure" ] || sources
        build "$kind"
    fi
    echo "$place/$kind"
done
