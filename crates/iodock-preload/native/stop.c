/* Recording stops permanently in a process that is about to forbid calls or the clock (seccomp, prctl),
 * unmaps our memory, or creates threads that share storage. From then on the library makes no calls in it
 * and its children by fork (any might be forbidden); the stub passes calls through. */

#include "recorder.h"

u32 iodock_stopped;
/* A thread shares another one's thread-local storage, or its own has no space for `own`, which must not be
 * read any more. */
static u32 has_strangers;
static RARE char library_path[sizeof(session->preloaded)];

/* A stretch in which the library may make its own calls; the result is for end_own_calls(). A filter that
 * another thread sets for all of them (SECCOMP_FILTER_FLAG_TSYNC) waits for its end. */
struct state *begin_own_calls(void) {
	struct state *state = own;
	if (likely(state))
		state->own_calls++;
	else if (blocks[0])
		__atomic_fetch_add(&blocks[0]->newcomers, 1, __ATOMIC_SEQ_CST);
	barrier();
	return state;
}

/* (In between the state may have been released, or wiped by a fork.) */
void end_own_calls(struct state *state) {
	barrier();
	if (likely(state && state == own && state->own_calls))
		state->own_calls--;
	if (unlikely(!state && blocks[0] && blocks[0]->newcomers))
		__atomic_fetch_sub(&blocks[0]->newcomers, 1, __ATOMIC_SEQ_CST);
}

/* The thread's present stretch lasts until its call has returned. (Not in a vfork's child, where a filter
 * belongs to another process.) */
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

/* Waits for a moment. Counts iterations of a loop, not time, because the clock may be forbidden. */
int may_wait(u64 *left) {
	__builtin_ia32_pause();
	return *left && (*left)--;
}

int is_own(const struct state *state) {
	return !has_strangers && state == own;
}

/* Threads that reach this point later record nothing. */
void end_records(void) {
	struct state *state;
	for (u32 at = 0; (state = next_state(&at)) != 0;) {
		u32 taken = TAKEN;
		__atomic_compare_exchange_n(&state->taken, &taken, STOPPED, 0, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
	}
}

/* Waits until no other thread can make a call of ours, nor, if `writes`, write to our memory. Does not
 * wait for a thread that was interrupted just before it set its mark. Waits once for a stretch that was
 * left by longjmp. */
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

/* Whether the call would forbid something if it succeeded. Libraries test the kernel's features with calls
 * that can't. */
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

/* Such a call is about to be made. If it fails, recording has stopped unnecessarily, which is counted all
 * the same. */
NOINLINE void stop_before(const struct frame *frame) {
	stop();
	end_records();
	/* A filter for all threads must not coincide with a thread that is about to make a call of ours. */
	if (frame->number == SYS_seccomp && frame->arguments[1] & SECCOMP_FILTER_FLAG_TSYNC)
		wait_for_others(0, OTHERS_MOST);
}
