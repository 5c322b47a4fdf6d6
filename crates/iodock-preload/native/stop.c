/* Recording stops for good in a process that is about to forbid itself calls or the clock, takes our memory, or makes threads that share storage.
 * From then on the library makes no call of its own in it and its children by fork (any might be forbidden); the stub passes calls through. */

#include "recorder.h"

u32 iodock_stopped;
/* A thread shares another one's thread-local storage, or its own has no room for `own`, which is not to be read any more. */
static u32 has_strangers;
static RARE char library_path[sizeof(session->preloaded)];

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

/* The stretch that the thread is in lasts until its call has returned. (Not in a vfork's child: a filter is another process's there.) */
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
	/* (Checked again: another thread's filter waits only for stretches that had begun before.) */
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
