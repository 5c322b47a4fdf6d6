/* The in-process recorder. Loaded by LD_PRELOAD; needs no library, calls none, allocates nothing while
 * recording, and uses integer registers only.
 *
 * Per thread there is a `struct state` in private memory that a fork wipes (so that a child never writes
 * into its parent's chunk, whichever way it was made), and streams of chunks in the session file, which all
 * processes map shared: what is written there survives the process, however it ends. */

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
	u32 spare;
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

/* ---- numbers and texts ---- */

static inline u8 *put(u8 *at, u64 value)
{
	while (unlikely(value >= 128)) {
		*at++ = (u8)(value | 128);
		value >>= 7;
	}
	*at++ = (u8)value;
	return at;
}

static inline u8 *put_signed(u8 *at, s64 value)
{
	return put(at, (u64)value << 1 ^ (u64)(value >> 63));
}

static inline u8 *put_fixed(u8 *at, u64 value, u32 bytes)
{
	for (u32 i = 0; i < bytes; i++)
		*at++ = (u8)(value >> 8 * i);
	return at;
}

static u8 *put_bytes(u8 *at, const u8 *bytes, u64 count)
{
	u8 *to = at;
	__asm__ volatile("rep movsb" : "+D"(to), "+S"(bytes), "+c"(count) : : "memory");
	return to;
}

static u64 length(const u8 *text, u64 limit)
{
	u64 n = 0;
	while (n < limit && text[n])
		n++;
	return n;
}

/* ---- chunks ---- */

/* Makes sure that the pages up to `end` are there: a page that the file system has no room for would be
 * a SIGBUS at first touch. */
static int populate(u8 *from, u8 *end)
{
	if (confined)
		return 1;
	long result = kernel3(SYS_madvise, from, end - from, MADV_POPULATE_WRITE);
	/* Before Linux 5.14 there is no such advice: trust. */
	return result != -EFAULT;
}

/* The chunk at `at` of the file, 0 if there is none. */
static u8 *chunk_memory(struct stream *stream, u64 at)
{
	if (whole)
		return (u8 *)session + at;
	if (confined)
		return 0;
	if (stream->chunk)
		kernel2(SYS_munmap, stream->chunk, session->chunk_bytes);
	stream->chunk = 0;
	stream->at = 0;
	long fd = kernel3(SYS_open, session->session, O_RDWR | O_CLOEXEC, 0);
	if (failed(fd))
		return 0;
	long memory = kernel(SYS_mmap, 0, session->chunk_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (long)at);
	kernel1(SYS_close, fd);
	return failed(memory) ? 0 : (u8 *)memory;
}

static int new_chunk(struct state *state, struct stream *stream, u32 level, u64 now)
{
	u64 index = __atomic_fetch_add(&session->next_chunk, 1, __ATOMIC_RELAXED);
	u64 at = session->chunks_at + index * session->chunk_bytes;
	if (at + session->chunk_bytes > session->file_bytes || session->closed)
		return 0;
	u8 *memory = chunk_memory(stream, at);
	if (!memory)
		return 0;
	u64 first_bytes = stream->sequence ? 16384 : 4096;
	if (!populate(memory, memory + first_bytes)) {
		__atomic_fetch_add(&session->lost_streams, 1, __ATOMIC_RELAXED);
		stopped = 1;
		return 0;
	}
	struct chunk *chunk = (struct chunk *)memory;
	if (!stream->sequence)
		stream->first = (u32)index;
	chunk->tid = state->tid;
	chunk->pid = state->pid;
	chunk->base = now;
	chunk->stream = stream->first;
	chunk->sequence = stream->sequence++;
	chunk->level = level;
	chunk->used = sizeof(*chunk);
	barrier();
	chunk->magic = CHUNK_MAGIC;
	stream->chunk = chunk;
	stream->at = memory + sizeof(*chunk);
	stream->limit = memory + first_bytes;
	stream->last_end = now;
	stream->last_size = 0;
	stream->next_offset = 0;
	stream->last_fd = -1;
	stream->paths = 0;
	if (level == 0)
		for (u32 i = 0; i < CACHED_PATHS; i++)
			state->cache[i].hash = 0;
	return 1;
}

/* Room for `bytes` more at stream->at. */
static __attribute__((noinline)) int extend(struct state *state, u32 level, u64 bytes, u64 now)
{
	struct stream *stream = &state->streams[level];
	if (stream->chunk) {
		u8 *end = (u8 *)stream->chunk + session->chunk_bytes;
		u64 have = (u64)(stream->limit - (u8 *)stream->chunk);
		u64 grow = have < bytes + 4096 ? (bytes + 8191) & ~4095ul : have;
		if (stream->at + bytes <= end) {
			u8 *limit = stream->limit + grow < end ? stream->limit + grow : end;
			if (!populate(stream->limit, limit))
				return 0;
			stream->limit = limit;
			return 1;
		}
	}
	if (!new_chunk(state, stream, level, now))
		return 0;
	return stream->at + bytes <= stream->limit || extend(state, level, bytes, now);
}

static inline int room(struct state *state, u32 level, u64 bytes, u64 now)
{
	struct stream *stream = &state->streams[level];
	if (likely(stream->at + bytes <= stream->limit && stream->at))
		return 1;
	if (extend(state, level, bytes, now))
		return 1;
	__atomic_fetch_add(&session->lost_calls, 1, __ATOMIC_RELAXED);
	return 0;
}

/* From here on the record is there, whatever happens to this process. */
static inline void commit(struct stream *stream, u8 *end)
{
	stream->at = end;
	barrier();
	*(volatile u32 *)&stream->chunk->used = (u32)(end - (u8 *)stream->chunk);
}

/* ---- threads ---- */

static struct state *slot(u32 index)
{
	return (struct state *)(arena + (u64)index * SLOT_BYTES);
}

static void write_task(struct state *state, u32 level, u64 now)
{
	struct stream *stream = &state->streams[level];
	if (!room(state, level, PLAIN_LIMIT, now))
		return;
	u8 *at = stream->at;
	*at++ = CODE_CONTROL;
	*at++ = CONTROL_TASK;
	at = put_fixed(at, state->tid, 4);
	at = put_fixed(at, state->pid, 4);
	at = put_fixed(at, now, 8);
	stream->last_end = now;
	commit(stream, at);
}

/* A thread's first call. */
static __attribute__((noinline)) struct state *adopt(void)
{
	if (!session || stopped || session->closed)
		return 0;
	if (confined) {
		/* We may not even ask who we are. */
		__atomic_fetch_add(&session->lost_calls, 1, __ATOMIC_RELAXED);
		return 0;
	}
	for (u32 i = 0; i < ARENA_BYTES / SLOT_BYTES; i++) {
		struct state *state = slot(i);
		u32 nobody = 0;
		if (state->taken ||
		    !__atomic_compare_exchange_n(&state->taken, &nobody, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			continue;
		state->tid = (u32)kernel0(SYS_gettid);
		state->pid = (u32)kernel0(SYS_getpid);
		state->depth = 0;
		state->level = 0;
		own = state;
		for (u32 level = 0; level < LEVELS; level++)
			if (state->streams[level].chunk)
				write_task(state, level, ticks() >> time_shift);
		return state;
	}
	__atomic_fetch_add(&session->lost_streams, 1, __ATOMIC_RELAXED);
	return 0;
}

static inline struct state *mine(void)
{
	struct state *state = own;
	if (likely(state && state->taken))
		return state;
	return adopt();
}

/* ---- records ---- */

/* Errors that come after the kernel has read the path: with another one the pointer may be bad. */
static inline int path_was_read(s64 result)
{
	switch (-result) {
	case 1: case 2: case 5: case 6: case 13: case 16: case 17: case 18: case 20: case 21: case 26: case 27:
	case 28: case 30: case 34: case 39: case 40: case 61: case 95: case 116: case 122:
		return 1;
	default:
		return result >= 0;
	}
}

static inline u64 mix(u64 hash, u64 word)
{
	hash = (hash ^ word) * 0xff51afd7ed558ccdul;
	return hash ^ hash >> 32;
}

static u64 hash_of(const u8 *text, u64 count)
{
	u64 hash = 0x9e3779b97f4a7c15ul ^ count, last = 0;
	if (count < 8) {
		for (u64 i = 0; i < count; i++)
			last = last << 8 | text[i];
		return mix(hash, last) | 1;
	}
	for (u64 i = 0; i + 8 < count; i += 8)
		hash = mix(hash, *(const u64 *)(text + i));
	/* The last eight, some of them for the second time. */
	return mix(hash, *(const u64 *)(text + count - 8)) | 1;
}

/* 0, length, bytes where it is new in this chunk (it gets the next number, from 1), else its number. */
static u8 *put_path(struct state *state, u32 level, u8 *at, const u8 *text, u64 count)
{
	struct stream *stream = &state->streams[level];
	struct cached *cached = 0;
	u64 hash = 0;
	if (level == 0) {
		hash = hash_of(text, count);
		cached = &state->cache[hash >> 1 & (CACHED_PATHS - 1)];
		if (cached->hash == hash)
			return put(at, cached->index);
	}
	*at++ = 0;
	at = put(at, count);
	at = put_bytes(at, text, count);
	stream->paths++;
	if (cached) {
		cached->hash = hash;
		cached->index = stream->paths;
	}
	return at;
}

/* Reads what may not be there, as the kernel does: returns the bytes that could be read. */
static u64 copy_in(void *to, const void *from, u64 count)
{
	u64 into[2] = {(u64)to, count}, source[2] = {(u64)from, count};
	if (confined)
		return 0;
	long result = kernel(SYS_process_vm_readv, kernel0(SYS_getpid), (long)into, 1, (long)source, 1, 0);
	return failed(result) ? 0 : (u64)result;
}

/* The same of a path; `to` has room for PATH_LIMIT + 1. Page by page, since behind its end there may be none. */
static int copy_path(u8 *to, const u8 *from)
{
	for (u64 done = 0; done < PATH_LIMIT;) {
		u64 count = 4096 - ((u64)(from + done) & 4095);
		if (count > PATH_LIMIT - done)
			count = PATH_LIMIT - done;
		if (copy_in(to + done, from + done, count) != count)
			return 0;
		u64 found = length(to + done, count);
		done += found;
		to[done] = 0;
		if (found < count)
			return 1;
	}
	return 1;
}

static u64 vector_sum(const u64 *vector, u64 count)
{
	u64 sum = 0;
	for (u64 i = 0; i < count && i < 1024; i++)
		sum += vector[2 * i + 1];
	return sum;
}

/* What the roles of a call say. */
struct fields {
	u32 has, more;
	s64 fd, fd2, offset, offset2, argument;
	u64 size, flags, stat_size;
	const u8 *path, *path2, *text;
	u64 path_bytes, path2_bytes, text_bytes;
	u8 stat_type;
};

static void pointed(struct fields *f, u32 role, const u8 *pointer, const u64 *next_argument, s64 result)
{
	switch (role) {
	case ROLE_OFFSET_POINTER:
		/* The kernel has moved it on by what it did. */
		f->has |= HAS_OFFSET, f->offset = *(const s64 *)pointer - result;
		break;
	case ROLE_OFFSET_POINTER2:
		f->more |= MORE_OFFSET2, f->offset2 = *(const s64 *)pointer - result;
		break;
	case ROLE_SEEK_POINTER:
		f->has |= HAS_OFFSET, f->offset = *(const s64 *)pointer;
		break;
	case ROLE_POINTED_FLAGS:
		f->more |= MORE_FLAGS, f->flags = *(const u64 *)pointer;
		break;
	case ROLE_VECTOR:
		f->has |= HAS_SIZE, f->size = vector_sum((const u64 *)pointer, *next_argument);
		break;
	case ROLE_MESSAGE:
		f->has |= HAS_SIZE, f->size = vector_sum(*(const u64 *const *)(pointer + 16), *(const u64 *)(pointer + 24));
		break;
	case ROLE_PAIR:
		f->has |= HAS_FD, f->fd = ((const s32 *)pointer)[0];
		f->more |= MORE_FD2, f->fd2 = ((const s32 *)pointer)[1];
		break;
	case ROLE_STAT:
		f->more |= MORE_STAT, f->stat_type = *(const u32 *)(pointer + 24) >> 12 & 15;
		f->stat_size = *(const u64 *)(pointer + 48);
		break;
	case ROLE_STATX:
		f->more |= MORE_STAT, f->stat_type = *(const u16 *)(pointer + 28) >> 12 & 15;
		f->stat_size = *(const u64 *)(pointer + 40);
		break;
	default:
		break;
	}
}

static inline void nothing_yet(struct fields *f)
{
	/* The others count only where one of these says so. */
	f->has = f->more = 0;
	f->path = f->path2 = f->text = 0;
	f->path_bytes = f->path2_bytes = f->text_bytes = 0;
}

static inline void gather(struct fields *f, const struct shape *shape, const u64 *arguments, s64 result)
{
	/* One byte a role, behind kind and code. */
	u64 roles = *(const u64 *)shape >> 16;
	for (; roles; roles >>= 8, arguments++) {
		u64 value = *arguments;
		u32 role = roles & 255;
		switch (role) {
		case ROLE_NONE:
			break;
		case ROLE_FD:
			f->has |= HAS_FD, f->fd = (s32)value;
			break;
		case ROLE_FD2:
			f->more |= MORE_FD2, f->fd2 = (s32)value;
			break;
		case ROLE_SIZE:
			f->has |= HAS_SIZE, f->size = value;
			break;
		case ROLE_OFFSET:
			f->has |= HAS_OFFSET, f->offset = (s64)value;
			break;
		case ROLE_FLAGS:
			f->more |= MORE_FLAGS, f->flags = value;
			break;
		case ROLE_ARGUMENT:
			f->more |= MORE_ARGUMENT, f->argument = (s64)value;
			break;
		case ROLE_PATH:
			if (value && path_was_read(result))
				f->more |= MORE_PATH, f->path = (const u8 *)value;
			break;
		case ROLE_PATH2:
			if (value && path_was_read(result))
				f->more |= MORE_PATH2, f->path2 = (const u8 *)value;
			break;
		default:
			/* Behind a pointer: only what the kernel itself has just read or written. */
			if (value && result >= 0)
				pointed(f, role, (const u8 *)value, arguments + 1, result);
		}
	}
}

/* Code, masks and times; then the fields, in the order of their bits. */
static void write_fields(struct state *state, u32 level, const struct shape *shape, struct fields *f, u32 phase,
			 u64 start, u64 end, s64 result)
{
	struct stream *stream = &state->streams[level];
	if (f->path)
		f->path_bytes = length(f->path, PATH_LIMIT);
	if (f->path2)
		f->path2_bytes = length(f->path2, PATH_LIMIT);
	if (!room(state, level, PLAIN_LIMIT + f->path_bytes + f->path2_bytes + f->text_bytes, end))
		return;
	u8 *at = stream->at;
	u32 has = (f->has & (HAS_SIZE | HAS_OFFSET)) | phase | (f->more ? HAS_MORE : 0);
	if (f->has & HAS_FD && f->fd != stream->last_fd)
		has |= HAS_FD;
	if (result != (f->has & HAS_SIZE ? (s64)f->size : 0))
		has |= HAS_RESULT;
	s64 gap = (s64)(start - stream->last_end);
	if (gap < 0)
		has |= STEP_BACK, gap = -gap;
	*at++ = shape->code;
	*at++ = (u8)has;
	if (f->more)
		*at++ = (u8)f->more;
	at = put(at, (u64)gap);
	at = put(at, end - start);
	if (has & HAS_FD)
		at = put_signed(at, stream->last_fd = (s32)f->fd);
	if (has & HAS_SIZE)
		at = put(at, stream->last_size = f->size);
	if (has & HAS_RESULT)
		at = put_signed(at, result);
	if (has & HAS_OFFSET) {
		at = put_signed(at, f->offset - stream->next_offset);
		stream->next_offset = f->offset + (result > 0 ? result : 0);
	}
	if (f->more & MORE_PATH)
		at = put_path(state, level, at, f->path, f->path_bytes);
	if (f->more & MORE_PATH2)
		at = put_path(state, level, at, f->path2, f->path2_bytes);
	if (f->more & MORE_FLAGS)
		at = put(at, f->flags);
	if (f->more & MORE_ARGUMENT)
		at = put_signed(at, f->argument);
	if (f->more & MORE_FD2)
		at = put_signed(at, f->fd2);
	if (f->more & MORE_OFFSET2)
		at = put_signed(at, f->offset2);
	if (f->more & MORE_STAT) {
		*at++ = f->stat_type;
		at = put(at, f->stat_size);
	}
	if (f->more & MORE_TEXT) {
		at = put(at, f->text_bytes);
		at = put_bytes(at, f->text, f->text_bytes);
	}
	stream->last_end = end;
	commit(stream, at);
}

/* An error that may have come before the kernel read the path (EINVAL): the first one, read as it would. */
static __attribute__((noinline)) void refused_path(struct state *state, u32 level, const struct shape *shape,
						   const u64 *arguments, struct fields *f, u64 now)
{
	for (u32 i = 0; i < MOST_ROLES; i++) {
		if (shape->roles[i] != ROLE_PATH || !arguments[i] || !room(state, level, 2 * PLAIN_LIMIT + 2 * PATH_LIMIT, now))
			continue;
		u8 *copy = state->streams[level].at + PLAIN_LIMIT;
		if (copy_path(copy, (const u8 *)arguments[i]))
			f->more |= MORE_PATH, f->path = copy;
	}
}

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

/* ---- calls made outside of the stub ---- */

static const struct shape *shape_of(u64 number)
{
	return number < CALL_NUMBERS ? &session->shapes[number] : &session->shapes[CALL_NUMBERS - 1];
}

static u64 clone_flags(u64 number, const u64 *arguments)
{
	switch (number) {
	case SYS_clone:
		return arguments[0];
	case SYS_vfork:
		return CLONE_VM | CLONE_VFORK;
	case SYS_clone3: {
		u64 flags = 0;
		copy_in(&flags, (const void *)arguments[0], sizeof(flags));
		return flags;
	}
	default:
		return 0;
	}
}

#include "environment.c"

/* The beginning of a call that may not come back. */
static void write_beginning(struct state *state, const struct shape *shape, const u64 *arguments, u64 now)
{
	u32 level = enter(state);
	struct fields fields;
	nothing_yet(&fields);
	if (shape->kind == KIND_EXIT) {
		fields.more = MORE_ARGUMENT;
		fields.argument = (s32)arguments[0];
	} else if (room(state, level, 2 * PLAIN_LIMIT + 2 * PATH_LIMIT, now)) {
		/* The kernel has not read the path yet, and may refuse it. */
		u8 *copy = state->streams[level].at + PLAIN_LIMIT;
		u32 at = shape->roles[0] == ROLE_PATH ? 0 : 1;
		if (at == 1)
			fields.has = HAS_FD, fields.fd = (s32)arguments[0];
		if (copy_path(copy, (const u8 *)arguments[at]))
			fields.more = MORE_PATH, fields.path = copy;
	}
	write_fields(state, level, shape, &fields, PHASE_ENTER, now, now, 0);
	leave(state, level);
}

/* The call that began at this depth of the stack, 0 for none: one that is not recorded. */
static struct pending *begun(struct state *state, u64 stack)
{
	u32 depth = state->depth;
	while (depth && state->pending[depth - 1].stack != stack)
		depth--;
	return depth ? &state->pending[depth - 1] : 0;
}

static inline int is_fork(const struct pending *pending)
{
	return shape_of(pending->number)->kind == KIND_FORK;
}

/* The program is about to forbid itself calls: what we need is made ready, and we make none any more. */
static void confine(struct state *state, const struct frame *frame)
{
	u64 option = frame->arguments[0], value = frame->arguments[1];
	if (frame->number == SYS_prctl && option == PR_SET_TSC) {
		stopped = 1;
	} else if (frame->number != SYS_prctl || option == PR_SET_SECCOMP) {
		/* Strict mode forbids the clock too; for prctl it is 1, for seccomp 0. */
		if (frame->number == SYS_prctl ? value == SECCOMP_MODE_STRICT : option == 0)
			stopped = 1;
		struct stream *stream = &state->streams[0];
		u8 *end = (u8 *)stream->chunk + session->chunk_bytes;
		if (stream->chunk && populate(stream->limit, end))
			stream->limit = end;
		confined = 1;
	}
}

__attribute__((visibility("hidden"))) void iodock_record_before(struct frame *frame)
{
	u64 stack = (u64)(frame + 1);
	struct state *state;
	const struct shape *shape;
	if (!session || stopped || !(state = mine()))
		return;
	/* One left by longjmp out of a handler. */
	struct pending *stale = begun(state, stack);
	if (stale && stale->tid == state->tid)
		state->depth = (u32)(stale - state->pending);
	shape = shape_of(frame->number);
	if (shape->kind == KIND_IGNORED)
		return;
	if (shape->kind == KIND_CONFINE) {
		confine(state, frame);
		return;
	}
	u64 now = ticks() >> time_shift;
	if (shape->kind == KIND_EXIT || shape->kind == KIND_EXEC)
		write_beginning(state, shape, frame->arguments, now);
	if (shape->kind == KIND_EXEC)
		keep_preload(state, &frame->arguments[shape->roles[0] == ROLE_PATH ? 2 : 3]);
	if (shape->kind == KIND_EXIT) {
		/* exit of a thread: its slot is free for the next one. */
		if (frame->number == 60)
			own = 0, __atomic_store_n(&state->taken, 0, __ATOMIC_RELEASE);
		return;
	}
	if (state->depth == PENDING)
		state->depth = 0;
	struct pending *pending = &state->pending[state->depth];
	pending->stack = stack;
	pending->number = frame->number;
	for (u32 i = 0; i < 6; i++)
		pending->arguments[i] = frame->arguments[i];
	pending->tid = state->tid;
	pending->pid = state->pid;
	if (shape->kind == KIND_FORK) {
		u64 flags = pending->arguments[5] = clone_flags(frame->number, frame->arguments);
		if ((flags & (CLONE_VM | CLONE_VFORK | CLONE_SETTLS)) == CLONE_VM) {
			/* A thread that will share our thread-local storage: two writers of one state. */
			__atomic_fetch_add(&session->shared_stacks, 1, __ATOMIC_RELAXED);
			stopped = 1;
			return;
		}
	}
	pending->start = ticks() >> time_shift;
	barrier();
	state->depth++;
}

/* The child of a vfork made its first step: its parent waits, and it uses its parent's memory, this state
 * too. */
static void in_child(struct state *state, u32 tid)
{
	state->tid = tid;
	state->pid = (u32)kernel0(SYS_getpid);
	u32 level = enter(state);
	write_task(state, level, ticks() >> time_shift);
	leave(state, level);
}

__attribute__((visibility("hidden"))) void iodock_record_after(struct frame *frame)
{
	s64 result = (s64)frame->number;
	struct state *state = own;
	if (!session || stopped || !state)
		return;
	u64 end = ticks() >> time_shift;
	if (!state->taken) {
		/* The child of a fork: a chunk of its own, so that it is known even if it makes no call. */
		if ((state = adopt()) != 0) {
			u32 level = enter(state);
			write_task(state, level, end);
			leave(state, level);
		}
		return;
	}
	if (state->depth && result == 0 && !confined && is_fork(&state->pending[state->depth - 1])) {
		u32 tid = (u32)kernel0(SYS_gettid);
		if (tid != state->pending[state->depth - 1].tid) {
			in_child(state, tid);
			return;
		}
	}
	struct pending *pending = begun(state, (u64)(frame + 1));
	if (!pending)
		return;
	const struct shape *shape = shape_of(pending->number);
	if (shape->kind == KIND_FORK && state->tid != pending->tid) {
		/* A vfork's child has gone. */
		state->tid = pending->tid;
		state->pid = pending->pid;
		if (state->level)
			abandon(state);
		write_task(state, 0, end);
	}
	if (pending->tid != state->tid)
		return;
	give_back_environment(state);
	struct pending done = *pending;
	state->depth = (u32)(pending - state->pending);
	u32 level = enter(state);
	if (shape->kind == KIND_FORK) {
		struct fields fields;
		nothing_yet(&fields);
		fields.more = MORE_FLAGS;
		fields.flags = done.arguments[5];
		write_fields(state, level, shape, &fields, 0, done.start, end, result);
	} else if (shape->kind == KIND_EXEC) {
		struct fields fields;
		nothing_yet(&fields);
		write_fields(state, level, shape, &fields, PHASE_EXIT, done.start, end, result);
	} else {
		record_general(state, level, shape, done.arguments, 0, done.start, end, result);
	}
	leave(state, level);
}

#include "load.c"
