/* Levels separate nested records. A signal handler may run between any two instructions, make calls, and
 * leave by longjmp. If a record begins while the thread is writing another one, it goes to the stream of the
 * next level. */

#include "recorder.h"

#define CROWDED_MOST 64

/* Gives up the records being written on the levels from `from` on. The next records on these levels go to new
 * chunks, because they would be predicted from values of the lost records, which a reader does not have. */
NOINLINE void abandon(struct state *state, u32 from) {
	/* One store suffices to abandon a level, so that a handler never finds one half abandoned. */
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

/* Called when all levels are taken: by handlers that left by longjmp, or by handlers that a flood of signals
 * has interrupted, and that must find their chunks unchanged. So up to CROWDED_MOST calls are lost first, to
 * give interrupted handlers time to finish. Returns 0 when the levels may be abandoned. */
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

/* Begins a record and returns its level. From here on a handler's records go to the next level. If no call is
 * in flight, the address of `here` is noted instead. If a handler then leaves by longjmp, the next call finds
 * that `here` was overwritten. */
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

/* Ends a record at an unexpected level: a handler has switched to another coroutine in between. Records that
 * were begun on higher levels are abandoned. */
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
