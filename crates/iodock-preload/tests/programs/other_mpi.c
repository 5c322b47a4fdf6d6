/* Imitates an MPI library with a few functions, which interfaces.c loads with local symbols only. Its Fortran
 * functions use an INTEGER of 8 bytes. */
#include <stdlib.h>

int ompi_mpi_info_null;
void (*leave)(void);

int PMPI_File_open(long communicator, const char *name, int mode, void *info, void **file) { *file = &ompi_mpi_info_null; return 0; }
int MPI_File_open(long communicator, const char *name, int mode, void *info, void **file) { return PMPI_File_open(communicator, name, mode, info, file); }
int MPI_File_write(void *file, void *buffer, int count, void *type, void *status) { return 0; }
int MPI_File_set_view(void *file, long displacement, void *type, void *of_file, const char *name, void *info) { return 0; }
int PMPI_File_get_info(void *file, void **info) { if (leave) leave(); return 1; }
int PMPI_Info_free(void **info) { return 0; }
int PMPI_File_call_errhandler(void *file, int error) { abort(); }

void mpi_file_write_(long *file, void *buffer, long *count, long *type, long *status, long *error) { *error = 0; }
/* Type 0 is so large that its size does not fit, and only pmpi_type_size_x_ returns it. The two results are
 * stored in both orders, which shows if they overlap. */
void pmpi_type_size_(long *type, long *size, long *error) {
	if (*type) *size = 8, *error = 0;
	else *error = 0, *size = -1;
}
void pmpi_type_size_x_(long *type, long *size, long *error) { *size = 3l << 30, *error = 0; }
