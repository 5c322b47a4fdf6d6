/* Where a thread may make calls of its own. A part of record.c, kept apart for reading.
 *
 * Before one thread sets a filter for all of them (SECCOMP_FILTER_FLAG_TSYNC) the others must have left such stretches: the filter may
 * kill for the calls made there. A stretch that a handler has left by longjmp is waited for once, in vain. */

/* Threads in their first stretch: they have no state yet. Stands in memory that a fork wipes. */
static u32 *newcomers(void)
{
	return blocks[0] ? (u32 *)(blocks[0] + NEWCOMERS_AT) : 0;
}

/* What end_calling() is to be given. */
static inline struct state *begin_calling(void)
{
	struct state *state = own;
	if (likely(state))
		state->calling++;
	else if (newcomers())
		__atomic_fetch_add(newcomers(), 1, __ATOMIC_SEQ_CST);
	barrier();
	return state;
}

/* (In between the state may have been given back, or wiped by a fork.) */
static inline void end_calling(struct state *state)
{
	barrier();
	if (likely(state && state == own && state->calling))
		state->calling--;
	if (unlikely(!state && newcomers() && *newcomers()))
		__atomic_fetch_sub(newcomers(), 1, __ATOMIC_SEQ_CST);
}
