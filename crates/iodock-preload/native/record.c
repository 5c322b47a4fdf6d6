/* Records calls that the stub makes and that the fast path (short.c) does not handle. */

#include "recorder.h"

__thread struct state *iodock_own;
struct header *session;
u64 chunk_bytes;
const char *library;
struct block *blocks[BLOCKS];
long session_file = -1;
u32 descriptors;
void (*iodock_stub)(void) = iodock_plain;

#define HOT(field, at) _Static_assert(__builtin_offsetof(struct state, field) == at, "as in hot.h")
HOT(taken, STATE_TAKEN_AND_LEVEL); HOT(level, STATE_LEVEL);
HOT(streams[0].at, STATE_AT); HOT(streams[0].limit, STATE_LIMIT);
HOT(streams[0].chunk, STATE_CHUNK); HOT(streams[0].last_end, STATE_END);
HOT(streams[0].last_size, STATE_SIZE); HOT(streams[0].next_offset, STATE_OFFSET);
HOT(streams[0].last_fd, STATE_FD); HOT(flight, STATE_FLIGHT);
HOT(writers[0], STATE_WRITER);
#define HOT_CHUNK(field, at) _Static_assert(__builtin_offsetof(struct chunk, field) == at, "as in hot.h")
HOT_CHUNK(used, CHUNK_USED); HOT_CHUNK(flight, CHUNK_FLIGHT);
HOT_CHUNK(flight_start, CHUNK_FLIGHT_START); HOT_CHUNK(flight_fd, CHUNK_FLIGHT_FD);
_Static_assert(__builtin_offsetof(struct state, streams[0].paths) == 60, "what is hot is on one line");
_Static_assert(HEAD_WRITE == HEAD_READ + 8, "the stub multiplies");
_Static_assert(__builtin_offsetof(struct place, start) == __builtin_offsetof(struct plain_frame, start), "looked at alike");

/* Collects facts about calls that do not follow from the roles of their arguments. */
static void gather_more(struct state *state, u32 level, const struct shape *shape, const u64 *arguments, struct fields *fields, u8 *name,
			u64 duration, u64 end, s64 result) {
	if (unlikely(result < 0 && result != -EFAULT && !fields->path))
		refused_paths(state, level, shape, arguments, fields, end);
	if (unlikely(result > 0 && has_items(shape)))
		gather_items(state, level, shape, arguments, fields, end, result);
	if (unlikely(shape->roles[1] == ROLE_RING))
		ring_is_entered(state, level, arguments, fields, end, result);
	else if (unlikely(shape == &session->shapes[SYS_io_uring_setup] && result >= 0 && ring_is_made(state, arguments, result)))
		fields->more |= MORE_ARGUMENT, fields->argument = RING_IS_SHOWN;
	if (unlikely(arguments[1] == TIOCGPTPEER && result >= 0 && shape == &session->shapes[SYS_ioctl]))
		name_peer(fields, name, arguments, result);
	if (unlikely(is_slow_open(shape->kind, result, duration)) && (fields->stat_type = special_type(result)))
		fields->more |= MORE_STAT, fields->stat_size = UNKNOWN;
}

NOINLINE void record_general(struct state *state, u32 level, const struct shape *shape, const u64 *arguments, int lands, u64 start, u64 end,
			     s64 result, const struct caller *caller) {
	struct fields fields;
	u8 name[NAME_BYTES];
	nothing_yet(&fields);
	fields.lands = (u8)lands;
	fields.caller = caller;
	gather(&fields, shape, arguments, result);
	gather_more(state, level, shape, arguments, &fields, name, end - start, end, result);
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

static void record_plain(struct state *state, struct plain_frame *plain, u64 end, u64 base) {
	int lands = come_back(state, (u64)plain);
	if (unlikely(state->level >= LEVELS) && is_crowded(state))
		return;
	const struct shape *shape = &session->shapes[plain->frame.number & (CALL_NUMBERS - 1)];
	struct place here;
	struct caller caller = {plain, base};
	u32 level = enter(state, &here);
	if (unlikely(state->crowded))
		state->crowded = 0;
	record_general(state, level, shape, plain->frame.arguments, lands, plain->start >> TIME_SHIFT, end >> TIME_SHIFT, plain->result,
		       &caller);
	land(state, level, &here, lands ? (u64)plain : 0);
}

/* The stub calls this for every call that neither it nor iodock_record_short() has recorded. `base` is the
 * program's %rbp; it is valid only with --stacks. */
void iodock_record(struct plain_frame *plain, u64 end, u64 base) {
	/* A handler may have stopped recording and installed a filter that forbids the clock. Then there is no
	 * end time. */
	if (unlikely(stopped))
		return;
	struct state *began_in = begin_own_calls(), *state;
	/* `stopped` is read again: a thread that stops recording waits only for threads that began a stretch of
	 * own calls before it set `stopped`. */
	if (likely(!*(volatile u32 *)&stopped) && likely((state = mine(end >> TIME_SHIFT, (u64)plain)) != 0))
		record_plain(state, plain, end, base);
	end_own_calls(began_in);
}
