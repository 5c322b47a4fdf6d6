/* Handles a signal handler that forks while a record is being written. When the handler returns in the child,
 * the child completes that record, through pointers into its parent's chunk. So that this does no harm, the
 * child gets a copy of the state as it was, which nothing else uses, and private memory in place of the
 * chunks. */

#include "recorder.h"

/* A copy of the state before a handler's fork. `outer` is the copy for another handler's fork that this
 * handler has interrupted. */
struct interrupted {
	struct state state;
	struct interrupted *outer;
};
_Static_assert(sizeof(struct interrupted) <= SLOT_BYTES, "as large as a state's place");

static __thread struct interrupted *interrupted;

struct interrupted *last_interrupted(void) {
	return interrupted;
}

/* Discards the copies that were made after `outer`, because their forks have returned or were abandoned. */
void forget_interrupted(const struct interrupted *outer) {
	/* Another handler may discard copies at any moment. */
	for (struct interrupted *last; unlikely(interrupted != 0) && (last = __atomic_exchange_n(&interrupted, 0, __ATOMIC_RELAXED)) != 0;) {
		if (last == outer) {
			interrupted = last;
			break;
		}
		interrupted = last->outer;
		kernel2(SYS_munmap, last, SLOT_BYTES);
	}
}

/* Copies the state before a fork. If there is no memory for the copy, the child may damage the record that
 * the handler has interrupted. */
void keep_interrupted(const struct state *state) {
	long copy = kernel(SYS_mmap, 0, SLOT_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (failed(copy)) {
		/* No copy is better than that of an outer handler, which is another state than the one with which
		 * this child continues. */
		interrupted = 0;
		return;
	}
	put_bytes((u8 *)copy, (const u8 *)state, sizeof(*state));
	((struct interrupted *)copy)->outer = interrupted;
	interrupted = (struct interrupted *)copy;
}

/* Called in the child: restores `state` from the copy, and maps private memory over the parent's chunks. The
 * state is never used for new records. */
void leave_to_nobody(struct state *state) {
	if (likely(!interrupted))
		return;
	put_bytes((u8 *)state, (const u8 *)&interrupted->state, sizeof(*state));
	state->taken = NOT_TAKEN;
	state->own_calls = state->held = 0;
	keep_taken(state->number);
	for (u32 level = 0; level < LEVELS; level++) {
		struct chunk *chunk = state->streams[level].chunk;
		long memory = !chunk ? -1 : kernel(SYS_mmap, (long)chunk, (long)session->chunk_bytes, PROT_READ | PROT_WRITE,
						   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
		/* `used` gets the value that the interrupted record expects. A stream that is just beginning a chunk
		 * has no address yet. */
		const u8 *at = state->streams[level].at;
		if (!failed(memory))
			chunk->used = at ? (u32)(at - (const u8 *)chunk) : sizeof(*chunk);
	}
	forget_interrupted(0);
}
