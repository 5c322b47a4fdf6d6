/* A state that is lent: a child of vfork uses its parent's memory and thread-local storage, and so its state, while the parent waits. A part of
 * record.c, kept apart for reading. */

/* May its child use this state, if there is one? (One with a storage of its own does not. That may be its parent's, too.) */
static int lends(const struct pending *pending)
{
	u64 both = CLONE_VM | CLONE_VFORK;
	return is_fork(pending) && (pending->fork.flags & both) == both;
}

/* In a sandbox nobody is asked, and all is the parent's. */
static void set_lent(struct state *state)
{
	u32 taken = TAKEN;
	for (u32 i = 0; i < state->depth; i++)
		if (lends(&state->pending[i]) && !confined)
			taken = LENT;
	state->taken = taken;
}

/* Is it a child of vfork that uses it? */
static int is_lent(const struct state *state)
{
	for (u32 i = 0; i < state->depth; i++)
		if (lends(&state->pending[i]) && (confined || state->pending[i].tid != state->tid))
			return 1;
	return 0;
}

/* The call that the parent is in beside that which made the child: a handler's fork. */
static u64 flight_lent(const struct state *state)
{
	for (u32 depth = state->depth; depth-- > 0;)
		if (lends(&state->pending[depth]) && (confined || state->pending[depth].tid != state->tid))
			return state->pending[depth].fork.flight;
	return 0;
}

/* So that the recorder knows of it even if it never loads this library. */
static void note_birth(u32 pid)
{
	u64 at = __atomic_fetch_add(&session->births, 1, __ATOMIC_RELAXED);
	session->born[at & (BIRTHS - 1)] = pid;
}

/* It is this thread's from here on: that of a child of vfork, whose parent waits, as it makes its first step; or its parent's again. (A
 * handler in between looks at the thread's number.) */
static void is_now(struct state *state, u32 tid, u32 pid, u64 now)
{
	state->pid = pid;
	state->tid = tid;
	u32 level = enter(state);
	write_task(state, level, now);
	leave(state, level);
}

static void write_fork(struct state *state, const struct pending *pending, u64 end, s64 result)
{
	u64 flags = pending->fork.flags;
	/* In a sandbox nothing is read before the kernel has read it. */
	if (confined && pending->number == SYS_clone3 && result > 0)
		flags = *(const u64 *)pending->fork.structure;
	if (result > 0 && !(flags & CLONE_THREAD))
		note_birth((u32)result);
	struct fields fields;
	nothing_yet(&fields);
	fields.more = MORE_FLAGS;
	fields.flags = flags;
	u32 level = enter(state);
	write_fields(state, level, shape_of(pending->number), &fields, 0, pending->start, end, result);
	leave(state, level);
}

/* The call that made a child is over, in the parent: the child of vfork, if there was one, has gone, perhaps in the midst of a call. 0: a
 * handler that came in between has seen to it, or was what came in between. */
static int fork_is_over(struct state *state, struct pending *pending, u64 end, s64 result)
{
	struct pending done = *pending;
	u64 stack = done.stack;
	if (!stack || !__atomic_compare_exchange_n(&pending->stack, &stack, 0, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		return 0;
	end_pending(state, (u32)(pending - state->pending));
	barrier();
	if (state->level > done.fork.level)
		abandon(state, (u32)done.fork.level);
	if (state->flight != done.fork.flight)
		write_no_return(state, end);
	if (state->tid != done.tid)
		is_now(state, done.tid, done.pid, end);
	set_lent(state);
	write_fork(state, &done, end, result);
	return 1;
}

/* Whose call is this, the parent's or its child's? A handler's may come before the call that makes the child has returned to either, and may
 * leave it by longjmp. */
static void settle(struct state *state, u64 now)
{
	u32 tid = confined ? state->tid : (u32)kernel0(SYS_gettid), child = state->tid;
	if (tid == child)
		return;
	for (u32 depth = state->depth; depth-- > 0;)
		if (lends(&state->pending[depth]) && state->pending[depth].tid == tid &&
		    fork_is_over(state, &state->pending[depth], now, child))
			return;
	is_now(state, tid, (u32)kernel0(SYS_getpid), now);
}
