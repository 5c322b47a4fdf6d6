/* Shared by the parts of the library of interfaces. */
#ifndef IODOCK_INTERFACES_H
#define IODOCK_INTERFACES_H

#pragma GCC visibility push(hidden)

#include "calls.h"

typedef unsigned char u8;
typedef unsigned int u32;
typedef long word;

#define WEAK __attribute__((weak, visibility("default")))
#define TAKEN __attribute__((visibility("default")))
#define likely(x) __builtin_expect(!!(x), 1)

#define RTLD_DEFAULT ((void *)0)
WEAK void *dlsym(void *library, const char *name);

/* native/interfaces.c */
enum part { BEGINS = 1, ENDS = 2, HINTS = 3 };
enum { RESULT, HANDLE, BYTES, OFFSET_ASKED, IS_PLAIN_VIEW, FACTS };
WEAK void iodock_interface(u32 part, u32 call, const word *facts, u32 count, const char *text);

#define UNKNOWN (-9223372036854775807l - 1)

#define NUMBER(name, fortran, error_at) NUMBER_##name,
enum { EACH_CALL(NUMBER, NUMBER, NUMBER, NUMBER, NUMBER, NUMBER) CALLS };

/* Calls that an implementation makes inside a call are its own: only the outermost is reported. */
extern __thread u32 iodock_depth __attribute__((tls_model("initial-exec")));

static inline int begins(u32 number) {
	if (iodock_depth++ || !iodock_interface)
		return 0;
	iodock_interface(BEGINS, number, 0, 0, 0);
	return 1;
}

static inline void ends(u32 number, const word *facts, const char *text) {
	iodock_interface(ENDS, number, facts, FACTS, text);
}

void iodock_tell_hints(u32 number, word info, word file);
void *iodock_find(const char *name), *iodock_look_for(const char *name, void **place);

/* The next function of that name, looked up once. */
static inline void *next_of(const char *name, void **place) {
	void *found = __atomic_load_n(place, __ATOMIC_RELAXED);
	return likely(found) ? found : iodock_look_for(name, place);
}

/* The same for a function that the program did not call; 0: it does not exist, and its result is unknown. */
static inline void *helper_of(const char *name, void **place) {
	void *found = __atomic_load_n(place, __ATOMIC_RELAXED);
	if (!likely(found))
		__atomic_store_n(place, found = iodock_find(name), __ATOMIC_RELAXED);
	return found;
}
#endif
