/* Repeats calls exactly, and with small differences: again FILE. A recorder that leaves out repeated values
 * must not confuse offsets, sizes, results, descriptors, calls, threads, CPUs, pauses, and 32-bit calls. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define BLOCK 4096
#define FAR (1ll << 28) /* The first page whose number takes more than 16 bits. */

static char block[2 * BLOCK];
static int file;

static void check(int is_so) {
    if (!is_so) _exit(1);
}

static void positions(void) {
    static const long long places[] = {0, BLOCK, 2 * BLOCK, 100, 101, FAR - 2 * BLOCK, FAR - BLOCK, FAR, FAR + 1, 1ll << 40, 5};
    for (int round = 0; round < 50; round++)
        for (unsigned i = 0; i < sizeof places / sizeof *places; i++) {
            pread(file, block, BLOCK, places[i]);
            pread(file, block, BLOCK, places[i]);
            pwrite(file, block, round % 3 ? BLOCK : 7, places[i] % FAR);
        }
}

static void sizes_and_ends(void) {
    lseek(file, 0, SEEK_SET);
    for (int i = 0; i < 400; i++) read(file, block, i % 5 < 3 ? 10 : 10 + i % 7);
    lseek(file, -25, SEEK_END);
    for (int i = 0; i < 10; i++) read(file, block, 10);
    for (int i = 0; i < 10; i++) read(-1, block, 10);
    for (int i = 0; i < 10; i++) close(-1);
    for (int i = 0; i < 10; i++) fsync(file);
    for (int i = 0; i < 10; i++) pread(file, block, -1, 0);
}

static void descriptors(void) {
    struct rlimit limit;
    check(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    int ends[2], other = open("/dev/null", O_WRONLY), far = -1;
    check(pipe(ends) == 0 && other >= 0);
    limit.rlim_cur = limit.rlim_max;
    if (limit.rlim_max <= 70000) write(2, "again: no descriptors above 65535 here\n", 39);
    if (limit.rlim_max > 70000 && setrlimit(RLIMIT_NOFILE, &limit) == 0) far = fcntl(file, F_DUPFD, 0x10000 | file);
    for (int i = 0; i < 300; i++) {
        pread(file, block, 512, 0);
        write(other, block, 512);
        if (far >= 0) pread(far, block, 512, 0), pread(far, block, 512, 0), pread(file, block, 512, 0);
    }
    for (int i = 0; i < 300; i++) {
        write(ends[1], block, 64);
        read(ends[0], block, 64);
    }
    close(ends[0]), close(ends[1]), close(other);
    if (far >= 0) close(far);
}

static void pauses(void) {
    for (int i = 0; i < 6; i++) {
        pread(file, block, 64, 0);
        usleep(i % 2 ? 6000 : 1000);
    }
}

static void *elsewhere(void *unused) {
    cpu_set_t all, one;
    check(sched_getaffinity(0, sizeof all, &all) == 0);
    for (int i = 0; i < 200; i++) {
        pread(file, block, 32, BLOCK);
        pread(file, block, 32, BLOCK);
        CPU_ZERO(&one);
        CPU_SET(i % 2, &one);
        sched_setaffinity(0, sizeof one, &one);
    }
    sched_setaffinity(0, sizeof all, &all);
    return unused;
}

/* Creates threads and processes that end soon, so that new ones get their kernel stacks. */
static void many(void) {
    for (int round = 0; round < 100; round++) {
        pthread_t threads[4];
        for (int i = 0; i < 4; i++) check(pthread_create(&threads[i], 0, elsewhere, 0) == 0);
        pid_t child = fork();
        if (child == 0) {
            for (int i = 0; i < 20; i++) pread(file, block, 32, BLOCK);
            _exit(0);
        }
        for (int i = 0; i < 4; i++) pthread_join(threads[i], 0);
        check(child > 0 && waitpid(child, 0, 0) == child);
    }
}

/* Makes calls that do not fit a record of one word. Another thread makes them on the same CPU between two
 * calls that do fit. */
static pthread_barrier_t both;

static void *between(void *unused) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(0, &one);
    check(sched_setaffinity(0, sizeof one, &one) == 0);
    for (int i = 0; i < 50; i++) {
        pthread_barrier_wait(&both);
        write(-1, block, 99);
        pthread_barrier_wait(&both);
    }
    return unused;
}

static void nothing_left_out(void) {
    pthread_t thread;
    cpu_set_t all, one;
    CPU_ZERO(&one);
    CPU_SET(0, &one);
    check(sched_getaffinity(0, sizeof all, &all) == 0 && sched_setaffinity(0, sizeof one, &one) == 0);
    check(pthread_barrier_init(&both, 0, 2) == 0 && pthread_create(&thread, 0, between, 0) == 0);
    for (int i = 0; i < 50; i++) {
        check(syscall(SYS_pread64, file, block, 512, 0) == 512);
        pthread_barrier_wait(&both);
        pthread_barrier_wait(&both);
        /* The kernel uses only the lower half of a descriptor. */
        check(syscall(SYS_pread64, 1l << 32 | file, block, 512, 0) == 512);
    }
    pthread_join(thread, 0);
    sched_setaffinity(0, sizeof all, &all);
}

/* Makes 32-bit calls in a 64-bit program: there, number 3 is read, while it is close for 64-bit calls. */
static void foreign(void) {
    for (int i = 0; i < 100; i++) {
        long number = i % 2 ? 3 : 180, result;
        pread(file, block, 32, 0);
        asm volatile("int $0x80" : "=a"(result) : "0"(number), "b"(-1L), "c"(0L), "d"(0L), "S"(0L), "D"(0L) : "memory", "r8", "r9", "r10", "r11");
        pread(file, block, 32, 0);
    }
}

int main(int argc, char **argv) {
    file = open(argv[1], O_RDWR | O_CREAT | O_TRUNC, 0600);
    check(file >= 0 && ftruncate(file, FAR + 3 * BLOCK + 33) == 0);
    positions();
    sizes_and_ends();
    descriptors();
    pauses();
    many();
    nothing_left_out();
    if (argc > 2) foreign();
    return 0;
}
