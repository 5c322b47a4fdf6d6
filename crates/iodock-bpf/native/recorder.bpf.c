/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Records the system calls of followed tasks into one buffer for each CPU.
 *
 * Tracepoints run with preemption off, and none of these nests in another: each CPU's buffer has one writer at
 * a time. What a call is and what is kept of it comes as data (`plans`), from the one table of calls. */
#include "pages.h"
#include "requests.h"

char _license[] SECTION("license") = "Dual MIT/GPL";

/* The state comes last: the recorder looks at slots, too. */
INLINE void begin(struct cpu *cpu, struct slot *slot, u64 number, u64 plan, u64 now)
{
	slot->number = number;
	slot->start = now;
	BARRIER();
	slot->state = STATE_IN_CALL;
	cpu->start = now;
	cpu->inside = 1 | (plan & PLAN_POSITIONED);
}

INLINE void keep_arguments(struct slot *slot, struct pt_regs *regs)
{
	slot->arguments[0] = regs->di;
	slot->arguments[1] = regs->si;
	slot->arguments[2] = regs->dx;
	slot->arguments[3] = regs->r10;
	slot->arguments[4] = regs->r8;
}

/* Any call of a followed task. */
static ONCE void enter(u64 *context, struct cpu *cpu, u32 place)
{
	struct task_struct *task = current_task();
	struct slot *slot = slot_at(place);
	struct pt_regs *regs = (void *)context[0];
	u64 number = context[1], plan = plan_of(number);
	if (task->thread_info.status & TS_COMPAT || number >> X32_SHIFT == 1) {
		count_foreign();
		slot->state = STATE_SKIP;
		/* What it makes is no child of the call before. */
		slot->number = CALL_NUMBERS;
		return;
	}
	if (!(plan & PLAN_RECORDED) || is_anonymous(plan, regs))
		return;
	cpu->registers = (u64)regs;
	cpu->place = place;
	keep_arguments(slot, regs);
	begin(cpu, slot, number, plan, ktime_ns());
	if (plan & PLAN_EXITS) {
		put_unfinished(slot, slot->start);
		slot->state = STATE_SKIP;
	}
}

SECTION("tp_btf/sys_enter")
int on_enter(u64 *context)
{
	struct pt_regs *regs = (void *)context[0];
	u64 number = context[1], plan = plan_of(number);
	struct cpu *cpu = own_cpu();
	if (!cpu)
		return 0;
	if (cpu->registers == (u64)regs && plan & PLAN_SMALL && is_native(regs)) {
		/* The clock waits for all that was begun before: it comes first, and what can wait runs beside what follows. */
		u64 now = ktime_ns();
		struct slot *slot = slot_at(cpu->place);
		/* Still of the task that made the CPU's call before: no other can have these registers. Asking for the task
		 * would take longer than all else here. */
		if (slot->start == cpu->start) {
			slot->arguments[0] = regs->di;
			slot->arguments[2] = regs->dx;
			slot->arguments[3] = regs->r10;
			begin(cpu, slot, number, plan, now);
			return 0;
		}
	}
	u32 tid = current_task()->pid, place = place_of(tid);
	if (slot_at(place)->tid == tid)
		enter(context, cpu, place);
	return 0;
}

/* `sixth`: the argument that is not in the slot. */
ONCE int put_call(struct slot *slot, u64 now, s64 result, u64 sixth)
{
	if (!slot)
		return 0;
	u64 plan = plan_of(slot->number);
	if (plan & PLAN_OPENS)
		sixth = result < 0 ? 0 : mode_of(result);
	if (!(plan & PLAN_SMALL) || result == NO_RESULT || !put_small(slot, plan, now, result))
		put_general(slot, plan, now, result, sixth);
	if (plan & PLAN_MAPS && result != NO_RESULT && (u64)result < (u64)-4095)
		put_identity_of(slot->tid, slot->arguments[4], now);
	slot->state = STATE_OUTSIDE;
	return 0;
}

/* Any call of a followed task. `now`: 0 if the clock was not read yet. */
static ONCE void leave(u64 *context, struct slot *slot, u64 now)
{
	if (slot->state == STATE_SKIP) {
		slot->state = STATE_OUTSIDE;
		return;
	}
	struct pt_regs *regs = (void *)context[0];
	u64 number = regs->orig_ax, plan = plan_of(number);
	int began = slot->state == STATE_IN_CALL;
	/* A 32-bit call that a filter has refused. */
	if (!began && (current_task()->thread_info.status & TS_COMPAT || number >> X32_SHIFT == 1)) {
		count_foreign();
		return;
	}
	/* None of ours? */
	if (!began && (!(plan & PLAN_RECORDED) || is_anonymous(plan, regs)))
		return;
	if (!now)
		now = ktime_ns();
	s64 result = context[1];
	/* Refused by a filter before it began. */
	if (!began) {
		/* By SIGSYS: the call's number stands where the result would be. */
		if ((u64)result == number)
			result = NO_RESULT;
		keep_arguments(slot, regs);
		slot->number = number;
		slot->start = now;
	}
	put_call(slot, now, result, regs->r9);
}

SECTION("tp_btf/sys_exit")
int on_exit(u64 *context)
{
	struct pt_regs *regs = (void *)context[0];
	u32 number = this_cpu();
	struct cpu *cpu = cpu_at(number);
	u64 now = 0;
	if (!cpu)
		return 0;
	if (cpu->registers == (u64)regs && cpu->inside) {
		now = ktime_ns();
		struct slot *slot = slot_at(cpu->place);
		if (slot->state == STATE_IN_CALL && slot->start == cpu->start) {
			if (put_again(cpu, number, slot, regs, now, context[1]))
				slot->state = STATE_OUTSIDE;
			else
				put_call(slot, now, context[1], regs->r9);
			cpu->inside = 0;
			return 0;
		}
		cpu->inside = 0;
	}
	struct slot *slot = find(current_task()->pid);
	if (slot)
		leave(context, slot, now);
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
	if (!claim(tid)) {
		count_untracked();
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
	commit(&place, sizeof *record, record->time);
	return 0;
}

struct exec_record {
	u64 first, time, start;
	u32 old_tid, number;
	u32 device, unused;
	u64 inode;
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
		put_run(old_tid, run_of(old_tid), ktime_ns());
		release(slot);
		slot = find(tid);
		if (!slot)
			slot = claim(tid);
		if (!slot) {
			count_untracked();
			return 0;
		}
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
	record->device = 0;
	record->unused = 0;
	record->inode = 0;
	struct file *file = FIELD(binary, file);
	if (file)
		identify(FIELD(file, f_mapping), &record->device, &record->inode, &record->unused);
	u32 at = put_kernel_string(place.chunk, base + sizeof *record, 0, FIELD(binary, filename));
	at = put_kernel_string(place.chunk, at, 1, FIELD(binary, interp));
	at = put_command(place.chunk, at, 2, FIELD(task, mm));
	record->first = first_word(KIND_EXEC, number, tid, at - base);
	commit(&place, at - base, record->time);
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
	put_run(tid, run_of(tid), now);
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
	commit(&place, sizeof *record, now);
	return 0;
}

/* ---- the page cache, on kernels whose folios are known ---- */

SECTION("tp_btf/mm_filemap_add_to_page_cache")
int on_page(u64 *context)
{
	came_in((void *)context[0]);
	return 0;
}

/* ---- requests inside io_uring, on kernels that show them like this ---- */

SECTION("tp_btf/io_uring_submit_req")
int on_submit(u64 *context)
{
	submitted((void *)context[0]);
	return 0;
}

SECTION("tp_btf/io_uring_complete")
int on_complete(u64 *context)
{
	completed(context[1], (void *)context[2]);
	return 0;
}
