"""Python programs whose frames are hard to read. They must print the same with and without a recorder."""

import ctypes
import gc
import os
import signal
import sys
import threading
import time


class Closing:
    """Writes when it is garbage-collected, which may happen in any frame."""

    def __init__(self, file):
        self.file, self.itself = file, self

    def __del__(self):
        os.pwrite(self.file, b"gone", 0)


def collected(file):
    gc.set_threshold(5, 2, 2)
    for number in range(400):
        Closing(file)
        made = {"os": os, "file": file}
        exec(compile("%sdef f%d(x):\n  return os.pread(file, 4, 0)\nf%d(1)" % ("\n" * (number % 7), number, number), "<%d>" % (number % 5), "exec"), made)
    gc.collect()
    return "collected"


def deep(file, depth=4000):
    sys.setrecursionlimit(10_000)

    def down(depth):
        if depth % 100 == 0:
            os.pwrite(file, b"down", 0)
        return down(depth - 1) + 1 if depth else 0

    def pieces(depth):
        if depth:
            yield from pieces(depth - 1)
        os.pread(file, 4, 0)
        yield depth

    return "%d %d" % (down(depth), sum(pieces(200)))


def forks(file):
    ended = []

    def fork():
        for _ in range(5):
            child = os.fork()
            if not child:
                os.pwrite(file, b"born", 0)
                os._exit(3)
            ended.append(os.waitpid(child, 0)[1] >> 8)

    threads = [threading.Thread(target=fork) for _ in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    return "forks %d" % sum(ended)


def exits(file):
    """Daemon threads make calls while the interpreter shuts down."""

    def busy():
        while True:
            os.pread(file, 4, 0)

    def sleepy():
        while True:
            time.sleep(0.0001)
            os.pwrite(file, b"zzzz", 0)

    for work in (busy, sleepy) * 4:
        threading.Thread(target=work, daemon=True).start()
    time.sleep(0.02)
    return "exits"


def signals(file):
    reads, writes = os.pipe()
    os.set_blocking(writes, False)
    seen = []
    signal.set_wakeup_fd(writes, warn_on_full_buffer=False)
    signal.signal(signal.SIGALRM, lambda *_: seen.append(os.pread(file, 4, 0)))
    signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
    while len(seen) < 100:
        sorted([3, 1, 2], key=lambda one: os.pread(file, 1, 0) and one)
    signal.setitimer(signal.ITIMER_REAL, 0)
    return "signals"


def called_back(file):
    """Threads that C code creates call Python, each with a new thread state of the interpreter."""
    begin = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(lambda _: os.pwrite(file, b"call", 0) and None)
    libc = ctypes.CDLL(None)
    for _ in range(50):
        thread = ctypes.c_ulong()
        libc.pthread_create(ctypes.byref(thread), None, begin, None)
        libc.pthread_join(thread, None)
    return "called back"


def mapped(file):
    """The interpreter maps and unmaps memory while other threads make calls."""
    over = []

    def reads():
        while not over:
            os.pread(file, 4, 0)

    def grows():
        for _ in range(60):
            [bytearray(1 << 17) for _ in range(20)]
            [str(one) * 9 for one in range(4000)]

    threads = [threading.Thread(target=reads) for _ in range(3)]
    [thread.start() for thread in threads]
    grows()
    over.append(1)
    [thread.join() for thread in threads]
    return "mapped"


what, name = sys.argv[1:]
opened = os.open(name, os.O_RDWR | os.O_CREAT, 0o644)
os.write(opened, b"begin")
print(globals()[what](opened), flush=True)
