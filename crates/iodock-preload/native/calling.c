/* Where a thread may make calls of ours. A part of record.c, kept apart for reading.
 *
 * A filter that one thread sets for all of them (SECCOMP_FILTER_FLAG_TSYNC) must not meet another one between its look at is_confined() and the
 * calls that it makes because of that. Who has left such a stretch by longjmp is said to be in it until somebody has waited for it in vain. */

/* Threads whose first call this is: they have no state yet. */
static u32 newcomers;

/* Of state.confinement.calling: in how many such stretches the thread is, one in the other (a handler's); above that how many it has begun that are in
 * no other, which goes round. */
#define STRETCHES 0xff
#define OUTERMOST (STRETCHES + 1)

/* What end_calling() is to be given. */
static inline struct state *begin_calling(void)
{
	struct state *state = own;
	if (likely(state))
		state->confinement.calling += state->confinement.calling & STRETCHES ? 1 : OUTERMOST + 1;
	else
		__atomic_fetch_add(&newcomers, 1, __ATOMIC_SEQ_CST);
	barrier();
	return state;
}

static void is_no_newcomer(void)
{
	if (__atomic_load_n(&newcomers, __ATOMIC_RELAXED))
		__atomic_fetch_sub(&newcomers, 1, __ATOMIC_RELAXED);
}

/* Who had no state has made its first call. (Who waits for newcomers takes itself off before.) */
static __attribute__((noinline)) void end_newcomer(void)
{
	struct state *now = own;
	if (now && now->confinement.is_taken_off)
		now->confinement.is_taken_off = 0;
	else
		is_no_newcomer();
}

/* (In between the state may have been given back, or wiped by a fork, and who waited have given up.) */
static inline void end_calling(struct state *state)
{
	barrier();
	if (likely(state && state == own && state->confinement.calling & STRETCHES))
		state->confinement.calling--;
	if (unlikely(!state))
		end_newcomer();
}
