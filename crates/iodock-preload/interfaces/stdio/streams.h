/* Shared by the parts that take calls of stdio. */
#ifndef IODOCK_STREAMS_H
#define IODOCK_STREAMS_H

#include "../interfaces.h"
#include "calls.h"

#pragma GCC visibility push(hidden)

#define STREAM_NUMBER(name) NUMBER_##name,
enum { FIRST_OF_STDIO = ALL_CALLS, BEFORE_STDIO = ALL_CALLS - 1, EACH_OF_STDIO(STREAM_NUMBER, STREAM_NUMBER) };
#define ONE_MORE(name) +1
#define NONE_MORE(name)
enum { COUNTED_CALLS = 0 EACH_OF_STDIO(ONE_MORE, NONE_MORE) };

/* FILE as glibc has it on this machine: programs that inline getc_unlocked rely on it, so it does not change. */
struct file {
	int flags;
	const char *read_at, *read_end, *read_from, *write_from, *write_at, *write_end, *buffer, *buffer_end, *saved[3];
	void *markers, *chain;
	int descriptor;
};
_Static_assert(__builtin_offsetof(struct file, descriptor) == 112, "as in glibc");
enum { HAS_FAILED = 0x20 };

static inline word descriptor_of(word stream) {
	const struct file *file = (const struct file *)stream;
	return file && file->descriptor >= 0 ? file->descriptor : UNKNOWN;
}

/* A call that made no system call, as the buffer shows. 0: it can't be counted, and must be told. */
int iodock_count(u32 number, word stream, word bytes);
/* Tells how many calls on the stream were counted, and forgets it if it is closed. */
void iodock_tell_counts(word stream, int is_closed), iodock_tell_all_counts(void);

#pragma GCC visibility pop
#endif
