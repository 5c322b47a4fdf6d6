/* Writes a field of numbers, one call per number. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    int file = open(argv[1], O_WRONLY | O_CREAT | O_TRUNC, 0644);
    long count = atol(argv[2]);
    double sum = 0;
    for (long at = 0; at < count; at++) {
        double value = at * 0.5;
        sum += value;
        if (write(file, &value, sizeof value) != sizeof value)
            return 1;
    }
    printf("%ld values, sum %.1f\n", count, sum);
    return close(file);
}
