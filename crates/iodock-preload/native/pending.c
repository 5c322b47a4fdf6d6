/* Calls that are made outside of the stub, from when they begin until they are over. They are told by where the stack was then. A handler may
 * come at any instruction, begin calls of its own, and leave by longjmp those that it finds. A part of record.c, kept apart for reading. */

/* Where the stack is of a call that is made outside of the stub. */
static inline u64 stack_of(const struct frame *frame)
{
	return (u64)(frame + 1) & ~STAGES;
}

/* Where that was when it began. */
static inline u64 place_of(const struct pending *pending)
{
	return pending->stack & ~STAGES;
}

static inline int is_fork(const struct pending *pending)
{
	return shape_of(pending->number)->kind == KIND_FORK;
}

/* May its child use the state of who makes it, if there is one? (One with a storage of its own does not. That may be its parent's, too.) */
static int lends(const struct pending *pending)
{
	u64 both = CLONE_VM | CLONE_VFORK;
	return pending->stack && !(pending->stack & BEGINS) && is_fork(pending) && (pending->fork.flags & both) == both;
}

/* Orders go round after 4 billion calls, and pending ones are not that far apart. */
static inline int is_later(u32 order, u32 than)
{
	return (s32)(order - than) > 0;
}

/* The last one that began before the one with that order, 0: there is none. */
static struct pending *inner(const struct state *state, u32 order)
{
	const struct pending *last = 0;
	for (u32 i = 0; i < state->depth; i++) {
		const struct pending *one = &state->pending[i];
		if (one->stack && is_later(order, one->order) && (!last || is_later(one->order, last->order)))
			last = one;
	}
	return (struct pending *)last;
}

static struct pending *innermost(const struct state *state)
{
	return inner(state, state->orders + 1);
}

/* The call that began with the stack there, 0 for none: one that is not recorded. */
static struct pending *begun(const struct state *state, u64 stack)
{
	struct pending *pending = innermost(state);
	while (pending && (pending->stack & ~NOTED) != stack)
		pending = inner(state, pending->order);
	return pending;
}

static inline struct environment *environment_of(const struct pending *pending)
{
	return shape_of(pending->number)->kind == KIND_EXEC ? pending->exec.made : 0;
}

/* Its place is free. (What was made for the exec of a vfork's child is in our memory.) */
static void forget_pending(struct state *state, struct pending *pending)
{
	struct environment *made = environment_of(pending);
	if (made)
		pending->exec.made = 0;
	barrier();
	pending->stack = 0;
	give_back_environment(made);
	while (state->depth && !state->pending[state->depth - 1].stack)
		state->depth--;
}

/* The call with that order is over, and so are those that began later. */
static void end_pending(struct state *state, u32 order)
{
	struct pending *last;
	while ((last = innermost(state)) != 0 && !is_later(order, last->order))
		forget_pending(state, last);
}

static void end_all_pending(struct state *state)
{
	struct pending *last;
	while ((last = innermost(state)) != 0)
		forget_pending(state, last);
}

/* Has a handler left a call of this thread by longjmp? It is no deeper in the stack than the one at `stack`. (Handlers may have stacks of
 * their own, which lie anywhere.) */
static int is_left(const struct pending *pending, u32 tid, u64 stack)
{
	u64 place = place_of(pending);
	return place && pending->tid == tid && stack >= place && stack - place < STACK_MOST && !on_other_stack();
}

static int fork_is_over(struct state *state, struct pending *pending, u32 phase, u64 end, s64 result);

/* It was left: what makes a child is there without a result. */
static void end_left(struct state *state, struct pending *pending, u64 now)
{
	if (pending->stack & BEGINS || !is_fork(pending))
		forget_pending(state, pending);
	else
		fork_is_over(state, pending, PHASE_NO_RETURN, now, 0);
}

/* Another call begins at `stack`: one of this thread that began there was left. (On a stack of its own that may have been any handler: what
 * began later may go on.) */
static void end_left_at(struct state *state, u64 stack, u64 now)
{
	struct pending *pending = innermost(state);
	while (pending && !(place_of(pending) == stack && pending->tid == state->tid))
		pending = inner(state, pending->order);
	if (pending)
		end_left(state, pending, now);
}

/* The thread ends: what it has begun was left, or is what it ends in. */
static void end_with_thread(struct state *state, u64 now)
{
	for (struct pending *one = innermost(state); one; one = inner(state, one->order)) {
		if (!one->stack || one->tid != state->tid || one->stack & (BEGINS | NOTED))
			continue;
		if (is_fork(one))
			fork_is_over(state, one, PHASE_NO_RETURN, now, 0);
		else if (shape_of(one->number)->kind != KIND_EXEC) /* (whose beginning is there) */
			__atomic_fetch_add(&session->lost_calls, 1, __ATOMIC_RELAXED);
	}
}

/* Its exec may be made yet, and is told of that memory. */
static void keep_environment(struct pending *pending)
{
	if (environment_of(pending))
		pending->exec.made = 0;
}

static u32 places_taken(const struct state *state)
{
	u32 taken = 0;
	for (u32 i = 0; i < state->depth; i++)
		taken += state->pending[i].stack != 0;
	return taken;
}

/* The first that can be spared makes room: its end will not be seen. Not one that lends the state: then it would no longer be known whose calls
 * come. 0: there is none. */
static int give_one_up(struct state *state)
{
	struct pending *first = 0;
	for (struct pending *one = innermost(state); one; one = inner(state, one->order))
		if (!(one->stack & (BEGINS | ENDS)) && !lends(one))
			first = one;
	if (!first)
		return 0;
	keep_environment(first);
	if (!(first->stack & NOTED))
		__atomic_fetch_add(&session->lost_calls, 1, __ATOMIC_RELAXED);
	forget_pending(state, first);
	return 1;
}

/* Is there a place for one more? For one that lends there are to be two: its child may execute something. */
static int has_room(struct state *state, u64 flags, u64 stack, u64 now)
{
	u32 wanted = flags & CLONE_VM ? 2 : 1;
	if (likely(places_taken(state) + wanted <= PENDING))
		return 1;
	for (struct pending *one = innermost(state); one; one = inner(state, one->order))
		if (one->stack && is_left(one, state->tid, stack)) {
			keep_environment(one);
			end_left(state, one, now);
		}
	while (places_taken(state) + wanted > PENDING)
		if (!give_one_up(state))
			return places_taken(state) < PENDING;
	return 1;
}

/* One more, where has_room(). A handler that comes before all is told finds one that begins, and takes another place; or none, and has given
 * this one back when it returns. */
static struct pending *begin_pending(struct state *state, u64 stack)
{
	u32 place = 0;
	while (place < PENDING - 1 && state->pending[place].stack)
		place++;
	struct pending *pending = &state->pending[place];
	pending->order = ++state->orders;
	pending->tid = state->tid;
	pending->pid = state->pid;
	pending->number = 0;
	barrier();
	pending->stack = stack | BEGINS;
	barrier();
	/* (That handler has told of its own.) */
	pending->number = 0;
	barrier();
	if (state->depth <= place)
		state->depth = place + 1;
	barrier();
	return pending;
}
