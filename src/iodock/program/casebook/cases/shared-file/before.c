/* Each rank writes its pieces of a shared file one by one, interleaved with those of the others. */
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { PIECE = 32, PIECES = 250000 };

int main(int argc, char **argv)
{
    int rank, size;
    char piece[PIECE];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    memset(piece, 'a' + rank, sizeof piece);
    int file = open(argc > 1 ? argv[1] : "field.dat", O_WRONLY | O_CREAT, 0644);
    for (long at = 0; at < PIECES; at++)
        if (pwrite(file, piece, PIECE, (at * size + rank) * PIECE) != PIECE)
            MPI_Abort(MPI_COMM_WORLD, 1);
    close(file);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        printf("%ld bytes\n", (long)PIECES * size * PIECE);
    MPI_Finalize();
    return 0;
}
