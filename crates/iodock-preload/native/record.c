/* The in-process recorder. Loaded by LD_PRELOAD; needs no library, calls none, allocates nothing while
 * recording, and uses integer registers only.
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
#define CACHED_PATHS 64
#define PENDING 8
#define SLOT_BYTES 2048
#define ARENA_BYTES (256 * 1024)
#define PATH_LIMIT 4096
#define TEXT_LIMIT 8192
/* No record is longer but for its texts: 2 codes, 1 mask, at most 12 numbers of 10 bytes, and a little. */
#define PLAIN_LIMIT 160

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
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
};

struct cached {
	u64 hash;
	u64 index; /* 1.. */
};

/* A call that is made outside of the stub. */
struct pending {
	u64 stack;
	u64 start;
	u64 number;
	u64 arguments[6];
	u32 tid, pid;
};

struct state {
	u32 taken; /* by a thread */
	u32 level;
	u32 tid, pid;
	u32 depth; /* of pending */
	u32 owner; /* the process; pid may be a vfork's child */
	u8 *environment; /* made for an exec; to be given back if the program goes on */
	struct stream streams[LEVELS];
	struct cached cache[CACHED_PATHS];
	struct pending pending[PENDING];
};
_Static_assert(sizeof(struct state) <= SLOT_BYTES, "a state fits its slot");

static __thread struct state *own;
static struct header *session;
static u8 *arena;
static u32 time_shift;
/* The whole file is mapped; else, in a small address space, chunk by chunk. */
static u32 whole;
/* Recording stopped for good in this process and its children by fork. */
__attribute__((visibility("hidden"))) u32 iodock_stopped;
#define stopped iodock_stopped
/* A seccomp filter may forbid our own calls: from here on we make none. */
static u32 confined;

extern u8 iodock_trampolines[], iodock_trampolines_end[];
extern void iodock_plain(void), iodock_before(void), iodock_after(void);

static inline u64 ticks(void)
{
	u32 low, high;
	__asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
	return (u64)high << 32 | low;
}

#include "chunks.c"

#include "threads.c"

#include "fields.c"

static __attribute__((noinline)) void record_general(struct state *state, u32 level, const struct shape *shape,
						     const u64 *arguments, u32 phase, u64 start, u64 end, s64 result)
{
	struct fields fields;
	nothing_yet(&fields);
	gather(&fields, shape, arguments, result);
	if (unlikely(result < 0 && result != -EFAULT && !fields.path))
		refused_path(state, level, shape, arguments, &fields, end);
	if (shape->kind == KIND_MAP && (s32)arguments[4] < 0)
		return;
	write_fields(state, level, shape, &fields, phase, start, end, result);
}

/* read, write, pread64, pwrite64: the same bytes as write_fields would give, without its questions. */
static inline void record_data(struct state *state, u32 level, const struct shape *shape, const u64 *arguments,
			       u64 start, u64 end, s64 result)
{
	struct stream *stream = &state->streams[level];
	if (!room(state, level, PLAIN_LIMIT, end))
		return;
	u8 *head = stream->at;
	u32 has = 0;
	s64 gap = (s64)(start - stream->last_end);
	if (unlikely(gap < 0))
		has |= STEP_BACK, gap = -gap;
	head[0] = shape->code;
	u8 *at = put(head + 2, (u64)gap);
	at = put(at, end - start);
	s32 fd = (s32)arguments[0];
	if (fd != stream->last_fd) {
		has |= HAS_FD;
		at = put_signed(at, stream->last_fd = fd);
	}
	u64 size = arguments[2];
	if (size != stream->last_size) {
		has |= HAS_SIZE;
		at = put(at, stream->last_size = size);
	}
	if (result != (s64)size) {
		has |= HAS_RESULT;
		at = put_signed(at, result);
	}
	if (shape->kind == KIND_POSITIONED) {
		s64 offset = (s64)arguments[3];
		if (offset != stream->next_offset) {
			has |= HAS_OFFSET;
			at = put_signed(at, offset - stream->next_offset);
		}
		stream->next_offset = offset + (result > 0 ? result : 0);
	}
	head[1] = (u8)has;
	stream->last_end = end;
	commit(stream, at);
}

/* Records were begun and left (longjmp out of a handler, a vfork's child killed): what the next ones would
 * be predicted from is not what a reader has seen. They go into new chunks. */
static __attribute__((noinline)) void abandon(struct state *state)
{
	for (u32 level = 0; level < LEVELS; level++) {
		state->streams[level].chunk = 0;
		state->streams[level].at = 0;
	}
	state->level = 0;
}

static inline u32 enter(struct state *state)
{
	/* So many handlers in the few ns of a record never are at once: they left by longjmp. */
	if (unlikely(state->level >= LEVELS))
		abandon(state);
	u32 level = state->level;
	state->level = level + 1;
	barrier();
	return level;
}

static inline void leave(struct state *state, u32 level)
{
	barrier();
	state->level = level;
}

/* Called by the stub behind a call. */
__attribute__((visibility("hidden"))) void iodock_record(struct plain_frame *plain, u64 end)
{
	struct state *state = mine();
	if (unlikely(!state || stopped))
		return;
	const struct shape *shape = &session->shapes[plain->frame.number & (CALL_NUMBERS - 1)];
	u64 start = plain->start >> time_shift;
	end >>= time_shift;
	u32 level = enter(state);
	if (likely(shape->kind == KIND_DATA || shape->kind == KIND_POSITIONED))
		record_data(state, level, shape, plain->frame.arguments, start, end, plain->result);
	else
		record_general(state, level, shape, plain->frame.arguments, 0, start, end, plain->result);
	leave(state, level);
}

#include "around.c"

#include "load.c"

#ifdef __clang__
#pragma clang attribute pop
#endif
