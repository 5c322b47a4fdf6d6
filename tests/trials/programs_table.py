"""Lists programs of a Linux machine that behave the same every time. `make test-programs` records each with
every back end."""

from __future__ import annotations

import enum
import os
import shlex
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from places import FIXTURES

SOURCES = FIXTURES / "programs"
MPIRUN = "mpirun --allow-run-as-root --oversubscribe --bind-to none -n 2"


class Calls(enum.Enum):
    """Whether the number of each call is the same in every run of a program."""

    SAME = "the same each time"
    SPREAD = "within what several runs show"
    """Threads or processes wait for each other, or read each other's pipes."""
    ANY = "another number each time"
    """Only output, files and status are compared."""


@dataclass(frozen=True)
class Program:
    """A program that runs in a folder with `tree`, `big.txt` and `lines.txt`."""

    name: str
    command: str
    """Words, or with `;`, `|` and similar a command for bash. `$BUILT` is the folder of built programs."""
    calls: Calls = Calls.SAME
    needs: str = ""
    """Required programs, apart from the first word."""
    build: tuple[str, ...] = ()
    """Commands that build its programs, once, in `$BUILT`."""
    varies: str = ""
    """Calls whose number depends on time: Go starts a thread if the others are busy."""
    ends: int = 0
    """Its status; negative: the signal that ends it."""

    @property
    def is_shell(self) -> bool:
        return any(mark in self.command for mark in ";|&<>*\n")

    def missing(self) -> list[str]:
        """Returns the required programs that are not installed."""
        first = () if self.is_shell else (self.command.split()[0],)
        needed = [one for one in (*first, *self.needs.split()) if not one.startswith("$")]
        return [one for one in needed if not shutil.which(one)]

    def words(self) -> list[str]:
        """Returns the words of the command, in which `$BUILT` is not replaced yet."""
        return ["bash", "-c", self.command] if self.is_shell else shlex.split(self.command)


def prepare(folder: Path) -> None:
    """Writes the files for every program. They are older than git's index, because git reads files again if
    they are as young as the index."""
    for number in range(30):
        path = folder / "tree" / f"sub-{number % 3}" / f"file-{number}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bytes(range(256)) * (number * 7 % 50 + 1))
    lines = [f"{number * 7919 % 100_003:06d} some words of line {number}\n" for number in range(60_000)]
    (folder / "big.txt").write_text("".join(lines))
    (folder / "lines.txt").write_text("".join(lines[:2000]))
    for path in sorted(folder.rglob("*"), reverse=True):
        os.utime(path, (1_500_000_000, 1_500_000_000))


def _c(name: str, *flags: str, out: str = "") -> str:
    return " ".join(["gcc -w -O1 -pthread -o", f"$BUILT/{out or name}", *flags, str(SOURCES / f"{name}.c")])


def _way(name: str, calls: Calls = Calls.SAME, ends: int = 0) -> Program:
    build = (_c("everywhere"),)
    return Program(f"C: {name}", f"$BUILT/everywhere {name}", calls, "gcc", build, ends=ends)


def _fio(name: str, *options: str, calls: Calls = Calls.SPREAD) -> Program:
    plain = "fio --name=a --rw=randrw --size=512k --bs=4k --randseed=7 --filename=fio.dat --output=/dev/null"
    # fio queries the state of a file as often as time allows.
    return Program(f"fio: {name}", " ".join([plain, *options]), calls, varies="newfstatat")


_GIT = "git -c user.name=a -c user.email=a@b -c gc.auto=0 -c core.fsmonitor=false"
_SQLITE = """import sqlite3
c = sqlite3.connect('t.db'); c.execute('create table t(a, b)')
for i in range(50): c.execute('insert into t values (?, ?)', (i, 'x' * 500)); c.commit()
print(c.execute('select count(*) from t').fetchall())"""
_THREADS = """import threading
def work(n):
    with open(f'thread-{n}', 'w+b', buffering=0) as f:
        for i in range(200): f.write(b'x' * i)
        f.seek(0); f.read()
for t in [threading.Thread(target=work, args=(n,)) for n in range(6)]: t.start()"""
_MMAP = """import mmap
f = open('big.txt', 'r+b'); m = mmap.mmap(f.fileno(), 0)
print(m.find(b'line 59999')); m[0:4] = b'done'; m.flush()"""
_PROCESSES = """import multiprocessing as m
def work(n): open(f'part-{n}', 'w').write('x' * n); return n * n
if __name__ == '__main__':
    p = m.Pool(2); print(sum(p.map(work, range(20), chunksize=10))); p.close(); p.join()"""
_ASYNC = """import asyncio
async def main():
    p = await asyncio.create_subprocess_exec('cat', 'lines.txt', stdout=asyncio.subprocess.PIPE)
    print(len((await p.communicate())[0]))
asyncio.run(main()); import time; time.sleep(0.5)"""
_JAVA = """import java.nio.file.*;
public class Files1 { public static void main(String[] a) throws Exception {
  for (int i = 0; i < 100; i++) Files.writeString(Path.of("java-" + i), "x".repeat(i));
  System.out.println(Files.readAllLines(Path.of("lines.txt")).size()); } }"""
_NODE = "const f = require('fs'); for (let i = 0; i < 100; i++) f.writeFileSync('n' + i, 'x'.repeat(i)); \
console.log(f.readFileSync('lines.txt').length)"
_NODE_ASYNC = "const f = require('fs').promises; (async () => { await Promise.all([...Array(50).keys()].map( \
i => f.writeFile('n' + i, 'x'))); console.log((await f.readFile('lines.txt')).length) })()"
_RUST = """use std::io::{BufRead, Write};
fn main() {
    let t: Vec<_> = (0..4).map(|n| std::thread::spawn(move || {
        let mut f = std::fs::File::create(format!("rust-{n}")).unwrap();
        for i in 0..100 { writeln!(f, "{i}").unwrap(); } })).collect();
    for one in t { one.join().unwrap(); }
    let file = std::fs::File::open("lines.txt").unwrap();
    println!("{}", std::io::BufReader::new(file).lines().count());
    std::fs::copy("lines.txt", "copy.txt").unwrap();
    println!("{:?}", std::process::Command::new("wc").arg("copy.txt").status().unwrap().code()); }"""
_GO = """package main
import ("fmt"; "os"; "os/exec"; "sync")
func main() {
    var all sync.WaitGroup
    for n := 0; n < 4; n++ { all.Add(1); go func(n int) { defer all.Done()
        f, _ := os.Create(fmt.Sprintf("go-%d", n))
        for i := 0; i < 100; i++ { fmt.Fprintln(f, i) }; f.Close() }(n) }
    all.Wait()
    text, _ := os.ReadFile("lines.txt"); out, _ := exec.Command("wc", "-l", "lines.txt").Output()
    fmt.Println(len(text), string(out)) }"""
_CXX = """#include <filesystem>
#include <fstream>
#include <iostream>
int main() { std::ofstream("cxx.txt") << "words" << std::endl; std::filesystem::copy("tree", "copied",
  std::filesystem::copy_options::recursive); std::string s; int n = 0; std::ifstream in("lines.txt");
  while (std::getline(in, s)) n++; std::cout << n << std::endl; }"""
_MPI_IO = """#include <mpi.h>
#include <stdio.h>
int main(int c, char **v) { int rank; char b[4096] = {1}; MPI_File f; MPI_Init(&c, &v);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_File_open(MPI_COMM_WORLD, "shared.dat", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &f);
  for (int i = 0; i < 20; i++)
    MPI_File_write_at(f, (i * 2 + rank) * 4096L, b, 4096, MPI_BYTE, MPI_STATUS_IGNORE);
  MPI_File_write_at_all(f, (100 + rank) * 4096L, b, 4096, MPI_BYTE, MPI_STATUS_IGNORE);
  MPI_File_close(&f); if (!rank) puts("written"); return MPI_Finalize(); }"""
_MAKEFILE = """
printf 'all: a.out\\n%%.o: %%.c\\n\\t$(CC) -c -o $@ $<\\na.out: one.o two.o\\n\\t$(CC) -o $@ $^\\n' > Makefile
echo 'int two(void); int main(void) { return two(); }' > one.c
echo 'int two(void) { return 2; }' > two.c
make; ./a.out; echo $?; make
"""
_HERE = """
read -r first < lines.txt
while read -r number rest; do total=$((total + 10#$number)); done < lines.txt
cat << END > here.txt
$first $total
END
cat <<< "a string" >> here.txt
(cd tree; for one in sub-*; do echo $one; done) > names.txt
echo "$(wc -l < names.txt) $(cat here.txt)"
trap 'echo bye' EXIT; exec 5> five.txt; echo five >&5; exec 5>&-; [ -f five.txt ] && ! [ -e none ] && exit 3
"""
_MIXED = """
for i in 1 2 3; do
    cat tree/sub-1/file-7.txt > a$i.txt
    $BUILT/between cat tree/sub-0/file-3.txt > b$i.txt
done
$BUILT/between $BUILT/between sh -c 'echo words > c.txt; $BUILT/between $BUILT/absent; cat c.txt'
$BUILT/absent; exec $BUILT/between cat tree/sub-0/file-0.txt > d.txt
"""


def _text(name: str, text: str) -> str:
    """Returns a command that writes a source file."""
    return f"cat > $BUILT/{name} << 'END-OF-SOURCE'\n{text}\nEND-OF-SOURCE"


def _python(name: str, text: str, calls: Calls = Calls.SAME, options: str = "-S") -> Program:
    source = f"does-{name}.py"
    build = (_text(source, text),)
    return Program(f"python3: {name}", f"{sys.executable} {options} $BUILT/{source}", calls, build=build)


def _static(name: str, calls: Calls = Calls.SAME) -> Program:
    build = (_c("everywhere", "-static", out="static"),)
    return Program(f"C, static: {name}", f"$BUILT/static {name}", calls, "gcc", build)


_PLUGIN = """import ctypes, os
ctypes.CDLL(os.environ["BUILT"] + "/own.so").writes_itself()"""
_SMALL = """void _start(void) {
  __asm__ volatile("int $0x80" :: "a"(4), "b"(1), "c"("x\\n"), "d"(2));
  __asm__ volatile("int $0x80" :: "a"(1), "b"(5)); }"""
_CMAKE = """cmake_minimum_required(VERSION 3.13)
project(p C)
add_executable(p p.c)"""
_BUILD_GO = (_text("files.go", _GO), "go build -o $BUILT/files-go $BUILT/files.go")
_BUILD_OWN = (_c("own_calls"),)
_MANY = """.PHONY: all
all: 1.o 2.o 3.o 4.o
%.o:
\tgcc -w -c -o $@ $(SOURCE)"""
_DUCKDB = """import duckdb
c = duckdb.connect('t.duckdb')
c.execute("create table t as select range a, range::varchar b from range(300000)")
print(c.execute("select sum(a), count(distinct b) from t").fetchall()); c.close()"""
_PARQUET = """import pyarrow as pa, pyarrow.parquet as pq
pq.write_table(pa.table({'a': list(range(100000))}), 'a.parquet', row_group_size=10000)
print(pq.read_table('a.parquet').num_rows, pq.ParquetFile('a.parquet').read_row_group(3).num_rows)"""
_PTY = """import os, pty
child, master = pty.fork()
if not child: os.execvp('cat', ['cat', 'lines.txt'])
total = 0
try:
    while part := os.read(master, 100000): total += len(part)
except OSError: pass
print(total, os.waitpid(child, 0)[1])"""
SPREAD = Calls.SPREAD

_FILES = [
    Program("tar", "tar cf tree.tar tree"),
    Program("tar -z", "tar czf a.tgz tree && mkdir out && tar xzf a.tgz -C out", SPREAD, "tar gzip"),
    Program("cp -r", "cp -r tree copy"),
    Program("cp -a --sparse", "cp -a --sparse=always tree copy"),
    Program("mv, rm -r", "mv tree moved && rm -r moved/sub-1 && ls -R moved", needs="mv rm ls"),
    Program("install, ln", "install -m 700 -D lines.txt a/b/c && ln -s c a/b/d; ls a/b", needs="install"),
    Program("cat", "cat lines.txt big.txt"),
    Program("dd", "dd if=tree/sub-1/file-7.txt of=out.bin bs=129 seek=3 status=none"),
    Program("dd direct", "dd if=/dev/zero of=out.bin bs=64k count=20 oflag=direct,sync status=none"),
    Program("dd append", "dd if=lines.txt of=big.txt conv=notrunc,ucase,fsync oflag=append status=none"),
    Program("dd nocache", "dd if=big.txt of=out.bin bs=100k iflag=nocache oflag=dsync status=none"),
    Program("split", "split -n 7 big.txt part-"),
    Program("split -l", "split -l 300 lines.txt part-"),
    Program("find", "find tree -type f -size +2k -newermt 2001-01-01"),
    Program("find -exec", "find tree -name '*7.txt' -exec wc -c '{}' ';'", needs="find wc"),
    Program("find -delete", "find tree -name 'file-1*' -delete", needs="find"),
    Program("xargs", "find tree -type f | sort | xargs -P1 -n7 md5sum", SPREAD, "xargs md5sum"),
    Program("ls -lR", "ls -lR tree"),
    Program("du", "du -a tree"),
    Program("stat, df", "stat -c %s big.txt; realpath tree/..; df --output=target . > place.txt", needs="df"),
    Program("truncate, fallocate", "truncate -s 1M t; fallocate -l 99k f; fallocate -p -l 4096 f; sync f",
            needs="truncate fallocate"),
    Program("cpio", "find tree | sort | cpio -o -H newc --reproducible > tree.cpio", SPREAD, "cpio"),
    Program("rsync", "rsync -a tree/ new && rsync -a --delete tree/sub-0/ new && ls -R new", SPREAD, "rsync"),
]  # fmt: skip
_CONTENTS = [
    Program("sort", "sort -o sorted.txt lines.txt"),
    Program("sort with temporary files", "sort --parallel=1 -S 300k -T . -o sorted.txt big.txt"),
    Program("sort in threads", "sort --parallel=2 -S 20M -o sorted.txt big.txt", SPREAD),
    Program("gzip", "gzip -9 lines.txt"),
    Program("bzip2", "bzip2 -k lines.txt"),
    Program("xz", "xz -k -T1 lines.txt"),
    Program("xz in threads", "xz -k -T2 --block-size=200000 big.txt", SPREAD),
    Program("zstd", "zstd -q big.txt", SPREAD),
    Program("lz4", "lz4 -q big.txt out.lz4", SPREAD),
    Program("zip", "zip -q -r -X tree.zip tree"),
    Program("sed -i", "sed -i -e s/words/nothing/ lines.txt"),
    Program("grep -r", "grep -rc z tree"),
    Program("wc", "wc lines.txt big.txt"),
    Program("md5sum", "md5sum big.txt lines.txt"),
    Program("sha256sum -c", "sha256sum lines.txt > sums; sha256sum -c sums", needs="sha256sum"),
    Program("cmp", "cmp lines.txt big.txt", ends=1),
    Program("diff, patch", "sed s/a/A/ lines.txt > new; diff -u lines.txt new > it; patch lines.txt it",
            needs="sed diff patch"),
    Program("awk", "awk '{sum += $1; print > (NR % 5 \".out\")} END {print sum}' lines.txt", needs="awk"),
    Program("gawk", "gawk '{sum += $1; print > (NR % 5 \".out\")} END {print sum}' lines.txt", needs="gawk"),
    Program("head, tail, tac", "head -5 big.txt; tail -n 3 big.txt; tac lines.txt > back; tail -c 9 big.txt",
            needs="head tail tac"),
    Program("comm, join", "sort lines.txt > s; comm -12 s s | wc -l; join s s > j", SPREAD, "comm join"),
    Program("tee, pipes", "cat lines.txt | tee copy | tr a-z A-Z | sort | uniq -c | tail -2", SPREAD, "tee"),
    Program("openssl", "openssl dgst -sha1 big.txt"),
    Program("curl", "curl -s file://$PWD/lines.txt -o out && wc out", SPREAD, "curl"),
    Program("jq", "jq -n '[range(100)]'", needs="jq"),
]  # fmt: skip
_SCRIPTS = [
    Program("bash", _HERE, needs="bash", ends=3),
    Program("bash jobs", "for i in 1 2 3; do (sleep 0.0$i; echo $i > job$i) & done; wait; cat job*", SPREAD),
    Program("dash", "dash -c 'exec > out; umask; read x < lines.txt; echo $x; exit 4'", needs="dash", ends=4),
    Program("env -i", "env -i PATH=/bin sh -c 'cat lines.txt > out; ls'; env -u LD_PRELOAD wc lines.txt"),
    Program("timeout, setsid", "timeout 20 nice cat lines.txt > a; setsid -w cat a > b; nohup cat b; echo $?",
            needs="timeout setsid nohup"),
    Program("busybox", "busybox sh -c 'busybox cat lines.txt | busybox sort > s; busybox wc s'", SPREAD,
            "busybox"),
    Program("perl", "perl -e 'open F, \"lines.txt\"; $n++ while <F>; open G, \">p\"; print G $n; print $n'",
            needs="perl"),
    Program("tclsh", "tclsh $BUILT/t.tcl", SPREAD, build=(_text("t.tcl", "puts [gets [open lines.txt]]"),)),
    _python("files", "open('a', 'w').write('x' * 100000); print(len(open('lines.txt').readlines()))"),
    _python("mmap", _MMAP),
    _python("threads", _THREADS, SPREAD),
    _python("processes", _PROCESSES, SPREAD),
    _python("asyncio", _ASYNC, SPREAD),
    _python("sqlite", _SQLITE),
    Program("python3: mixture", f"{sys.executable} -S {SOURCES}/mixture.py", SPREAD),
    Program("node", "node $BUILT/files.js", SPREAD, build=(_text("files.js", _NODE),)),
    Program("node, asynchronous", "node $BUILT/async.js", SPREAD, build=(_text("async.js", _NODE_ASYNC),)),
    Program("Java", "java -XX:+UseSerialGC -Xshare:auto -cp $BUILT Files1", SPREAD, "javac",
            (_text("Files1.java", _JAVA), "javac -d $BUILT $BUILT/Files1.java")),
]  # fmt: skip
_DEVELOPMENT = [
    Program("git", f"{_GIT} init -q . && {_GIT} add tree && {_GIT} commit -qm first && {_GIT} log --stat",
            SPREAD, "git"),
    Program("git clone", f"({_GIT} init -q one && cd one && cp -r ../tree . && {_GIT} add . && "
            f"{_GIT} commit -qm first); {_GIT} clone -q one two && cd two && {_GIT} status && {_GIT} fsck",
            SPREAD, "git"),
    Program("sqlite3", "sqlite3 t.db 'create table t(a); insert into t values (1), (2); select * from t'",
            needs="sqlite3"),
    Program("make", _MAKEFILE, SPREAD, "make cc"),
    Program("cmake", "cmake -S $BUILT/project -B build && cmake --build build", SPREAD, "cmake make cc",
            ("mkdir -p $BUILT/project", _text("project/CMakeLists.txt", _CMAKE),
             _text("project/p.c", "int main(void) { return 0; }"))),
    Program("gcc", f"gcc -O1 -w -pthread -o out {SOURCES}/hello.c"),
    Program("g++", "g++ -std=c++17 -fsyntax-only $BUILT/files.cc", build=(_text("files.cc", _CXX),)),
    Program("C++ program", "$BUILT/files-cxx", needs="g++",
            build=(_text("files.cc", _CXX), "g++ -std=c++17 -o $BUILT/files-cxx $BUILT/files.cc")),
    Program("ar, strip, nm", "cp $BUILT/everywhere e && strip e && gcc -c $BUILT/h.c && ar rcD l h.o && nm l",
            needs="ar strip nm gcc", build=(_c("everywhere"), _text("h.c", "int h(void) { return 1; }"))),
    Program("Go", "$BUILT/files-go", SPREAD, "go", _BUILD_GO, "clone"),
    Program("Go among others", "cat lines.txt > a; $BUILT/files-go; cat a > b", SPREAD, "go", _BUILD_GO,
            "clone"),
    Program("Rust", "$BUILT/files-rust", SPREAD, "rustc",
            (_text("files.rs", _RUST), "rustc -o $BUILT/files-rust $BUILT/files.rs")),
]  # fmt: skip
_OTHERS = [
    Program("m4, bc", "echo 'define(x, $1$1)x(ab)' | m4; echo '2^100' | bc -q", SPREAD, "m4 bc"),
    Program("ed", "printf '%s\\n' '1,$s/some/SOME/' w q | ed -s lines.txt", SPREAD, "ed"),
    Program("vim", "vim -u NONE -es -n -c %s/some/SOME/ -c wq lines.txt", SPREAD, "vim"),
    Program("shred, mktemp", "shred -n 1 -u lines.txt; mktemp -p . -d > name; ls | wc -l", needs="shred"),
    Program("flock", "flock lock sh -c 'echo words >> lines.txt; flock -n lock true || echo held'",
            needs="flock"),
    Program("stdbuf, taskset", "stdbuf -o0 cat lines.txt; taskset -c 0 wc big.txt", needs="stdbuf taskset"),
    Program("prlimit", "prlimit --nofile=50 --stack=1000000 sort -o out lines.txt"),
    Program("limits", "ulimit -f 300; ulimit -n 20; cat lines.txt big.txt big.txt > b; echo $?"),
    Program("setpriv", "chmod 777 .; setpriv --reuid 65534 --clear-groups sh -c 'cat lines.txt > a'; ls a",
            needs="setpriv"),
    Program("su", "chmod 777 .; su -s /bin/sh nobody -c 'cat lines.txt > a'; ls a", SPREAD, "su"),
    Program("unshare", "unshare -m -u sh -c 'mount -t tmpfs none tree; cp lines.txt tree; ls tree'",
            needs="unshare"),
    Program("unshare -p", "unshare -p -f sh -c 'cat lines.txt > a; wc a'", needs="unshare"),
    Program("chroot", "chroot / sh -c 'cd /etc; cat hostname'", needs="chroot"),
    Program("script", "script -qec 'cat lines.txt' typed > out; wc -l out; rm typed", SPREAD, "script",
            varies="read write"),
    Program("dpkg", "dpkg -L coreutils | sort > list; dpkg -S /bin/cat", SPREAD, "dpkg"),
    Program("ldd", "ldd /bin/cat /bin/ls | wc -l", SPREAD, "ldd"),
    Program("rustc", "rustc -C codegen-units=1 -o $BUILT/one $BUILT/one.rs", SPREAD,
            build=(_text("one.rs", "fn main() { println!(\"one\"); }"),), varies="clone3 sched_getaffinity"),
    Program("go build", "GOCACHE=$PWD/cache go build -o one $BUILT/one.go; ./one", Calls.ANY, "go",
            (_text("one.go", "package main\nfunc main() { println(1) }"),)),
    Program("javac", "javac -d . $BUILT/Files1.java", Calls.ANY, build=(_text("Files1.java", _JAVA),)),
    Program("make -j2", f"make -s -j2 -f $BUILT/many.mk SOURCE={SOURCES}/hello.c", SPREAD, "make gcc",
            (_text("many.mk", _MANY),), "read poll pselect6"),
    # valgrind examines each library, including the recorder's.
    Program("valgrind", "valgrind -q cat lines.txt", SPREAD, varies="mmap readlink statx write"),
    _python("duckdb", _DUCKDB, Calls.ANY, ""),
    _python("parquet", _PARQUET, Calls.ANY, ""),
    _python("pty", _PTY, SPREAD),
]  # fmt: skip
_IN_C = [
    *(_way(one) for one in (
        "forks", "descriptors", "transfers", "direct", "vectors", "names", "events", "sockets", "by-number",
        "memory", "clones", "exec-in-thread", "threads", "spawns",
    )),
    _way("signals", ends=-signal.SIGTERM),
    _way("crash", ends=-signal.SIGABRT),
    *(_way(one, SPREAD) for one in ("short-threads", "fifo", "asynchronous", "lines")),
    *(_static(one) for one in ("transfers", "threads", "spawns")),
    Program("C, static among others", _MIXED, needs="gcc", build=(_c("between", "-static"),)),
    Program("no C library", "$BUILT/without_libc", needs="gcc",
            build=(_c("without_libc", "-nostdlib", "-static"),), ends=4),
    Program("32 bit, no C library", "$BUILT/small", needs="gcc",
            build=(_text("small.c", _SMALL),
                   "gcc -m32 -O1 -nostdlib -static -o $BUILT/small $BUILT/small.c"), ends=5),
    Program("own calls", "$BUILT/own_calls", needs="gcc", build=_BUILD_OWN),
    Program("own calls of a later program", "cat lines.txt > a; $BUILT/own_calls", needs="gcc",
            build=_BUILD_OWN),
    Program("own calls of a plugin", f"{sys.executable} -S $BUILT/plugin.py", needs="gcc",
            build=(_text("plugin.py", _PLUGIN), _c("own_calls", "-shared", "-fPIC", out="own.so"))),
]  # fmt: skip
# Calls of mpirun and its daemon whose number varies: a wait may return one message or several.
_MESSAGES = "epoll_ctl read write recvfrom sendto recvmsg sendmsg accept"
_BENCHMARKS = [
    _fio("psync", "--ioengine=psync --thread"),
    _fio("psync, processes", "--ioengine=psync --numjobs=3"),
    _fio("mmap", "--ioengine=mmap --thread"),
    _fio("libaio", "--ioengine=libaio --iodepth=8 --direct=1"),
    _fio("io_uring", "--ioengine=io_uring --iodepth=8"),
    _fio("io_uring, fixed", "--ioengine=io_uring --iodepth=4 --fixedbufs --registerfiles"),
    _fio("pvsync2", "--ioengine=pvsync2 --fsync=10"),
    _fio("posixaio", "--ioengine=posixaio --iodepth=4"),
    Program("mpirun", f"{MPIRUN} $BUILT/ranks", SPREAD, "mpicc",
            (f"mpicc -o $BUILT/ranks {SOURCES}/ranks.c",), _MESSAGES),
    Program("mpirun, MPI-IO", f"{MPIRUN} $BUILT/mpi-io", SPREAD, "mpicc",
            (_text("mpi-io.c", _MPI_IO), "mpicc -o $BUILT/mpi-io $BUILT/mpi-io.c"), _MESSAGES),
]  # fmt: skip
PROGRAMS = [*_FILES, *_CONTENTS, *_SCRIPTS, *_DEVELOPMENT, *_OTHERS, *_IN_C, *_BENCHMARKS]


def build(command: str, built: Path) -> None:
    """Runs a command that creates programs in the folder BUILT. Raises subprocess.SubprocessError if it
    fails."""
    places = {"BUILT": str(built), "GO111MODULE": "off", "GOFLAGS": "", "GOCACHE": str(built / "go-cache")}
    subprocess.run(
        ["sh", "-c", command], check=True, env=os.environ | places, timeout=600, capture_output=True
    )
