/* Makes 4 KiB reads at random offsets of a small, cached file, and no other work: preads FILE
 * COUNT */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv) {
    static char block[4096];
    long count = argc > 2 ? atol(argv[2]) : 100000;
    int fd = open(argv[1], O_RDWR | O_CREAT | O_TRUNC, 0644);
    if (argc < 2 || fd < 0) { perror("preads FILE COUNT"); return 1; }
    memset(block, 'x', sizeof block);
    for (int i = 0; i < 256; i++)
        if (write(fd, block, sizeof block) != sizeof block) { perror("write"); return 1; }
    unsigned long place = 1;
    for (long i = 0; i < count; i++) {
        place = place * 6364136223846793005UL + 1442695040888963407UL;
        if (pread(fd, block, sizeof block, (place >> 56) * 4096) != sizeof block) { perror("pread"); return 1; }
    }
    return close(fd);
}
