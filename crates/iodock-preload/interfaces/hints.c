/* Records hints of MPI-IO: those that the program gave for a file, and those that the implementation uses. */

#include "interfaces.h"

enum { KEY_MOST = 256, VALUE_MOST = 1024, VALUE_ASKED = 255, HINTS_MOST = 128 };
#define BETWEEN 31 /* separator of fields in a text: a control character, which no key contains */
/* MPICH's constants MPI_INFO_NULL and MPI_DATATYPE_NULL. Open MPI uses addresses of variables instead. */
#define NONE_OF_MPICH 0x1c000000
#define NO_TYPE_OF_MPICH 0x0c000000
/* In MPI-5's ABI, values below LEAST_OF_ABI are constants such as MPI_DATATYPE_NULL (NO_TYPE_OF_ABI). */
#define LEAST_OF_ABI 0x1000
#define NO_TYPE_OF_ABI 0x200

static void *key_count, *key_at, *value_of, *file_info, *info_free;

struct hint { char key[KEY_MOST], asked[VALUE_MOST + 1], taken[VALUE_MOST + 1]; };

enum implementation { NOT_ASKED, OPEN_MPI, MPICH, OTHER };
static void *none_of_open_mpi, *none_of_program;

static enum implementation found(void) {
	static enum implementation known;
	enum implementation one = known;
	if (unlikely(one == NOT_ASKED)) {
		none_of_open_mpi = iodock_find("ompi_mpi_info_null");
		/* If the program itself refers to a library's variable, the linker may have given it a copy (a copy
		 * relocation), whose address all code uses. */
		none_of_program = dlsym ? dlsym(RTLD_DEFAULT, "ompi_mpi_info_null") : 0;
		one = none_of_open_mpi ? OPEN_MPI : iodock_find("MPIR_Err_create_code") ? MPICH : OTHER;
		if (one != OTHER || iodock_has_mpi())
			known = one;
	}
	return one;
}

/* Returns a handle as a word. MPICH's handles have 32 bits, and the upper half of the argument is
 * undefined. */
word iodock_handle_of(word given) {
	return found() == MPICH ? (word)(u32)given : given;
}

int iodock_is_open_mpi(void) {
	return found() == OPEN_MPI;
}

/* Whether `info` is not MPI_INFO_NULL. Only called for Open MPI and MPICH: for others that value is unknown,
 * and a query of its keys would abort the program. */
static int is_info(word info) {
	info = iodock_handle_of(info);
	if (info < LEAST_OF_ABI)
		return 0;
	return found() == OPEN_MPI ? info != (word)none_of_open_mpi && info != (word)none_of_program : (int)info != NONE_OF_MPICH;
}

/* Returns 1 if `type` is an MPI type, 0 if it is MPI_DATATYPE_NULL, -1 if the value of that is unknown. */
int iodock_is_type(word type) {
	static void *none, *of_program;
	type = iodock_handle_of(type);
	if (type < LEAST_OF_ABI)
		return type <= 0 ? -1 : type != NO_TYPE_OF_ABI;
	if (found() == OPEN_MPI && !none) {
		of_program = dlsym ? dlsym(RTLD_DEFAULT, "ompi_mpi_datatype_null") : 0;
		none = iodock_find("ompi_mpi_datatype_null");
	}
	if (found() == OTHER || (found() == OPEN_MPI && !none))
		return -1;
	return found() == OPEN_MPI ? type != (word)none && type != (word)of_program : (int)type != NO_TYPE_OF_MPICH;
}

/* Returns the size of a handle in an array, in bytes: 4 for MPICH, 8 for others, 0 (unknown) if MPICH may use
 * MPI-5's ABI. */
u32 iodock_handle_bytes(void) {
	static void *version;
	return found() != MPICH ? 8 : helper_of("MPI_Abi_get_version", &version) ? 0 : 4;
}

static char *put(char *to, const char *text) {
	while (*text)
		*to++ = *text++;
	return to;
}

static int value(word info, const char *key, char *to) {
	int is_there = 0;
	int (*get)(word, const char *, int, char *, int *) = (int (*)(word, const char *, int, char *, int *))helper_of("PMPI_Info_get", &value_of);
	*to = 0;
	if (!get || get(info, key, VALUE_ASKED, to, &is_there) || !is_there)
		*to = 0;
	return *to != 0;
}

static void tell(u32 number, const struct hint *hint) {
	char text[KEY_MOST + 2 * VALUE_MOST + 4], *at = put(text, hint->key);
	*at++ = BETWEEN;
	at = put(at, hint->asked);
	*at++ = BETWEEN;
	*put(at, hint->taken) = 0;
	iodock_interface(HINTS, number, 0, 0, text);
}

enum which { TAKEN_ONES, ASKED_ONES, ASKED_AND_NOT_TAKEN };

/* Reports each key of `info`, with its value in `other` unless that is 0. */
static void tell_each(u32 number, word info, word other, enum which which) {
	int is_asked = which != TAKEN_ONES;
	int (*count_of)(word, int *) = (int (*)(word, int *))helper_of("PMPI_Info_get_nkeys", &key_count);
	int (*key)(word, int, char *) = (int (*)(word, int, char *))helper_of("PMPI_Info_get_nthkey", &key_at);
	int count = 0;
	if (!count_of || !key || count_of(info, &count))
		return;
	for (int i = 0; i < count && i < HINTS_MOST; i++) {
		struct hint hint;
		char *own = is_asked ? hint.asked : hint.taken, *others = is_asked ? hint.taken : hint.asked;
		*others = 0;
		if (key(info, i, hint.key) || !value(info, hint.key, own))
			continue;
		int is_in_other = other && value(other, hint.key, others);
		/* Keys that are in both infos were already recorded together with the value in use. */
		if (which != ASKED_AND_NOT_TAKEN || !is_in_other)
			tell(number, &hint);
	}
}

static void tell_all(u32 number, word asked, word file, int is_open) {
	int (*info_of)(word, word *) = (int (*)(word, word *))helper_of("PMPI_File_get_info", &file_info);
	int (*free_info)(word *) = (int (*)(word *))helper_of("PMPI_Info_free", &info_free);
	word taken = 0;
	if (!info_of || !free_info || info_of(file, &taken) || !is_info(taken)) {
		if (asked)
			tell_each(number, asked, 0, ASKED_ONES);
		return;
	}
	if (is_open)
		tell_each(number, taken, asked, TAKEN_ONES);
	if (asked)
		tell_each(number, asked, taken, is_open ? ASKED_AND_NOT_TAKEN : ASKED_ONES);
	free_info(&taken);
}

void iodock_tell_hints(u32 number, word info, word file, int is_open) {
	struct within outer = iodock_within;
	word asked = found() != OTHER && is_info(info) ? info : 0;
	if (found() == OTHER || (!asked && !is_open))
		return;
	/* Calls made here are not recorded, because the program does not make them. The frame is noted so that
	 * this ends even if a call is left by longjmp or an exception. */
	iodock_within.layer = OWN_CALLS, iodock_within.frame = __builtin_frame_address(0);
	tell_all(number, asked, file, is_open);
	iodock_within = outer;
}
