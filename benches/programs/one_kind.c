/* Measures the CPU ns of a call of one kind, minus those of a loop without calls: one_kind
 * FOLDER KIND COUNT */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* This is more than a recorder remembers, so each path is new to it when it is used again. */
#define FILES 4096
#define IN_A_FOLDER 64

static char names[FILES][64], block[4096];
static struct stat status;
static int fd;

static void fail(const char *what) { perror(what); exit(1); }
static void nothing(long i) { __asm__ volatile("" : : "r"(names[i % FILES])); }
static void read_block(long i) { if (pread(fd, block, sizeof block, i % 2 * 4096) < 0) fail("pread"); }
static void write_bytes(long i) { if (pwrite(fd, block, 512, i % 8 * 512) < 0) fail("pwrite"); }
static void seek(long i) { if (lseek(fd, i % 4096, SEEK_SET) < 0) fail("lseek"); }
static void stat_open(long i) { (void)i; if (fstat(fd, &status)) fail("fstat"); }
static void stat_same(long i) { if (stat(names[i % 4], &status)) fail("stat"); }
static void stat_next(long i) { if (stat(names[i % FILES], &status)) fail("stat"); }
static void open_same(long i) {
    int opened = open(names[i % 4], O_RDONLY);
    if (opened < 0 || close(opened)) fail(names[i % 4]);
}
static void open_next(long i) {
    int opened = open(names[i % FILES], O_RDONLY);
    if (opened < 0 || close(opened)) fail(names[i % FILES]);
}
static void small_file(long i) {
    int opened = open(names[i % FILES], O_RDONLY);
    if (opened < 0 || fstat(opened, &status)) fail(names[i % FILES]);
    while (read(opened, block, sizeof block) > 0) {}
    if (close(opened)) fail("close");
}

static const struct { const char *name; void (*call)(long); int calls; } kinds[] = {
    {"pread", read_block, 1}, {"pwrite", write_bytes, 1}, {"lseek", seek, 1}, {"fstat", stat_open, 1},
    {"stat-same", stat_same, 1}, {"open-close-same", open_same, 2}, {"small-file", small_file, 5},
    {"open-close-new", open_next, 2}, {"stat-new", stat_next, 1},
};

static double loop(void (*call)(long), long count) {
    struct timespec begin, end;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
    for (long i = 0; i < count; i++)
        call(i);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
    return 1e9 * (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec);
}

static void make_files(void) {
    char folder[32];
    for (long i = 0; i < FILES; i++) {
        if (i % IN_A_FOLDER == 0) {
            snprintf(folder, sizeof folder, "folder-%02ld", i / IN_A_FOLDER);
            mkdir(folder, 0755);
        }
        snprintf(names[i], sizeof names[i], "%s/part-of-a-result-%05ld.data", folder, i * 7 % FILES);
        int made = open(names[i], O_WRONLY | O_CREAT, 0644);
        if (made < 0 || pwrite(made, block, 512, 0) != 512 || close(made)) fail(names[i]);
    }
    fd = open("block", O_RDWR | O_CREAT, 0644);
    if (pwrite(fd, block, sizeof block, 0) < 0 || pwrite(fd, block, sizeof block, 4096) < 0) fail("block");
}

int main(int argc, char **argv) {
    if (argc < 4 || chdir(argv[1])) { fprintf(stderr, "one_kind FOLDER KIND COUNT\n"); return 2; }
    long count = atol(argv[3]);
    make_files();
    for (unsigned i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strcmp(argv[2], kinds[i].name)) continue;
        loop(kinds[i].call, count / 10);
        printf("%.3f\n", (loop(kinds[i].call, count) - loop(nothing, count)) / (double)count / kinds[i].calls);
        return 0;
    }
    fprintf(stderr, "no such kind: %s\n", argv[2]);
    return 2;
}
