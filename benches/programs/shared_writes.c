/* Writes as IOR's hard case does: 47,008 bytes each, one after the other, with a sync at the
 * end. shared_writes FILE COUNT */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv) {
    static char block[47008];
    long count = argc > 2 ? atol(argv[2]) : 10000;
    int fd = argc > 1 ? open(argv[1], O_RDWR | O_CREAT | O_TRUNC, 0644) : -1;
    if (fd < 0) { perror("shared_writes FILE COUNT"); return 1; }
    for (long i = 0; i < count; i++)
        /* The offsets cover a tenth of that length and then start again from the beginning. */
        if (pwrite(fd, block, sizeof block, i % (count / 10 + 1) * (long)sizeof block) != sizeof block) {
            perror("pwrite");
            return 1;
        }
    return fsync(fd) || close(fd);
}
