#!/bin/sh
# From the wheel to a report: record, diagnose, report, agent. tools/test_wheel.sh runs it in an old root.
set -eu
cd /try
python=/opt/python/bin/python3

for compiler in cc gcc clang rustc; do
    if command -v "$compiler" >/dev/null; then
        echo "error: $compiler is there, and this is the test without a compiler" >&2
        exit 1
    fi
done
echo "$(. /etc/os-release && echo "$PRETTY_NAME"), glibc $(ldd --version | sed -n '1s/.* //p'), $($python --version)," \
    "user $(id -u)"
start=$(date +%s)
$python -m venv own
own/bin/pip install --quiet --disable-pip-version-check --no-index --find-links wheels iodock
PATH=$PWD/own/bin:$PATH
echo "installed: $(($(date +%s) - start)) s"
iodock --version
cases=$(python -c 'import iodock.program.casebook as book; print(book.__path__[0])')/cases
iodock record --quiet -o run.iodock -- python "$cases/open-close/before.py" out.log 4000 >/dev/null
iodock diagnose run.iodock --json >found.json
iodock report run.iodock -o run.html
echo "from the wheel to a report: $(($(date +%s) - start)) s"
iodock-agent --version
iodock-agent once --format json >agent.json
python - <<'PYTHON'
import json, pathlib
found = [one["rule"] for one in json.loads(pathlib.Path("found.json").read_text())["findings"]]
assert found, "the program opens its file again for each line, and nothing was found"
page = pathlib.Path("run.html").read_text()
assert "</html>" in page and "before.py" in page
samples = json.loads(pathlib.Path("agent.json").read_text())["samples"]
assert samples, "the agent read nothing"
print(f"found: {', '.join(found)}; report: {len(page):,} characters; samples of the agent: {len(samples)}")
PYTHON
for page in iodock.1 iodock-record.1 iodock-agent.1; do
    test -s "own/share/man/man1/$page"
done
test -s own/share/bash-completion/completions/iodock
ls own/lib/python3*/site-packages/iodock-*.dist-info/licenses
echo "1 passed, 0 failed"
