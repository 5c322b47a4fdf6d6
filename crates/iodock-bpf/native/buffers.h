/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* A CPU's buffer: room for a record, and its completion. */
#ifndef IODOCK_BUFFERS_H
#define IODOCK_BUFFERS_H

#include "tasks.h"

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

/* The record, of `time`, is complete. x86 keeps the order of stores; elsewhere this has to become a release. */
INLINE void commit(struct place *place, u32 length, u64 time)
{
	place->cpu->last = time;
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

#endif
