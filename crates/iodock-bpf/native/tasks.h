/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* What the programs share: plans, maps, and the table of followed tasks. */
#ifndef IODOCK_TASKS_H
#define IODOCK_TASKS_H

#include "format.h"

/* Set by the loader before it loads. */
const volatile u64 plans[CALL_NUMBERS] = {0};
const volatile u32 slot_mask = 0;
const volatile u32 cpu_count = 0;
const volatile u32 chunk_mask = 0; /* chunks of a CPU, less one: a power of two */

struct slot slots[1] SHARED("slots");
struct run runs[1] SHARED("runs"); /* of the task whose slot has the same place */
struct cpu cpus[1] SHARED("cpus");

/* The buffers. Linux before 6.0 takes no element above 4 MiB, so these are looked up. */
struct {
	FIGURE(type, BPF_MAP_TYPE_ARRAY);
	FIGURE(map_flags, BPF_F_MMAPABLE);
	FIGURE(max_entries, 1);
	u32 *key;
	struct chunk *value;
} chunks SECTION(".maps");

/* Functions that are not put in line. The verifier looks at one that is not static once, and not at every place that it is
 * called from. */
#define ONCE __attribute__((noinline))

/* 0 for a CPU that the kernel did not tell of. */
INLINE struct cpu *cpu_at(u32 number) { return number < cpu_count ? ELEMENT(cpus, number) : 0; }
INLINE struct cpu *own_cpu(void) { return cpu_at(this_cpu()); }

/* Two places for each task: ids that meet in the first are far apart. */
INLINE u32 first_place(u32 tid) { return tid & slot_mask; }
INLINE u32 second_place(u32 tid) { return (tid * 2654435761u >> 12) & slot_mask; }
INLINE struct slot *slot_at(u32 place) { return ELEMENT(slots, place & slot_mask); }

/* Of a task that is followed. */
INLINE u32 place_of(u32 tid)
{
	u32 place = first_place(tid);
	return slot_at(place)->tid == tid ? place : second_place(tid);
}

INLINE struct run *run_of(u32 tid) { return ELEMENT(runs, place_of(tid) & slot_mask); }

INLINE struct slot *find(u32 tid)
{
	struct slot *slot = slot_at(place_of(tid));
	return slot->tid == tid ? slot : 0;
}

/* The kernel's own threads that submit for a program belong to its process, but were not born by a call. */
INLINE struct slot *submitter(void)
{
	struct task_struct *task = current_task();
	struct slot *slot = find(task->pid);
	return slot ? slot : find(task->tgid);
}

INLINE struct slot *claim_at(u32 at, u32 tid)
{
	struct slot *slot = slot_at(at);
	return __sync_val_compare_and_swap(&slot->tid, 0, tid) == 0 ? slot : 0;
}

INLINE struct slot *claim(u32 tid)
{
	struct slot *slot = claim_at(first_place(tid), tid);
	if (!slot)
		slot = claim_at(second_place(tid), tid);
	if (slot) {
		slot->result = NO_RESULT;
		slot->state = STATE_SKIP;
		slot->start = 0;
	}
	return slot;
}

INLINE void release(struct slot *slot)
{
	slot->state = STATE_OUTSIDE;
	slot->start = 0;
	BARRIER();
	slot->tid = 0;
}

#endif
