/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* What the programs share: plans, maps, and the table of followed tasks. */
#ifndef IODOCK_TASKS_H
#define IODOCK_TASKS_H

#include "format.h"

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

/* Of the task whose slot has the same place. */
struct {
	FIGURE(type, BPF_MAP_TYPE_ARRAY);
	FIGURE(map_flags, BPF_F_MMAPABLE);
	FIGURE(max_entries, 1);
	u32 *key;
	struct run *value;
} runs SECTION(".maps");

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

/* The kernel's own threads that submit for a program belong to its process, but were not born by a call. */
INLINE struct slot *submitter(void)
{
	struct task_struct *task = current_task();
	struct slot *slot = find(task->pid);
	return slot ? slot : find(task->tgid);
}

INLINE int is_of(u32 at, u32 tid)
{
	struct slot *slot = map_lookup(&slots, &at);
	return slot && slot->tid == tid;
}

/* Of a task that is followed. */
INLINE struct run *run_of(u32 tid)
{
	u32 at = first_place(tid);
	if (!is_of(at, tid))
		at = second_place(tid);
	return map_lookup(&runs, &at);
}

INLINE struct slot *claim_at(u32 at, u32 tid)
{
	struct slot *slot = map_lookup(&slots, &at);
	return slot && __sync_val_compare_and_swap(&slot->tid, 0, tid) == 0 ? slot : 0;
}

INLINE struct slot *claim(u32 tid)
{
	struct slot *slot = claim_at(first_place(tid), tid);
	if (!slot)
		slot = claim_at(second_place(tid), tid);
	if (slot) {
		slot->result = NO_RESULT;
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

#endif
