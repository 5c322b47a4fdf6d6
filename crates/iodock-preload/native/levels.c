/* Levels: a signal handler may run between any two instructions, make calls, and leave by longjmp. A
 * record that is begun while another is being written goes to the stream of the next level. */

#include "recorder.h"

#define CROWDED_MOST 64

/* Records from level `from` on were begun and will not be completed: the next ones would be predicted from
 * values that a reader has not seen. So these go to new chunks. */
NOINLINE void abandon(struct state *state, u32 from) {
	/* Each level takes a single store, because a handler may run in between. */
	for (u32 level = from; level < LEVELS; level++)
		state->streams[level].limit = 0;
	barrier();
	state->level = from;
}

void no_flight_in(struct chunk *chunk) {
	if (likely(chunk))
		chunk->flight = 0;
}

void end_flight(struct state *state) {
	state->kept.call = 0;
	no_flight_in(chunk_of(&state->streams[0]));
	state->flight = 0;
}

/* All levels are taken, either by handlers that have left or, in a flood of signals, by handlers that will
 * continue and must find their chunks unchanged. So some calls are lost first, while levels in use become
 * free. */
NOINLINE int is_crowded(struct state *state) {
	if (state->crowded++ >= CROWDED_MOST)
		return 0;
	count_lost(1);
	return 1;
}

/* Abandons all levels, and the call in flight. */
static NOINLINE void abandon_all(struct state *state) {
	abandon(state, 0);
	count_lost(1);
	end_flight(state);
}

/* A record begins. From here on a handler's records go to the next level. If no call is in flight, `here`
 * is noted instead: if a handler leaves by longjmp, the next call finds that it was overwritten. */
ALWAYS u32 enter(struct state *state, struct place *here) {
	if (unlikely(state->level >= LEVELS))
		abandon_all(state);
	u32 level = state->level;
	if (!level && !state->flight) {
		set(here->start, (u64)here | MARKED);
		set(state->flight, (u64)here | WRITES);
	}
	set(state->level, level + 1);
	set(state->writers[level], (u64)here);
	return level;
}

/* A handler has switched to another coroutine in between: records that were begun above this one are
 * abandoned. */
static NOINLINE void leave_late(struct state *state, u32 level) {
	if (state->level > level)
		abandon(state, level + 1);
	if (state->level > level)
		state->level = level;
}

ALWAYS void leave_level(struct state *state, u32 level) {
	barrier();
	if (likely(state->level == level + 1))
		state->level = level;
	else
		leave_late(state, level);
	barrier();
}

ALWAYS void leave(struct state *state, u32 level, const struct place *here) {
	/* Another coroutine may have abandoned this record, and may now be writing its own record. */
	if (likely(writer_on(state, level) == (u64)here))
		leave_level(state, level);
	if (unlikely(!level && state->flight == ((u64)here | WRITES)))
		state->flight = 0;
}
