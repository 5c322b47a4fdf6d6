/* Manages the states of threads, in blocks of memory that a fork clears in the child, and writes records
 * about a thread that are not calls. */

#include "recorder.h"

/* The block's header and its first state share a page, so that a process with one thread needs no other
 * page. */
_Static_assert(sizeof(struct block) + sizeof(struct state) <= SLOT_BYTES, "on one page");

static struct state *state_in(struct block *block, u32 number) {
	return (struct state *)((u8 *)(block + 1) + (number - 1) * STATE_STRIDE);
}

/* Returns the next state after number *at that was ever taken, and sets *at to its number. Returns 0 at the
 * end. */
struct state *next_state(u32 *at) {
	for (u32 number = *at + 1; number < BLOCKS * BLOCK_STATES; number++) {
		struct block *block = blocks[number / BLOCK_STATES];
		u32 place = number % BLOCK_STATES;
		if (!block)
			return 0;
		if (place > __atomic_load_n(&block->most, __ATOMIC_RELAXED)) {
			number |= BLOCK_STATES - 1;
		} else if (place) {
			*at = number;
			return state_in(block, place);
		}
	}
	return 0;
}

static void raise_most(struct block *block, u32 number) {
	u32 most = __atomic_load_n(&block->most, __ATOMIC_RELAXED);
	while (most < number && !__atomic_compare_exchange_n(&block->most, &most, number, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

struct block *get_block(u32 index) {
	struct block *there = __atomic_load_n(&blocks[index], __ATOMIC_ACQUIRE);
	if (likely(there))
		return there;
	long new = kernel(SYS_mmap, 0, BLOCK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (failed(new))
		return 0;
	if (!failed(kernel3(SYS_madvise, new, BLOCK_BYTES, MADV_WIPEONFORK)) &&
	    __atomic_compare_exchange_n(&blocks[index], &there, (struct block *)new, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		return (struct block *)new;
	/* Another thread was faster, or there is no memory. */
	kernel2(SYS_munmap, new, BLOCK_BYTES);
	return there;
}

/* Takes a free state. Returns 0 if there is none. */
static struct state *take_state(void) {
	for (u32 index = 0; index < BLOCKS; index++) {
		struct block *block = get_block(index);
		if (!block)
			return 0;
		/* Number 0 is not used. The word is written before it is read, because a new page that is read first
		 * causes two page faults. */
		__atomic_fetch_or(&block->taken[0], 1, __ATOMIC_RELAXED);
		for (u32 word = 0; word < BLOCK_STATES / 64; word++) {
			/* Bit 0 is excluded again, because a handler's fork may have cleared it. */
			u64 open = ~__atomic_load_n(&block->taken[word], __ATOMIC_RELAXED) & (word ? ~0ul : ~1ul);
			for (; open; open &= open - 1) {
				u64 bit = open & -open;
				if (__atomic_fetch_or(&block->taken[word], bit, __ATOMIC_ACQUIRE) & bit)
					continue;
				u32 number = word * 64 + (u32)__builtin_ctzl(bit);
				raise_most(block, number);
				struct state *state = state_in(block, number);
				state->number = index * BLOCK_STATES + number;
				return state;
			}
		}
	}
	return 0;
}

/* Marks a state as taken, so that no thread uses it again. */
void keep_taken(u32 number) {
	struct block *block = get_block(number / BLOCK_STATES);
	number %= BLOCK_STATES;
	if (block)
		__atomic_fetch_or(&block->taken[number / 64], 1ul << number % 64, __ATOMIC_RELAXED);
}

static void free_state(struct state *state) {
	u32 number = state->number % BLOCK_STATES;
	struct block *block = get_block(state->number / BLOCK_STATES);
	state->own_calls = state->held = 0;
	state->taken = NOT_TAKEN;
	__atomic_fetch_and(&block->taken[number / 64], ~(1ul << number % 64), __ATOMIC_RELEASE);
}

/* Called when a thread ends. The next new thread gets its state, and continues its chunks unless they were
 * abandoned. */
void give_state_back(struct state *state) {
	if (state->level)
		abandon(state, 0);
	end_all_pending(state);
	own = 0;
	free_state(state);
}

/* Writes the fields with which each control record begins. */
u8 *put_control(u8 *at, const struct state *state, enum control kind, u64 now) {
	*at++ = CODE_CONTROL;
	*at++ = (u8)kind;
	return put_fixed(put_fixed(put_fixed(at, state->tid, 4), state->pid, 4), now, 8);
}

void commit_control(struct state *state, u32 level, const u8 *begin, u8 *end, u64 now) {
	state->streams[level].last_end = now;
	commit(&state->streams[level], begin, end);
}

void write_control(struct state *state, u32 level, enum control kind, u64 now) {
	/* The reader assigns the following calls in this stream to this task. */
	if (kind == CONTROL_TASK)
		state->streams[level].task = task_of(state);
	u8 *begin = room(state, level, PLAIN_LIMIT, now);
	if (begin)
		commit_control(state, level, begin, put_control(begin, state, kind, now), now);
}

void record_control(struct state *state, enum control kind, u64 now) {
	struct place here;
	u32 level = enter(state, &here);
	write_control(state, level, kind, now);
	leave(state, level, &here);
}

/* Writes user and system time in microseconds. struct rusage begins with both, in seconds and
 * microseconds. */
static u8 *put_times(u8 *at, const u64 *used) {
	return put(put(at, used[0] * 1000000 + used[1]), used[2] * 1000000 + used[3]);
}

/* Records the resource usage of a thread at its end, and with `ends_process` that of its process. */
void write_usage(struct state *state, u32 level, u32 ends_process, u64 now) {
	u64 used[RUSAGE_WORDS];
	if (failed(kernel2(SYS_getrusage, RUSAGE_THREAD, used)))
		return;
	u8 *begin = room(state, level, PLAIN_LIMIT, now);
	if (!begin)
		return;
	u8 *at = put_times(put_control(begin, state, CONTROL_USAGE, now), used);
	ends_process = ends_process && !failed(kernel2(SYS_getrusage, RUSAGE_SELF, used));
	*at++ = (u8)ends_process;
	if (ends_process)
		at = put(put(put_times(at, used), used[RUSAGE_READ]), used[RUSAGE_WRITTEN]);
	commit_control(state, level, begin, at, now);
}

/* Creates the state of a thread at its first call, or of a fork's child. `now` is a time of that call, so
 * that the records written here are not later than the call. */
NOINLINE struct state *adopt(u64 now) {
	if (!session || stopped || session->closed)
		return 0;
	/* In a child of fork, `own` points to its parent's state, which the fork has cleared. A new thread has
	 * none. */
	struct state *before = own;
	if (before)
		leave_to_nobody(before);
	struct state *state;
	u32 tid, pid;
	/* A handler may fork in this loop. In its child the state just taken is cleared, so another is taken. */
	do {
		state = take_state();
		if (!state) {
			__atomic_fetch_add(&session->lost_streams, 1, __ATOMIC_RELAXED);
			return 0;
		}
		pid = (u32)kernel0(SYS_getpid);
		tid = (u32)kernel0(SYS_gettid);
	} while (!*(volatile u32 *)&state->number);
	if (own != before && own->taken) {
		/* A handler has made the thread's first call in between, so its state is used. */
		if (own != state)
			free_state(state);
		return own;
	}
	state->tid = tid;
	state->pid = state->owner = pid;
	state->depth = 0;
	state->flight = 0;
	state->own_calls = state->held = 0;
	forget_stack(state);
	forget_pages_of_parent(pid);
	state->taken = TAKEN;
	struct place here;
	u32 level = enter(state, &here);
	/* From here on handlers use the same state. */
	own = state;
	/* The stub does not check to which task the first stream belongs, so the task is written now. */
	if (state->streams[0].chunk)
		write_control(state, level, CONTROL_TASK, now);
	leave(state, level, &here);
	/* If a handler has forked in between, `own` is another state in its child. */
	return own;
}

/* Returns the state of the thread that makes a call at `stack` (0: unknown), or 0 if the call can't be
 * recorded. */
struct state *mine(u64 now, u64 stack) {
	struct state *state = own;
	if (likely(state && state->taken == TAKEN))
		return state;
	if (!state || !state->taken)
		return adopt(now);
	settle(state, now, stack);
	return state;
}
