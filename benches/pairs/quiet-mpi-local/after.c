/* Simulates diffusion on a ring of ranks; every 50 steps all ranks together write to a shared
 * file on a local disk. */
#include <math.h>
#include <mpi.h>
#include <stdio.h>

#define N 256
#define STEPS 8000

int main(int argc, char **argv)
{
    double u[N + 2], v[N + 2], sum = 0, all = 0;
    int rank, size;
    MPI_File out;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_File_open(MPI_COMM_WORLD, "u.bin", MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &out);
    for (int i = 0; i < N + 2; i++)
        u[i] = sin(0.01 * (i + rank * N));
    for (int t = 0; t < STEPS; t++) {
        for (int k = 0; k < 10; k++) {
            for (int i = 1; i <= N; i++)
                v[i] = u[i] + 0.2 * tanh(u[i - 1] - 2 * u[i] + u[i + 1]);
            for (int i = 1; i <= N; i++)
                u[i] = v[i];
        }
        if (t % 50 == 0) {
            MPI_Offset at = ((MPI_Offset)(t / 50) * size + rank) * N * sizeof(double);
            MPI_File_write_at_all(out, at, u + 1, N, MPI_DOUBLE, MPI_STATUS_IGNORE);
        }
    }
    MPI_File_close(&out);
    for (int i = 1; i <= N; i++)
        sum += u[i];
    MPI_Reduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%.6f\n", all);
    MPI_Finalize();
    return 0;
}
