/* Where a thread may make calls of ours. A part of record.c, kept apart for reading.
 *
 * A filter that one thread sets for all of them (SECCOMP_FILTER_FLAG_TSYNC) must not meet another one between its look at `confined` and the
 * calls that it makes because of that. Who has left such a stretch by longjmp is said to be in it for good: nobody waits for long. */

/* Threads that are about to get a state. */
static u32 adopting;

/* 0: this thread has no state yet. */
static inline struct state *begin_calling(void)
{
	struct state *state = own;
	if (likely(state))
		state->confinement.calling++;
	barrier();
	return state;
}

/* (In between the state may have been given back, or wiped by a fork.) */
static inline void end_calling(struct state *state)
{
	barrier();
	if (likely(state && state == own && state->confinement.calling))
		state->confinement.calling--;
}
