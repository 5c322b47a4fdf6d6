/* Defines a thread's state, which is in private memory that a fork clears in the child, and its streams of
 * chunks. Chunks are in the session's file, which all processes map shared, so that committed records survive
 * the process. */
#ifndef IODOCK_STATE_H
#define IODOCK_STATE_H

#pragma GCC visibility push(hidden)

#include "kernel.h"

enum { LEVELS = 4, CACHED_PATHS = 64, PATH_WAYS = 4, PENDING = 8, HABITS = 64, LAST_PATH = 224, SPENT = 8 };
/* The pages after each state hold a `struct stacks`, and are accessed only with --stacks. */
enum { SLOT_BYTES = 4096, STATE_STRIDE = 3 * SLOT_BYTES, BLOCK_STATES = 128, BLOCK_BYTES = BLOCK_STATES * STATE_STRIDE, BLOCKS = 64 /* 8,128 threads at once */ };
enum { PATH_LIMIT = 4096, PLAIN_LIMIT = RECORD_MOST };

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
#define ALWAYS inline __attribute__((always_inline))
#define NOINLINE __attribute__((noinline))
#define RARE __attribute__((section(".bss.rare"))) /* for rarely used variables: the linker places them last */
#define barrier() __asm__ volatile("" ::: "memory")
/* Stores a value in an order that the compiler keeps, for signal handlers that interrupt the thread. */
#define set(place, value) do { (place) = (value); barrier(); } while (0)

/* The registers at a patched call site, as the stub saves them on the stack. */
struct frame { u64 number, arguments[6], back, site; };

/* The stub's stack frame for a call that it makes itself. */
struct plain_frame {
	s64 result;
	u64 start;
	struct frame frame;
};

struct stream {
	u8 *at;    /* where the next record will begin */
	u8 *limit; /* end of the chunk's existing pages; 0: the stream is abandoned, and continues in a new chunk */
	struct chunk *chunk;
	u64 last_end, last_size;
	s64 next_offset;
	s32 last_fd;
	u32 paths, first, sequence;
	s32 last_directory, last_opened;
	u64 task; /* the task that the reader assigns these calls to: task_of() */
};

struct cached { u64 hash, index; /* the path's number in the chunk, from 1 */ };

/* Fields of the last call with a call code. Two codes may share one entry. */
struct habit {
	u64 flags;
	s64 argument, fd2;
};

/* Flags in the lowest bits of pending.stack. BEGINS: the entry is being written. ENDS: the recorder is
 * handling the call's completion. NOTED: the call is also the call in flight, which is recorded even if it is
 * abandoned. */
#define BEGINS 1ul
#define ENDS 2ul
#define NOTED 4ul
#define STAGES (BEGINS | ENDS | NOTED)

/* A call that a trampoline makes, not the stub, until it returns. */
struct pending {
	u64 stack; /* stack address at which the call began; 0: the entry is free */
	u64 start;
	u32 number; /* the call's number, which selects a member of the union */
	u32 order;  /* calls that began later have a higher one */
	union {
		u64 arguments[6];
		struct {
			u64 told[5];
			struct environment *made; /* 0: none */
		} exec;
		struct {
			u64 flags, flight; /* flight: the state's flight when the call began */
			u32 level;	   /* the state's level when the call began */
			u32 child;	   /* process id of a child of vfork, once it has made a call; else 0 */
			struct interrupted *outer; /* see handler_fork.c */
		} fork;
	};
	u32 tid, pid;
};

struct flight {
	u64 start; /* in ticks */
	u32 call; /* the call's number plus one; 0: no call is in flight */
	s32 fd;
};

enum taken {
	NOT_TAKEN = 0, TAKEN = 1,
	LENT = 2, /* a child of vfork may use the state: each call first queries the thread id */
	STOPPED = 3, /* recording has stopped: the thread may not be allowed to read the clock */
};

/* A local variable of functions that write a record. `start` has the same offset as in plain_frame. */
struct place {
	u64 unused;
	volatile u64 start; /* the structure's own address with the bit MARKED, until other data overwrites it */
};
#define MARKED (1ul << 63)

/* Values of state.flight: an address on the thread's stack, with the call's kind in the lowest bits.
 *
 *   0                     No call is in flight, and no record is being written. (A fork or exec may be
 *                         pending.)
 *   a plain_frame         The stub makes a call. The stub or take_off() sets the value before the call; the
 *                         stub, commit_landing() or land() clears it with the call's record.
 *   a place | NO_FRAME    A trampoline makes a call. It has no frame: this is where the stub's would be.
 *   a place | WRITES      No call is in flight; a record is being written (enter, leave).
 *   a place | WRITES_LEFT The record of an abandoned call is being written. Until it is complete, the chunk
 *                         still notes that call.
 *
 * When a handler makes a call, was_abandoned() checks whether the frame at this address still exists. The
 * number, start and descriptor of the call are in the chunk, or in state.kept while a new chunk is begun. */
#define NO_FRAME 1ul
#define WRITES 2ul
#define WRITES_LEFT 4ul
#define KINDS (NO_FRAME | WRITES | WRITES_LEFT)

/* A run of reads or writes of one file, of which only some are timed. */
struct run {
	u32 untimed; /* number of untimed calls before the next timed call */
	u32 length, skipped, number;
	const void *row;
	u64 duration, end; /* duration and end of the last timed call, in ticks */
};

struct state {
	/* The fields that recording a read touches are in the first 64 bytes, except flight and writers. */
	u32 taken, level; /* enum taken */
	struct stream streams[LEVELS];
	u64 flight;
	u64 writers[LEVELS]; /* for each level the frame of the function that last began a record on it */
	u32 crowded; /* number of calls since all levels were taken */
	u32 tid, pid;
	u32 depth, orders; /* number of entries of `pending` to examine; number of assigned orders */
	u32 number, owner; /* the state's index in the blocks; its process (`pid` may be a child of vfork) */
	u8 turns[LEVELS]; /* for each stream the number of chunks begun, including failures, modulo 256 */
	u32 own_calls; /* nesting depth of own-call stretches: begin_own_calls() */
	u32 held; /* number of these stretches that last until a call of the program has returned: hold() */
	u8 *memory[LEVELS]; /* addresses of the streams' chunks */
	/* Addresses (0: none) and numbers of full chunks of the first stream that stay mapped. `spent_turn`
	 * selects the next one to unmap. `mapped`: number of the chunk in memory[0] plus one; 0: unknown. */
	union {
		u8 *spent_memory[SPENT];
		struct run run; /* used if calls are counted, because then no full chunk stays mapped */
	};
	u32 spent_number[SPENT];
	u16 spent_turn;
	volatile u16 is_mapping; /* the thread has mapped memory but not noted its address here yet: guard.c waits for that */
	u32 mapped;
	struct flight kept; /* the call in flight, while one chunk is full and the next is not begun yet */
	u64 kept_number; /* number of a chunk that could not be mapped, plus one; 0: none */
	struct cached cache[CACHED_PATHS / PATH_WAYS][PATH_WAYS] __attribute__((aligned(64)));
	/* The following fields also belong to the first stream. */
	struct habit habits[HABITS];
	u64 last_path_bytes, last_path[LAST_PATH / 8]; /* the last path written, padded with zeros */
	struct pending pending[PENDING];
};

/* Header of a block of states: a bit for each state that is taken; the first block also has the data that
 * ahead.c and stop.c share among threads. */
struct block {
	u64 taken[BLOCK_STATES / 64];
	struct ahead {
		u64 next;   /* number of the next chunk << 8 | number of chunks left (one atomic word); or AHEAD_CLOSED */
		u8 *origin; /* address at which chunk 0 would be mapped */
	} ahead;
	u32 most;      /* highest number of a state that was ever taken. The pages after it were never written, and stay so */
	u32 newcomers; /* threads in their first stretch, without a state yet */
} __attribute__((aligned(64)));
#define AHEAD_CLOSED (1ul << 63) /* a thread is mapping chunks, or their mapping has failed */
#define AHEAD_ONE (1ul << 8)
#define AHEAD_LEFT (AHEAD_ONE - 1)

struct span { u64 from, to; };

extern __thread struct state *iodock_own;
#define own iodock_own
/* Whether recording has stopped permanently in this process and its forked children. Then the library makes
 * no more calls of its own. */
extern u32 iodock_stopped;
#define stopped iodock_stopped
extern struct block *blocks[BLOCKS];
/* The session's header. It must not be read after recording has stopped, because the program may have mapped
 * something else there. Values that are needed then are copied to the variables below. */
extern struct header *session;
extern u32 counts_calls; /* this process counts its calls (--light), and records only forks, execs and exits */
extern u64 chunk_bytes;
extern const char *library;
extern long session_file; /* descriptor of the session file while the library is being loaded; else negative */
extern u32 descriptors;	  /* whether the session file can only be mapped through a descriptor */

static inline u64 ticks(void) {
	u32 low, high;
	__asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
	return (u64)high << 32 | low;
}

static inline int becomes(u64 *word, u64 from, u64 to) {
	return __atomic_compare_exchange_n(word, &from, to, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

static inline void count_lost(u64 calls) { __atomic_fetch_add(&session->lost_calls, calls, __ATOMIC_RELAXED); }
#endif
