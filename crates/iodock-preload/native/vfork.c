/* Children of vfork use their parent's memory and thread-local storage while the parent waits. So they also
 * use the parent's state. */

#include "recorder.h"

void update_lent(struct state *state) {
	u32 taken = TAKEN;
	for (u32 i = 0; i < state->depth; i++)
		if (lends(&state->pending[i]))
			taken = LENT;
	state->taken = taken;
}

/* Returns the innermost pending vfork whose child is using the state; 0 if there is none. */
static const struct pending *lender(const struct state *state) {
	const struct pending *one = innermost(state);
	while (one && !(lends(one) && one->tid != state->tid))
		one = inner(state, one->order);
	return one;
}

int is_lent(const struct state *state) {
	return lender(state) != 0;
}

/* Returns the parent's call in flight if its handler has created the child that uses the state; else 0. */
u64 flight_lent(const struct state *state) {
	const struct pending *pending = lender(state);
	return pending ? pending->fork.flight : 0;
}

/* Assigns the state to another thread, a child or again its parent, and records that. `pid` is set first,
 * because a handler decides by `tid` whose calls are recorded. */
static void hand_to(struct state *state, u32 tid, u32 pid, u64 now) {
	state->pid = pid;
	state->tid = tid;
	record_control(state, CONTROL_TASK, now);
}

/* Writes the record of a fork with its result, or without one. Also notes the child's process id in the
 * session's header, because the child may never load this library. */
static void write_fork(struct state *state, const struct pending *pending, u32 phase, u64 end, s64 result) {
	if (result > 0 && !(pending->fork.flags & CLONE_THREAD))
		session->born[__atomic_fetch_add(&session->births, 1, __ATOMIC_RELAXED) & (BIRTHS - 1)] = (u32)result;
	struct fields fields;
	nothing_yet(&fields);
	fields.more = MORE_FLAGS;
	fields.flags = pending->fork.flags;
	struct place here;
	u32 level = enter(state, &here);
	write_fields(state, level, shape_of(pending->number), &fields, phase, pending->start, end, result);
	leave(state, level, &here);
}

/* Ends the calls that a child left unfinished in its parent's state when it ended. */
static void end_calls_of_child(struct state *state, const struct pending *fork, u64 now) {
	if (state->flight != fork->fork.flight) {
		write_no_return(state, now);
	} else if (state->level > fork->fork.level) {
		count_lost(state->level - fork->fork.level);
		abandon(state, (u32)fork->fork.level);
	}
	if (state->tid != fork->tid)
		hand_to(state, fork->tid, fork->pid, now);
}

/* Handles the return of a fork in the parent. Returns 0 if a handler has recorded it already. A handler may
 * leave this function by longjmp: then ENDS marks the call, and the next call of this function completes the
 * work. It counts the record as lost, because it can't know whether the record exists. */
int fork_is_over(struct state *state, struct pending *pending, u32 phase, u64 end, s64 result) {
	struct pending done = *pending;
	u64 stack = done.stack;
	if (!stack || !__atomic_compare_exchange_n(&pending->stack, &stack, stack | ENDS, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		return 0;
	forget_interrupted(done.fork.outer);
	end_calls_of_child(state, &done, end);
	if (done.stack & ENDS)
		count_lost(1);
	else
		write_fork(state, &done, phase, end, result);
	end_pending(state, done.order);
	update_lent(state);
	return 1;
}

/* Ends calls of vfork that were abandoned before they created a child. */
static void forget_abandoned(struct state *state, u64 now, u64 stack) {
	for (struct pending *one = innermost(state); one; one = inner(state, one->order))
		if (lends(one) && is_abandoned(one, state->tid, stack))
			fork_is_over(state, one, PHASE_NO_RETURN, now, 0);
}

/* Whether that vfork has returned to its parent, the thread `tid`, which makes a call at `stack`. The answer
 * is no if a handler that interrupted fork_is_over() makes the call. */
static int is_back(const struct pending *pending, u32 tid, u64 stack) {
	return lends(pending) && pending->tid == tid && (!(pending->stack & ENDS) || is_abandoned(pending, tid, stack));
}

/* Finds the vfork that created the child and notes the child there. The vfork's caller may itself be a child
 * of vfork. */
static void note_child(struct state *state, u32 child) {
	struct pending *one = innermost(state);
	while (one && !(lends(one) && one->tid == state->tid && !one->fork.child))
		one = inner(state, one->order);
	if (one)
		one->fork.child = child;
}

/* Decides whether the parent or its child makes the call at `stack`, and assigns the state to it. The
 * parent's signal handler may make the call before the vfork has returned, and may abandon the vfork. */
void settle(struct state *state, u64 now, u64 stack) {
	u32 tid = (u32)kernel0(SYS_gettid);
	if (tid == state->tid) {
		forget_abandoned(state, now, stack);
		return;
	}
	for (struct pending *one = innermost(state); one; one = inner(state, one->order))
		if (is_back(one, tid, stack) && fork_is_over(state, one, one->fork.child ? 0 : PHASE_NO_RETURN, now, (s64)one->fork.child))
			return;
	note_child(state, tid);
	hand_to(state, tid, (u32)kernel0(SYS_getpid), now);
}
