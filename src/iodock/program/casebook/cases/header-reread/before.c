/* Sums bytes of records: reads a block for the header, goes back, reads the record whole. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    int file = argc > 1 ? open(argv[1], O_RDONLY) : -1;
    if (file < 0) {
        perror("events");
        return 1;
    }
    unsigned long sum = 0, records = 0;
    off_t start = 0;
    int header[2];
    unsigned char block[4096], record[1024];
    while (read(file, block, sizeof block) >= (ssize_t)sizeof header) {
        memcpy(header, block, sizeof header);
        lseek(file, start, SEEK_SET);
        ssize_t length = sizeof header + header[0];
        if (length > (ssize_t)sizeof record || read(file, record, length) != length)
            break;
        for (ssize_t at = sizeof header; at < length; at++)
            sum += record[at];
        start += length;
        records++;
    }
    printf("%lu records, sum %lu\n", records, sum);
    return close(file);
}
