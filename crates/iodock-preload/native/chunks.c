/* Begins chunks, the parts of the session's file to which records are written, and commits records. */

#include "recorder.h"

/* Makes the stream's next record begin a new chunk. The chunk's memory is kept for reuse. */
static void forget_chunk(struct stream *stream) {
	set(stream->limit, 0);
	set(stream->at, 0);
	stream->chunk = 0;
}

/* Returns the memory of a stream's next chunk, 0 if there is none. Sets *index to its number, and *generation
 * to the number of times that the chunk was used before. */
static u8 *next_chunk(struct state *state, struct stream *stream, u32 level, u64 *index, u32 *generation) {
	u8 *memory = 0;
	*generation = 0;
	forget_chunk(stream);
	set(state->is_mapping, 1);
	/* A new stream takes no reused chunk, because the number of its first chunk, which identifies it, must be
	 * its lowest. */
	if (level == 0 && stream->sequence && (memory = use_again(state, index)) != 0)
		*generation = ((struct chunk *)memory)->generation + 1;
	else if (!state->memory[level] && !stream->sequence)
		memory = take_ahead(index);
	if (!memory) {
		/* If mapping fails, the state keeps the chunk's number for the next attempt, so that a thread wastes
		 * only one number. */
		u64 kept = __atomic_exchange_n(&state->kept_number, 0, __ATOMIC_RELAXED);
		*index = kept ? kept - 1 : __atomic_fetch_add(&session->next_chunk, 1, __ATOMIC_RELAXED);
		u64 at = session->chunks_at + *index * session->chunk_bytes;
		if (at + session->chunk_bytes <= session->file_bytes)
			memory = map_next(state, stream, level, at);
		if (!memory && state->taken)
			state->kept_number = *index + 1;
	}
	if (memory) {
		if (level == 0)
			state->mapped = 0;
		barrier();
		set(state->memory[level], memory);
		if (level == 0)
			state->mapped = (u32)*index + 1;
	}
	barrier();
	state->is_mapping = 0;
	return memory;
}

/* Copies the call in flight from the full chunk to the state. take_flight() writes it to the next chunk,
 * because a reader looks for it only in the last chunk. */
static void keep_flight(struct state *state) {
	const struct chunk *old = state->streams[0].chunk;
	if (state->kept.call || !old || !state->flight)
		return;
	state->kept.fd = old->flight_fd;
	set(state->kept.start, old->flight_start);
	set(state->kept.call, old->flight);
}

static void take_flight(struct state *state, struct chunk *chunk) {
	if (likely(!state->kept.call))
		return;
	chunk->flight_fd = state->kept.fd;
	chunk->flight_start = state->kept.start;
	set(chunk->flight, state->kept.call);
	state->kept.call = 0;
}

/* Whether the chunk that was begun as number `turn` (see state.turns) is still the stream's last one. Another
 * coroutine may have begun a newer chunk. */
static inline int is_turn(const struct state *state, u32 level, u8 turn) {
	return *(const volatile u8 *)&state->turns[level] == turn;
}

/* The magic number is written last: it marks the header as complete. */
static void write_header(struct state *state, u32 level, struct chunk *chunk, u64 now) {
	struct stream *stream = &state->streams[level];
	stream->task = task_of(state);
	chunk->tid = state->tid;
	chunk->pid = state->pid;
	chunk->base = now;
	chunk->stream = stream->first;
	chunk->sequence = stream->sequence++;
	chunk->level = level;
	chunk->owner = state->owner;
	chunk->over = 0;
	chunk->flight = 0;
	if (level == 0)
		take_flight(state, chunk);
	set(chunk->used, sizeof(*chunk));
	chunk->magic = CHUNK_MAGIC;
}

/* Resets the values from which records are predicted, because a reader decodes each chunk without the
 * others. */
static void predict_nothing(struct state *state, u32 level, u64 now) {
	struct stream *stream = &state->streams[level];
	stream->last_end = now;
	stream->last_size = 0;
	stream->next_offset = 0;
	stream->last_fd = -1;
	stream->last_directory = AT_FDCWD;
	stream->last_opened = 0;
	stream->paths = 0;
	if (level)
		return;
	for (u32 i = 0; i < CACHED_PATHS; i++)
		state->cache[i / PATH_WAYS][i % PATH_WAYS].hash = 0;
	for (u32 i = 0; i < HABITS; i++)
		state->habits[i] = (struct habit){0, 0, 0};
	state->last_path_bytes = state->last_path[0] = 0;
	forget_known_stacks(state);
}

static int go_on_in(struct state *state, u32 level, u8 turn, struct chunk *chunk, u8 *limit) {
	struct stream *stream = &state->streams[level];
	if (!is_turn(state, level, turn))
		return 0;
	set(stream->at, (u8 *)(chunk + 1));
	set(stream->limit, limit);
	if (is_turn(state, level, turn))
		return 1;
	stream->limit = 0;
	return 0;
}

static int new_chunk(struct state *state, struct stream *stream, u32 level, u64 now) {
	if (session->closed || !state->taken)
		return 0;
	u8 turn = ++state->turns[level];
	if (level == 0)
		keep_flight(state);
	u64 index;
	u32 generation;
	u8 *memory = next_chunk(state, stream, level, &index, &generation);
	if (!memory) {
		if (level == 0)
			state->kept.call = 0;
		return 0;
	}
	/* Many programs need one page. A thread that has filled two chunks will probably fill this one, too. */
	u64 first_bytes = stream->sequence > 1 ? session->chunk_bytes : stream->sequence ? 16384 : 4096;
	if (!populate(memory, memory + first_bytes)) {
		__atomic_fetch_add(&session->lost_streams, 1, __ATOMIC_RELAXED);
		stop();
		return 0;
	}
	struct chunk *chunk = (struct chunk *)memory;
	if (!is_turn(state, level, turn))
		return 0;
	/* From here on leave_to_nobody() finds the chunk. If a handler has forked in between, the state is unused
	 * in its child, and the chunk belongs to the parent. */
	set(stream->chunk, chunk);
	if (!state->taken)
		return 0;
	/* The magic number is cleared first: until it is written, the recorder does not read the new content. */
	set(chunk->magic, 0);
	chunk->generation = generation;
	if (!stream->sequence)
		stream->first = (u32)index;
	write_header(state, level, chunk, now);
	predict_nothing(state, level, now);
	return go_on_in(state, level, turn, chunk, memory + first_bytes);
}

/* Unless the next record needs more, a chunk's existing pages are at most doubled, and by no more than
 * GROW_MOST bytes at a time: creating a page of shared memory takes longer than the request itself. */
#define GROW_MOST 8192ul

/* Makes room for `bytes` more bytes at stream->at. */
NOINLINE int extend(struct state *state, u32 level, u64 bytes, u64 now) {
	struct stream *stream = &state->streams[level];
	struct chunk *chunk = chunk_of(stream);
	u8 *before = *(u8 *volatile *)&stream->limit, *at = *(u8 *volatile *)&stream->at;
	u64 have = (u64)(before - (u8 *)chunk);
	/* The stream's chunk can grow if its three values match. They do not if the stream is abandoned (limit
	 * 0), or if another coroutine has begun a chunk while they were read. */
	if (chunk && before && have <= session->chunk_bytes && at >= (u8 *)chunk && at <= before) {
		u8 *end = (u8 *)chunk + session->chunk_bytes;
		u64 need = ((u64)(at + bytes - before) + 4095) & ~4095ul;
		u64 grow = have < GROW_MOST ? have : GROW_MOST;
		if (grow < need)
			grow = need;
		u8 *limit = before + grow < end ? before + grow : end;
		/* This fails if the chunk was abandoned or extended in between. */
		if (at + bytes <= end)
			return populate(before, limit) &&
			       __atomic_compare_exchange_n(&stream->limit, &before, limit, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
	}
	if (!new_chunk(state, stream, level, now))
		return 0;
	return stream->at + bytes <= stream->limit || extend(state, level, bytes, now);
}

/* Returns the address for the next record of up to `bytes`; 0 if the record is lost. In between a handler may
 * switch to another coroutine, which writes a record on this level and begins another chunk. Then this record
 * is abandoned. */
ALWAYS u8 *room(struct state *state, u32 level, u64 bytes, u64 now) {
	struct stream *stream = &state->streams[level];
	if (unlikely(stream->task != task_of(state)) && stream->chunk)
		write_control(state, level, CONTROL_TASK, now);
	u8 *at = *(u8 *volatile *)&stream->at;
	if (likely(at && at + bytes <= stream->limit))
		return at;
	u64 writer = writer_on(state, level);
	if (extend(state, level, bytes, now) && writer_on(state, level) == writer) {
		at = *(u8 *volatile *)&stream->at;
		if (at && at + bytes <= stream->limit)
			return at;
	}
	count_lost(1);
	return 0;
}

/* Whether this record can follow the last committed record of its chunk. It can't if a handler has switched
 * to another coroutine that committed records in between: this record was predicted from older values than a
 * reader then has. */
static ALWAYS int is_next(struct stream *stream, const struct chunk *chunk, const u8 *begin, const u8 *end) {
	if (likely(stream->at == begin && end <= stream->limit && chunk && begin == (const u8 *)chunk + chunk->used))
		return 1;
	stream->limit = 0;
	count_lost(1);
	return 0;
}

/* Sets the place of the next record. If a handler has just begun another chunk, the stream is abandoned. */
static ALWAYS void go_on_at(struct stream *stream, const struct chunk *chunk, u8 *end) {
	set(stream->at, end);
	if (unlikely(chunk_of(stream) != chunk))
		stream->limit = 0;
}

/* Commits a record with one store. From then on the reader finds it, even if the process is killed. */
ALWAYS void commit(struct stream *stream, const u8 *begin, u8 *end) {
	struct chunk *chunk = chunk_of(stream);
	if (!is_next(stream, chunk, begin, end))
		return;
	go_on_at(stream, chunk, end);
	*(volatile u32 *)&chunk->used = (u32)(end - (u8 *)chunk);
}

/* Commits the record of the call in flight. The same store clears chunk->flight, which follows `used`, so
 * that both change together. */
ALWAYS void commit_landing(struct stream *stream, const u8 *begin, u8 *end) {
	struct chunk *chunk = chunk_of(stream);
	if (!is_next(stream, chunk, begin, end))
		return;
	go_on_at(stream, chunk, end);
	*(volatile aligned_u64 *)&chunk->used = (u32)(end - (u8 *)chunk);
}
