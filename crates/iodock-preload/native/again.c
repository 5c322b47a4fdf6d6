/* Chunks that are used again. A part of record.c, kept apart for reading.
 *
 * A page takes 3 microseconds to make, and what that pushes out of the processor's caches is missed afterwards. So the last chunks of a
 * thread's first stream stay mapped, and one that the recorder has read and offers back is the next one. It stays that thread's: no other
 * knows its number. All this may be left at any point (longjmp out of a handler, a child of vfork that is killed): then no memory
 * is said to be two chunks', but one mapping may be nobody's. */

static u32 spent_in_process;

/* What is in a place, which is empty then. */
static u8 *take_spent(struct state *state, u32 place)
{
	u8 *memory = state->spent_memory[place];
	state->spent_memory[place] = 0;
	barrier();
	return memory;
}

/* Where nothing is; SPENT if there is no such place. */
static u32 empty_place(const struct state *state)
{
	u32 place = 0;
	while (place < SPENT && state->spent_memory[place])
		place++;
	return place;
}

/* The full chunk stays mapped, if there is a place. */
static void keep_full(struct state *state)
{
	u8 *memory = state->memory[0];
	u32 number = state->mapped - 1, place = empty_place(state);
	if (!memory || !state->mapped || place == SPENT)
		return;
	state->mapped = 0;
	barrier();
	state->memory[0] = 0;
	barrier();
	state->spent_number[place] = number;
	barrier();
	state->spent_memory[place] = memory;
}

/* One that is offered back, and its number; the full one is put in its place. 0 if there is none. */
static u8 *use_again(struct state *state, u64 *index)
{
	for (u32 place = 0; place < SPENT; place++) {
		u32 number = state->spent_number[place], offer = number + 1;
		/* (What is offered to its parent is not for the child of a handler's fork.) */
		if (!state->spent_memory[place] || !state->taken ||
		    !__atomic_compare_exchange_n(&session->offered[number % OFFERED], &offer, 0, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			continue;
		u8 *memory = take_spent(state, place);
		*index = number;
		if (memory)
			keep_full(state);
		return memory;
	}
	return 0;
}

/* Memory beside that of the full chunk, for the one at `at` of the file. 0 where a program might want the room itself, or there is none. */
static u8 *map_beside(u64 at)
{
	u64 bytes = session->chunk_bytes;
	if (is_limited(RLIMIT_AS))
		return 0;
	u8 *memory = 0;
	if (__atomic_fetch_add(&spent_in_process, 1, __ATOMIC_RELAXED) < SPENT_MOST)
		memory = map_part(0, at, bytes);
	if (!memory)
		__atomic_fetch_sub(&spent_in_process, 1, __ATOMIC_RELAXED);
	return memory;
}

/* Memory for the chunk at `at` of the file while the full one stays mapped: new, or that of another one. */
static u8 *go_on_beside(struct state *state, u64 at)
{
	u8 *memory;
	if (empty_place(state) < SPENT) {
		memory = map_beside(at);
	} else {
		u8 *oldest = take_spent(state, state->spent_turn++ % SPENT);
		memory = oldest ? map_part(oldest, at, session->chunk_bytes) : 0;
	}
	if (!memory)
		return 0;
	/* Where all memory is locked, what a program may lock is its own. */
	kernel2(SYS_munlock, memory, session->chunk_bytes);
	kernel2(SYS_munlock, state->memory[0], session->chunk_bytes);
	keep_full(state);
	return memory;
}

/* Memory for the chunk at `at` of the file, 0 if there is none. */
static u8 *map_next(struct state *state, struct stream *stream, u32 level, u64 at)
{
	u8 **mapped = &state->memory[level], *memory = 0;
	int stays = level == 0 && stream->sequence && !descriptors && session_file < 0;
	if (stays && *mapped && state->mapped)
		memory = go_on_beside(state, at);
	if (memory)
		return memory;
	/* What is mapped there now is no longer that. */
	if (level == 0)
		state->mapped = 0;
	return chunk_memory(mapped, at);
}
