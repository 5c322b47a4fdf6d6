/* A state that is lent: a child of vfork uses its parent's memory and thread-local storage, and so its state, while the parent waits. A part of
 * record.c, kept apart for reading. */

static void update_lent(struct state *state)
{
	u32 taken = TAKEN;
	for (u32 i = 0; i < state->depth; i++)
		if (lends(&state->pending[i]))
			taken = LENT;
	state->taken = taken;
}

/* The innermost call of a parent whose child uses the state, 0: there is none. */
static const struct pending *lender(const struct state *state)
{
	const struct pending *one = innermost(state);
	while (one && !(lends(one) && one->tid != state->tid))
		one = inner(state, one->order);
	return one;
}

static int is_lent(const struct state *state)
{
	return lender(state) != 0;
}

/* The call that the parent was in when a handler made the child. */
static u64 flight_lent(const struct state *state)
{
	const struct pending *pending = lender(state);
	return pending ? pending->fork.flight : 0;
}

/* So that the recorder knows of it even if it never loads this library. */
static void note_birth(u32 pid)
{
	u64 at = __atomic_fetch_add(&session->births, 1, __ATOMIC_RELAXED);
	session->born[at & (BIRTHS - 1)] = pid;
}

/* It is this thread's from here on: that of a child of vfork, whose parent waits, as it makes its first step; or its parent's again. (A
 * handler in between looks at the thread's number.) */
static void hand_to(struct state *state, u32 tid, u32 pid, u64 now)
{
	state->pid = pid;
	state->tid = tid;
	struct place here;
	u32 level = enter(state, &here);
	write_task(state, level, now);
	leave(state, level, &here);
}

/* A result, or that it did not return. */
static void write_fork(struct state *state, const struct pending *pending, u32 phase, u64 end, s64 result)
{
	if (result > 0 && !(pending->fork.flags & CLONE_THREAD))
		note_birth((u32)result);
	struct fields fields;
	nothing_yet(&fields);
	fields.more = MORE_FLAGS;
	fields.flags = pending->fork.flags;
	struct place here;
	u32 level = enter(state, &here);
	write_fields(state, level, shape_of(pending->number), &fields, phase, pending->start, end, result);
	leave(state, level, &here);
}

/* What the child of vfork, which has gone, has left unfinished in its parent's state. */
static void end_calls_of_child(struct state *state, const struct pending *fork, u64 now)
{
	if (state->flight != fork->fork.flight) {
		write_no_return(state, now);
	} else if (state->level > fork->fork.level) {
		__atomic_fetch_add(&session->lost_calls, state->level - fork->fork.level, __ATOMIC_RELAXED);
		abandon(state, (u32)fork->fork.level);
	}
	if (state->tid != fork->tid)
		hand_to(state, fork->tid, fork->pid, now);
}

/* The call that made a child is over, in the parent. 0: it is none any more, for a handler has told of it.
 *
 * A handler may leave who does this in the midst of it. Then it is marked by ENDS, and whoever finds it does this again: but for the record,
 * which may be there or not, and is counted as lost. */
static int fork_is_over(struct state *state, struct pending *pending, u32 phase, u64 end, s64 result)
{
	struct pending done = *pending;
	u64 stack = done.stack;
	if (!stack || !__atomic_compare_exchange_n(&pending->stack, &stack, stack | ENDS, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		return 0;
	forget_interrupted(done.fork.outer);
	end_calls_of_child(state, &done, end);
	if (done.stack & ENDS)
		__atomic_fetch_add(&session->lost_calls, 1, __ATOMIC_RELAXED);
	else
		write_fork(state, &done, phase, end, result);
	end_pending(state, done.order);
	update_lent(state);
	return 1;
}

/* Calls that were to make a child, and that a handler has left before they could: the one at `stack` is no deeper. */
static void forget_left(struct state *state, u64 now, u64 stack)
{
	for (struct pending *one = innermost(state); one; one = inner(state, one->order))
		if (lends(one) && is_left(one, state->tid, stack))
			fork_is_over(state, one, PHASE_NO_RETURN, now, 0);
}

/* Has the call that made it come back to who makes one at `stack`? (Not to a handler that interrupts the one who sees to that.) */
static int is_back(const struct pending *pending, u32 tid, u64 stack)
{
	return lends(pending) && pending->tid == tid && (!(pending->stack & ENDS) || is_left(pending, tid, stack));
}

/* Which child is it that its parent's call returns? (That may have a child of its own.) */
static void note_child(struct state *state, u32 child)
{
	struct pending *one = innermost(state);
	while (one && !(lends(one) && one->tid == state->tid && !one->fork.child))
		one = inner(state, one->order);
	if (one)
		one->fork.child = child;
}

/* Whose call is the one at `stack`, the parent's or its child's? A handler's may come before the call that makes the child has returned to
 * either, and may leave it by longjmp. */
static void settle(struct state *state, u64 now, u64 stack)
{
	u32 tid = (u32)kernel0(SYS_gettid);
	if (tid == state->tid) {
		forget_left(state, now, stack);
		return;
	}
	for (struct pending *one = innermost(state); one; one = inner(state, one->order))
		if (is_back(one, tid, stack) &&
		    fork_is_over(state, one, one->fork.child ? 0 : PHASE_NO_RETURN, now, (s64)one->fork.child))
			return;
	note_child(state, tid);
	hand_to(state, tid, (u32)kernel0(SYS_getpid), now);
}
