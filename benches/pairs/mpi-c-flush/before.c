/* Simulates photons in a cloud; each rank logs every photon to its own file. */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    int rank;
    long escaped = 0, all = 0;
    char name[32];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    snprintf(name, sizeof name, "photons.%d.txt", rank);
    FILE *out = fopen(name, "w");
    if (!out)
        MPI_Abort(MPI_COMM_WORLD, 1);
    srand48(100 + rank);
    for (long photon = 0; photon < 250000; photon++) {
        double depth = 0, mu = 1;
        int scatterings = 0;
        while (depth >= 0 && depth < 3 && scatterings < 50) {
            depth -= mu * log(1 - drand48());
            mu = 2 * drand48() - 1;
            scatterings++;
        }
        escaped += depth >= 3;
        fprintf(out, "%ld %d %.4f\n", photon, scatterings, depth);
        fflush(out);
    }
    fclose(out);
    MPI_Reduce(&escaped, &all, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%ld escaped\n", all);
    MPI_Finalize();
    return 0;
}
