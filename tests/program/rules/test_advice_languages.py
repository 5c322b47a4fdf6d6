"""Tests that advice is in the programming language of the program that made the calls, determined for each
process and again after each exec."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from iodock.program.diagnosis import diagnosis_of, facts_of
from iodock.program.findings import Advice
from iodock.program.rules.base import Candidate, advise
from iodock.program.rules.languages import advice_for
from iodock.program.rules.small_requests import RULE
from iodock.program.store import Store
from iodock.program.views.diagnosis_words import whose_advice
from iodock.shared.language import language_in
from iodock.shared.message import Message
from iodock.shared.settings import load
from recorded import IODOCK, bpf_unavailable, live, run
from strace_log import Log

PLAIN = {"any", "administrator"}

C = """#include <stdio.h>
int main(void) {
    FILE *out = fopen("out.txt", "w");
    for (int i = 0; i < 600; i++) { fprintf(out, "%d\\n", i); fflush(out); }
    return fclose(out);
}
"""
CPP = """#include <fstream>
int main() {
    std::ofstream out("out.txt");
    for (int i = 0; i < 600; i++) out << i << std::endl;
}
"""
FORTRAN = """program steps
  integer :: i
  open(10, file='out.txt')
  do i = 1, 600
    write(10, *) i
    flush(10)
  end do
end program steps
"""
PYTHON = """out = open("out.txt", "w")
for number in range(600):
    print(number, file=out, flush=True)
"""
PERL = """use IO::Handle;
open(my $out, ">", "out.txt");
$out->autoflush(1);
print $out "$_\\n" for 1 .. 600;
"""
BASH = "for ((i = 0; i < 600; i++)); do echo $i; done > out.txt\n"
JAVA = """public class Steps {
    public static void main(String[] names) throws java.io.IOException {
        var out = new java.io.FileOutputStream("out.txt");
        for (int i = 0; i < 600; i++) out.write(("" + i).getBytes());
    }
}
"""
COMPILERS = {"c": "gcc", "cc": "g++", "f90": "gfortran"}
SOURCES = {"c": C, "cc": CPP, "f90": FORTRAN}


def built(folder: Path, ending: str, *options: str) -> str:
    """Compiles one of the programs. Skips the test if there is no compiler."""
    compiler = COMPILERS[ending]
    if not shutil.which(compiler):
        pytest.skip(f"{compiler} is not installed")
    (folder / f"steps.{ending}").write_text(SOURCES[ending])
    subprocess.run([compiler, "-O1", "-o", "steps", f"steps.{ending}", *options], cwd=folder, check=True)
    return "./steps"


def script(folder: Path, text: str, interpreter: str, name: str = "steps") -> str:
    """Writes a script with an interpreter line. Skips the test if there is no interpreter."""
    if not (found := shutil.which(interpreter)):
        pytest.skip(f"{interpreter} is not installed")
    path = folder / name
    path.write_text(f"#!{found}\n{text}")
    path.chmod(0o755)
    return f"./{name}"


@pytest.fixture(params=["rewrite", "ptrace", "bpf"])
def backend(request: pytest.FixtureRequest) -> str:
    if request.param == "bpf" and (reason := bpf_unavailable()):
        pytest.skip(reason)
    return str(request.param)


def advice_of(folder: Path, backend: str, *command: str) -> list[Advice]:
    """Records a command and returns the advice on its small writes, whatever they cost."""
    options = ["--quiet", "--backend", backend, "-o", "run.iodock"]
    done = run([*IODOCK, "record", *options, "--", *command], folder)
    assert done.returncode == 0, done.stderr
    with Store.open(folder / "run.iodock") as store:
        (names,) = store.rows("SELECT list(name) AS out FROM files WHERE name LIKE '%out.txt'")
        writes = Candidate(Message(""), 600, None, {}, "", files=tuple(names["out"]), call="write")
        return list(advice_for(RULE.advice, writes, facts_of(store, load())))


def languages(advice: list[Advice]) -> set[str]:
    return {one.language for one in advice} - PLAIN


Maker = Callable[[Path], str]
PROGRAMS: dict[str, tuple[Maker, set[str]]] = {
    "C": (lambda folder: built(folder, "c"), {"C"}),
    "C++": (lambda folder: built(folder, "cc"), {"C++"}),
    "Fortran": (lambda folder: built(folder, "f90"), {"Fortran"}),
    "static C++": (lambda folder: built(folder, "cc", "-static-libstdc++", "-static-libgcc"), {"C++"}),
    "Python by #!": (lambda folder: script(folder, PYTHON, "python3"), {"Python"}),
    "shell by #!": (lambda folder: script(folder, BASH, "bash"), {"shell"}),
    "Perl by #!": (lambda folder: script(folder, PERL, "perl"), set()),
}


@pytest.mark.whole
@live
@pytest.mark.parametrize("name", PROGRAMS)
def test_each_program_gets_advice_for_its_language(tmp_path: Path, backend: str, name: str) -> None:
    make, wanted = PROGRAMS[name]
    found = advice_of(tmp_path, backend, make(tmp_path))
    assert languages(found) == wanted
    assert all(one.program is None for one in found)


@pytest.mark.whole
@live
@pytest.mark.parametrize(
    "wrapper",
    [
        ("sh", "-c", "{}"),
        ("bash", "-c", "exec {}"),
        ("sh", "-c", "{}; true"),
        ("python3", "-c", "import os; os.execv('{}', ['{}'])"),
        ("env", "OMP_NUM_THREADS=1", "nice", "{}"),
    ],
    ids=["sh", "exec", "sh-then", "execv", "env-nice"],
)
def test_the_language_of_a_wrapper_is_ignored(tmp_path: Path, wrapper: tuple[str, ...]) -> None:
    program = built(tmp_path, "cc")
    found = advice_of(tmp_path, "rewrite", *(one.replace("{}", program) for one in wrapper))
    assert languages(found) == {"C++"}


@live
def test_the_language_of_a_job_script_is_ignored(tmp_path: Path, backend: str) -> None:
    program = built(tmp_path, "f90")
    job = script(
        tmp_path, f"module list 2> /dev/null\ncd .\n{program} > run.log\necho done\n", "bash", "job.sh"
    )
    assert languages(advice_of(tmp_path, backend, job)) == {"Fortran"}


@pytest.mark.whole
@live
def test_java_programs_get_the_general_advice(tmp_path: Path) -> None:
    if not (shutil.which("javac") and shutil.which("java")):
        pytest.skip("no Java here")
    (tmp_path / "Steps.java").write_text(JAVA)
    subprocess.run(["javac", "Steps.java"], cwd=tmp_path, check=True)
    found = advice_of(tmp_path, "rewrite", "java", "Steps")
    assert not languages(found)
    assert found


@pytest.mark.whole
@live
def test_programs_with_the_same_problem_are_named(tmp_path: Path) -> None:
    program = built(tmp_path, "cc")
    script(tmp_path, PYTHON, "python3", "reduce.py")
    job = f"{program} && mv out.txt first-out.txt && ./reduce.py"
    found = advice_of(tmp_path, "rewrite", "sh", "-c", job)
    named = {(one.language, one.program) for one in found if one.language not in PLAIN}
    assert named >= {("C++", "steps"), ("Python", "reduce.py")}
    (steps,) = [one for one in found if one.language == "C++"]
    assert whose_advice(steps, language_in("en")) == "in steps (C++)"


@live
def test_a_program_of_unknown_language_gets_advice_for_c_and_a_note(tmp_path: Path) -> None:
    program = built(tmp_path, "c", "-static", "-s")
    found = advice_of(tmp_path, "ptrace", program)
    assert languages(found) == {"C"}
    unclear = [one.message for one in found if one.message.text.startswith("The language of {program}")]
    assert unclear
    assert unclear[0].values == {"program": "steps"}


@live
def test_the_language_of_a_deleted_program_follows_from_opened_files(tmp_path: Path) -> None:
    program = built(tmp_path, "cc")
    found = advice_of(tmp_path, "ptrace", "sh", "-c", f"{program}; rm {program}")
    assert languages(found) == {"C++"}


def _said(tmp_path: Path, log: Log) -> list[Advice]:
    with Store.open(log.store(tmp_path / "log.iodock")) as store:
        found = diagnosis_of(facts_of(store, load()))
    return [advice for one in found.findings for advice in one.advice if one.rule == "small-requests"]


def _log(*opened: str, program: str = "/home/u/app") -> Log:
    log = Log()
    log.call(f'execve("{program}", ["{program}"], 0x7ffe /* 9 vars */)', "0", 0.001)
    for name in opened:
        log.open(name, 0.00001, "O_RDONLY")
    log.open("/data/out.txt", 0.00001)
    log.move("write", "/data/out.txt", 5000, 10, 0.5)
    return log


@pytest.mark.parametrize(
    ("opened", "program", "wanted"),
    [
        (("/lib/libstdc++.so.6", "/lib/libc.so.6"), "/home/u/app", {"C++"}),
        (("/lib/libgfortran.so.5", "/lib/libm.so.6", "/lib/libc.so.6"), "/home/u/app", {"Fortran"}),
        # The loader opens a library's own libraries, here libstdc++ of MPI, together with those of the
        # program.
        (("/lib/libmpi.so.40", "/lib/libc.so.6", "/lib/libstdc++.so.6"), "/home/u/app", {"C", "MPI-IO"}),
        (("/lib/libc.so.6", "/v/lib/python3.11/os.py"), "/v/bin/python3.11", {"Python"}),
        (("/lib/libc.so.6",), "/home/u/run.sh", {"shell"}),
        (("/lib/libc.so.6",), "/home/u/miniconda3/envs/e/bin/julia", set()),
        (("/lib/libc.so.6",), "/home/u/app", {"C"}),
    ],
    ids=["cpp", "fortran", "mpi", "python", "script", "julia", "c"],
)
def test_the_language_in_a_log_follows_from_opened_files(
    tmp_path: Path, opened: tuple[str, ...], program: str, wanted: set[str]
) -> None:
    found = _said(tmp_path, _log(*opened, program=program))
    assert {one.language for one in found} - PLAIN == wanted


def test_libraries_have_their_own_advice(tmp_path: Path) -> None:
    packages = "/v/lib/python3.11/site-packages"
    log = _log(
        "/lib/libc.so.6", f"{packages}/numpy/core.so", f"{packages}/pandas/a.so", program="/v/bin/python3"
    )
    headings = {one.heading for one in _said(tmp_path, log)} - {""}
    # The program imports only pandas, which loads numpy.
    assert headings == {"Python", "Python, pandas"}


def test_h5py_gets_the_advice_for_hdf5(tmp_path: Path) -> None:
    packages = "/v/lib/python3.11/site-packages"
    log = _log("/lib/libc.so.6", f"{packages}/h5py/h5.so", program="/v/bin/python3")
    assert {one.heading for one in _said(tmp_path, log)} - {""} == {"Python", "HDF5"}


def test_each_library_belongs_to_a_language() -> None:
    plain, pandas = advise(python="x", pandas="y")
    assert (plain.language, plain.library, plain.heading) == ("Python", None, "Python")
    assert (pandas.language, pandas.library, pandas.heading) == ("Python", "pandas", "Python, pandas")
