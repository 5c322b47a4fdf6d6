/* Creates, writes, closes, stats, opens, reads, closes and unlinks many small files.
 * Usage: small_files FOLDER COUNT */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

int main(int argc, char **argv) {
    char name[4096], block[512] = {0};
    struct stat status;
    long count = argc > 2 ? atol(argv[2]) : 5000;
    if (argc < 2) { fprintf(stderr, "small_files FOLDER COUNT\n"); return 1; }
    mkdir(argv[1], 0755);
    for (long i = 0; i < count; i++) {
        snprintf(name, sizeof name, "%s/part-%06ld.dat", argv[1], i % 100);
        int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0644);
        if (fd < 0 || write(fd, block, sizeof block) != sizeof block || close(fd)) { perror(name); return 1; }
        if (stat(name, &status) || (fd = open(name, O_RDONLY)) < 0) { perror(name); return 1; }
        while (read(fd, block, sizeof block) > 0) {}
        if (close(fd) || unlink(name)) { perror(name); return 1; }
    }
    return 0;
}
