/* Reuses full chunks. A thread keeps its last full chunks mapped, and fills them again after the recorder has
 * read them, because the kernel needs 3 microseconds or more for a new page. If a handler leaves this code by
 * longjmp, a mapping may be leaked, but no memory is used for two chunks. */

#include "recorder.h"

#define SPENT_MOST 256 /* limit for all threads of a process */

static u32 spent_in_process;

/* Empties the slot and returns the address of its chunk. */
static u8 *take_spent(struct state *state, u32 slot) {
	u8 *memory = state->spent_memory[slot];
	set(state->spent_memory[slot], 0);
	return memory;
}

/* Number of an empty slot; SPENT if there is none. */
static u32 empty_slot(const struct state *state) {
	u32 slot = 0;
	while (slot < SPENT && state->spent_memory[slot])
		slot++;
	return slot;
}

/* Keeps the full chunk mapped if there is a free slot. */
static void keep_full(struct state *state) {
	u8 *memory = state->memory[0];
	u32 number = state->mapped - 1, slot = empty_slot(state);
	if (!memory || !state->mapped || slot == SPENT)
		return;
	set(state->mapped, 0);
	set(state->memory[0], 0);
	set(state->spent_number[slot], number);
	state->spent_memory[slot] = memory;
}

/* Takes a chunk that the recorder offers for reuse, and sets *index to its number. The chunk that is full now
 * gets the free slot. Returns 0 if no chunk is offered. */
u8 *use_again(struct state *state, u64 *index) {
	for (u32 slot = 0; slot < SPENT && !counts_calls; slot++) {
		u32 number = state->spent_number[slot], offer = number + 1;
		/* The child of a handler's fork must not use chunks that were offered to its parent. */
		if (!state->spent_memory[slot] || !state->taken ||
		    !__atomic_compare_exchange_n(&session->offered[number % OFFERED], &offer, 0, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			continue;
		u8 *memory = take_spent(state, slot);
		*index = number;
		if (memory)
			keep_full(state);
		return memory;
	}
	return 0;
}

static u8 *map_beside(u64 at) {
	if (is_limited(RLIMIT_AS))
		return 0;
	u8 *memory = 0;
	if (__atomic_fetch_add(&spent_in_process, 1, __ATOMIC_RELAXED) < SPENT_MOST)
		memory = map_part(0, at, session->chunk_bytes);
	if (!memory)
		__atomic_fetch_sub(&spent_in_process, 1, __ATOMIC_RELAXED);
	return memory;
}

/* Maps the chunk at offset `at` of the file while the full chunk stays mapped: at a new address, or over the
 * oldest full chunk if all slots are used. */
static u8 *go_on_beside(struct state *state, u64 at) {
	u8 *memory;
	if (empty_slot(state) < SPENT) {
		memory = map_beside(at);
	} else {
		u8 *oldest = take_spent(state, state->spent_turn++ % SPENT);
		memory = oldest ? map_part(oldest, at, session->chunk_bytes) : 0;
	}
	if (!memory)
		return 0;
	/* After mlockall all new memory is locked. The chunks are unlocked, because the program needs the limit
	 * of locked memory for itself. */
	kernel2(SYS_munlock, memory, session->chunk_bytes);
	kernel2(SYS_munlock, state->memory[0], session->chunk_bytes);
	keep_full(state);
	return memory;
}

/* Maps the chunk at offset `at` of the file. Returns its memory, or 0 if that fails. */
u8 *map_next(struct state *state, struct stream *stream, u32 level, u64 at) {
	u8 **mapped = &state->memory[level], *memory = 0;
	int stays = level == 0 && !counts_calls && stream->sequence && !descriptors && session_file < 0;
	if (stays && *mapped && state->mapped)
		memory = go_on_beside(state, at);
	if (memory)
		return memory;
	if (level == 0)
		state->mapped = 0;
	return chunk_memory(mapped, at);
}
