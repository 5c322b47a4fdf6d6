/* Computes the mean amplitude by station, and reads the records one after the other. */
#include <stdio.h>
#include <stdint.h>
#include <stdlib.h>

struct header { int32_t number, station; float time; char rest[20]; };
#define SAMPLES 60

int main(void)
{
    FILE *in = fopen("records.sgy", "rb");
    double sums[97] = {0};
    struct header header;
    int16_t samples[SAMPLES];
    long record = sizeof header + sizeof samples, size;
    if (!in)
        return 1;
    fseek(in, 0, SEEK_END);
    size = ftell(in);
    rewind(in);
    for (long n = 0; n < size / record; n++) {
        if (fread(&header, sizeof header, 1, in) != 1)
            return 1;
        if (fread(samples, sizeof samples, 1, in) != 1)
            return 1;
        for (int i = 0; i < SAMPLES; i++)
            sums[header.station] += abs(samples[i]);
    }
    for (int s = 0; s < 97; s += 16)
        printf("%d %.1f\n", s, sums[s]);
    fclose(in);
    return 0;
}
