/* The ranks write their pieces of a shared file together. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE = 128, PIECES = 20000 };

int main(int argc, char **argv)
{
    int rank, size;
    MPI_File file;
    MPI_Info hints;
    MPI_Datatype turns;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    char *pieces = malloc((size_t)PIECE * PIECES);
    memset(pieces, 'a' + rank, (size_t)PIECE * PIECES);
    MPI_Type_vector(PIECES, PIECE, PIECE * size, MPI_BYTE, &turns);
    MPI_Type_commit(&turns);
    MPI_Info_create(&hints);
    MPI_Info_set(hints, "cb_nodes", "4");
    MPI_File_open(MPI_COMM_WORLD, argc > 1 ? argv[1] : "field.dat", MPI_MODE_WRONLY | MPI_MODE_CREATE,
                  hints, &file);
    MPI_File_set_view(file, (MPI_Offset)rank * PIECE, MPI_BYTE, turns, "native", MPI_INFO_NULL);
    MPI_File_write_all(file, pieces, PIECE * PIECES, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
    if (rank == 0)
        printf("%ld bytes\n", (long)PIECES * size * PIECE);
    MPI_Finalize();
    return 0;
}
