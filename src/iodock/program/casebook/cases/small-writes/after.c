/* Writes a field of numbers through a large buffer. */
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    FILE *file = fopen(argv[1], "wb");
    long count = atol(argv[2]);
    double sum = 0;
    if (!file)
        return 1;
    setvbuf(file, NULL, _IOFBF, 1 << 20);
    for (long at = 0; at < count; at++) {
        double value = at * 0.5;
        sum += value;
        if (fwrite(&value, sizeof value, 1, file) != 1)
            return 1;
    }
    printf("%ld values, sum %.1f\n", count, sum);
    return fclose(file);
}
