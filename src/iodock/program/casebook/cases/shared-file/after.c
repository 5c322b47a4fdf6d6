/* Collects the ranks' pieces in memory and writes them to the shared file in large blocks. */
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PIECE = 32, PIECES = 250000, TURNS = 10000 };

/* From pieces grouped by rank to their order in the file. */
static void interleave(char *block, const char *gathered, int size)
{
    for (long turn = 0; turn < TURNS; turn++)
        for (long rank = 0; rank < size; rank++)
            memcpy(block + (turn * size + rank) * PIECE, gathered + (rank * TURNS + turn) * PIECE, PIECE);
}

int main(int argc, char **argv)
{
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int own = TURNS * PIECE;
    size_t whole = (size_t)own * size;
    char *pieces = malloc(own), *gathered = malloc(whole), *block = malloc(whole);
    memset(pieces, 'a' + rank, own);
    int file = open(argc > 1 ? argv[1] : "field.dat", O_WRONLY | O_CREAT, 0644);
    for (int at = 0; at < PIECES / TURNS; at++) {
        /* A different rank writes each time. */
        int writer = at % size;
        MPI_Gather(pieces, own, MPI_BYTE, gathered, own, MPI_BYTE, writer, MPI_COMM_WORLD);
        if (rank != writer)
            continue;
        interleave(block, gathered, size);
        if (pwrite(file, block, whole, at * whole) != (ssize_t)whole)
            MPI_Abort(MPI_COMM_WORLD, 1);
    }
    close(file);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        printf("%ld bytes\n", (long)PIECES * size * PIECE);
    MPI_Finalize();
    return 0;
}
