/* Shared by the parts of the library of interfaces. */
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

/* native/interfaces.c */
enum part { BEGINS = 1, ENDS = 2, HINTS = 3, COUNTS = 4 };
enum { RESULT, HANDLE, BYTES, OFFSET_ASKED, IS_PLAIN_VIEW, FACTS, VARIABLE = FACTS, FACTS_OF_VARIABLE, DESCRIPTOR = FACTS_OF_VARIABLE, CALLS_MADE, FACTS_OF_STREAM };
WEAK int iodock_interface(u32 part, u32 call, const word *facts, u32 count, const char *text);

#define UNKNOWN (-9223372036854775807l - 1)
/* In place of a function that a library does not have. */
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

/* Libraries call those of a greater number. OWN_CALLS: none of them is told. */
enum layer { PROGRAM, NETCDF_LAYER = 1, HDF5_LAYER = 2, PNETCDF_LAYER = 2, MPI_LAYER = 3, STDIO_LAYER = 4, OWN_CALLS = 255 };

/* The innermost call that was told, and where on the stack it stands. */
struct within { enum layer layer; const void *frame; };
extern __thread struct within iodock_within __attribute__((tls_model("initial-exec")));

/* What an implementation makes of a call itself is its own: within a call only those of layers below are told. A call that was left by
 * longjmp or an exception does not count: it stands no higher in the stack than this one. */
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

/* One of the modules (the program, its libraries) that make calls of the layers above MPI-IO: each may be bound to a library of its own. Their
 * functions are looked for once. */
enum { LAYER_CALLS = ALL_CALLS - CALLS, HELPERS = 64 };
typedef word wide_call(word, word, word, word, word, word, word, word);
struct caller {
	unsigned long from, to;
	u32 state, has_types; /* what is known of its library */
	const char *family; /* how the names of its libraries begin */
	void *real[LAYER_CALLS], *helpers[HELPERS];
};
struct caller *iodock_look_for_caller(const void *address, const char *family);
void *iodock_bind(const char *family, const void *address, const char *name, void **place, const void *own);
void *iodock_helper(struct caller *caller, u32 number, const char *name, const void *sibling);
/* The module that the address lies in; `to` is 0 if there is none. */
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

/* `own`: the function that takes the call. `place`: where the real one is remembered. 0: there is none, and the call fails: the program may have
 * asked whether there is, and found ours. */
static inline wide_call *real_of(const char *family, const void *address, const char *name, void **place, const void *own) {
	void *found = place ? __atomic_load_n(place, __ATOMIC_RELAXED) : 0;
	return (wide_call *)(likely(found) ? found : iodock_bind(family, address, name, place, own));
}

int iodock_is_open_mpi(void), iodock_is_type(word type), iodock_has_mpi(void);
/* The result of a call that the implementation does not have. */
int iodock_unsupported(void);
word iodock_handle_of(word given);
u32 iodock_handle_bytes(void);
/* Of so many of a type of MPI, which must be one. */
word iodock_bytes_of(word count, word type);
/* Of a call that has succeeded. The program may have given no info (`is_open`: then all that the implementation uses are told even so). */
void iodock_tell_hints(u32 number, word info, word file, int is_open);
void *iodock_find(const char *name), *iodock_look_for(const char *name, void **place), *iodock_look_for_helper(const char *name, void **place);

/* Of a view: a negative one (MPI_DISPLACEMENT_CURRENT) is that where a shared position stands. */
static inline word iodock_displacement(word given) {
	return given < 0 ? UNKNOWN : given;
}

/* The next function of that name, looked up once; 0: there is none, as in real_of. */
static inline void *next_of(const char *name, void **place) {
	void *found = __atomic_load_n(place, __ATOMIC_RELAXED);
	return likely(found) ? found : iodock_look_for(name, place);
}

/* The same for a function that the program did not call; 0: it does not exist, and its result is unknown. */
static inline void *helper_of(const char *name, void **place) {
	void *found = __atomic_load_n(place, __ATOMIC_RELAXED);
	if (!likely(found))
		found = iodock_look_for_helper(name, place);
	return likely(found != LACKS_IT) ? found : 0;
}
#endif
