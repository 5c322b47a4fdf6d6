/* Declarations for all source files of the library for interfaces, which intercepts calls of MPI-IO, HDF5,
 * NetCDF, PnetCDF and stdio, and reports them to the recorder's library (native/). */
#ifndef IODOCK_INTERFACES_H
#define IODOCK_INTERFACES_H

#pragma GCC visibility push(hidden)

#include "calls.h"
#include "layers.h"

typedef unsigned char u8;
typedef unsigned int u32;
typedef long word;

#define WEAK __attribute__((weak, visibility("default")))
#define TAKEN __attribute__((visibility("default")))
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

#define RTLD_DEFAULT ((void *)0)
WEAK void *dlsym(void *library, const char *name);

/* The function of native/interfaces.c that records a call, its values of `part`, and the indexes of facts. */
enum part { BEGINS = 1, ENDS = 2, HINTS = 3, COUNTS = 4 };
enum { RESULT, HANDLE, BYTES, OFFSET_ASKED, IS_PLAIN_VIEW, FACTS, VARIABLE = FACTS, FACTS_OF_VARIABLE, DESCRIPTOR = FACTS_OF_VARIABLE, CALLS_MADE, FACTS_OF_STREAM };
WEAK int iodock_interface(u32 part, u32 call, const word *facts, u32 count, const char *text);

#define UNKNOWN (-9223372036854775807l - 1)
/* Stored in place of a function's address if a library does not have the function. */
#define LACKS_IT ((void *)-1l)

#define NUMBER(name, fortran, error_at) NUMBER_##name,
enum { EACH_CALL(NUMBER, NUMBER, NUMBER, NUMBER, NUMBER, NUMBER, NUMBER) CALLS };
#define LAYER_NUMBER(name, ...) NUMBER_##name,
enum {
	BEFORE_LAYERS = CALLS - 1,
	EACH_OF_HDF5(LAYER_NUMBER, LAYER_NUMBER, LAYER_NUMBER, LAYER_NUMBER, LAYER_NUMBER, LAYER_NUMBER, LAYER_NUMBER, LAYER_NUMBER, LAYER_NUMBER, LAYER_NUMBER)
	EACH_OF_NETCDF(LAYER_NUMBER, LAYER_NUMBER, LAYER_NUMBER, LAYER_NUMBER, LAYER_NUMBER, LAYER_NUMBER, LAYER_NUMBER, LAYER_NUMBER)
	EACH_OF_PNETCDF(LAYER_NUMBER) ALL_CALLS
};

/* The layers of libraries. A library may call those with greater numbers. OWN_CALLS: this library itself
 * makes calls, which are not recorded. */
enum layer { PROGRAM, NETCDF_LAYER = 1, HDF5_LAYER = 2, PNETCDF_LAYER = 2, MPI_LAYER = 3, STDIO_LAYER = 4, OWN_CALLS = 255 };

/* The innermost recorded call of this thread: its layer, and the stack frame of the function that intercepted
 * it. */
struct within { enum layer layer; const void *frame; };
extern __thread struct within iodock_within __attribute__((tls_model("initial-exec")));

/* Whether a call is recorded. Within a recorded call, only calls of lower layers are, because others belong
 * to the library's implementation. An outer call whose frame is not at a higher address was left by longjmp
 * or an exception, and is ignored. */
static inline int is_below(enum layer layer, const void *frame, struct within *outer) {
	*outer = iodock_within;
	if (outer->layer && outer->frame <= frame)
		outer->layer = PROGRAM, outer->frame = 0;
	return layer > outer->layer && iodock_interface;
}

static inline int begins(u32 number, enum layer layer, struct within *outer) {
	const void *frame = __builtin_frame_address(0);
	if (!is_below(layer, frame, outer))
		return 0;
	word within = outer->layer;
	if (!iodock_interface(BEGINS, number, &within, within != PROGRAM, 0))
		return 0;
	iodock_within.layer = layer;
	iodock_within.frame = frame;
	return 1;
}

static inline void ends(u32 number, const word *facts, const char *text) {
	iodock_interface(ENDS, number, facts, FACTS, text);
}

/* A module (the program or a library) that calls a layer above MPI-IO. Each module may be linked with its own
 * copy of the called library. `real` and `helpers` cache addresses of that library's functions. */
enum { LAYER_CALLS = ALL_CALLS - CALLS, HELPERS = 64 };
typedef word wide_call(word, word, word, word, word, word, word, word);
struct caller {
	unsigned long from, to;
	u32 state, has_types; /* what is known about the called library: see hdf5.c */
	const char *family; /* beginning of the called library's file name, such as "libhdf5" */
	void *real[LAYER_CALLS], *helpers[HELPERS];
};
struct caller *iodock_look_for_caller(const void *address, const char *family);
void *iodock_bind(const char *family, const void *address, const char *name, void **place, const void *own);
void *iodock_helper(struct caller *caller, u32 number, const char *name, const void *sibling);
/* Returns the address range of the module that contains the address; `to` is 0 if there is none. */
struct range { unsigned long from, to; };
struct range iodock_range_of(const void *address);

static inline struct caller *caller_at(const void *address, const char *family, struct caller **last) {
	struct caller *caller = __atomic_load_n(last, __ATOMIC_RELAXED);
	if (likely(caller && (unsigned long)address - caller->from < caller->to - caller->from))
		return caller;
	caller = iodock_look_for_caller(address, family);
	__atomic_store_n(last, caller, __ATOMIC_RELAXED);
	return caller;
}

/* Returns the library's function to which an intercepted call is passed on. `own` is the function that
 * intercepts the call, `place` caches the result. Returns 0 if no library has the function; then the call
 * must fail. A program that looks up the function (dlsym) finds ours even then. */
static inline wide_call *real_of(const char *family, const void *address, const char *name, void **place, const void *own) {
	void *found = place ? __atomic_load_n(place, __ATOMIC_RELAXED) : 0;
	return (wide_call *)(likely(found) ? found : iodock_bind(family, address, name, place, own));
}

int iodock_is_open_mpi(void), iodock_is_type(word type), iodock_has_mpi(void);
/* Returns MPI's error code for a call that the implementation does not have. */
int iodock_unsupported(void);
word iodock_handle_of(word given);
u32 iodock_handle_bytes(void);
/* Returns the bytes of `count` elements of an MPI type, which must be a valid type. */
word iodock_bytes_of(word count, word type);
/* Records the hints of a call that has succeeded: those that the program gave in `info`, and with `is_open`
 * all that the implementation uses. */
void iodock_tell_hints(u32 number, word info, word file, int is_open);
void *iodock_find(const char *name), *iodock_look_for(const char *name, void **place), *iodock_look_for_helper(const char *name, void **place);

/* Returns the displacement of a view. A negative one (MPI_DISPLACEMENT_CURRENT) stands for the shared
 * position, which is unknown. */
static inline word iodock_displacement(word given) {
	return given < 0 ? UNKNOWN : given;
}

/* Returns the next library's function of that name, 0 if there is none. `place` caches the result. */
static inline void *next_of(const char *name, void **place) {
	void *found = __atomic_load_n(place, __ATOMIC_RELAXED);
	return likely(found) ? found : iodock_look_for(name, place);
}

/* Does the same for a function that this library calls by itself. If there is none, `place` caches that,
 * too. */
static inline void *helper_of(const char *name, void **place) {
	void *found = __atomic_load_n(place, __ATOMIC_RELAXED);
	if (!likely(found))
		found = iodock_look_for_helper(name, place);
	return likely(found != LACKS_IT) ? found : 0;
}
#endif
