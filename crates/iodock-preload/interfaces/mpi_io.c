/* Intercepts MPI-IO of any implementation, without its header. No handle, count or pointer is larger than a
 * word, and no call has more than six arguments, so each call is passed on as six words in registers. This
 * library is preloaded together with the recorder's library (native/), to which it reports the beginning and
 * end of each call; without it, calls are only passed on. It has no dependencies: even functions of libc may
 * be missing. */

#include "interfaces.h"

typedef word call(word, word, word, word, word, word);

#define RTLD_NEXT ((void *)-1l)
enum { RTLD_LAZY = 1, RTLD_NOLOAD = 4 };

WEAK void *dlopen(const char *path, int how);
WEAK int dlclose(void *library);
/* The beginning of struct dl_phdr_info, of which only these fields are used. */
struct loaded { unsigned long at; const char *path; };
WEAK int dl_iterate_phdr(int (*each)(struct loaded *, unsigned long, void *), void *given);

#define NAME(name, fortran, error_at) #name,
static const char *const names[CALLS] = {EACH_CALL(NAME, NAME, NAME, NAME, NAME, NAME, NAME)};
static void *real[CALLS], *real_large[CALLS], *real_type_size, *real_type_size_x;
/* An MPI library whose file name does not begin with "libmpi". */
static void *other_mpi;
__thread struct within iodock_within __attribute__((tls_model("initial-exec")));

enum { PATH_MOST = 4096 };
/* A library to search for: the one after `before` others, among all libraries (`is_any`) or those named
 * libmpi*. */
struct wanted { u32 before; int is_any; char path[PATH_MOST]; };

static int is_of_mpi(const char *path) {
	const char *name = path;
	for (; *path; path++)
		if (*path == '/')
			name = path + 1;
	return name[0] == 'l' && name[1] == 'i' && name[2] == 'b' && name[3] == 'm' && name[4] == 'p' && name[5] == 'i';
}

static int copy_path(struct loaded *library, unsigned long bytes, void *given) {
	struct wanted *wanted = given;
	(void)bytes;
	if (!library->path || !*library->path || !(wanted->is_any || is_of_mpi(library->path)) || wanted->before--)
		return 0;
	u32 at = 0;
	for (; library->path[at] && at < PATH_MOST - 1; at++)
		wanted->path[at] = library->path[at];
	wanted->path[at] = 0;
	return 1;
}

static void *find_in(const char *path, const char *name) {
	void *opened = dlopen(path, RTLD_LAZY | RTLD_NOLOAD), *found = 0;
	if (opened) {
		found = dlsym(opened, name);
		dlclose(opened);
	}
	return found;
}

/* Finds a function by RTLD_NEXT, then in libraries named libmpi*: RTLD_NEXT does not find a library that was
 * loaded only for another one (RTLD_LOCAL, as Python does for its modules). Each library is opened after the
 * walk over all libraries has returned, because another thread's dlopen may hold a lock and wait for that of
 * the walk. */
static void *find_usual(const char *name) {
	void *found = dlsym ? dlsym(RTLD_NEXT, name) : 0;
	for (u32 before = 0; !found && dlsym && dlopen && dlclose && dl_iterate_phdr; before++) {
		struct wanted wanted;
		wanted.before = before;
		wanted.is_any = 0;
		if (!dl_iterate_phdr(copy_path, &wanted))
			break;
		found = find_in(wanted.path, name);
	}
	return found;
}

#define IN_EACH_MPI "PMPI_File_open" /* a function of every MPI library, which this library does not define */

/* Finds an MPI library by its functions, not its name. The library stays loaded from now on. */
static void *look_for_other_mpi(void) {
	for (u32 before = 0; dlsym && dlopen && dlclose && dl_iterate_phdr; before++) {
		struct wanted wanted;
		wanted.before = before;
		wanted.is_any = 1;
		if (!dl_iterate_phdr(copy_path, &wanted))
			break;
		void *opened = dlopen(wanted.path, RTLD_LAZY | RTLD_NOLOAD);
		if (opened && dlsym(opened, IN_EACH_MPI))
			return opened;
		if (opened)
			dlclose(opened);
	}
	return 0;
}

/* Finds a function of the MPI library. Not every MPI library has the usual name: HPE's is libmpt.so. */
void *iodock_find(const char *name) {
	void *found = find_usual(name), *other = __atomic_load_n(&other_mpi, __ATOMIC_RELAXED);
	if (found || (!other && find_usual(IN_EACH_MPI)))
		return found;
	if (!other)
		__atomic_store_n(&other_mpi, other = look_for_other_mpi(), __ATOMIC_RELAXED);
	return other ? dlsym(other, name) : 0;
}

int iodock_has_mpi(void) {
	static int has_it;
	if (!__atomic_load_n(&has_it, __ATOMIC_RELAXED))
		__atomic_store_n(&has_it, iodock_find(IN_EACH_MPI) != 0, __ATOMIC_RELAXED);
	return __atomic_load_n(&has_it, __ATOMIC_RELAXED);
}

/* Finds the next function of that name: of another tool that also intercepts these calls, or of the MPI
 * library. */
__attribute__((noinline)) void *iodock_look_for(const char *name, void **place) {
	void *found = iodock_find(name);
	__atomic_store_n(place, found, __ATOMIC_RELAXED);
	return found;
}

/* Finds a function that this library calls by itself. If it is missing, that is cached only once the MPI
 * library is loaded. */
__attribute__((noinline)) void *iodock_look_for_helper(const char *name, void **place) {
	void *found = iodock_find(name);
	if (!found && iodock_has_mpi())
		found = LACKS_IT;
	__atomic_store_n(place, found, __ATOMIC_RELAXED);
	return found;
}

/* Only called after the program's call has succeeded: then the type is valid, and the query reports no error.
 * For types of 2 GiB or more, PMPI_Type_size returns MPI_UNDEFINED, which is negative, and PMPI_Type_size_x
 * returns the size. */
word iodock_bytes_of(word count, word type) {
	int bytes = 0;
	word of_one, all;
	if (count <= 0)
		return count ? UNKNOWN : 0;
	int (*type_size)(word, int *) = (int (*)(word, int *))helper_of("PMPI_Type_size", &real_type_size);
	if (!type_size || type_size(type, &bytes))
		return UNKNOWN;
	of_one = bytes;
	if (unlikely(bytes < 0)) {
		int (*large_size)(word, word *) = (int (*)(word, word *))helper_of("PMPI_Type_size_x", &real_type_size_x);
		if (!large_size || large_size(type, &of_one) || of_one < 0)
			return UNKNOWN;
	}
	return __builtin_mul_overflow(count, of_one, &all) ? UNKNOWN : all;
}

/* Returns the value of MPI_ERR_UNSUPPORTED_OPERATION in this implementation. */
int iodock_unsupported(void) {
	return iodock_is_open_mpi() ? 52 : 44;
}

/* Stands in for a call that the implementation does not have. */
static word is_missing(word a, word b, word c, word d, word e, word f) {
	(void)a, (void)b, (void)c, (void)d, (void)e, (void)f;
	return iodock_unsupported();
}

/* Stands in for a call whose count is too large for the implementation. Returns MPI_ERR_ARG. */
static word fails(word a, word b, word c, word d, word e, word f) {
	(void)a, (void)b, (void)c, (void)d, (void)e, (void)f;
	return iodock_is_open_mpi() ? 13 : 12;
}

static call *plain_of(u32 number) {
	void *found = next_of(names[number], &real[number]);
	return likely(found) ? (call *)found : is_missing;
}

/* Returns the function for a call with a 64-bit count (`_c`, since MPI 4). Programs with weak references to
 * it, such as mpi4py, find ours even if the implementation has none. Then the call with a 32-bit count is
 * made instead. */
static call *large_of(const char *name, u32 number, word count) {
	void *found = helper_of(name, &real_large[number]);
	if (likely(found))
		return (call *)found;
	return count == (int)count ? plain_of(number) : fails;
}

#define HEAD(name) TAKEN word name(word a, word b, word c, word d, word e, word f)
#define HANDED_ON(name) HANDED_ON_TO(name, plain_of(NUMBER_##name))
#define HANDED_ON_TO(name, next) \
	call *real_one = next; \
	struct within outer; \
	int is_told = begins(NUMBER_##name, MPI_LAYER, &outer); \
	word result = real_one(a, b, c, d, e, f); \
	int is_done = (int)result == 0; \
	iodock_within = outer; \
	(void)is_done

/* Records a call with a count, under the same name for counts of 32 and 64 bits. */
#define COUNTED(name, count, type, offset) \
	if (likely(is_told)) { \
		word facts[FACTS] = {(int)result, a, is_done ? iodock_bytes_of(count, type) : UNKNOWN, offset, 0}; \
		ends(NUMBER_##name, facts, 0); \
	} \
	return result;
#define POINTER(name, fortran, error_at) \
	HEAD(name) { \
		HANDED_ON(name); \
		COUNTED(name, (int)c, d, UNKNOWN) \
	} \
	HEAD(name##_c) { \
		HANDED_ON_TO(name, large_of(#name "_c", NUMBER_##name, c)); \
		COUNTED(name, c, d, UNKNOWN) \
	}
#define OFFSET(name, fortran, error_at) \
	HEAD(name) { \
		HANDED_ON(name); \
		COUNTED(name, (int)d, e, b) \
	} \
	HEAD(name##_c) { \
		HANDED_ON_TO(name, large_of(#name "_c", NUMBER_##name, d)); \
		COUNTED(name, d, e, b) \
	}
#define PLAIN(name, fortran, error_at) \
	HEAD(name) { \
		HANDED_ON(name); \
		if (is_told) { \
			word facts[FACTS] = {(int)result, a, UNKNOWN, UNKNOWN, 0}; \
			ends(NUMBER_##name, facts, 0); \
		} \
		return result; \
	}
/* OPEN has the arguments (communicator, name, mode, info, &file). */
#define OPEN(name, fortran, error_at) \
	HEAD(name) { \
		HANDED_ON(name); \
		if (is_told) { \
			word facts[FACTS] = {(int)result, is_done ? *(word *)e : 0, UNKNOWN, UNKNOWN, 0}; \
			if (is_done) \
				iodock_tell_hints(NUMBER_##name, d, *(word *)e, 1); \
			ends(NUMBER_##name, facts, is_done ? (const char *)b : 0); \
		} \
		return result; \
	}
/* CLOSE has the argument (&file). */
#define CLOSE(name, fortran, error_at) \
	HEAD(name) { \
		word handle = a ? *(word *)a : 0; \
		HANDED_ON(name); \
		if (is_told) { \
			word facts[FACTS] = {(int)result, handle, UNKNOWN, UNKNOWN, 0}; \
			ends(NUMBER_##name, facts, 0); \
		} \
		return result; \
	}
/* VIEW has the arguments (file, displacement, elementary type, file type, representation, info). Offsets are
 * numbers of elementary types; if both types are equal, the view has no gaps. Hints are recorded only for
 * calls of the program itself, because libraries such as HDF5 pass the file's info again with each view. */
#define VIEW(name, fortran, error_at) \
	HEAD(name) { \
		HANDED_ON(name); \
		if (is_told) { \
			word facts[FACTS] = {(int)result, a, is_done ? iodock_bytes_of(1, c) : UNKNOWN, iodock_displacement(b), iodock_handle_of(c) == iodock_handle_of(d)}; \
			if (is_done && outer.layer == PROGRAM) \
				iodock_tell_hints(NUMBER_##name, f, a, 0); \
			ends(NUMBER_##name, facts, 0); \
		} \
		return result; \
	}

#define INFO(name, fortran, error_at) \
	HEAD(name) { \
		HANDED_ON(name); \
		if (is_told) { \
			word facts[FACTS] = {(int)result, a, UNKNOWN, UNKNOWN, 0}; \
			if (is_done) \
				iodock_tell_hints(NUMBER_##name, b, a, 0); \
			ends(NUMBER_##name, facts, 0); \
		} \
		return result; \
	}

EACH_CALL(POINTER, OFFSET, PLAIN, OPEN, CLOSE, VIEW, INFO)
