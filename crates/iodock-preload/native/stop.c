/* Recording stops for good in a process: it takes our memory away, makes threads that share their storage, or is about to forbid itself calls
 * or the clock.
 *
 * A seccomp filter may kill for any call that it does not know; strict mode and PR_SET_TSC, for reading the clock. So once recording has stopped
 * the library makes no call of its own in this process and its children by fork, and the stub only passes calls through. */

#include "recorder.h"

u32 iodock_stopped;
/* A thread shares another one's thread-local storage, or its own has no room for `own`, which is not to be read any more. */
static u32 has_strangers;
static RARE char library_path[sizeof(session->library)];

/* A stretch in which the library may make calls of its own; what end_own_calls() is to be given. A filter that another thread sets for all of them
 * (SECCOMP_FILTER_FLAG_TSYNC) waits for its end. */
struct state *begin_own_calls(void) {
	struct state *state = own;
	if (likely(state))
		state->own_calls++;
	else if (blocks[0])
		__atomic_fetch_add(&blocks[0]->newcomers, 1, __ATOMIC_SEQ_CST);
	barrier();
	return state;
}

/* (In between the state may have been given back, or wiped by a fork.) */
void end_own_calls(struct state *state) {
	barrier();
	if (likely(state && state == own && state->own_calls))
		state->own_calls--;
	if (unlikely(!state && blocks[0] && blocks[0]->newcomers))
		__atomic_fetch_sub(&blocks[0]->newcomers, 1, __ATOMIC_SEQ_CST);
}

void stop(void) {
	if (__atomic_load_n(&stopped, __ATOMIC_RELAXED))
		return;
	map_copy();
	for (u32 i = 0; i < sizeof(library_path); i++)
		library_path[i] = session->library[i];
	library = library_path;
	if (!__atomic_exchange_n(&stopped, 1, __ATOMIC_SEQ_CST))
		__atomic_fetch_add(&session->stopped_processes, 1, __ATOMIC_RELAXED);
}

void stop_for_strangers(void) {
	has_strangers = 1;
	stop();
}

/* Waits for a moment. Counts turns of a loop, not time, since the clock may be forbidden. */
int may_wait(u64 *left) {
	__builtin_ia32_pause();
	return *left && (*left)--;
}

int is_own(const struct state *state) {
	return !has_strangers && state == own;
}

/* Threads that go on from here record nothing. */
void end_records(void) {
	struct state *state;
	for (u32 at = 0; (state = next_state(&at)) != 0;) {
		u32 taken = TAKEN;
		__atomic_compare_exchange_n(&state->taken, &taken, STOPPED, 0, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
	}
}

/* Until no other thread may make a call of ours, nor, if `writes`, write into our memory. A thread that was interrupted just before
 * it said so is not waited for. A stretch that was left by longjmp is waited for once. */
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

/* Would the call forbid something if it succeeded? Libraries ask what the kernel supports by calls that can't. */
int forbids(const struct frame *frame) {
	/* (The kernel reads 32 bits of the first argument, of flags and of the clock's value.) */
	u64 what = (u32)frame->arguments[0], value = frame->arguments[1], pointer = frame->arguments[2];
	if (frame->number == SYS_seccomp)
		return what == SECCOMP_SET_MODE_STRICT ? !(u32)value && !pointer : what == SECCOMP_SET_MODE_FILTER && pointer;
	if (frame->number != SYS_prctl)
		return 0;
	if (what == PR_SET_TSC)
		return (u32)value == PR_TSC_SIGSEGV;
	return what == PR_SET_SECCOMP && (value == SECCOMP_MODE_STRICT || (value == SECCOMP_MODE_FILTER && pointer));
}

/* That call is about to be made. It may fail: then recording has stopped for nothing, and is counted all the same. */
NOINLINE void stop_before(const struct frame *frame) {
	stop();
	end_records();
	/* A filter for all threads must not meet one that is about to make a call of ours. */
	if (frame->number == SYS_seccomp && frame->arguments[1] & SECCOMP_FILTER_FLAG_TSYNC)
		wait_for_others(0, OTHERS_MOST);
}
