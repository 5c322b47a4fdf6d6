/* Who is recording what: a handler may come at any instruction, record calls of its own, and leave by longjmp. Each record is written on a
 * level of its own, which has its own stream of chunks. A part of record.c, kept apart for reading. */

/* Asked for once: a handler's calls may have begun another one by the next time. */
static inline struct chunk *chunk_of(const struct stream *stream)
{
	return *(struct chunk *const volatile *)&stream->chunk;
}

static inline void no_flight_in(struct chunk *chunk)
{
	if (likely(chunk))
		chunk->flight = 0;
}

static inline u64 writer_on(const struct state *state, u32 level)
{
	return *(const volatile u64 *)&state->writers[level];
}

/* Records were begun and left (longjmp out of a handler, a vfork's child killed): what the next ones would
 * be predicted from is not what a reader has seen. They go into new chunks, on all levels or from one on. */
static __attribute__((noinline)) void abandon(struct state *state, u32 from)
{
	/* (One store each: a handler may come in between.) */
	for (u32 level = from; level < LEVELS; level++)
		state->streams[level].limit = 0;
	barrier();
	state->level = from;
}

/* No call is in flight. */
static void end_flight(struct state *state)
{
	state->kept.call = 0;
	no_flight_in(chunk_of(&state->streams[0]));
	state->flight = 0;
}

/* All levels are taken: by handlers that left their records by longjmp, or, where signals come in floods, by handlers that will go on
 * with theirs. These must find their chunks as they left them. So some calls are lost first: levels that are in use become free again
 * before there are as many. */
static __attribute__((noinline)) int is_crowded(struct state *state)
{
	if (state->crowded++ >= CROWDED_MOST)
		return 0;
	__atomic_fetch_add(&session->lost_calls, 1, __ATOMIC_RELAXED);
	return 1;
}

/* They are abandoned, and the call in flight: it may be in a handler that goes on, or was left by one whose stack tells nothing. */
static __attribute__((noinline)) void abandon_all(struct state *state)
{
	abandon(state, 0);
	__atomic_fetch_add(&session->lost_calls, 1, __ATOMIC_RELAXED);
	end_flight(state);
}

/* From here on a handler's records go elsewhere. Where no call is in flight the function that writes stands in its place, so that it is found
 * out if a handler leaves it by longjmp. */
static inline ALWAYS u32 enter(struct state *state, struct place *here)
{
	if (unlikely(state->level >= LEVELS))
		abandon_all(state);
	u32 level = state->level;
	if (!level && !state->flight) {
		here->start = (u64)here | MARKED;
		barrier();
		state->flight = (u64)here | WRITES;
		barrier();
	}
	state->level = level + 1;
	barrier();
	state->writers[level] = (u64)here;
	barrier();
	return level;
}

/* A record ends late, at `level`: a handler has given the thread to another coroutine meanwhile. Others may have begun records on the levels
 * above, and not ended them. Or one below has ended, and all that was begun above it is abandoned. */
static __attribute__((noinline)) void leave_late(struct state *state, u32 level)
{
	if (state->level > level)
		abandon(state, level + 1);
	if (state->level > level)
		state->level = level;
}

/* What begins now may have that level. */
static inline ALWAYS void leave_level(struct state *state, u32 level)
{
	barrier();
	if (likely(state->level == level + 1))
		state->level = level;
	else
		leave_late(state, level);
	barrier();
}

static inline ALWAYS void leave(struct state *state, u32 level, const struct place *here)
{
	/* (Another coroutine may have abandoned this one's record, and write one.) */
	if (likely(writer_on(state, level) == (u64)here))
		leave_level(state, level);
	if (unlikely(!level && state->flight == ((u64)here | WRITES)))
		state->flight = 0;
}
