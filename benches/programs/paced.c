/* Makes a given number of calls per second, half of them writes and half reads: paced RATE
 * SECONDS. A RATE of 0 is as fast as possible. Prints the number of calls. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec * 1e-9;
}

int main(int argc, char **argv) {
    if (argc < 3) { fprintf(stderr, "paced RATE SECONDS\n"); return 2; }
    double rate = atof(argv[1]), seconds = atof(argv[2]), start = now(), passed = 0;
    int zero = open("/dev/zero", O_RDONLY), null = open("/dev/null", O_WRONLY);
    long made = 0;
    char block[512];
    while ((passed = now() - start) < seconds) {
        long due = rate > 0 ? (long)(passed * rate) : made + 1000;
        if (due <= made) { usleep(500); continue; }
        for (; made < due; made += 2)
            if (read(zero, block, sizeof block) < 0 || write(null, block, made % 512) < 0) { perror("paced"); return 1; }
    }
    printf("%ld\n", made);
    return 0;
}
