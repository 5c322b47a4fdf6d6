#!/usr/bin/env bash
# Prints folders with other MPI libraries than those of the system, one for each line of requirements-mpi.txt: Python
# environments in build/mpi that have MPI's compiler, launcher and mpi4py. Exit 3: they can't be had.
set -euo pipefail
cd "$(dirname "$0")/.."
place=$PWD/build/mpi
python=${PYTHON:-python3}

lacks() {
    echo "$1" >&2
    exit 3
}

command -v gcc >/dev/null || lacks "gcc is not installed, which compiles the programs"
mpi4py=$(grep '^mpi4py==' requirements-mpi.txt)
grep -v '^#\|^mpi4py' requirements-mpi.txt | while read -r library; do
    folder=$place/${library//==/-}
    if [ ! -e "$folder/.installed" ]; then
        rm -rf "$folder"
        "$python" -m venv "$folder" >&2 || lacks "$python has no venv"
        "$folder/bin/python" -m pip install --quiet --disable-pip-version-check "$library" "$mpi4py" >&2 ||
            lacks "$library can't be installed here"
        touch "$folder/.installed"
    fi
    echo "$folder"
done
