/* Makes calls of interfaces with the library for interfaces, first without any MPI library, then with one
 * that has few functions. Argument: the path of that MPI library. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <limits.h>
#include <setjmp.h>
#include <stdio.h>

#define WEAK __attribute__((weak))
WEAK long H5Dopen2(), H5Dread_multi(), nc_get_var1_ubyte(), ncmpi_put_vard_all(), MPI_File_iread_all();
WEAK int MPI_File_open(long, const char *, int, void *, void **), MPI_File_write(void *, void *, int, void *, void *);
WEAK int MPI_File_write_c(void *, void *, long, void *, void *), MPI_File_set_view(void *, long, void *, void *, const char *, void *);
WEAK void mpi_file_write_(long *, void *, long *, long *, long *, long *), mpi_file_read_(long *, void *, long *, long *, long *, long *);

static jmp_buf before;
static long ends, bytes, offset;
static unsigned long opened;

int iodock_interface(unsigned part, unsigned call, const long *facts, unsigned count, const char *text) {
	if (part == 2)
		ends++, bytes = facts[2], offset = facts[3];
	return 1;
}

/* Counts calls of dlopen, which the library for interfaces makes when it searches for functions. */
void *dlopen(const char *path, int how) {
	static void *(*real)(const char *, int);
	if (!real)
		real = (void *(*)(const char *, int))dlsym(RTLD_NEXT, "dlopen");
	opened++;
	return real(path, how);
}

static void leaves(void) { longjmp(before, 1); }

int main(int count, char **arguments) {
	void *file = 0;
	long handle = 1, number = 4, type, status[6], error = 7, after;
	printf("no library: HDF5 %ld %d, NetCDF %d, PnetCDF %d", H5Dopen2(0, 0, 0), (int)H5Dread_multi(0, 0, 0, 0, 0, 0, 0), (int)nc_get_var1_ubyte(0, 0, 0, 0),
	       (int)ncmpi_put_vard_all(0, 0, 0, 0, 0, 0));
	printf(", MPI %d", MPI_File_write(0, 0, 4, &type, 0) != 0);
	mpi_file_read_(&handle, 0, &number, &number, status, &error);
	printf(", Fortran %d\n", error != 0 && error != 7);
	ends = 0;

	void *library = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
	printf("written: %d\n", MPI_File_write(&file, 0, 4, &type, 0));
	unsigned long first = opened;
	for (int i = 0; i < 100; i++)
		MPI_File_write(&file, 0, 4, &type, 0);
	printf("told: %ld, size unknown: %d, opened later: %lu\n", ends, bytes == LONG_MIN, opened - first);
	printf("lacking: %d, plain: %d, too many: %d\n", (int)MPI_File_iread_all(&file, 0, 4, &type, 0), MPI_File_write_c(&file, 0, 4, &type, 0),
	       MPI_File_write_c(&file, 0, 1l << 40, &type, 0));
	MPI_File_set_view(&file, 512, &type, &type, "native", 0);
	after = offset;
	MPI_File_set_view(&file, -54278278, &type, &type, "native", 0);
	printf("view: %ld, current one unknown: %d\n", after, offset == LONG_MIN);

	ends = 0;
	if (!setjmp(before)) {
		*(void (**)(void))dlsym(library, "leave") = leaves;
		MPI_File_open(0, "name", 0, 0, &file);
	}
	MPI_File_write(&file, 0, 4, &type, 0);
	printf("told after a jump: %ld\n", ends);

	for (type = 0; type < 2; type++) {
		mpi_file_write_(&handle, 0, &number, &type, status, &error);
		printf("Fortran: %ld bytes, error %ld\n", bytes, error);
	}
}
