/* The list of pending calls: calls that trampolines make, from their beginning until they return. The stack
 * address identifies a call. A signal handler may run between any two instructions, begin calls of its own,
 * and abandon calls by longjmp. */

#include "recorder.h"

int is_fork(const struct pending *pending) {
	return shape_of(pending->number)->kind == KIND_FORK;
}

/* Whether the call is a fork whose child uses the parent's state, because both share memory and the parent
 * waits, as in vfork. */
int lends(const struct pending *pending) {
	u64 both = CLONE_VM | CLONE_VFORK;
	return pending->stack && !(pending->stack & BEGINS) && is_fork(pending) && (pending->fork.flags & both) == both;
}

/* `order` wraps around; pending calls are never far enough apart for that to matter. */
static inline int is_later(u32 order, u32 than) {
	return (s32)(order - than) > 0;
}

/* Returns the last pending call that began before `order`; 0 if there is none. */
struct pending *inner(const struct state *state, u32 order) {
	const struct pending *last = 0;
	for (u32 i = 0; i < state->depth; i++) {
		const struct pending *one = &state->pending[i];
		if (one->stack && is_later(order, one->order) && (!last || is_later(one->order, last->order)))
			last = one;
	}
	return (struct pending *)last;
}

struct pending *innermost(const struct state *state) {
	return inner(state, state->orders + 1);
}

/* Returns the pending call that began at that stack address; 0 if it is not in the list. */
struct pending *begun(const struct state *state, u64 stack) {
	struct pending *pending = innermost(state);
	while (pending && (pending->stack & ~NOTED) != stack)
		pending = inner(state, pending->order);
	return pending;
}

struct environment *environment_of(const struct pending *pending) {
	return shape_of(pending->number)->kind == KIND_EXEC ? pending->exec.made : 0;
}

enum keeps { KEEPS_NOTHING, KEEPS_ENVIRONMENT /* for an exec that the kernel may still perform with that memory */ };

/* Removes a call from the list, and with KEEPS_NOTHING frees the environment that was created for its exec. A
 * child of vfork leaves that memory to its parent, even if its exec succeeds. */
static void forget_pending(struct state *state, struct pending *pending, enum keeps keeps) {
	struct environment *made = environment_of(pending);
	if (made)
		pending->exec.made = 0;
	barrier();
	pending->stack = 0;
	if (!keeps)
		give_back_environment(made);
	while (state->depth && !state->pending[state->depth - 1].stack)
		state->depth--;
}

/* Removes the call with this order from the list, and all calls that began later. */
void end_pending(struct state *state, u32 order) {
	struct pending *last;
	while ((last = innermost(state)) != 0 && !is_later(order, last->order))
		forget_pending(state, last, KEEPS_NOTHING);
}

void end_all_pending(struct state *state) {
	struct pending *last;
	while ((last = innermost(state)) != 0)
		forget_pending(state, last, KEEPS_NOTHING);
}

/* Whether this thread, which makes a call at `stack`, has abandoned the pending call: then `stack` is not
 * below the address of that call. On the alternate stack of a handler the addresses can't be compared. */
int is_abandoned(const struct pending *pending, u32 tid, u64 stack) {
	u64 place = place_of(pending);
	return place && pending->tid == tid && stack >= place && stack - place < STACK_MOST && !on_other_stack();
}

/* Ends an abandoned call. A fork is recorded without a result. */
static void end_abandoned(struct state *state, struct pending *pending, u64 now, enum keeps keeps) {
	if (pending->stack & BEGINS || !is_fork(pending))
		forget_pending(state, pending, keeps);
	else
		fork_is_over(state, pending, PHASE_NO_RETURN, now, 0);
}

/* Called when a call begins at `stack`. An earlier call of this thread with the same address was abandoned.
 * Calls that began after that one, on the alternate stack of a handler, may still be pending. */
void end_abandoned_at(struct state *state, u64 stack, u64 now) {
	struct pending *pending = innermost(state);
	while (pending && !(place_of(pending) == stack && pending->tid == state->tid))
		pending = inner(state, pending->order);
	if (pending)
		end_abandoned(state, pending, now, KEEPS_NOTHING);
}

/* Called when the thread ends. Its pending calls were abandoned, and are counted as lost. Forks are recorded
 * without a result, and the beginning of an exec is recorded already. */
void end_with_thread(struct state *state, u64 now) {
	for (struct pending *one = innermost(state); one; one = inner(state, one->order)) {
		if (!one->stack || one->tid != state->tid || one->stack & (BEGINS | NOTED))
			continue;
		if (is_fork(one))
			fork_is_over(state, one, PHASE_NO_RETURN, now, 0);
		else if (shape_of(one->number)->kind != KIND_EXEC)
			count_lost(1);
	}
}

static u32 entries_taken(const struct state *state) {
	u32 taken = 0;
	for (u32 i = 0; i < state->depth; i++)
		taken += state->pending[i].stack != 0;
	return taken;
}

/* Removes the oldest call from the list to make room, so that its return will not be recorded. A vfork whose
 * child uses the state must stay, because it decides whose calls are recorded. Returns 0 if no call can
 * go. */
static int give_one_up(struct state *state) {
	struct pending *first = 0;
	for (struct pending *one = innermost(state); one; one = inner(state, one->order))
		if (!(one->stack & (BEGINS | ENDS)) && !lends(one))
			first = one;
	if (!first)
		return 0;
	if (!(first->stack & NOTED))
		count_lost(1);
	forget_pending(state, first, KEEPS_ENVIRONMENT);
	return 1;
}

/* Makes room for one more call; for a fork with shared memory for two, because the child may make an exec. */
int has_room(struct state *state, u64 flags, u64 stack, u64 now) {
	u32 wanted = flags & CLONE_VM ? 2 : 1;
	if (likely(entries_taken(state) + wanted <= PENDING))
		return 1;
	for (struct pending *one = innermost(state); one; one = inner(state, one->order))
		if (one->stack && is_abandoned(one, state->tid, stack))
			end_abandoned(state, one, now, KEEPS_ENVIRONMENT);
	while (entries_taken(state) + wanted > PENDING)
		if (!give_one_up(state))
			return entries_taken(state) < PENDING;
	return 1;
}

/* Adds an entry, after has_room(). A handler may run before the entry is complete. If BEGINS is set already,
 * the handler takes another entry. Otherwise it takes this entry, and frees it before it returns. */
struct pending *begin_pending(struct state *state, u64 stack) {
	u32 place = 0;
	while (place < PENDING - 1 && state->pending[place].stack)
		place++;
	struct pending *pending = &state->pending[place];
	pending->order = ++state->orders;
	pending->tid = state->tid;
	pending->pid = state->pid;
	set(pending->number, 0);
	set(pending->stack, stack | BEGINS);
	/* A handler that took this entry in between has left its own call's number here. */
	set(pending->number, 0);
	if (state->depth <= place)
		state->depth = place + 1;
	barrier();
	return pending;
}
