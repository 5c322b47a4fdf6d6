/* Data of a thread's recording: its state, in private memory that a fork wipes, and its streams of chunks
 * in the session's file, which all processes map shared, so that committed records survive the process. */
#ifndef IODOCK_STATE_H
#define IODOCK_STATE_H

#pragma GCC visibility push(hidden)

#include "kernel.h"

enum { LEVELS = 4, CACHED_PATHS = 64, PATH_WAYS = 4, PENDING = 8, HABITS = 64, LAST_PATH = 224, SPENT = 8 };
/* (What is behind a state is touched with --stacks only.) */
enum { SLOT_BYTES = 4096, STATE_STRIDE = 3 * SLOT_BYTES, BLOCK_STATES = 128, BLOCK_BYTES = BLOCK_STATES * STATE_STRIDE, BLOCKS = 64 /* 8,128 threads at once */ };
enum { PATH_LIMIT = 4096, PLAIN_LIMIT = RECORD_MOST };

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
#define ALWAYS inline __attribute__((always_inline))
#define NOINLINE __attribute__((noinline))
#define RARE __attribute__((section(".bss.rare"))) /* placed after the data that every process accesses */
#define barrier() __asm__ volatile("" ::: "memory")
/* An interrupting handler sees such stores in their order. */
#define set(place, value) do { (place) = (value); barrier(); } while (0)

/* The registers at a site, on the stack. */
struct frame { u64 number, arguments[6], back, site; };

/* The same of a call that the stub makes itself. */
struct plain_frame {
	s64 result;
	u64 start;
	struct frame frame;
};

struct stream {
	u8 *at;    /* next record */
	u8 *limit; /* end of the existing pages; 0: abandoned */
	struct chunk *chunk;
	u64 last_end, last_size;
	s64 next_offset;
	s32 last_fd;
	u32 paths, first, sequence;
	s32 last_directory, last_opened;
	u64 task; /* the task that the reader assigns these calls to: task_of() */
};

struct cached { u64 hash, index; /* 1.. */ };

/* Last values of a call code's fields (or of two codes'). */
struct habit {
	u64 flags;
	s64 argument, fd2;
};

/* In the lowest bits of pending.stack: the entry is being written; its completion is being handled; it is also noted in flight, so that it
 * is recorded without a result if it is abandoned. */
#define BEGINS 1ul
#define ENDS 2ul
#define NOTED 4ul
#define STAGES (BEGINS | ENDS | NOTED)

/* A call made outside of the stub, until it returns. */
struct pending {
	u64 stack; /* its address at the beginning; 0: the entry is free */
	u64 start;
	u32 number; /* selects the union's member */
	u32 order;  /* calls that began later have a higher one */
	union {
		u64 arguments[6];
		struct {
			u64 told[5];
			struct environment *made; /* 0: none */
		} exec;
		struct {
			u64 flags, flight; /* the state's flight when it began */
			u32 level;	   /* the same */
			u32 child;	   /* process id of a child of vfork, once it has made a call; else 0 */
			struct interrupted *outer; /* see handler_fork.c */
		} fork;
	};
	u32 tid, pid;
};

struct flight {
	u64 start; /* in ticks */
	u32 call; /* its number and one; 0: there is none */
	s32 fd;
};

enum taken {
	NOT_TAKEN = 0, TAKEN = 1,
	LENT = 2, /* a child of vfork may use it: before each call the thread id is queried */
	STOPPED = 3, /* recording has stopped: the thread may not be allowed to read the clock */
};

/* In the frame of a function that writes a record, at the place of a plain_frame's start. */
struct place {
	u64 unused;
	volatile u64 start; /* this address, MARKED, until it is overwritten */
};
#define MARKED (1ul << 63)

/* state.flight: what the thread is in, by an address on its stack and its lowest bits.
 *
 *   0                     nothing
 *   a plain_frame         a call that the stub makes: set before it (stub, take_off), cleared with its record (stub, commit_landing, land)
 *   a place | NO_FRAME    the same of a call that a trampoline makes, which has no frame: the place where the stub's would be
 *   a place | WRITES      no call: a record is being written (enter, leave)
 *   a place | WRITES_LEFT the record of an abandoned call is being written; the chunk notes that call until then
 *
 * A handler's call looks whether what stands there is still there (was_abandoned). Number, start and descriptor of the call stand in the
 * chunk, or in state.kept while the next chunk is begun. */
#define NO_FRAME 1ul
#define WRITES 2ul
#define WRITES_LEFT 4ul
#define KINDS (NO_FRAME | WRITES | WRITES_LEFT)

/* A run of reads or writes of one file, of which only some are timed. */
struct run {
	u32 untimed; /* number of untimed ones before the next timed one */
	u32 length, skipped, number;
	const void *row;
	u64 duration, end; /* duration and end of the last timed call, in ticks */
};

struct state {
	/* The fields that recording a read touches are in the first 64 bytes, except flight and writers. */
	u32 taken, level; /* enum taken */
	struct stream streams[LEVELS];
	u64 flight;
	u64 writers[LEVELS]; /* the frame of the function that last began a record on each */
	u32 crowded; /* number of calls since all levels were taken */
	u32 tid, pid;
	u32 depth, orders; /* number of entries of `pending` to examine; number of assigned orders */
	u32 number, owner; /* its index in the blocks; the process (pid may be a vfork's child) */
	u8 turns[LEVELS]; /* for each stream the number of chunks begun, including failures, modulo 256 */
	u32 own_calls; /* nesting depth of own-call stretches: begin_own_calls() */
	u32 held; /* how many of them last until a call of the program has returned: hold() */
	u8 *memory[LEVELS]; /* addresses of the streams' chunks */
	/* Full chunks of the first stream that stay mapped (0: none), their numbers, and which is given up next;
	 * the number of the one in memory[0] plus one, 0: not known. */
	union {
		u8 *spent_memory[SPENT];
		struct run run; /* if calls are counted: then no full chunk stays mapped */
	};
	u32 spent_number[SPENT];
	u16 spent_turn;
	volatile u16 is_mapping; /* memory is mapped, but not noted here yet: guard.c waits for it */
	u32 mapped;
	struct flight kept; /* the call in flight, between two chunks */
	u64 kept_number; /* number of a chunk that could not be mapped, plus one; 0: none */
	struct cached cache[CACHED_PATHS / PATH_WAYS][PATH_WAYS] __attribute__((aligned(64)));
	/* These too are of the first stream. */
	struct habit habits[HABITS];
	u64 last_path_bytes, last_path[LAST_PATH / 8]; /* zeros behind its end */
	struct pending pending[PENDING];
};

/* Header of a block of states: a bit for each state that is taken; the first block also has the data that
 * ahead.c and stop.c share among threads. */
struct block {
	u64 taken[BLOCK_STATES / 64];
	struct ahead {
		u64 next;   /* number of the next chunk << 8 | how many are left; or AHEAD_CLOSED. One word, so that it changes at once */
		u8 *origin; /* address at which chunk 0 would be mapped */
	} ahead;
	u32 most;      /* the highest number of a state that was ever taken: after it are zeros, not to be touched */
	u32 newcomers; /* threads in their first stretch, without a state yet */
} __attribute__((aligned(64)));
#define AHEAD_CLOSED (1ul << 63) /* chunks are being mapped, or could not be */
#define AHEAD_ONE (1ul << 8)
#define AHEAD_LEFT (AHEAD_ONE - 1)

struct span { u64 from, to; };

extern __thread struct state *iodock_own;
#define own iodock_own
/* Recording has stopped permanently in this process and its children by fork: the library makes no more
 * calls. */
extern u32 iodock_stopped;
#define stopped iodock_stopped
extern struct block *blocks[BLOCKS];
/* Must not be read once recording has stopped: the program may have replaced it. Values needed then are
 * stored next to it. */
extern struct header *session;
extern u32 counts_calls; /* this process counts its calls, and records only those around the stub */
extern u64 chunk_bytes;
extern const char *library;
extern long session_file; /* while the library is loaded; else negative */
extern u32 descriptors;	  /* the file can only be mapped through a descriptor */

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
