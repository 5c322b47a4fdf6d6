/* Intercepts calls of MPI-IO from Fortran: for example `mpi_file_write_at_`, in the module mpi_f08
 * `mpi_file_write_at_f08_`, and `mpi_file_write_at_f08ts_` if MPICH passes a descriptor of the buffer.
 * Arguments are those of C by reference, then the error code and the lengths of texts. If an implementation
 * calls its C function for this, only the outer call is recorded. */

#include "interfaces.h"

enum kind { POINTER_KIND, OFFSET_KIND, PLAIN_KIND, OPEN_KIND, CLOSE_KIND, VIEW_KIND, INFO_KIND };
enum { ARGUMENTS = 8, NAME_MOST = 4095 };
typedef void fortran_call(word, word, word, word, word, word, word, word);

static void *real[3][CALLS], *real_type_size, *real_type_size_x, *info_of_c, *file_of_c;

/* In Fortran, MPI handles are numbers. A high bit is added, so that they differ from C's handles. */
#define HANDLE_AT(argument) ((word)*(const u32 *)(argument) | 1l << 40)
#define NUMBER_AT(argument) (*(const int *)(argument))

/* Does the same as iodock_bytes_of() in mpi_io.c. If INTEGER has 8 bytes (compiler option -i8), MPI writes 8
 * bytes, and the lower half is the number. */
static word bytes_of(word count, word type) {
	word bytes = 0, error = 1, of_one, all;
	if (count <= 0)
		return count ? UNKNOWN : 0;
	void (*type_size)(word, word *, word *) = (void (*)(word, word *, word *))helper_of("pmpi_type_size_", &real_type_size);
	if (type_size)
		type_size(type, &bytes, &error);
	of_one = (int)bytes;
	if (!(int)error && of_one < 0) {
		void (*large_size)(word, word *, word *) = (void (*)(word, word *, word *))helper_of("pmpi_type_size_x_", &real_type_size_x);
		if (large_size)
			large_size(type, &of_one, &error);
	}
	return (int)error || of_one < 0 || __builtin_mul_overflow(count, of_one, &all) ? UNKNOWN : all;
}

/* Converts a Fortran handle to a C handle. If the implementation has no function for this, both are the same
 * number. */
static word in_c(const char *name, void **place, word handle) {
	word (*convert)(word) = (word (*)(word))helper_of(name, place);
	return convert ? convert(*(const int *)handle) : *(const int *)handle;
}

static void tell_hints(u32 number, enum kind kind, const word *given) {
	word info = given[kind == OPEN_KIND ? 3 : kind == VIEW_KIND ? 5 : 1], file = given[kind == OPEN_KIND ? 4 : 0];
	iodock_tell_hints(number, in_c("PMPI_Info_f2c", &info_of_c, info), in_c("PMPI_File_f2c", &file_of_c, file), kind == OPEN_KIND);
}

/* Copies a Fortran text without the blanks at its end. Compilers such as gfortran 7 pass its length in 32
 * bits, and the upper half of the word is undefined. */
static void copy_name(char *to, const char *name, word length) {
	int bytes = (int)length;
	if (bytes > NAME_MOST)
		bytes = NAME_MOST;
	while (bytes > 0 && name[bytes - 1] == ' ')
		bytes--;
	for (int i = 0; i < bytes; i++)
		to[i] = name[i];
	to[bytes > 0 ? bytes : 0] = 0;
}

/* Sets the facts about a call that has succeeded. mpi_io.c does the same for calls from C. */
static void note(word *facts, enum kind kind, const word *given) {
	if (kind == POINTER_KIND)
		facts[BYTES] = bytes_of(NUMBER_AT(given[2]), given[3]);
	if (kind == OFFSET_KIND)
		facts[BYTES] = bytes_of(NUMBER_AT(given[3]), given[4]), facts[OFFSET_ASKED] = *(const word *)given[1];
	if (kind == VIEW_KIND) {
		facts[BYTES] = bytes_of(1, given[2]);
		facts[OFFSET_ASKED] = iodock_displacement(*(const word *)given[1]);
		facts[IS_PLAIN_VIEW] = NUMBER_AT(given[2]) == NUMBER_AT(given[3]);
	}
	if (kind == OPEN_KIND)
		facts[HANDLE] = HANDLE_AT(given[4]);
}

/* Passes a call on and records it. In mpi_f08 the program may omit the error code; then a local variable
 * takes it. */
static void hand_on(const char *name, void **place, u32 number, enum kind kind, u32 error_at, word *given) {
	word own_error = 0;
	if (!given[error_at])
		given[error_at] = (word)&own_error;
	fortran_call *real_one = (fortran_call *)next_of(name, place);
	if (unlikely(!real_one)) {
		*(int *)given[error_at] = iodock_unsupported();
		return;
	}
	char opened[NAME_MOST + 1];
	word facts[FACTS] = {UNKNOWN, kind == OPEN_KIND ? UNKNOWN : HANDLE_AT(given[0]), UNKNOWN, UNKNOWN, 0};
	struct within outer;
	int is_told = begins(number, MPI_LAYER, &outer);
	real_one(given[0], given[1], given[2], given[3], given[4], given[5], given[6], given[7]);
	iodock_within = outer;
	if (!is_told)
		return;
	facts[RESULT] = NUMBER_AT(given[error_at]);
	int is_named = kind == OPEN_KIND && !facts[RESULT];
	if (!facts[RESULT]) {
		note(facts, kind, given);
		if (kind == OPEN_KIND || kind == INFO_KIND || (kind == VIEW_KIND && outer.layer == PROGRAM))
			tell_hints(number, kind, given);
	}
	if (is_named)
		copy_name(opened, (const char *)given[1], given[6]);
	ends(number, facts, is_named ? opened : 0);
}

#define TAKE(name, fortran, error_at, kind, ending, way) \
	TAKEN void fortran##ending(word a, word b, word c, word d, word e, word f, word g, word h) { \
		word given[ARGUMENTS] = {a, b, c, d, e, f, g, h}; \
		hand_on(#fortran #ending, &real[way][NUMBER_##name], NUMBER_##name, kind, error_at, given); \
	}
#define EACH_WAY(name, fortran, error_at, kind) \
	TAKE(name, fortran, error_at, kind, _, 0) \
	TAKE(name, fortran, error_at, kind, _f08_, 1) \
	TAKE(name, fortran, error_at, kind, _f08ts_, 2)
#define POINTER(name, fortran, error_at) EACH_WAY(name, fortran, error_at, POINTER_KIND)
#define OFFSET(name, fortran, error_at) EACH_WAY(name, fortran, error_at, OFFSET_KIND)
#define PLAIN(name, fortran, error_at) EACH_WAY(name, fortran, error_at, PLAIN_KIND)
#define OPEN(name, fortran, error_at) EACH_WAY(name, fortran, error_at, OPEN_KIND)
#define CLOSE(name, fortran, error_at) EACH_WAY(name, fortran, error_at, CLOSE_KIND)
#define VIEW(name, fortran, error_at) EACH_WAY(name, fortran, error_at, VIEW_KIND)
#define INFO(name, fortran, error_at) EACH_WAY(name, fortran, error_at, INFO_KIND)

EACH_CALL(POINTER, OFFSET, PLAIN, OPEN, CLOSE, VIEW, INFO)
