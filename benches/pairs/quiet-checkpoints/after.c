/* Simulates an Ising model, and writes a checkpoint of 64 kB a few times in the run. */
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define N 256

static signed char spins[N][N];

static void checkpoint(void)
{
    int out = open("spins.new", O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (out < 0 || write(out, spins, sizeof spins) != sizeof spins)
        exit(1);
    close(out);
    rename("spins.new", "spins.dat");
}

int main(void)
{
    long sum = 0;
    srand48(12);
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            spins[i][j] = drand48() < 0.5 ? 1 : -1;
    for (int sweep = 1; sweep <= 600; sweep++) {
        for (long k = 0; k < N * N; k++) {
            int i = drand48() * N, j = drand48() * N;
            int field = spins[(i + 1) % N][j] + spins[(i + N - 1) % N][j] + spins[i][(j + 1) % N]
                        + spins[i][(j + N - 1) % N];
            if (field * spins[i][j] <= 0 || drand48() < exp(-0.9 * field * spins[i][j]))
                spins[i][j] = -spins[i][j];
        }
        if (sweep % 300 == 0)
            checkpoint();
    }
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            sum += spins[i][j];
    printf("%ld\n", sum);
    return 0;
}
