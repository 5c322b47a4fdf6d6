/* Declarations for the source files that intercept calls of stdio. */
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

/* glibc's FILE on x86-64. Programs with an inlined getc_unlocked depend on this layout, so glibc can't change
 * it. */
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

/* Counts a call that makes no system call. Returns 0 if it can't be counted, and must be recorded on its
 * own. */
int iodock_count(u32 number, word stream, word bytes);
/* Records the number of counted calls on the stream, and forgets the stream if it is closed. */
void iodock_tell_counts(word stream, int is_closed), iodock_tell_all_counts(void);

#pragma GCC visibility pop
#endif
