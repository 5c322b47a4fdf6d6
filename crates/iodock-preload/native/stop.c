/* Recording stops permanently in a process that is about to forbid calls or the clock (seccomp, prctl),
 * unmaps our memory, or creates threads that share thread-local storage. From then on the library makes no
 * calls of its own in the process and its forked children, because any call might be forbidden. The stub
 * still makes the program's calls. */

#include "recorder.h"

u32 iodock_stopped;
/* Whether the process has threads that share thread-local storage, or whose storage has no space for `own`.
 * Then `own` must not be read any more. */
static u32 has_strangers;
static RARE char library_path[sizeof(session->preloaded)];

/* Begins a stretch in which the library may make its own calls. A thread that sets a filter for all threads
 * (SECCOMP_FILTER_FLAG_TSYNC) waits for its end. The result must be passed to end_own_calls(). */
struct state *begin_own_calls(void) {
	struct state *state = own;
	if (likely(state))
		state->own_calls++;
	else if (blocks[0])
		__atomic_fetch_add(&blocks[0]->newcomers, 1, __ATOMIC_SEQ_CST);
	barrier();
	return state;
}

/* Ends the stretch. The state is checked, because it may have been released, or cleared by a fork. */
void end_own_calls(struct state *state) {
	barrier();
	if (likely(state && state == own && state->own_calls))
		state->own_calls--;
	if (unlikely(!state && blocks[0] && blocks[0]->newcomers))
		__atomic_fetch_sub(&blocks[0]->newcomers, 1, __ATOMIC_SEQ_CST);
}

/* Extends the thread's current stretch until the program's call has returned: see end_hold(). A child of
 * vfork needs no extension, because filters of its parent's threads do not apply to it. */
void hold(void) {
	if (own && own->taken == TAKEN)
		own->own_calls++, own->held++;
}

void end_hold(void) {
	if (!has_strangers && own && own->held)
		own->held--, own->own_calls--;
}

void stop(void) {
	if (__atomic_load_n(&stopped, __ATOMIC_RELAXED))
		return;
	struct state *began_in = begin_own_calls();
	/* `stopped` is checked again, because another thread that sets a filter waits only for stretches that had
	 * begun before. */
	if (!*(volatile u32 *)&stopped)
		map_copy();
	for (u32 i = 0; i < sizeof(library_path); i++)
		library_path[i] = session->preloaded[i];
	library = library_path;
	if (!__atomic_exchange_n(&stopped, 1, __ATOMIC_SEQ_CST))
		__atomic_fetch_add(&session->stopped_processes, 1, __ATOMIC_RELAXED);
	end_own_calls(began_in);
}

void stop_for_strangers(void) {
	has_strangers = 1;
	stop();
}

/* Waits for a moment; returns 0 when `left` is used up. The limit is a number of iterations, not a time,
 * because the clock may be forbidden. */
int may_wait(u64 *left) {
	__builtin_ia32_pause();
	return *left && (*left)--;
}

int is_own(const struct state *state) {
	return !has_strangers && state == own;
}

/* Marks the states of all threads as STOPPED, so that the threads begin no more records. */
void end_records(void) {
	struct state *state;
	for (u32 at = 0; (state = next_state(&at)) != 0;) {
		u32 taken = TAKEN;
		__atomic_compare_exchange_n(&state->taken, &taken, STOPPED, 0, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
	}
}

/* Waits until no other thread is marked as making calls of the library or, if `writes` is set, as writing a
 * record. If a thread left such a section by longjmp, its mark stays: the wait reaches its limit and clears
 * the mark. A thread that was preempted just before it set its mark is missed. */
void wait_for_others(int writes, u64 most) {
	struct state *state;
	for (u64 left = SEEN_AFTER; may_wait(&left);)
		;
	while (blocks[0] && *(volatile u32 *)&blocks[0]->newcomers)
		if (!may_wait(&most))
			blocks[0]->newcomers = 0;
	for (u32 at = 0; (state = next_state(&at)) != 0;)
		while (!is_own(state) && (*(volatile u32 *)&state->own_calls || (writes && *(volatile u32 *)&state->level)))
			if (!may_wait(&most))
				state->own_calls = state->level = 0;
}

/* Whether the call would forbid calls or the clock if it succeeded. Libraries also make such calls with
 * invalid arguments, to test the kernel's features; these forbid nothing. */
int forbids(const struct frame *frame) {
	/* The kernel reads only 32 bits of the first argument, of seccomp's flags and of PR_SET_TSC's value. */
	u64 what = (u32)frame->arguments[0], value = frame->arguments[1], pointer = frame->arguments[2];
	if (frame->number == SYS_seccomp)
		return what == SECCOMP_SET_MODE_STRICT ? !(u32)value && !pointer : what == SECCOMP_SET_MODE_FILTER && pointer;
	if (frame->number != SYS_prctl)
		return 0;
	if (what == PR_SET_TSC)
		return (u32)value == PR_TSC_SIGSEGV;
	return what == PR_SET_SECCOMP && (value == SECCOMP_MODE_STRICT || (value == SECCOMP_MODE_FILTER && pointer));
}

/* Stops recording before the program makes such a call. If the call then fails, recording has stopped
 * unnecessarily, but the process is still counted as stopped. */
NOINLINE void stop_before(const struct frame *frame) {
	stop();
	end_records();
	/* A filter for all threads must not be set while another thread is in a stretch of own calls. */
	if (frame->number == SYS_seccomp && frame->arguments[1] & SECCOMP_FILTER_FLAG_TSYNC)
		wait_for_others(0, OTHERS_MOST);
}
