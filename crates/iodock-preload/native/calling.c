/* Where a thread may make calls of ours. A part of record.c, kept apart for reading.
 *
 * A filter that one thread sets for all of them (SECCOMP_FILTER_FLAG_TSYNC) must not meet another one between its look at `confined` and the
 * calls that it makes because of that. Who has left such a stretch by longjmp is said to be in it until somebody has waited for it in vain. */

/* Threads whose first call this is: they have no state yet. */
static u16 newcomers;

/* What end_calling() is to be given. */
static inline struct state *begin_calling(void)
{
	struct state *state = own;
	if (likely(state))
		state->confinement.calling++;
	else
		__atomic_fetch_add(&newcomers, 1, __ATOMIC_SEQ_CST);
	barrier();
	return state;
}

/* (In between the state may have been given back, or wiped by a fork, and who waited have given up.) */
static inline void end_calling(struct state *state)
{
	barrier();
	if (likely(state && state == own && state->confinement.calling))
		state->confinement.calling--;
	if (unlikely(!state && __atomic_load_n(&newcomers, __ATOMIC_RELAXED)))
		__atomic_fetch_sub(&newcomers, 1, __ATOMIC_RELAXED);
}
