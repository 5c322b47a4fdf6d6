/* Maps chunks in advance, in a thread that creates another thread. New threads often wait for each other
 * while the kernel maps their stacks and heaps, and would also wait for mappings of their chunks. A chunk
 * that no thread has taken has no header. */

#include "recorder.h"

#define CHUNKS_AHEAD 4

/* Called before a thread is created. */
void map_ahead(void) {
	struct ahead *ahead = blocks[0] ? &blocks[0]->ahead : 0;
	if (!ahead || ahead->next || descriptors || session->closed || !becomes(&ahead->next, 0, AHEAD_CLOSED))
		return;
	u64 bytes = session->chunk_bytes;
	u64 index = __atomic_fetch_add(&session->next_chunk, CHUNKS_AHEAD, __ATOMIC_RELAXED);
	u64 at = session->chunks_at + index * bytes;
	u8 *memory = at + CHUNKS_AHEAD * bytes <= session->file_bytes ? map_part(0, at, CHUNKS_AHEAD * bytes) : 0;
	if (!memory)
		return;
	ahead->origin = memory - index * bytes;
	/* If a handler has forked in between, the fork has cleared the word in the child. There this fails, as
	 * intended, because the chunks belong to the parent. */
	becomes(&ahead->next, AHEAD_CLOSED, index * AHEAD_ONE | CHUNKS_AHEAD);
}

/* Takes one of the chunks mapped in advance and sets *index to its number. Returns 0 if none is left. */
u8 *take_ahead(u64 *index) {
	struct ahead *ahead = blocks[0] ? &blocks[0]->ahead : 0;
	if (!ahead)
		return 0;
	for (u64 next; (next = __atomic_load_n(&ahead->next, __ATOMIC_ACQUIRE)) & AHEAD_LEFT;) {
		u8 *origin = ahead->origin;
		/* After the last chunk the word becomes 0, so that map_ahead() can map new chunks. */
		u64 rest = (next & AHEAD_LEFT) > 1 ? next + AHEAD_ONE - 1 : 0;
		if (becomes(&ahead->next, next, rest)) {
			*index = next / AHEAD_ONE;
			return origin + *index * session->chunk_bytes;
		}
	}
	return 0;
}

/* Called when the process ends: returns unused chunk numbers to the session, unless later numbers were taken
 * since, by this process or another one. */
void give_back_ahead(void) {
	u64 next = blocks[0] ? __atomic_load_n(&blocks[0]->ahead.next, __ATOMIC_ACQUIRE) : 0, left = next & AHEAD_LEFT;
	if (left && becomes(&blocks[0]->ahead.next, next, 0))
		becomes(&session->next_chunk, next / AHEAD_ONE + left, next / AHEAD_ONE);
}
