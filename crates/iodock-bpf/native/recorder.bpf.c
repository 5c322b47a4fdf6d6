/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Records the system calls of followed tasks into one buffer for each CPU.
 *
 * Tracepoints run with preemption off, and none of these nests in another: each CPU's buffer has one writer at
 * a time. What a call is and what is kept of it comes as data (`plans`), from the one table of calls. */
#include "format.h"

char _license[] SECTION("license") = "Dual MIT/GPL";

/* Set by the loader before it loads. */
const volatile u64 plans[CALL_NUMBERS] = {0};
const volatile u32 slot_mask = 0;
const volatile u32 chunk_mask = 0; /* chunks of a CPU, less one: a power of two */

struct {
	FIGURE(type, BPF_MAP_TYPE_ARRAY);
	FIGURE(map_flags, BPF_F_MMAPABLE);
	FIGURE(max_entries, 1);
	u32 *key;
	struct slot *value;
} slots SECTION(".maps");

struct {
	FIGURE(type, BPF_MAP_TYPE_ARRAY);
	FIGURE(map_flags, BPF_F_MMAPABLE);
	FIGURE(max_entries, 1);
	u32 *key;
	struct cpu *value;
} cpus SECTION(".maps");

struct {
	FIGURE(type, BPF_MAP_TYPE_ARRAY);
	FIGURE(map_flags, BPF_F_MMAPABLE);
	FIGURE(max_entries, 1);
	u32 *key;
	struct chunk *value;
} chunks SECTION(".maps");

/* ---- tasks ---- */

/* Two places for each task: ids that meet in the first are far apart. */
INLINE u32 first_place(u32 tid) { return tid & slot_mask; }
INLINE u32 second_place(u32 tid) { return (tid * 2654435761u >> 12) & slot_mask; }

INLINE struct slot *find(u32 tid)
{
	u32 at = first_place(tid);
	struct slot *slot = map_lookup(&slots, &at);
	if (slot && slot->tid == tid)
		return slot;
	at = second_place(tid);
	slot = map_lookup(&slots, &at);
	return slot && slot->tid == tid ? slot : 0;
}

INLINE struct slot *claim_at(u32 at, u32 tid)
{
	struct slot *slot = map_lookup(&slots, &at);
	return slot && __sync_val_compare_and_swap(&slot->tid, 0, tid) == 0 ? slot : 0;
}

INLINE struct slot *claim(u32 tid, u32 tgid)
{
	struct slot *slot = claim_at(first_place(tid), tid);
	if (!slot)
		slot = claim_at(second_place(tid), tid);
	if (slot) {
		slot->tgid = tgid;
		slot->state = STATE_SKIP;
	}
	return slot;
}

INLINE void release(struct slot *slot)
{
	slot->state = STATE_OUTSIDE;
	BARRIER();
	slot->tid = 0;
}

/* ---- buffers ---- */

struct place {
	struct cpu *cpu;
	struct chunk *chunk;
	u64 head;
	u32 at;
};

INLINE struct chunk *chunk_of(u32 cpu, u64 head)
{
	u32 index = cpu * (chunk_mask + 1) + ((u32)(head / CHUNK) & chunk_mask);
	return map_lookup(&chunks, &index);
}

/* Room for `need` bytes in one chunk, leaving `spare` free in the buffer; 0 if there is none. */
INLINE int reserve(struct place *place, u32 need, u32 spare)
{
	u32 number = this_cpu();
	struct cpu *cpu = map_lookup(&cpus, &number);
	if (!cpu)
		return 0;
	u64 head = cpu->head, start = head;
	u32 at = head & (CHUNK - 1), rest = CHUNK - at;
	if (rest < need) {
		start += rest;
		at = 0;
	}
	if (start + need + spare - *(volatile u64 *)&cpu->tail > ((u64)chunk_mask + 1) * CHUNK) {
		cpu->dropped++;
		return 0;
	}
	if (start != head) {
		struct chunk *old = chunk_of(number, head);
		u32 end = head & (CHUNK - 8);
		if (old)
			old->words[end / 8] = 0;
	}
	place->cpu = cpu;
	place->chunk = chunk_of(number, start);
	place->head = start;
	place->at = at;
	return place->chunk != 0;
}

/* The record is complete. x86 keeps the order of stores; elsewhere this has to become a release. */
INLINE void commit(struct place *place, u32 length)
{
	BARRIER();
	*(volatile u64 *)&place->cpu->head = place->head + length;
}

INLINE u64 first_word(u32 kind, u32 number, u32 tid, u32 length)
{
	return (u64)(length / 8) | (u64)kind << 16 | (u64)(number & 0xfff) << 20 | (u64)tid << 32;
}

INLINE void count_foreign(void)
{
	u32 number = this_cpu();
	struct cpu *cpu = map_lookup(&cpus, &number);
	if (cpu)
		cpu->foreign++;
}

/* ---- calls ---- */

/* Up to here a chunk has room for a general record. */
#define GENERAL_WORDS 10

struct small_record {
	u64 first, end;
	u32 duration;
	s32 result;
	u32 fd, size;
	u64 offset;
};

struct general_record {
	u64 first, end, duration;
	s64 result;
	u64 arguments[6];
};

INLINE int fits(s64 result, u64 duration, u64 fd, u64 size)
{
	return (s32)result == result && !(duration >> 32) && !(size >> 32) && !(fd >> 32 && fd >> 31 != 0x1ffffffffull);
}

INLINE int put_small(struct slot *slot, struct pt_regs *regs, u64 plan, u64 end, s64 result)
{
	struct place place;
	u64 fd = regs->di, size = regs->dx, duration = end - slot->start;
	if (!fits(result, duration, fd, size))
		return 0;
	if (!reserve(&place, sizeof(struct small_record), SPARE))
		return 1;
	u32 at = place.at;
	if (at > CHUNK - sizeof(struct small_record))
		return 1;
	struct small_record *record = (void *)(place.chunk->bytes + at);
	u32 positioned = plan & PLAN_POSITIONED, kind = positioned ? KIND_POSITIONED : KIND_SMALL;
	u32 length = positioned ? 40 : 32;
	record->first = first_word(kind, slot->number, slot->tid, length);
	record->end = end;
	record->duration = duration;
	record->result = result;
	record->fd = fd;
	record->size = size;
	if (positioned)
		record->offset = regs->r10;
	commit(&place, length);
	return 1;
}

/* A piece: its length in bytes and its number, then the bytes up to the next whole word. A length of -1 says
 * that the memory could not be read. */
INLINE u32 put_head(struct chunk *chunk, u32 at, u32 index, s64 length)
{
	if (at > CHUNK - 8)
		return at;
	chunk->words[at / 8] = (length < 0 ? ~0u : (u32)length) | (u64)index << 32;
	u32 size = length < 0 ? 0 : (u32)length & 0x7fff;
	return at + 8 + ((size + 7) & ~7u);
}

INLINE u32 put_string(struct chunk *chunk, u32 at, u32 index, u64 address)
{
	if (at > CHUNK - STRING_LIMIT - 8)
		return at;
	return put_head(chunk, at, index, read_user_string(chunk->bytes + at + 8, STRING_LIMIT, (void *)address));
}

INLINE u32 put_bytes(struct chunk *chunk, u32 at, u32 index, u64 address, u32 size)
{
	if (at > CHUNK - 64 - 8)
		return at;
	long failed = read_user(chunk->bytes + at + 8, size, (void *)address);
	return put_head(chunk, at, index, failed ? -1 : (s64)size);
}

#define VECTOR_LIMIT 1024

/* The vectors themselves; their lengths are added up by the reader. */
INLINE u32 put_vector(struct chunk *chunk, u32 at, u32 index, u64 address, u64 count)
{
	if (at > CHUNK - VECTOR_LIMIT * 16 - 8)
		return at;
	if (count > VECTOR_LIMIT)
		return put_head(chunk, at, index, -1);
	u32 size = count * 16 & 0x7fff;
	if (size > VECTOR_LIMIT * 16)
		return at;
	long failed = size ? read_user(chunk->bytes + at + 8, size, (void *)address) : 0;
	return put_head(chunk, at, index, failed ? -1 : (s64)size);
}

INLINE u32 put_message(struct chunk *chunk, u32 at, u32 index, u64 address)
{
	u64 vector[2]; /* struct user_msghdr: the vectors at 16, their number at 24 */
	if (read_user(vector, sizeof vector, (void *)(address + 16)))
		return put_head(chunk, at, index, -1);
	return put_vector(chunk, at, index, vector[0], vector[1]);
}

#define BLOCK 64
/* More at a time are not looked into: the verifier follows each of them. */
#define BLOCK_LIMIT 128
#define EVENT 32
#define EVENT_LIMIT 512

/* Each control block that io_submit's list points to, behind its address. */
INLINE u32 put_blocks(struct chunk *chunk, u32 at, u32 index, u64 list, u64 count)
{
	u32 start = at;
	at += 8;
	for (u32 number = 0; number < BLOCK_LIMIT && number < count; number++) {
		u64 address;
		/* What is checked must be what is used. */
		KEEP(at);
		if (at > CHUNK - BLOCK - 8 || read_user(&address, 8, (void *)(list + 8 * number)))
			break;
		chunk->words[at / 8] = address;
		if (read_user(chunk->bytes + at + 8, BLOCK, (void *)address))
			break;
		at += BLOCK + 8;
	}
	put_head(chunk, start, index, at - start - 8);
	return at;
}

INLINE u32 put_events(struct chunk *chunk, u32 at, u32 index, u64 address, s64 count)
{
	if (at > CHUNK - EVENT_LIMIT * EVENT - 8)
		return at;
	u32 size = (count > EVENT_LIMIT ? EVENT_LIMIT : (u32)count) * EVENT & 0x7fff;
	if (size > EVENT_LIMIT * EVENT)
		return at;
	long failed = size ? read_user(chunk->bytes + at + 8, size, (void *)address) : 0;
	return put_head(chunk, at, index, failed ? -1 : (s64)size);
}

/* Appends one piece of the record at `base`; where the record ends then. A function of its own, of which the
 * verifier takes nothing for granted: so it looks at it once, and not along every way that leads here. */
__attribute__((noinline)) u32 put_piece(struct chunk *chunk, u32 base, u32 at, u32 piece)
{
	if (!chunk || base > CHUNK - GENERAL_LIMIT || at > CHUNK - 64)
		return at;
	u32 what = piece & 31, argument = piece >> 5 & 7, index = piece >> 8;
	if (argument > 5)
		return at;
	struct general_record *record = (void *)(chunk->bytes + (base & ~7u));
	u64 *arguments = record->arguments;
	u64 address = arguments[argument];
	s64 result = record->result;
	if (!address)
		return at;
	if (what == PIECE_STRING)
		return put_string(chunk, at, index, address);
	if (what == PIECE_WORD)
		return put_bytes(chunk, at, index, address, 8);
	if (what == PIECE_VECTOR)
		return put_vector(chunk, at, index, address, arguments[2]);
	if (what == PIECE_MESSAGE)
		return put_message(chunk, at, index, address);
	if (what == PIECE_BLOCKS)
		return put_blocks(chunk, at, index, address, arguments[1]);
	if (result < 0)
		return at;
	if (what == PIECE_PAIR)
		return put_bytes(chunk, at, index, address, 8);
	if (what == PIECE_STAT)
		return put_bytes(chunk, at, index, address, 56);
	if (what == PIECE_EVENTS)
		return put_events(chunk, at, index, address, result);
	return at;
}

INLINE void put_general(struct slot *slot, struct pt_regs *regs, u64 plan, u64 end, s64 result)
{
	struct place place;
	if (!reserve(&place, GENERAL_LIMIT, SPARE))
		return;
	u32 base = place.at;
	if (base > CHUNK - GENERAL_LIMIT)
		return;
	struct general_record *record = (void *)(place.chunk->bytes + base);
	record->end = end;
	record->duration = end - slot->start;
	record->result = result;
	record->arguments[0] = regs->di;
	record->arguments[1] = regs->si;
	record->arguments[2] = regs->dx;
	record->arguments[3] = regs->r10;
	record->arguments[4] = regs->r8;
	record->arguments[5] = regs->r9;
	u32 at = base + sizeof *record;
	for (u32 index = 0; index < 3; index++) {
		u8 piece = plan >> (PLAN_PIECES + 8 * index);
		if (!piece)
			break;
		at = put_piece(place.chunk, base, at, piece | index << 8);
	}
	if (at > CHUNK)
		return;
	record->first = first_word(KIND_GENERAL, slot->number, slot->tid, at - base);
	commit(&place, at - base);
}

/* A call that will never return: exit, or one that its task's end cuts off. */
INLINE void put_unfinished(struct slot *slot, u64 now)
{
	struct place place;
	u32 size = sizeof(struct general_record);
	if (!reserve(&place, size, 0))
		return;
	u32 at = place.at;
	if (at > CHUNK - size)
		return;
	struct general_record *record = (void *)(place.chunk->bytes + at);
	record->first = first_word(KIND_UNFINISHED, slot->number, slot->tid, size);
	record->end = now;
	record->duration = now - slot->start;
	record->result = 0;
	for (u32 index = 0; index < 5; index++)
		record->arguments[index] = slot->arguments[index];
	record->arguments[5] = 0;
	commit(&place, size);
}

INLINE u64 plan_of(u64 number)
{
	return number < CALL_NUMBERS ? plans[number & (CALL_NUMBERS - 1)] : 0;
}

INLINE int is_anonymous(u64 plan, struct pt_regs *regs)
{
	return plan & PLAN_MAPS && (s32)regs->r8 == -1;
}

SECTION("tp_btf/sys_enter")
int on_enter(u64 *context)
{
	struct slot *slot = find(current_task()->pid);
	if (!slot)
		return 0;
	struct pt_regs *regs = (void *)context[0];
	u64 number = context[1], plan = plan_of(number);
	if (current_task()->thread_info.status & TS_COMPAT || number >= CALL_NUMBERS) {
		count_foreign();
		slot->state = STATE_SKIP;
		return 0;
	}
	if (!(plan & PLAN_RECORDED) || is_anonymous(plan, regs))
		return 0;
	slot->number = number;
	slot->arguments[0] = regs->di;
	slot->arguments[1] = regs->si;
	slot->arguments[2] = regs->dx;
	slot->arguments[3] = regs->r10;
	slot->arguments[4] = regs->r8;
	slot->start = ktime_ns();
	slot->state = STATE_IN_CALL;
	if (plan & PLAN_EXITS) {
		put_unfinished(slot, slot->start);
		slot->state = STATE_SKIP;
	}
	return 0;
}

SECTION("tp_btf/sys_exit")
int on_exit(u64 *context)
{
	struct slot *slot = find(current_task()->pid);
	if (!slot)
		return 0;
	struct pt_regs *regs = (void *)context[0];
	s64 result = context[1];
	u32 state = slot->state;
	if (state == STATE_SKIP) {
		slot->state = STATE_OUTSIDE;
		return 0;
	}
	u64 now = 0, plan;
	if (state == STATE_IN_CALL) {
		plan = plan_of(slot->number);
		now = ktime_ns();
	} else {
		/* None of ours, or refused by a filter before it began. */
		plan = plan_of(regs->orig_ax);
		if (!(plan & PLAN_RECORDED) || is_anonymous(plan, regs))
			return 0;
		now = ktime_ns();
		slot->number = regs->orig_ax;
		slot->start = now;
	}
	if (!(plan & PLAN_SMALL) || !put_small(slot, regs, plan, now, result))
		put_general(slot, regs, plan, now, result);
	slot->state = STATE_OUTSIDE;
	return 0;
}

/* ---- lives ---- */

struct fork_record {
	u64 first, time;
	u32 parent, tgid;
	u64 flags, shares;
};

#define UNREADABLE (~0ull)
#define CLONE_FS 0x200
#define CLONE_FILES 0x400
#define CLONE_THREAD 0x10000

SECTION("tp_btf/sched_process_fork")
int on_fork(u64 *context)
{
	struct task_struct *parent = (void *)context[0], *child = (void *)context[1];
	struct slot *slot = find(current_task()->pid);
	struct place place;
	if (!slot)
		return 0;
	u32 tid = child->pid, tgid = child->tgid;
	u64 flags = slot->arguments[0];
	/* clone3's are the first of a structure. */
	if ((plan_of(slot->number) >> PLAN_PIECES & 31) == PIECE_WORD && read_user(&flags, 8, (void *)flags))
		flags = UNREADABLE;
	if (!claim(tid, tgid)) {
		u32 number = this_cpu();
		struct cpu *cpu = map_lookup(&cpus, &number);
		if (cpu)
			cpu->untracked++;
		return 0;
	}
	if (!reserve(&place, sizeof(struct fork_record), 0))
		return 0;
	u32 at = place.at;
	if (at > CHUNK - sizeof(struct fork_record))
		return 0;
	struct fork_record *record = (void *)(place.chunk->bytes + at);
	record->first = first_word(KIND_FORK, slot->number, tid, sizeof *record);
	record->time = ktime_ns();
	record->parent = slot->tid;
	record->tgid = tgid;
	record->shares = (FIELD(parent, fs) == FIELD(child, fs) ? CLONE_FS : 0) |
			 (FIELD(parent, files) == FIELD(child, files) ? CLONE_FILES : 0) |
			 ((u32)parent->tgid == tgid ? CLONE_THREAD : 0);
	record->flags = flags;
	commit(&place, sizeof *record);
	return 0;
}

struct exec_record {
	u64 first, time, start;
	u32 old_tid, number;
};

INLINE u32 put_kernel_string(struct chunk *chunk, u32 at, u32 index, const char *address)
{
	if (at > CHUNK - STRING_LIMIT - 8)
		return at;
	return put_head(chunk, at, index, read_kernel_string(chunk->bytes + at + 8, STRING_LIMIT, address));
}

INLINE u32 put_command(struct chunk *chunk, u32 at, u32 index, struct mm_struct *mm)
{
	if (!mm || at > CHUNK - ARGUMENTS_LIMIT - 8)
		return at;
	u64 start = FIELD(mm, arg_start), size = FIELD(mm, arg_end) - start;
	if (size > ARGUMENTS_LIMIT - 1)
		size = ARGUMENTS_LIMIT - 1;
	long failed = read_user(chunk->bytes + at + 8, size & (ARGUMENTS_LIMIT - 1), (void *)start);
	chunk->words[at / 8] = (failed ? ~0u : (u32)size) | (u64)index << 32;
	return at + 8 + (failed ? 0 : ((u32)size + 7) & ~7u & (ARGUMENTS_LIMIT * 2 - 1));
}

SECTION("tp_btf/sched_process_exec")
int on_exec(u64 *context)
{
	struct task_struct *task = (void *)context[0];
	u32 tid = task->pid, old_tid = (u32)context[1];
	struct linux_binprm *binary = (void *)context[2];
	struct slot *slot = find(old_tid);
	struct place place;
	if (!slot)
		return 0;
	u64 start = slot->start;
	u32 number = slot->number;
	if (old_tid != tid) {
		release(slot);
		slot = find(tid);
		if (!slot)
			slot = claim(tid, tid);
		if (!slot)
			return 0;
	}
	slot->state = STATE_SKIP;
	if (!reserve(&place, EXEC_LIMIT, 0))
		return 0;
	u32 base = place.at;
	if (base > CHUNK - EXEC_LIMIT)
		return 0;
	struct exec_record *record = (void *)(place.chunk->bytes + base);
	record->time = ktime_ns();
	record->start = start;
	record->old_tid = old_tid;
	record->number = number;
	u32 at = put_kernel_string(place.chunk, base + sizeof *record, 0, FIELD(binary, filename));
	at = put_kernel_string(place.chunk, at, 1, FIELD(binary, interp));
	at = put_command(place.chunk, at, 2, FIELD(task, mm));
	record->first = first_word(KIND_EXEC, number, tid, at - base);
	commit(&place, at - base);
	return 0;
}

struct exit_record {
	u64 first, time, user, system, total, peak_pages;
	u32 tgid, status;
};

SECTION("tp_btf/sched_process_exit")
int on_end(u64 *context)
{
	struct task_struct *task = (void *)context[0];
	u32 tid = task->pid;
	struct slot *slot = find(tid);
	struct place place;
	if (!slot)
		return 0;
	u64 now = ktime_ns();
	if (slot->state == STATE_IN_CALL)
		put_unfinished(slot, now);
	release(slot);
	if (!reserve(&place, sizeof(struct exit_record), 0))
		return 0;
	u32 at = place.at;
	if (at > CHUNK - sizeof(struct exit_record))
		return 0;
	struct exit_record *record = (void *)(place.chunk->bytes + at);
	record->first = first_word(KIND_EXIT, 0, tid, sizeof *record);
	record->time = now;
	record->user = task->utime;
	record->system = task->stime;
	record->total = task->se.sum_exec_runtime;
	struct signal_struct *signal = FIELD(task, signal);
	record->peak_pages = signal ? FIELD(signal, maxrss) : 0;
	record->tgid = task->tgid;
	record->status = task->exit_code;
	commit(&place, sizeof *record);
	return 0;
}
