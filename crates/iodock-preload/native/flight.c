/* The call in flight is the call that a thread is making. It is noted in the thread's chunk, so that it can
 * be recorded without a result if it never returns: because the thread is killed, or because a signal handler
 * leaves the call by longjmp (the call is then called abandoned). */

#include "recorder.h"

/* Ends stretches of own calls (see stop.c) that abandoned calls and handlers have left open. The thread's
 * current stretch goes on. */
static void end_abandoned_stretches(struct state *state) {
	state->held = 0;
	state->own_calls = state->own_calls != 0;
}

/* Whether the call that returned at `stack` is the call in flight. If so, records that handlers have begun
 * since and not completed are abandoned. A handler's own call, during another call in flight, is not
 * noted. */
int come_back(struct state *state, u64 stack) {
	if (unlikely(state->flight != stack))
		return 0;
	if (unlikely(state->level)) {
		count_lost(state->level);
		abandon(state, 0);
		end_abandoned_stretches(state);
	}
	return 1;
}

/* Called after a record was written at this level. If the record belongs to the call at `flight`, that call
 * is no longer in flight. `flight` is 0 for a call that was not noted. */
ALWAYS void land(struct state *state, u32 level, const struct place *here, u64 flight) {
	int lands = flight && state->flight == flight;
	if (likely(lands))
		no_flight_in(chunk_of(&state->streams[0]));
	leave(state, level, here);
	barrier();
	if (likely(lands))
		end_flight(state);
}

/* The stub calls this after it has written a record, if a handler or a coroutine has changed the thread's
 * level or its call in flight in between. Usually the stub itself resets both. */
void iodock_land_late(struct state *state, u64 flight) {
	if (state->flight != flight)
		return;
	leave_level(state, 0);
	state->flight = 0;
}

/* The stub calls this if it can't commit its record, because is_next() is false. If the call is still in
 * flight it is lost; otherwise it is already recorded as abandoned. */
void iodock_not_next(struct state *state, u64 flight) {
	state->streams[0].limit = 0;
	if (state->flight != flight)
		return;
	count_lost(1);
	leave_level(state, 0);
	end_flight(state);
}

static struct flight flight_of(const struct state *state) {
	const struct chunk *chunk = chunk_of(&state->streams[0]);
	if (state->kept.call || !chunk)
		return state->kept;
	return (struct flight){chunk->flight_start, chunk->flight, chunk->flight_fd};
}

static void write_abandoned(struct state *state, struct flight flight, u64 now) {
	const struct shape *shape = &session->shapes[(flight.call - 1) & (CALL_NUMBERS - 1)];
	struct fields fields;
	nothing_yet(&fields);
	if (shape->roles[0] == ROLE_FD)
		fields.has = HAS_FD, fields.fd = flight.fd;
	fields.lands = 1;
	/* Calls that map memory are left out, because it is not known here whether they map a file. */
	if (shape->code && shape->kind != KIND_MAP)
		write_fields(state, 0, shape, &fields, PHASE_NO_RETURN, flight.start >> TIME_SHIFT, now, 0);
}

/* Returns the number of records that are being written, except the record of the call in flight. */
static u32 records_begun(const struct state *state, u64 flight) {
	/* A handler may leave enter() by longjmp before enter() took the level. */
	if (flight & WRITES)
		return state->level ? state->level : 1;
	return state->level ? state->level - 1 : 0;
}

/* Ends an abandoned call in flight: writes its record without a result, unless the record exists already.
 * Counts records that were begun since as lost. */
void write_no_return(struct state *state, u64 now) {
	u64 flight = state->flight;
	if (!flight)
		return;
	end_abandoned_stretches(state);
	u32 lost = records_begun(state, flight);
	if (unlikely(lost))
		count_lost(lost);
	if (unlikely(state->level))
		abandon(state, 0);
	/* From this point a handler's calls find `here` instead of the call in flight. */
	struct place here;
	set(here.start, (u64)&here | MARKED);
	set(state->flight, (u64)&here | WRITES_LEFT);
	u32 level = enter(state, &here);
	struct flight noted = flight_of(state);
	if (noted.call)
		write_abandoned(state, noted, now);
	land(state, level, &here, (u64)&here | WRITES_LEFT);
}

/* Whether a handler runs on a stack of its own, which may have any address. */
int on_other_stack(void) {
	struct { u64 start; u32 flags, padding; u64 bytes; } stack;
	return failed(kernel2(SYS_sigaltstack, 0, &stack)) || (stack.flags & SS_ONSTACK);
}

/* Whether the current call's stack address is not below that of the call in flight. A handler that
 * interrupted the call in flight would be below it. */
static int is_above(u64 flight, u64 stack) {
	u64 there = flight & ~KINDS;
	return stack >= there && stack - there < STACK_MOST && !on_other_stack();
}

/* Whether the word's value has changed, or its page is unmapped. A futex call is used, because it is the
 * fastest way to check memory that may be unmapped; it wakes no thread. */
static int has_changed(const u64 *word, u32 value) {
	long asked = kernel(SYS_futex, (long)word, FUTEX_CMP_REQUEUE_PRIVATE, 0, 0, (long)word, value);
	return asked == -EAGAIN || asked == -EFAULT;
}

/* Returns the value that `start` in the frame of the call in flight has while the frame exists; 0 if
 * unknown. */
static u64 mark_of_flight(const struct state *state, u64 flight) {
	struct flight noted = flight_of(state);
	if (flight & (WRITES | WRITES_LEFT))
		return (flight & ~KINDS) | MARKED;
	/* The header of a chunk that is just being begun may still have old content, which is not used. */
	int is_known = noted.call && (state->kept.call || state->streams[0].at);
	return is_known && !(flight & NO_FRAME) ? noted.start : 0;
}

/* Whether the frame of the call in flight was overwritten, or its stack unmapped. */
static int frame_is_gone(const struct state *state, u64 flight, u64 stack) {
	const u64 *there = &((const struct plain_frame *)(flight & ~KINDS))->start;
	u64 mark = mark_of_flight(state, flight);
	if (!mark)
		return 0;
	/* The word lies in the page of the current stack, which is readable. */
	return (u64)there >> 12 == stack >> 12 ? *(const volatile u64 *)there != mark : has_changed(there, (u32)mark);
}

/* Whether the thread, which makes a call at `stack`, has abandoned the call in flight. The call of a parent
 * that waits for its child of vfork is not abandoned. */
int was_abandoned(const struct state *state, u64 flight, u64 stack) {
	return flight != flight_lent(state) && (frame_is_gone(state, flight, stack) || is_above(flight, stack));
}

/* Releases levels that are taken although no call is in flight. A coroutine whose call was considered
 * abandoned leaves such levels. Returns 0 if a call is in flight. */
static int is_level_abandoned(struct state *state) {
	u32 level = state->level;
	if (flight_now(state))
		return 0;
	count_lost(level);
	abandon(state, 0);
	return 1;
}

/* Makes the call that begins at `stack` the call in flight, unless a signal handler makes it while another
 * call is in flight. */
void take_off(struct state *state, const struct frame *frame, u64 stack, u64 start) {
	u64 now = start >> TIME_SHIFT, flight;
	/* The value is read again, because a handler may have recorded the abandoned call in between. */
	while ((flight = flight_now(state)) != 0 && !was_abandoned(state, flight, stack))
		if (flight_now(state) == flight)
			return;
	write_no_return(state, now);
	if (unlikely(state->level) && !is_level_abandoned(state))
		return;
	set(state->flight, stack);
	struct place here;
	u32 level = enter(state, &here);
	struct stream *stream = &state->streams[0];
	struct chunk *chunk = chunk_of(stream);
	if (unlikely(!chunk) && extend(state, 0, PLAIN_LIMIT, now))
		chunk = chunk_of(stream);
	if (likely(chunk)) {
		chunk->flight_fd = (s32)frame->arguments[0];
		set(chunk->flight_start, start);
		/* The call is noted only if no other coroutine has begun a new chunk or another call in between. */
		if (likely(flight_now(state) == stack && chunk_of(stream) == chunk))
			*(volatile u32 *)&chunk->flight = (u32)frame->number + 1;
		leave(state, level, &here);
	} else {
		land(state, level, &here, stack);
	}
}

/* The stub calls this if the thread has no chunk yet, or if a call is in flight already. */
void iodock_begin(const u64 *begun) {
	struct state *began_in = begin_own_calls(), *state;
	/* iodock_record explains why `stopped` is read again here. */
	if (!*(volatile u32 *)&stopped && (state = mine(begun[0] >> TIME_SHIFT, (u64)(begun - 1))) != 0)
		take_off(state, (const struct frame *)(begun + 1), (u64)(begun - 1), begun[0]);
	end_own_calls(began_in);
}
