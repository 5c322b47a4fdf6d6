/* The in-process recorder. Loaded by LD_PRELOAD; needs no library, calls none, and uses integer registers only. Of what is frequent
 * it records most calls without one of its own: it asks the kernel where a chunk is full, and before and behind fork, exec and their like.
 *
 * Per thread there is a `struct state` in private memory that a fork wipes (so that a child never writes
 * into its parent's chunk, whichever way it was made), and streams of chunks in the session file, which all
 * processes map shared: what is written there survives the process, however it ends. */

#ifdef __clang__
/* Where the machine to build for is named with its features, these win over -mgeneral-regs-only. */
#pragma clang attribute push(__attribute__((target("general-regs-only"))), apply_to = function)
#endif

#include "session.h"
#include "kernel.h"

#define LEVELS 4
#define CROWDED_MOST 64
#define CACHED_PATHS 64
#define PATH_WAYS 4
#define PENDING 8
#define HABITS 64
#define LAST_PATH 224
#define SPENT 8
#define SPENT_MOST 256 /* of all threads of a process */
#define SLOT_BYTES 4096
#define BLOCK_STATES 128
#define BLOCK_BYTES (BLOCK_STATES * SLOT_BYTES)
/* In the first block, behind its bits: see threads.c. */
#define AHEAD_AT 16
#define MOST_AT 32
#define NEWCOMERS_AT 36
#define BLOCKS 64 /* 8,128 threads at once */
#define PATH_LIMIT 4096
#define TEXT_LIMIT 8192
#define PLAIN_LIMIT RECORD_MOST

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
#define ALWAYS __attribute__((always_inline))
#define barrier() __asm__ volatile("" ::: "memory")

struct frame {
	u64 number;
	u64 arguments[6];
	u64 back;
	u64 site;
};

struct plain_frame {
	s64 result;
	u64 start;
	struct frame frame;
};

struct stream {
	u8 *at;    /* next record */
	u8 *limit; /* end of the pages that are there */
	struct chunk *chunk;
	u64 last_end;
	u64 last_size;
	s64 next_offset;
	s32 last_fd;
	u32 paths;
	u32 first;
	u32 sequence;
	s32 last_directory;
	s32 last_opened;
	u64 task; /* whose calls these are, as the reader knows: task_of() */
};

struct environment;
struct interrupted;

struct cached {
	u64 hash;
	u64 index; /* 1.. */
};

/* What calls of a code (of two, perhaps) had last. */
struct habit {
	u64 flags;
	s64 argument;
	s64 fd2;
};

/* In the lowest bits of pending.stack: not all is told of it yet; it made a child, and its end is being seen to; it is, or was, the call in
 * flight, so that it is there without a result if it was left. */
#define BEGINS 1ul
#define ENDS 2ul
#define NOTED 4ul
#define STAGES (BEGINS | ENDS | NOTED)

/* A call that is made outside of the stub, until it is over. */
struct pending {
	u64 stack; /* where that was when it began; 0: there is none in this place */
	u64 start;
	u32 number;
	u32 order; /* what began later has a higher one */
	union {
		u64 arguments[6];
		struct {
			u64 told[5];
			struct environment *made; /* 0: none was */
		} exec;
		/* What the state had then, and the child that has made a call since, 0: none has. */
		struct {
			u64 flags, flight;
			u32 level;
			u32 child;
			struct interrupted *outer; /* see forked.c */
		} fork;
	};
	u32 tid, pid;
};

/* The call that a thread is in. */
struct flight {
	u64 start; /* in ticks */
	u32 call; /* its number and one; 0: there is none */
	s32 fd;
};

enum taken {
	NOT_TAKEN = 0,
	TAKEN = 1,
	/* A child that uses our memory and storage is being made (vfork), and there may be one: before each call it is asked whose it is. */
	LENT = 2,
	/* Recording has stopped: the thread may be forbidden to read the clock. */
	STOPPED = 3,
};

/* Where a function that writes has its frame, as a call in flight has its own. */
struct place {
	u64 unused;
	volatile u64 start; /* this address, MARKED, as long as nothing is written over it */
};
_Static_assert(__builtin_offsetof(struct place, start) == __builtin_offsetof(struct plain_frame, start), "looked at alike");
#define MARKED (1ul << 63)

/* state.flight says what a thread is in, by an address on its stack and by its lowest bits:
 *
 *   0                     nothing
 *   a plain_frame         a call that the stub makes: set before it (stub, take_off), taken away with its record (stub, commit_landing, land)
 *   a place | NO_FRAME    the same of a call that a trampoline makes: there would be its frame if the stub made it
 *   a place | WRITES      no call, who writes a record (enter, leave)
 *   a place | WRITES_LEFT who writes that of a call that was left: this one is noted in the chunk until it is written
 *
 * A handler that comes then looks whether what stands there is still there (was_left in flight.c), and leaves a chunk alone whose level is
 * taken. What the call is (its number, start and descriptor) stands in the chunk, or in state.kept while the next chunk is begun. */
#define NO_FRAME 1ul
#define WRITES 2ul
#define WRITES_LEFT 4ul
#define KINDS (NO_FRAME | WRITES | WRITES_LEFT)

struct state {
	/* What recording a read touches is in the first 64 bytes, but for flight and writers. */
	u32 taken; /* enum taken, by a thread */
	u32 level;
	struct stream streams[LEVELS];
	u64 flight; /* where the frame of the call in flight is, and what that is (KINDS); 0: none */
	u64 writers[LEVELS]; /* where the frame is of who was the last to begin a record on each */
	u32 crowded; /* calls since all levels were taken */
	u32 tid, pid;
	u32 depth; /* how many places of `pending` to look at */
	u32 orders; /* given to these so far */
	u32 number; /* its place in the blocks */
	u32 owner; /* the process; pid may be a vfork's child */
	u8 turns[LEVELS]; /* of the streams: how many chunks were begun, also in vain, up to 255 and round */
	u32 calling; /* in how many stretches the thread is, one inside the other, in which it may make calls of its own: see calling.c */
	u8 *memory[LEVELS]; /* where the streams' chunks are mapped */
	/* Full chunks of the first stream that stay mapped (0: none), their numbers, and whose turn it is to be given up; the number of that
	 * in memory[0] and one, 0: not known. */
	u8 *spent_memory[SPENT];
	u32 spent_number[SPENT];
	u16 spent_turn;
	volatile u16 is_mapping; /* memory of ours that is mapped, but not noted yet: guard.c waits for it */
	u32 mapped;
	struct flight kept; /* what the chunk before has said, until the next one does */
	u64 kept_number; /* of a chunk that could not be mapped, and one more; 0: there is none */
	/* Of paths that belong in one place the last ones are kept, on one cache line. */
	struct cached cache[CACHED_PATHS / PATH_WAYS][PATH_WAYS] __attribute__((aligned(64)));
	/* These too are of the first stream. */
	struct habit habits[HABITS];
	u64 last_path_bytes;
	u64 last_path[LAST_PATH / 8]; /* zeros behind its end */
	struct pending pending[PENDING];
};
_Static_assert(sizeof(struct state) <= SLOT_BYTES, "a state fits its slot");
#define HOT(field, at) _Static_assert(__builtin_offsetof(struct state, field) == at, "as in hot.h")
HOT(taken, STATE_TAKEN_AND_LEVEL);
HOT(level, STATE_LEVEL);
HOT(streams[0].at, STATE_AT);
HOT(streams[0].limit, STATE_LIMIT);
HOT(streams[0].chunk, STATE_CHUNK);
HOT(streams[0].last_end, STATE_END);
HOT(streams[0].last_size, STATE_SIZE);
HOT(streams[0].next_offset, STATE_OFFSET);
HOT(streams[0].last_fd, STATE_FD);
HOT(flight, STATE_FLIGHT);
HOT(writers[0], STATE_WRITER);
#define HOT_CHUNK(field, at) _Static_assert(__builtin_offsetof(struct chunk, field) == at, "as in hot.h")
HOT_CHUNK(used, CHUNK_USED);
HOT_CHUNK(flight, CHUNK_FLIGHT);
HOT_CHUNK(flight_start, CHUNK_FLIGHT_START);
HOT_CHUNK(flight_fd, CHUNK_FLIGHT_FD);
_Static_assert(__builtin_offsetof(struct state, streams[0].paths) == 60, "what is hot is on one line");
_Static_assert(HEAD_WRITE == HEAD_READ + 8, "the stub multiplies");

__attribute__((visibility("hidden"))) __thread struct state *iodock_own;
#define own iodock_own
/* Not to be read where recording has stopped: the program may have replaced it. */
static struct header *session;
/* What it says, for that case. */
static u64 chunk_bytes;
static const char *library;
__attribute__((section(".bss.rare"))) static char library_path[sizeof(session->library)];
static u8 *blocks[BLOCKS];

/* The file, while the library is loaded; else negative. */
static long session_file = -1;
/* Parts of it can only be mapped by a descriptor. */
static u32 descriptors;
/* Recording has stopped for good in this process and its children by fork: no call of our own is made any more. */
__attribute__((visibility("hidden"))) u32 iodock_stopped;
#define stopped iodock_stopped
/* A thread shares another one's storage, or has none for ours: `own` is not to be looked at. */
static u32 has_strangers;

static void map_copy(void);

/* In this process, and what it makes by fork. */
static void stop(void)
{
	if (__atomic_load_n(&stopped, __ATOMIC_RELAXED))
		return;
	map_copy();
	for (u32 i = 0; i < sizeof(library_path); i++)
		library_path[i] = session->library[i];
	library = library_path;
	if (!__atomic_exchange_n(&stopped, 1, __ATOMIC_SEQ_CST))
		__atomic_fetch_add(&session->stopped_processes, 1, __ATOMIC_RELAXED);
}

extern void iodock_plain(void), iodock_before(void), iodock_after(void), iodock_guarded(void);

static inline u64 ticks(void)
{
	u32 low, high;
	__asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
	return (u64)high << 32 | low;
}

/* The parts, each after what it needs: what is written (numbers), where (mapping to threads, forked), what of a call (paths to watch), the
 * call in flight and the frequent ones (flight, short), calls that are told before and behind (around, with sight to confine in its
 * midst), and what happens once, as the library is loaded (patch, load). */

#include "numbers.c"

#include "calling.c"

#include "mapping.c"

#include "ahead.c"

#include "again.c"

#include "levels.c"

#include "chunks.c"

#include "threads.c"

#include "forked.c"

#include "guard.c"

#include "paths.c"

#include "fields.c"

#include "asynchronous.c"

#include "rings.c"

#include "others.c"

#include "watch.c"

static __attribute__((noinline)) void record_general(struct state *state, u32 level, const struct shape *shape,
						     const u64 *arguments, int lands, u64 start, u64 end, s64 result)
{
	struct fields fields;
	nothing_yet(&fields);
	fields.lands = (u8)lands;
	gather(&fields, shape, arguments, result);
	if (unlikely(result < 0 && result != -EFAULT && !fields.path))
		refused_paths(state, level, shape, arguments, &fields, end);
	if (unlikely(result > 0 && has_items(shape)))
		gather_items(state, level, shape, arguments, &fields, end, result);
	if (unlikely(shape->roles[1] == ROLE_RING))
		ring_is_entered(state, level, arguments, &fields, end, result);
	else if (unlikely(shape == &session->shapes[SYS_io_uring_setup] && result >= 0 && ring_is_made(state, arguments, result)))
		fields.more |= MORE_ARGUMENT, fields.argument = RING_IS_SHOWN;
	u8 name[NAME_BYTES];
	if (unlikely(arguments[1] == TIOCGPTPEER && result >= 0 && shape == &session->shapes[SYS_ioctl]))
		name_peer(&fields, name, arguments, result);
	if (unlikely(is_slow_open(shape->kind, result, end - start)) && (fields.stat_type = special_type(result)))
		fields.more |= MORE_STAT, fields.stat_size = UNKNOWN;
	if (shape->kind == KIND_MAP && (s32)arguments[4] < 0)
		return;
	write_fields(state, level, shape, &fields, 0, start, end, result);
	if (shape->kind == KIND_MAP) {
		has_loaded(arguments, result);
		has_mapped(state, arguments, result);
		if (unlikely(rings_used))
			ring_is_mapped(state, arguments, result);
	}
}

#include "flight.c"

#include "short.c"

static inline ALWAYS void record_plain(struct state *state, struct plain_frame *plain, u64 end)
{
	int lands = come_back(state, (u64)plain);
	if (unlikely(state->level >= LEVELS) && is_crowded(state))
		return;
	const struct shape *shape = &session->shapes[plain->frame.number & (CALL_NUMBERS - 1)];
	struct place here;
	u32 level = enter(state, &here);
	if (unlikely(state->crowded))
		state->crowded = 0;
	record_general(state, level, shape, plain->frame.arguments, lands, plain->start >> TIME_SHIFT, end >> TIME_SHIFT,
		       plain->result);
	land(state, level, &here, lands ? (u64)plain : 0);
}

/* Called by the stub behind a call that is not recorded yet: the stub itself writes data calls, the short way what is frequent. */
__attribute__((visibility("hidden"))) void iodock_record(struct plain_frame *plain, u64 end)
{
	/* (A handler may have stopped it, and forbidden the clock: then there is no end either.) */
	if (unlikely(stopped))
		return;
	struct state *calling = begin_calling(), *state;
	/* (Asked again: who has stopped it since waits for nobody who had not begun. See guard.c.) */
	if (likely(!*(volatile u32 *)&stopped) && likely((state = mine(end >> TIME_SHIFT, (u64)plain)) != 0))
		record_plain(state, plain, end);
	end_calling(calling);
}

#include "confine.c"

#include "around.c"

#include "patch.c"

#include "load.c"

#ifdef __clang__
#pragma clang attribute pop
#endif
