#!/usr/bin/env bash
# Builds the wheel: `make wheel`. Needs Rust, gcc, and the virtual environment VENV with requirements-wheel.txt.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=$(realpath "${VENV:-.venv-wheel}")
export PATH="$venv/bin:$PATH"
work=build/wheel
IODOCK_COMMIT=$(tools/commit.sh)
export IODOCK_COMMIT

rm -rf build/agent "$work"
mkdir -p "$work" dist
PYTHONPATH=src python tools/messages.py --compile
for build in "--manifest-path crates/iodock-agent/Cargo.toml --out build/agent" "--out $work"; do
    # shellcheck disable=SC2086
    maturin build --release --locked --zig --compatibility manylinux_2_28 $build
done
wheel=$(echo "$work"/iodock-*.whl)

# Manual pages and completions are written by what is in the wheel.
python -m zipfile -e "$wheel" "$work/unpacked"
python -m zipfile -e build/agent/*.whl build/agent/unpacked
agent=$(echo build/agent/unpacked/*.data/scripts/iodock-agent)
chmod +x "$agent"
PYTHONPATH="$work/unpacked" python tools/man_pages.py "$work/share/man/man1" "$agent"
declare -A places=([bash]=bash-completion/completions/iodock [zsh]=zsh/site-functions/_iodock
    [fish]=fish/vendor_completions.d/iodock.fish)
for shell in "${!places[@]}"; do
    mkdir -p "$(dirname "$work/share/${places[$shell]}")"
    PYTHONPATH="$work/unpacked" python -m iodock completion "$shell" >"$work/share/${places[$shell]}"
done

python tools/licences.py --write "$work/THIRD_PARTY_LICENSES.txt"
python tools/wheel_files.py "$wheel" --licence "$work/THIRD_PARTY_LICENSES.txt" \
    --program iodock-agent="$(echo build/agent/*.whl)" --share "$work/share"
python tools/glibc_versions.py 2.28 "$wheel"
mv "$wheel" dist/
ls -l dist/"$(basename "$wheel")"
