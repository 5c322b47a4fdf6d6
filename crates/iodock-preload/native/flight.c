/* The call in flight: it is noted in its thread's chunk, so that a call that never returns is recorded,
 * without a result: if the thread is killed, or a handler leaves the call by longjmp (then it is
 * abandoned). */

#include "recorder.h"

/* Abandoned calls and handlers leave stretches open. Ends them, except for the thread's current stretch. */
static void end_abandoned_stretches(struct state *state) {
	state->held = 0;
	state->own_calls = state->own_calls != 0;
}

/* Whether the returned call at `stack` is the one in flight. Then records that were begun since and not
 * ended are abandoned. (A handler's calls, while another is in flight, are not noted.) */
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

/* The record at this level is written. If it was the record of the call at `flight` (0: a call that is not
 * noted), no call is in flight any more. */
ALWAYS void land(struct state *state, u32 level, const struct place *here, u64 flight) {
	int lands = flight && state->flight == flight;
	if (likely(lands))
		no_flight_in(chunk_of(&state->streams[0]));
	leave(state, level, here);
	barrier();
	if (likely(lands))
		end_flight(state);
}

/* Does the same for a record that the stub wrote, if another event came in between. Usually the stub does
 * this itself. */
void iodock_land_late(struct state *state, u64 flight) {
	if (state->flight != flight)
		return;
	leave_level(state, 0);
	state->flight = 0;
}

/* For the stub, if is_next() is false. The call is lost if it is still in flight; otherwise it was
 * recorded as abandoned. */
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
	/* Whether a mapping has a file is not known here. */
	if (shape->code && shape->kind != KIND_MAP)
		write_fields(state, 0, shape, &fields, PHASE_NO_RETURN, flight.start >> TIME_SHIFT, now, 0);
}

/* Number of records that are being written, without the record of the noted call in flight. */
static u32 records_begun(const struct state *state, u64 flight) {
	/* A handler may leave enter() by longjmp before enter() took the level. */
	if (flight & WRITES)
		return state->level ? state->level : 1;
	return state->level ? state->level - 1 : 0;
}

/* The call in flight is abandoned: it is written without a result, unless its record exists. Records begun
 * since are counted as lost. */
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

/* A handler that interrupted the call in flight is deeper in the stack than that call. Checks that the
 * present call is not deeper. */
static int is_above(u64 flight, u64 stack) {
	u64 there = flight & ~KINDS;
	return stack >= there && stack - there < STACK_MOST && !on_other_stack();
}

/* Whether the word's value has changed, or its page is unmapped. A futex call that wakes no thread is the
 * fastest check. */
static int has_changed(const u64 *word, u32 value) {
	long asked = kernel(SYS_futex, (long)word, FUTEX_CMP_REQUEUE_PRIVATE, 0, 0, (long)word, value);
	return asked == -EAGAIN || asked == -EFAULT;
}

/* Content of the frame of the call in flight while that frame exists; 0 if unknown. */
static u64 mark_of_flight(const struct state *state, u64 flight) {
	struct flight noted = flight_of(state);
	if (flight & (WRITES | WRITES_LEFT))
		return (flight & ~KINDS) | MARKED;
	/* (A chunk that is being begun may still have old content.) */
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

/* Whether the thread, which makes a call at `stack`, has abandoned the call in flight. (A call of a parent
 * that waits for its child by vfork does not count.) */
int was_abandoned(const struct state *state, u64 flight, u64 stack) {
	return flight != flight_lent(state) && (frame_is_gone(state, flight, stack) || is_above(flight, stack));
}

/* A level is taken, but no call is in flight: a coroutine whose own call was considered abandoned left the
 * level taken. */
static int is_level_abandoned(struct state *state) {
	u32 level = state->level;
	if (flight_now(state))
		return 0;
	count_lost(level);
	abandon(state, 0);
	return 1;
}

/* A call is about to be made at `stack`: it becomes the call in flight, unless it is made by a handler
 * that interrupts another call. */
void take_off(struct state *state, const struct frame *frame, u64 stack, u64 start) {
	u64 now = start >> TIME_SHIFT, flight;
	/* A handler may run in between, and find the abandoned call first. */
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
		/* Another coroutine may have begun other chunks. */
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
