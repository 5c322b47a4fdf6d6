/* Sums bytes of records: reads pieces of 1 MiB and finds the records in them. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static unsigned char buffer[1 << 20];

int main(int argc, char **argv)
{
    int file = argc > 1 ? open(argv[1], O_RDONLY) : -1;
    if (file < 0) {
        perror("events");
        return 1;
    }
    unsigned long sum = 0, records = 0;
    size_t held = 0;
    ssize_t got;
    while ((got = read(file, buffer + held, sizeof buffer - held)) > 0) {
        size_t at = 0;
        held += got;
        for (;;) {
            int header[2];
            if (held - at < sizeof header)
                break;
            memcpy(header, buffer + at, sizeof header);
            size_t length = sizeof header + header[0];
            if (held - at < length)
                break;
            for (size_t byte = at + sizeof header; byte < at + length; byte++)
                sum += buffer[byte];
            at += length;
            records++;
        }
        memmove(buffer, buffer + at, held - at);
        held -= at;
    }
    printf("%lu records, sum %lu\n", records, sum);
    return close(file);
}
