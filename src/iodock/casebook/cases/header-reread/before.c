/* Sums bytes of records: reads the header, goes back, reads the record whole. */
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    FILE *file = argc > 1 ? fopen(argv[1], "rb") : NULL;
    if (!file) {
        perror("events");
        return 1;
    }
    unsigned long sum = 0, records = 0;
    int header[2];
    unsigned char record[1024];
    for (;;) {
        long start = ftell(file);
        if (fread(header, sizeof header, 1, file) != 1)
            break;
        fseek(file, start, SEEK_SET);
        size_t length = sizeof header + header[0];
        if (length > sizeof record || fread(record, length, 1, file) != 1)
            break;
        for (size_t at = sizeof header; at < length; at++)
            sum += record[at];
        records++;
    }
    printf("%lu records, sum %lu\n", records, sum);
    return fclose(file);
}
