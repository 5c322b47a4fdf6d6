/* Records the kernel's count of reads and writes, from which a reader computes how many were not recorded. */

#include "recorder.h"

#define COUNTED_BYTES 512 /* enough for seven short lines */

/* Adds the number after `name` to *sum. Returns 0 if no line begins with `name`. */
static int add_number(u64 *sum, const u8 *text, const char *name) {
	while (*text && !begins(text, name))
		while (*text && *text++ != '\n')
			;
	if (!*text)
		return 0;
	u64 number = 0;
	for (text += length((const u8 *)name, COUNTED_BYTES); *text >= '0' && *text <= '9'; text++)
		number = 10 * number + (*text - '0');
	*sum += number;
	return 1;
}

/* Sets *count to syscr + syscw from an io file in /proc. The kernel does not yet count the read of that file
 * itself. Returns 0 if they can't be read. */
static int ask_for_count(u64 *count, const char *path) {
	u8 text[COUNTED_BYTES];
	long file = kernel3(SYS_open, path, O_CLOEXEC, 0);
	if (failed(file))
		return 0;
	long bytes = kernel3(SYS_read, file, text, sizeof(text) - 1);
	kernel1(SYS_close, file);
	if (failed(bytes))
		return 0;
	text[bytes] = 0;
	*count = 0;
	return add_number(count, text, "syscr: ") && add_number(count, text, "syscw: ");
}

/* Writes a record with the kernel's counts for this thread and its process (which include ended threads, and
 * children that were waited for), and the process's number of context switches. */
void write_counted(struct state *state, u32 level, u64 now) {
	u64 by_thread, by_process, used[RUSAGE_WORDS];
	/* With --light there are no records whose number could be compared with the kernel's count. */
	if (!session->counts || counts_calls || failed(kernel2(SYS_getrusage, RUSAGE_SELF, used)) || !ask_for_count(&by_thread, "/proc/thread-self/io") ||
	    !ask_for_count(&by_process, "/proc/self/io"))
		return;
	u8 *begin = room(state, level, PLAIN_LIMIT, now);
	if (!begin)
		return;
	u8 *at = put_control(begin, state, CONTROL_COUNTED, now);
	at = put(put(put(at, by_thread), by_process), used[RUSAGE_WAITS]);
	commit_control(state, level, begin, at, now);
}

/* Writes the counts before an exec, because the kernel then also counts calls that are made before this
 * library is loaded again. */
void count_before_exec(struct state *state, u64 now) {
	/* If a handler has forked in between, the state is unused in its child. */
	if (!state->taken)
		return;
	struct place here;
	u32 level = enter(state, &here);
	write_counted(state, level, now);
	leave(state, level, &here);
}
