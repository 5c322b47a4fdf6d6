/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* A CPU's buffer: room for a record, and its completion. */
#ifndef IODOCK_BUFFERS_H
#define IODOCK_BUFFERS_H

#include "tasks.h"

struct place {
	struct cpu *cpu;
	struct chunk *chunk;
	u64 head, limit;
	u32 at;
};

/* The chunk in which a CPU's byte `head` lies. */
INLINE struct chunk *chunk_of(u32 number, u64 head)
{
	u32 index = number * (chunk_mask + 1) + ((u32)(head / CHUNK) & chunk_mask);
	return map_lookup(&chunks, &index);
}

/* Room for `need` bytes in one chunk, leaving `spare` free in the buffer; 0 if there is none. */
INLINE int reserve(struct place *place, u32 need, u32 spare)
{
	u32 number = this_cpu();
	struct cpu *cpu = cpu_at(number);
	if (!cpu)
		return 0;
	u64 head = cpu->head, start = head, end = *(volatile u64 *)&cpu->tail + ((u64)chunk_mask + 1) * CHUNK;
	u32 at = head & (CHUNK - 1), rest = CHUNK - at;
	if (rest < need) {
		start += rest;
		at = 0;
	}
	if (start + need + spare > end) {
		cpu->dropped++;
		return 0;
	}
	if (start != head) {
		struct chunk *old = chunk_of(number, head);
		if (old)
			old->words[(head & (CHUNK - 8)) / 8] = 0;
	}
	u64 limit = start - at + CHUNK;
	place->cpu = cpu;
	place->chunk = chunk_of(number, start);
	place->head = start;
	place->limit = limit + SPARE > end ? 0 : limit;
	place->at = at;
	return place->chunk != 0;
}

/* The record, of `time`, is complete. x86 keeps the order of stores; elsewhere this has to become a release. */
INLINE void complete(struct cpu *cpu, u64 head, u64 time)
{
	cpu->last = time;
	BARRIER();
	*(volatile u64 *)&cpu->head = head;
}

INLINE void commit(struct place *place, u32 length, u64 time)
{
	place->cpu->limit = place->limit;
	complete(place->cpu, place->head + length, time);
}

INLINE u64 first_word(u32 kind, u32 number, u32 tid, u32 length)
{
	return (u64)(length / 8) | (u64)kind << 16 | (u64)(number & 0xfff) << 20 | (u64)tid << 32;
}

INLINE void count_foreign(void)
{
	struct cpu *cpu = own_cpu();
	if (cpu)
		cpu->foreign++;
}

/* A task for which there is no slot. */
INLINE void count_untracked(void)
{
	struct cpu *cpu = own_cpu();
	if (cpu)
		cpu->untracked++;
}

#endif
