/* Children of vfork: they use their parent's memory and thread-local storage, and so its state, while the parent waits. */

#include "recorder.h"

void update_lent(struct state *state) {
	u32 taken = TAKEN;
	for (u32 i = 0; i < state->depth; i++)
		if (lends(&state->pending[i]))
			taken = LENT;
	state->taken = taken;
}

/* The innermost call of a parent whose state is in use by its vfork child; 0: there is none. */
static const struct pending *lender(const struct state *state) {
	const struct pending *one = innermost(state);
	while (one && !(lends(one) && one->tid != state->tid))
		one = inner(state, one->order);
	return one;
}

int is_lent(const struct state *state) {
	return lender(state) != 0;
}

/* The parent's call in flight: a handler that interrupted it has created the child. */
u64 flight_lent(const struct state *state) {
	const struct pending *pending = lender(state);
	return pending ? pending->fork.flight : 0;
}

/* From here on the state records the calls of that thread: the child, or its parent again. (A handler
 * checks the thread id.) */
static void hand_to(struct state *state, u32 tid, u32 pid, u64 now) {
	state->pid = pid;
	state->tid = tid;
	record_control(state, CONTROL_TASK, now);
}

/* A result, or that it did not return. The birth is recorded so that the recorder knows a child that never
 * loads this library. */
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

/* Ends the calls that the child, which is gone, has left unfinished in its parent's state. */
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

/* The call that created a child is over, in the parent. 0: a handler has recorded it already. A handler
 * may abandon this half way: then ENDS marks the call, and the next code that finds it does this again;
 * the record, which may exist or not, is counted as lost. */
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

/* Calls that were to create a child, and were abandoned before they could. */
static void forget_abandoned(struct state *state, u64 now, u64 stack) {
	for (struct pending *one = innermost(state); one; one = inner(state, one->order))
		if (lends(one) && is_abandoned(one, state->tid, stack))
			fork_is_over(state, one, PHASE_NO_RETURN, now, 0);
}

/* Whether that vfork has returned to its parent, which makes a call at `stack`. (Not to a handler that
 * interrupts fork_is_over.) */
static int is_back(const struct pending *pending, u32 tid, u64 stack) {
	return lends(pending) && pending->tid == tid && (!(pending->stack & ENDS) || is_abandoned(pending, tid, stack));
}

/* Finds the call that created the child. (It may be a child's child.) */
static void note_child(struct state *state, u32 child) {
	struct pending *one = innermost(state);
	while (one && !(lends(one) && one->tid == state->tid && !one->fork.child))
		one = inner(state, one->order);
	if (one)
		one->fork.child = child;
}

/* Decides whether the call at `stack` is the parent's or its child's. (A handler's may come before the
 * vfork has returned, and may abandon it.) */
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
