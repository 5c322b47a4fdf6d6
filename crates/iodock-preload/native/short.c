/* The short way: calls of the most frequent shapes but those of data, on the first stream. It writes what the general way would write, to
 * which it leaves what is out of the ordinary (tests/both_ways.rs holds it to that). Between two calls the kernel has the
 * processor's caches for itself: what counts is how little code and memory is touched. A part of record.c, kept apart for reading. */

/* One byte a role, as they stand in a shape. */
#define ROLES(a, b, c, d) ((u64)(a) | (u64)(b) << 8 | (u64)(c) << 16 | (u64)(d) << 24)
#define ROLES_SHIFT 16

struct brief {
	struct state *state;
	const u64 *arguments;
	u64 shape; /* as it stands in memory: kind, code, roles */
	u64 gap, duration, end;
	s64 result;
};

/* put() of what has no more than 56 bits. */
static inline ALWAYS u8 *put_short(u8 *at, u64 value)
{
	u32 more = (63 - (u32)__builtin_clzl(value | 1)) * 37 >> 8;
	*(unaligned_u64 *)at = (value << 1 | 1) << more;
	return at + more + 1;
}

/* Code and masks, and the times. */
static inline ALWAYS u8 *put_head(u8 *at, const struct brief *brief, u32 has, u32 more)
{
	at[0] = (u8)(brief->shape >> 8);
	at[1] = (u8)(has | (more ? HAS_MORE : 0));
	at[2] = (u8)more;
	at += more ? 3 : 2;
	return put_short(put_short(at, brief->gap), brief->duration);
}

static inline ALWAYS struct habit *habit_of(const struct brief *brief)
{
	return &brief->state->habits[(brief->shape >> 8 & 255) % HABITS];
}

static inline ALWAYS u8 *put_filled(u8 *at, const u8 *stat)
{
	return put_stat(at, *(const u64 *)(stat + 48), *(const u32 *)(stat + 24) >> 12 & 15);
}

/* A descriptor, and with it perhaps a command and what that is given, or what the kernel has filled. 0 if there is no room. */
static inline ALWAYS int record_descriptor(const struct brief *brief, int has_command, int has_argument, const u8 *stat)
{
	struct stream *stream = &brief->state->streams[0];
	const u64 *arguments = brief->arguments;
	u8 *begin = stream->at, *at = begin;
	if (unlikely(at + PLAIN_LIMIT > stream->limit))
		return 0;
	s32 fd = (s32)arguments[0];
	u32 has = (fd != stream->last_fd ? HAS_FD : 0) | (brief->result ? HAS_RESULT : 0), more = 0;
	if (has_argument) {
		struct habit *habit = habit_of(brief);
		more = (s64)arguments[2] != habit->argument ? MORE_ARGUMENT : 0;
		habit->argument = (s64)arguments[2];
		if (has_command) {
			more |= arguments[1] != habit->flags ? MORE_FLAGS : 0;
			habit->flags = arguments[1];
		}
	}
	if (stat)
		more |= MORE_STAT;
	at = put_head(at, brief, has, more);
	if (has & HAS_FD)
		at = put_signed(at, stream->last_fd = fd);
	if (has & HAS_RESULT)
		at = put_signed(at, brief->result);
	if (more & MORE_FLAGS)
		at = put(at, arguments[1]);
	if (more & MORE_ARGUMENT)
		at = put_signed(at, (s64)arguments[2]);
	if (stat)
		at = put_filled(at, stat);
	stream->last_end = brief->end;
	commit_landing(stream, begin, at);
	return 1;
}

/* Where a call has them; 0 where it has none. */
struct pointers {
	const u8 *path, *stat;
	const u64 *flags;
};

/* 0 if this is another shape, or the path may not be read. */
static inline ALWAYS int find_pointers(struct pointers *found, const struct brief *brief)
{
	const u64 *arguments = brief->arguments;
	const u8 *stat = 0;
	found->flags = 0;
	switch (brief->shape >> ROLES_SHIFT) {
	case ROLES(ROLE_FD, ROLE_PATH, ROLE_STAT, ROLE_FLAGS): /* newfstatat */
		found->path = (const u8 *)arguments[1];
		stat = (const u8 *)arguments[2];
		found->flags = &arguments[3];
		break;
	case ROLES(ROLE_FD, ROLE_PATH, ROLE_FLAGS, 0): /* openat */
		found->path = (const u8 *)arguments[1];
		found->flags = &arguments[2];
		break;
	case ROLES(ROLE_PATH, ROLE_STAT, 0, 0): /* stat, lstat */
		stat = (const u8 *)arguments[1];
		/* fall through */
	case ROLES(ROLE_PATH, 0, 0, 0): /* unlink, access */
		found->path = (const u8 *)arguments[0];
		break;
	default:
		return 0;
	}
	found->stat = brief->result >= 0 ? stat : 0;
	return found->path != 0;
}

static __attribute__((noinline)) int record_path(const struct brief *brief, u64 number)
{
	struct state *state = brief->state;
	struct stream *stream = &state->streams[0];
	u32 opens = (brief->shape & 255) == KIND_OPEN, has = 0, more = MORE_PATH;
	s64 result = brief->result;
	struct pointers pointers;
	struct path path;
	if (unlikely(!find_pointers(&pointers, brief)) || (result < 0 && !path_was_read(number, brief->arguments, result)))
		return 0;
	look_at(&path, pointers.path);
	u8 *begin = stream->at, *at = begin;
	if (unlikely(at + PLAIN_LIMIT + path.bytes > stream->limit))
		return 0;
	if (pointers.flags) {
		struct habit *habit = habit_of(brief);
		more |= *pointers.flags != habit->flags ? MORE_FLAGS : 0;
		habit->flags = *pointers.flags;
	}
	s32 *last_fd = path.bytes ? &stream->last_directory : &stream->last_fd, fd = (s32)brief->arguments[0];
	if ((brief->shape >> ROLES_SHIFT & 255) == ROLE_FD && fd != *last_fd)
		has |= HAS_FD;
	if (result != (opens ? stream->last_opened : 0))
		has |= HAS_RESULT;
	at = put_head(at, brief, has, more | (pointers.stat ? MORE_STAT : 0));
	at = put_path(state, 0, at, &path);
	if (has & HAS_FD)
		at = put_signed(at, *last_fd = fd);
	if (has & HAS_RESULT)
		at = put_signed(at, result);
	if (more & MORE_FLAGS)
		at = put(at, *pointers.flags);
	if (pointers.stat)
		at = put_filled(at, pointers.stat);
	if (opens && result >= 0)
		stream->last_fd = stream->last_opened = (s32)result;
	stream->last_end = brief->end;
	commit_landing(stream, begin, at);
	return 1;
}

/* Is it recorded? Times are in ticks. */
static inline int record_short(struct state *state, const struct plain_frame *plain, u64 end)
{
	u64 number = plain->frame.number & (CALL_NUMBERS - 1), start = plain->start >> TIME_SHIFT;
	u32 kind;
	struct brief brief;
	brief.state = state;
	brief.arguments = plain->frame.arguments;
	brief.shape = *(const u64 *)&session->shapes[number];
	brief.result = plain->result;
	brief.end = end >> TIME_SHIFT;
	brief.gap = start - state->streams[0].last_end;
	brief.duration = brief.end - start;
	/* Also a gap that is negative. */
	if (unlikely((brief.gap | brief.duration) >> 56))
		return 0;
	/* All but the code. */
	switch (brief.shape & ~0xff00ul) {
	case KIND_GENERAL | ROLES(ROLE_FD, 0, 0, 0) << ROLES_SHIFT: /* close, fdatasync, fchown */
		return record_descriptor(&brief, 0, 0, 0);
	case KIND_GENERAL | ROLES(ROLE_FD, ROLE_FLAGS, ROLE_ARGUMENT, 0) << ROLES_SHIFT: /* fcntl */
		return record_descriptor(&brief, 1, 1, 0);
	case KIND_GENERAL | ROLES(ROLE_FD, ROLE_NONE, ROLE_ARGUMENT, 0) << ROLES_SHIFT: /* lseek */
		return record_descriptor(&brief, 0, 1, 0);
	case KIND_GENERAL | ROLES(ROLE_FD, ROLE_STAT, 0, 0) << ROLES_SHIFT: /* fstat, before glibc 2.33 */
		return record_descriptor(&brief, 0, 0, brief.result >= 0 ? (const u8 *)brief.arguments[1] : 0);
	default:
		kind = brief.shape & 255;
		return (kind == KIND_GENERAL || kind == KIND_OPEN) && record_path(&brief, number);
	}
}

/* Called by the stub behind the call in flight, after which it has done what enter() does. `end`, or 0 if it is recorded. */
__attribute__((visibility("hidden"))) u64 iodock_record_short(struct state *state, const struct plain_frame *plain, u64 end)
{
	state->crowded = 0;
	int is_recorded = record_short(state, plain, end);
	leave(state, 0);
	barrier();
	/* (By now another coroutine's call may be in flight: see is_next.) */
	if (is_recorded && likely(state->flight == (u64)plain))
		state->flight = 0;
	return is_recorded ? 0 : end;
}
