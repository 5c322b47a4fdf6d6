/* The fast path for the most frequent shapes of calls other than data calls, on the first stream. It writes
 * the same records as the general path, to which it leaves unusual cases (tests/both_ways.rs checks this). It
 * accesses as little code and memory as possible, because the kernel displaces the caches between two
 * calls. */

#include "recorder.h"

/* Four roles as they are stored in the upper bytes of a shape. */
#define ROLES(a, b, c, d) ((u64)(a) | (u64)(b) << 8 | (u64)(c) << 16 | (u64)(d) << 24)
#define ROLES_SHIFT 16

struct brief {
	struct state *state;
	const struct plain_frame *plain;
	u64 shape; /* a struct shape as one word: kind, code, roles */
	u64 end; /* in ticks */
	u64 gap, duration;
	u8 *begin;
};

/* Does the same as put(), for values of up to 56 bits. */
static ALWAYS u8 *put_short(u8 *at, u64 value) {
	u32 more = ((u32)__builtin_clzl(value | 1) ^ 63) * 37 >> 8;
	*(unaligned_u64 *)at = (value << 1 | 1) << more;
	return at + more + 1;
}

static ALWAYS void put_masks(const struct brief *brief, u32 has, u32 more) {
	brief->begin[0] = (u8)(brief->shape >> 8);
	brief->begin[1] = (u8)(has | (more ? HAS_MORE : 0));
	if (more)
		brief->begin[2] = (u8)more;
}

static ALWAYS struct habit *habit_of(const struct brief *brief) {
	return &brief->state->habits[(brief->shape >> 8 & 255) % HABITS];
}

static ALWAYS u8 *put_filled(u8 *at, const u8 *stat) {
	return put_stat(at, *(const u64 *)(stat + 48), *(const u32 *)(stat + 24) >> 12 & 15);
}

/* Computes the times of a call in units of time. Returns 0 if the gap is negative, or the chunk has too
 * little space. */
static ALWAYS int begin_brief(struct brief *brief, u64 bytes) {
	const struct stream *stream = &brief->state->streams[0];
	u64 start = brief->plain->start >> TIME_SHIFT;
	brief->gap = start - stream->last_end;
	brief->duration = (brief->end >> TIME_SHIFT) - start;
	brief->begin = *(u8 *const volatile *)&stream->at;
	return likely(!((brief->gap | brief->duration) >> 56) && brief->begin + bytes <= stream->limit);
}

/* Does the same as land(). Returns 0 if the call is recorded, else its end. */
static ALWAYS u64 end_brief(const struct brief *brief, int is_recorded) {
	struct state *state = brief->state;
	/* By now another coroutine may be writing a record on this level, or have its own call in flight: see
	 * is_next() in chunks.c. */
	if (likely(writer_on(state, 0) == (u64)brief->plain))
		leave_level(state, 0);
	if (is_recorded && likely(state->flight == (u64)brief->plain))
		state->flight = 0;
	return is_recorded ? 0 : brief->end;
}

static ALWAYS u64 commit_brief(const struct brief *brief, u8 *end) {
	struct stream *stream = &brief->state->streams[0];
	stream->last_end = brief->end >> TIME_SHIFT;
	commit_landing(stream, brief->begin, end);
	return end_brief(brief, 1);
}

/* The fields that follow the descriptor in a record. */
enum behind { NOTHING, SIZE, ARGUMENT, COMMAND_AND_ARGUMENT, STAT };

static NOINLINE u64 record_descriptor(struct state *state, const struct plain_frame *plain, u64 end, u64 shape, enum behind behind) {
	struct brief brief = {state, plain, shape, end, 0, 0, 0};
	struct stream *stream = &state->streams[0];
	const u64 *arguments = plain->frame.arguments;
	if (unlikely(!begin_brief(&brief, PLAIN_LIMIT)))
		return end_brief(&brief, 0);
	s32 fd = (s32)arguments[0];
	u64 size = behind == SIZE ? arguments[2] : 0;
	u32 has = (fd != stream->last_fd ? HAS_FD : 0) | (plain->result != (s64)size ? HAS_RESULT : 0), more = 0;
	const u8 *stat = behind == STAT && plain->result >= 0 ? (const u8 *)arguments[1] : 0;
	if (behind == ARGUMENT || behind == COMMAND_AND_ARGUMENT) {
		struct habit *habit = habit_of(&brief);
		more = (s64)arguments[2] != habit->argument ? MORE_ARGUMENT : 0;
		habit->argument = (s64)arguments[2];
		if (behind == COMMAND_AND_ARGUMENT) {
			more |= arguments[1] != habit->flags ? MORE_FLAGS : 0;
			habit->flags = arguments[1];
		}
	}
	if (stat)
		more |= MORE_STAT;
	if (behind == SIZE)
		has |= HAS_SIZE;
	u8 *at = put_short(put_short(brief.begin + (more ? 3 : 2), brief.gap), brief.duration);
	if (has & HAS_FD)
		at = put_signed(at, stream->last_fd = fd);
	if (has & HAS_SIZE)
		at = put(at, stream->last_size = size);
	if (has & HAS_RESULT)
		at = put_signed(at, plain->result);
	if (more & MORE_FLAGS)
		at = put(at, arguments[1]);
	if (more & MORE_ARGUMENT)
		at = put_signed(at, (s64)arguments[2]);
	if (stat)
		at = put_filled(at, stat);
	put_masks(&brief, has, more);
	return commit_brief(&brief, at);
}

struct pointers {
	const u8 *path, *stat;
	const u64 *flags;
};

/* Finds the pointers among a call's arguments. Returns 0 for shapes that the fast path does not handle, and
 * if the path is a null pointer. */
static ALWAYS int find_pointers(struct pointers *found, u64 shape, const u64 *arguments) {
	found->stat = 0;
	found->flags = 0;
	switch (shape >> ROLES_SHIFT) {
	case ROLES(ROLE_FD, ROLE_PATH, ROLE_STAT, ROLE_FLAGS): /* newfstatat */
		found->path = (const u8 *)arguments[1];
		found->stat = (const u8 *)arguments[2];
		found->flags = &arguments[3];
		break;
	case ROLES(ROLE_FD, ROLE_PATH, ROLE_FLAGS, 0): /* openat */
		found->path = (const u8 *)arguments[1];
		found->flags = &arguments[2];
		break;
	case ROLES(ROLE_PATH, ROLE_STAT, 0, 0): /* stat, lstat */
		found->stat = (const u8 *)arguments[1];
		/* fall through */
	case ROLES(ROLE_PATH, 0, 0, 0): /* unlink, access */
		found->path = (const u8 *)arguments[0];
		break;
	default:
		return 0;
	}
	return found->path != 0;
}

/* Does the same as put_path() and sets *bytes to the path's length. It reads the text only once, because
 * another thread may change it. Returns 0 and changes nothing if the text is long, or crosses the end of its
 * page or of the chunk's space. The last path contains no zero before its end. */
static ALWAYS u8 *put_path_at_once(struct state *state, u8 *at, const u8 *text, u64 *bytes) {
	u64 here = (4096 - ((u64)text & 4095)) / 8, there = (u64)(state->streams[0].limit - at - PLAIN_LIMIT) / 8;
	u64 whole = state->last_path_bytes / 8, most = LAST_PATH / 8;
	u64 hash = HASH_BEGIN, i = 0, word, words[LAST_PATH / 8];
	most = most < here ? most : here;
	most = most < there ? most : there;
	/* Compares the words that the path shares with the last path. */
	for (;; hash = mix(hash, word), i++) {
		if (unlikely(i >= most))
			return 0;
		word = *(const volatile unaligned_u64 *)(text + 8 * i);
		if (i >= whole || word != state->last_path[i])
			break;
	}
	/* The rest is written to its final place in case the path is new. */
	u64 first = i, differ = (u64)__builtin_ctzl((word ^ state->last_path[i]) | 1ul << 63) / 8, shared = 8 * i + differ;
	u8 *count_at = put_short(at + 1, shared), *to = count_at + 1;
	*(unaligned_u64 *)to = word >> 8 * differ;
	to -= differ;
	u64 zeros = zero_bytes(word);
	while (!zeros) {
		hash = mix(hash, word);
		words[i] = word;
		if (unlikely(++i >= most))
			return 0;
		word = *(const volatile unaligned_u64 *)(text + 8 * i);
		zeros = zero_bytes(word);
		*(unaligned_u64 *)(to += 8) = word;
	}
	words[i] = word & text_before(zeros);
	hash = mix(hash, words[i]) | 1;
	struct cached *ways = ways_of(state, hash);
	*bytes = 8 * i + (u64)__builtin_ctzl(zeros) / 8;
	u64 index = known_path(ways, hash), count = *bytes - shared;
	if (index)
		return put_short(at, index);
	/* `count` is negative if the path equals the last one and is no longer in the cache; as an unsigned
	 * number it is then too large, too. */
	if (unlikely(count > 127))
		return 0;
	keep_path(ways, hash, ++state->streams[0].paths);
	for (; first <= i; first++)
		state->last_path[first] = words[first];
	state->last_path_bytes = *bytes;
	*at = 1;
	*count_at = (u8)(count << 1 | 1);
	return count_at + 1 + count;
}

static NOINLINE u64 record_path(struct state *state, const struct plain_frame *plain, u64 end, u64 shape) {
	struct brief brief = {state, plain, shape, end, 0, 0, 0};
	struct stream *stream = &state->streams[0];
	u32 opens = (shape & 255) == KIND_OPEN, has = 0, more = MORE_PATH;
	s64 result = plain->result;
	struct pointers pointers;
	u64 bytes;
	if (unlikely(!find_pointers(&pointers, shape, plain->frame.arguments) ||
		     is_slow_open(shape & 255, result, (end - plain->start) >> TIME_SHIFT) ||
		     (result && !(opens && result > 0) && !path_was_read(plain->frame.number, plain->frame.arguments, result)) ||
		     !begin_brief(&brief, 2 * PLAIN_LIMIT)))
		return end_brief(&brief, 0);
	u8 *at = put_path_at_once(state, put_short(put_short(brief.begin + 3, brief.gap), brief.duration), pointers.path, &bytes);
	if (unlikely(!at))
		return end_brief(&brief, 0);
	s32 *last_fd = bytes ? &stream->last_directory : &stream->last_fd, fd = (s32)plain->frame.arguments[0];
	if ((shape >> ROLES_SHIFT & 255) == ROLE_FD && fd != *last_fd)
		has |= HAS_FD;
	if (result != (opens ? stream->last_opened : 0))
		has |= HAS_RESULT;
	struct habit *habit = habit_of(&brief);
	if (pointers.flags && *pointers.flags != habit->flags)
		more |= MORE_FLAGS;
	if (pointers.stat && result >= 0)
		more |= MORE_STAT;
	if (has & HAS_FD)
		at = put_signed(at, *last_fd = fd);
	if (has & HAS_RESULT)
		at = put_signed(at, result);
	if (more & MORE_FLAGS)
		at = put(at, habit->flags = *pointers.flags);
	if (more & MORE_STAT)
		at = put_filled(at, pointers.stat);
	if (opens && result >= 0)
		stream->last_fd = stream->last_opened = (s32)result;
	put_masks(&brief, has, more);
	return commit_brief(&brief, at);
}

/* The stub calls this after it has done the work of enter(). Times are in ticks. Returns 0 if the call is
 * recorded, else `end`. */
u64 iodock_record_short(struct state *state, const struct plain_frame *plain, u64 end) {
	u64 shape = *(const u64 *)&session->shapes[plain->frame.number & (CALL_NUMBERS - 1)];
	struct brief brief = {state, plain, shape, end, 0, 0, 0};
	state->crowded = 0;
	/* The code is masked out, so that kind and roles are compared. */
	switch (shape & ~0xff00ul) {
	case KIND_GENERAL | ROLES(ROLE_FD, 0, 0, 0) << ROLES_SHIFT: /* close, fdatasync, fchown */
		return record_descriptor(state, plain, end, shape, NOTHING);
	case KIND_GENERAL | ROLES(ROLE_FD, ROLE_FLAGS, ROLE_ARGUMENT, 0) << ROLES_SHIFT: /* fcntl */
		return record_descriptor(state, plain, end, shape, COMMAND_AND_ARGUMENT);
	case KIND_GENERAL | ROLES(ROLE_FD, ROLE_NONE, ROLE_ARGUMENT, 0) << ROLES_SHIFT: /* lseek */
		return record_descriptor(state, plain, end, shape, ARGUMENT);
	case KIND_GENERAL | ROLES(ROLE_FD, ROLE_NONE, ROLE_SIZE, 0) << ROLES_SHIFT: /* sendto, recvfrom */
		return record_descriptor(state, plain, end, shape, SIZE);
	case KIND_GENERAL | ROLES(ROLE_FD, ROLE_STAT, 0, 0) << ROLES_SHIFT: /* fstat, before glibc 2.33 */
		return record_descriptor(state, plain, end, shape, STAT);
	default:
		if ((shape & 255) == KIND_GENERAL || (shape & 255) == KIND_OPEN)
			return record_path(state, plain, end, shape);
		return end_brief(&brief, 0);
	}
}
