/* Counts calls. The most frequent case, a read or write of a known descriptor, needs no system call of our
 * own and about ten additions. */

#include "recorder.h"
#include "light.h"

#define HOT(field, at) _Static_assert(__builtin_offsetof(struct state, field) == at, "as in hot.h")
HOT(run.untimed, STATE_UNTIMED);

/* Reading the clock twice takes as long as all other work here. So in a run of quick accesses to one file,
 * only one in 32 is timed. */
enum { RUN_LEAST = 16, RUN_UNTIMED = 31 };
#define QUICK 8192ul /* ticks */
#define FIRST_TIME 10 /* times below 2^10 ticks are one bin; each next bin is four times as wide */

/* Adds with one instruction, so that a handler can't interrupt it. If the row is shared, the lock prefix also
 * makes it atomic among threads. */
#define ADD(shared, place, more) do { \
	if (shared) \
		__asm__ volatile("lock addq %1, %0" : "+m"(place) : "er"((u64)(more)) : "cc"); \
	else \
		__asm__ volatile("addq %1, %0" : "+m"(place) : "er"((u64)(more)) : "cc"); \
} while (0)

static ALWAYS void raise(int shared, u64 *place, u64 value) {
	u64 have = *(volatile u64 *)place, was;
	for (; have < value; have = was) {
		was = have;
		if (shared)
			__asm__ volatile("lock cmpxchgq %2, %1" : "+a"(was), "+m"(*place) : "r"(value) : "cc");
		else
			__asm__ volatile("cmpxchgq %2, %1" : "+a"(was), "+m"(*place) : "r"(value) : "cc");
		if (was == have)
			break;
	}
}

/* Returns Darshan's bin of a size. The upper bounds belong to the bins. They are compared in code, because a
 * table would need one more cache line. */
static ALWAYS u32 size_bin(u64 bytes) {
	if (bytes <= 10ul << 10)
		return bytes <= 100 ? 0 : bytes <= 1ul << 10 ? 1 : 2;
	if (bytes <= 4ul << 20)
		return bytes <= 100ul << 10 ? 3 : bytes <= 1ul << 20 ? 4 : 5;
	return bytes <= 10ul << 20 ? 6 : bytes <= 100ul << 20 ? 7 : bytes <= 1ul << 30 ? 8 : 9;
}

static ALWAYS u32 time_bin(u64 duration) {
	u32 bits = 63 - (u32)__builtin_clzl(duration | 1), bin = bits < FIRST_TIME ? 0 : (bits - FIRST_TIME) / 2 + 1;
	return bin < TIME_BINS ? bin : TIME_BINS - 1;
}

/* Returns the bin of a gap between accesses: 0 for backward, 1 for no gap, then gaps of up to 100 bytes and
 * so on. The last bin begins at 1 MiB. */
static ALWAYS u32 gap_bin(s64 gap) {
	u32 bin = gap < 0 ? 0 : gap == 0 ? 1 : 2 + size_bin((u64)gap);
	return bin < GAP_BINS ? bin : GAP_BINS - 1;
}

/* Returns the bin of an offset: 1 for multiples of 512 bytes, 2 of 4 KiB, 3 of 64 KiB, 4 of 1 MiB; 0 for
 * others. */
static ALWAYS u32 alignment_of(u64 offset) {
	return !(offset & 0xfffff) ? 4 : !(offset & 0xffff) ? 3 : !(offset & 4095) ? 2 : !(offset & 511) ? 1 : 0;
}

static ALWAYS void count_position(struct row *row, int shared, u32 writes, u64 offset, u64 bytes) {
	u64 end = offset + bytes, before = row->end[writes], bit = 1ul << alignment_of(offset);
	if (unlikely(!(row->alignments & bit)))
		__atomic_fetch_or(&row->alignments, bit, __ATOMIC_RELAXED);
	if (offset & 4095)
		ADD(shared, row->unaligned, 1);
	if (row->direction) {
		ADD(shared, row->gaps[gap_bin((s64)(offset - row->last_end))], 1);
		if (before && offset >= before)
			ADD(shared, row->sequential[writes], 1);
		if (before && offset == before)
			ADD(shared, row->consecutive[writes], 1);
	}
	row->end[writes] = row->last_end = end;
	if (end > row->most_end[writes])
		raise(shared, &row->most_end[writes], end);
}

static ALWAYS void count_access(struct row *row, int shared, u32 writes, u64 offset, u64 bytes) {
	ADD(shared, row->calls[writes], 1);
	ADD(shared, row->bytes[writes], bytes);
	ADD(shared, row->sizes[writes][size_bin(bytes)], 1);
	if (offset != POSITION_UNKNOWN)
		count_position(row, shared, writes, offset, bytes);
	else
		ADD(shared, row->unplaced, 1);
	if (row->direction != writes + 1) {
		if (row->direction)
			ADD(shared, row->switches, 1);
		row->direction = writes + 1;
	}
}

static ALWAYS void count_time(struct row *row, int shared, u32 writes, u64 duration, u64 end) {
	ADD(shared, row->time[writes], duration);
	ADD(shared, row->times[time_bin(duration)], 1);
	if (unlikely(!row->first))
		row->first = end - duration;
	row->last = end;
}

static NOINLINE void keep_access(struct table *table, const struct state *state, const struct row *row, u32 writes, u64 offset, u64 bytes,
				 u64 start, u64 end) {
	u32 at = __atomic_fetch_add(&table->accesses_used, 1, __ATOMIC_RELAXED);
	if (at >= table->accesses_most)
		return;
	struct access *access = (struct access *)((u8 *)table + table->accesses_at) + at;
	access->tid = state->tid;
	access->start = start;
	access->duration = end - start;
	access->offset = offset;
	access->bytes = bytes;
	access->direction = writes;
	set(access->row, (u32)(row - rows_of(table)) + 1);
}

/* Notes an untimed access. All accesses are timed until RUN_LEAST quick accesses to one file in a row. An
 * untimed access is assumed to take as long as the next timed one of its run, but not longer than the average
 * of the elapsed time. At the end of a run it is assumed to take as long as the last timed one. */
static ALWAYS void skip_time(struct run *run, const struct row *row, u32 number) {
	run->skipped++;
	/* This is the first access to another file: after it, all accesses are timed again. */
	if (unlikely(run->row != row || run->number != number))
		run->untimed = run->length = 0;
}

static void count_skipped(struct state *state, u64 each) {
	struct run *run = &state->run;
	struct row *row = (struct row *)run->row;
	u32 writes = run->number == 1 || run->number == 18;
	u64 count = run->skipped;
	run->skipped = 0;
	if (!row)
		return;
	int shared = row->owner != state->number;
	ADD(shared, row->untimed, count);
	ADD(shared, row->time[writes], each * count);
	ADD(shared, row->times[time_bin(each)], count);
}

static ALWAYS void note_time(struct state *state, struct row *row, int shared, u32 number, u32 writes, u64 start, u64 end) {
	struct run *run = &state->run;
	u64 duration = end - start;
	int same = run->row == row && run->number == number;
	if (run->skipped) {
		u64 passed = (start - run->end) / run->skipped;
		count_skipped(state, !same ? run->duration : duration < passed ? duration : passed);
	}
	count_time(row, shared, writes, duration, end);
	run->length = same ? run->length + 1 : 0;
	run->row = row;
	run->number = number;
	run->duration = duration;
	run->end = end;
	run->untimed = duration < QUICK && run->length >= RUN_LEAST ? RUN_UNTIMED : 0;
}

static ALWAYS void count_data(struct state *state, struct row *row, int shared, struct descriptor *descriptor, const struct plain_frame *plain,
			      u64 end) {
	u32 number = (u32)plain->frame.number, writes = number == 1 || number == 18;
	s64 bytes = plain->result;
	if (unlikely(bytes < 0)) {
		ADD(shared, row->failed, 1);
		return;
	}
	u64 offset = plain->frame.arguments[3];
	if (number <= 1) {
		offset = descriptor->position;
		if (offset != POSITION_UNKNOWN)
			descriptor->position = offset + (u64)bytes;
	}
	count_access(row, shared, writes, offset, (u64)bytes);
	if (!plain->start) {
		skip_time(&state->run, row, number);
		return;
	}
	struct table *table = light->table;
	note_time(state, row, shared, number, writes, plain->start, end);
	if (unlikely(table->accesses_used < table->accesses_most)) {
		state->run.untimed = 0;
		keep_access(table, state, row, writes, offset, (u64)bytes, plain->start, end);
	}
}

static NOINLINE void count_slowly(struct plain_frame *plain, u64 end) {
	struct state *began_in = begin_own_calls(), *state;
	if (!*(volatile u32 *)&stopped && (state = mine(end >> TIME_SHIFT, (u64)plain)) != 0) {
		const struct shape *shape = &session->shapes[plain->frame.number & (CALL_NUMBERS - 1)];
		struct over over = {shape, plain->frame.arguments, plain->result, plain->frame.number, plain->start, end};
		if (state->run.skipped)
			count_skipped(state, state->run.duration);
		state->run.untimed = state->run.length = 0;
		count_over(state, &over);
	}
	end_own_calls(began_in);
}

/* The stub calls this for every call that it has made. If the call was not timed, its start is 0. */
void iodock_count(struct plain_frame *plain) {
	if (unlikely(stopped))
		return;
	struct state *state = own;
	u64 number = plain->frame.number, end = plain->start ? ticks() : 0, fd = (u32)plain->frame.arguments[0];
	struct row *row = 0;
	if (likely(number <= LAST_DATA_NUMBER && DATA_NUMBERS >> number & 1 && fd < DESCRIPTORS && state && state->taken == TAKEN))
		row = light->descriptors[fd].row;
	if (unlikely(!row)) {
		count_slowly(plain, end ? end : ticks());
		return;
	}
	if (likely(row->owner == state->number))
		count_data(state, row, 0, &light->descriptors[fd], plain, end);
	else
		count_data(state, row_for_all(state, row), 1, &light->descriptors[fd], plain, end);
}

static u64 argument_of(const struct over *over, enum role role, u64 otherwise) {
	for (u32 i = 0; i < MOST_ROLES; i++)
		if (over->shape->roles[i] == role)
			return over->arguments[i];
	return otherwise;
}

static struct descriptor *descriptor_at(const struct state *state, s64 fd) {
	return fd >= 0 && fd < DESCRIPTORS && state->taken == TAKEN ? &light->descriptors[fd] : 0;
}

static void forget_descriptor(const struct state *state, s64 fd) {
	struct descriptor *descriptor = descriptor_at(state, fd);
	if (descriptor)
		descriptor->row = 0;
}

/* Counts less frequent reads and writes: of vectors, of messages, and of descriptors not seen before. */
static void count_moved(struct state *state, const struct over *over, u32 writes, s64 fd, int is_end_of_two) {
	struct descriptor *descriptor = descriptor_at(state, fd);
	int was_known = descriptor && descriptor->row;
	struct row *row = row_of_descriptor(state, fd);
	struct table *table = light->table;
	if (!row || over->result < 0) {
		if (row)
			ADD(1, row->failed, 1);
		else
			ADD(1, table->unplaced, 1);
		return;
	}
	u64 bytes = (u64)over->result, offset = is_end_of_two ? POSITION_UNKNOWN : argument_of(over, ROLE_OFFSET, POSITION_UNKNOWN);
	if (is_end_of_two && descriptor)
		descriptor->position = POSITION_UNKNOWN;
	else if (offset == POSITION_UNKNOWN && descriptor && descriptor->row && descriptor->position != POSITION_UNKNOWN) {
		/* If row_of_descriptor() has just queried the position, it already includes this access. */
		descriptor->position += was_known ? bytes : 0;
		offset = descriptor->position - bytes;
	}
	u64 start = over->start ? over->start : over->end;
	if (table->accesses_used < table->accesses_most && over->start)
		keep_access(table, state, row, writes, offset, bytes, start, over->end);
	if (!over->start)
		ADD(1, row->untimed, 1);
	count_access(row, 1, writes, offset, bytes);
	count_time(row, 1, writes, over->end - start, over->end);
}

static void count_open(struct state *state, const struct over *over, u64 duration) {
	struct row *row = row_of_path(state, over);
	if (!row)
		return;
	ADD(1, row->opens, 1);
	ADD(1, row->meta_time, duration);
	if (!row->first)
		row->first = over->start;
	struct descriptor *descriptor = descriptor_at(state, over->result);
	if (!descriptor)
		return;
	u64 flags = argument_of(over, ROLE_FLAGS, 0);
	/* openat2 passes its flags through a pointer, and creat has no flags. */
	int is_known = !(flags & O_APPEND) && argument_of(over, ROLE_POINTED_FLAGS, 0) == 0;
	descriptor->position = is_known ? 0 : POSITION_UNKNOWN;
	set(descriptor->row, row);
}

/* Notes a duplicated descriptor. Both descriptors share one position, which is no longer tracked. */
static void count_dup(struct state *state, const struct over *over) {
	struct descriptor *from = descriptor_at(state, (s32)over->arguments[0]), *to = descriptor_at(state, over->result);
	if (!to || to == from)
		return;
	to->row = 0;
	to->position = POSITION_UNKNOWN;
	if (from) {
		from->position = POSITION_UNKNOWN;
		set(to->row, from->row);
	}
}

static void close_range(struct state *state, const struct over *over) {
	u64 last = (u32)over->arguments[1];
	for (u64 fd = (u32)over->arguments[0]; fd <= last && fd < DESCRIPTORS; fd++)
		forget_descriptor(state, (s64)fd);
}

/* Counts queries about a file, by its path or its descriptor. */
static void count_question(struct state *state, const struct over *over, enum counting what, u64 duration) {
	s64 fd = (s32)argument_of(over, ROLE_FD, (u64)-1);
	int has_path = argument_of(over, ROLE_PATH, 0) != 0;
	struct row *row = has_path ? row_of_path(state, over) : fd >= 0 ? row_of_descriptor(state, fd) : 0;
	struct descriptor *descriptor = descriptor_at(state, fd);
	if (!row)
		return;
	ADD(1, row->meta_time, what == COUNT_SYNC ? 0 : duration);
	if (!row->first)
		row->first = over->start;
	row->last = over->end;
	switch (what) {
	case COUNT_SEEK:
		ADD(1, row->seeks, 1);
		/* A query of the position (SEEK_CUR) does not make an untracked position known: the file may be in
		 * append mode, or share its position with another descriptor. */
		if (descriptor && (over->arguments[2] != SEEK_CUR || descriptor->position != POSITION_UNKNOWN))
			descriptor->position = (u64)over->result;
		break;
	case COUNT_STAT: ADD(1, row->stats, 1); break;
	case COUNT_SYNC:
		ADD(1, row->syncs, 1);
		/* As in Darshan: the time of a sync counts as write time. */
		ADD(1, row->time[1], duration);
		break;
	case COUNT_MAP: ADD(1, row->maps, 1); break;
	default: ADD(1, row->others, 1); break;
	}
}

static void count_fcntl(struct state *state, const struct over *over, u64 duration) {
	u32 command = (u32)over->arguments[1];
	struct descriptor *descriptor = descriptor_at(state, (s32)over->arguments[0]);
	if (command == F_DUPFD || command == F_DUPFD_CLOEXEC)
		count_dup(state, over);
	if (command == F_SETFL && descriptor)
		descriptor->position = POSITION_UNKNOWN;
	count_question(state, over, COUNT_META, duration);
}

static void count_close(struct state *state, const struct over *over, u64 duration) {
	s64 fd = (s32)over->arguments[0];
	struct descriptor *descriptor = descriptor_at(state, fd);
	struct row *row = descriptor ? __atomic_exchange_n(&descriptor->row, 0, __ATOMIC_RELAXED) : 0;
	if (row)
		ADD(1, row_for_all(state, row)->meta_time, duration);
}

/* Counts a failed call on a known descriptor. Calls with a path are not counted, because the file may not
 * exist. */
static void count_failure(struct state *state, const struct over *over) {
	s64 fd = (s32)argument_of(over, ROLE_FD, (u64)-1);
	struct descriptor *descriptor = argument_of(over, ROLE_PATH, 0) ? 0 : descriptor_at(state, fd);
	if (descriptor && descriptor->row)
		ADD(1, row_for_all(state, descriptor->row)->failed, 1);
}

/* Counts calls other than the most frequent ones. */
void count_over(struct state *state, const struct over *over) {
	struct table *table = table_of();
	enum counting what = (enum counting)session->counting[over->number & (CALL_NUMBERS - 1)];
	u64 duration = over->start ? over->end - over->start : 0;
	if (!table) {
		count_lost(what != COUNT_NOTHING);
		return;
	}
	if (what == COUNT_CLOSE)
		count_close(state, over, duration);
	else if (over->result < 0 && what != COUNT_READ && what != COUNT_WRITE)
		count_failure(state, over);
	else switch (what) {
	case COUNT_NOTHING: break;
	case COUNT_READ: count_moved(state, over, 0, (s32)argument_of(over, ROLE_FD, 0), 0); break;
	case COUNT_WRITE: count_moved(state, over, 1, (s32)argument_of(over, ROLE_FD, 0), 0); break;
	case COUNT_COPY:
		count_moved(state, over, 0, (s32)argument_of(over, ROLE_FD, 0), 1);
		count_moved(state, over, 1, (s32)argument_of(over, ROLE_FD2, 0), 1);
		break;
	case COUNT_OPEN: count_open(state, over, duration); break;
	case COUNT_CLOSE_RANGE: close_range(state, over); break;
	case COUNT_DUP: count_dup(state, over); break;
	case COUNT_FCNTL: count_fcntl(state, over, duration); break;
	case COUNT_NEW: forget_descriptor(state, over->result); break;
	case COUNT_ASYNCHRONOUS: ADD(1, table->asynchronous, 1); break;
	case COUNT_MAP:
		has_loaded(over->arguments, over->result);
		if ((s32)over->arguments[4] >= 0)
			count_question(state, over, what, duration);
		break;
	case COUNT_DIRECTORY:
		forget_directory();
		/* fall through */
	default: count_question(state, over, what, duration);
	}
}
