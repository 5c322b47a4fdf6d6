/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The records of calls. */
#ifndef IODOCK_CALLS_H
#define IODOCK_CALLS_H

#include "pieces.h"

struct small_record {
	u64 first, end;
	u32 duration;
	s32 result;
	u32 fd, size;
	u64 offset;
};

INLINE int fits(s64 result, u64 duration, u64 fd, u64 size)
{
	return (s32)result == result && !(duration >> 32) && !(size >> 32) && !(fd >> 32 && fd >> 31 != 0x1ffffffffull);
}

/* The short forms: what is as in the task's small record before is left out. Bytes; 0 if it fits none. */
INLINE u32 put_short(struct place *place, u64 *words, struct slot *slot, u64 plan, u64 end, s64 result)
{
	u64 fd = slot->arguments[0], size = slot->arguments[2], duration = end - slot->start;
	u32 positioned = plan & PLAN_POSITIONED, same = slot->size == size && slot->result == result;
	if (fd > 0xffff || duration >= SHORT_DURATION || end - place->cpu->last >= SHORT_GAP || (positioned && !same))
		return 0;
	u32 kind = positioned ? KIND_SHORT_POSITIONED : same ? KIND_SHORT : KIND_SHORT_SIZED;
	words[0] = fd | (u64)kind << 16 | (u64)slot->number << 20 | (u64)slot->tid << 32;
	words[1] = (end & SHORT_TIME_MASK) | duration << SHORT_TIME;
	if (kind == KIND_SHORT)
		return 16;
	words[2] = positioned ? slot->arguments[3] : (u32)result | size << 32;
	return 24;
}

INLINE u32 put_whole(struct small_record *record, struct slot *slot, u64 plan, u64 end, s64 result)
{
	u32 positioned = plan & PLAN_POSITIONED, length = positioned ? 40 : 32;
	record->first = first_word(positioned ? KIND_POSITIONED : KIND_SMALL, slot->number, slot->tid, length);
	record->end = end;
	record->duration = end - slot->start;
	record->result = result;
	record->fd = slot->arguments[0];
	record->size = slot->arguments[2];
	if (positioned)
		record->offset = slot->arguments[3];
	return length;
}

/* What AGAIN leaves out: 0 if it can't stand for such a record. */
INLINE u64 left_out(struct slot *slot, u64 fd)
{
	return fd > 0xffff ? 0 : fd | (u64)slot->number << 16 | (u64)slot->tid << 32;
}

/* The shortest form of all, where the CPU's small record before was the thread's own, of the same call. Only of what moved
 * bytes: so the reader knows without looking that nothing is closed by it. 0 if it is not such, or if the buffer has to be
 * looked at. `number`: the CPU's. */
INLINE int put_again(struct cpu *cpu, u32 number, struct slot *slot, struct pt_regs *regs, u64 end, s64 result)
{
	u64 gap = end - cpu->last, duration = end - slot->start, head = cpu->head, page = 0;
	u64 differs = (regs->dx ^ slot->size) | ((u64)result ^ (u64)slot->result), same = left_out(slot, regs->di);
	if (differs || result <= 0 || (gap | duration) >> AGAIN_BITS || !same || same != cpu->before)
		return 0;
	u32 length = 8, at = head & (CHUNK - 8);
	if (cpu->inside & PLAN_POSITIONED) {
		page = regs->r10 >> AGAIN_PAGE;
		if (page >= AGAIN_NO_PAGE || regs->r10 & ((1 << AGAIN_PAGE) - 1)) {
			page = AGAIN_NO_PAGE;
			length = 16;
		}
	}
	if (head + length > cpu->limit || at > CHUNK - 16)
		return 0;
	struct chunk *chunk = chunk_of(number, head);
	if (!chunk)
		return 0;
	u64 *words = (void *)(chunk->bytes + at);
	words[0] = page | (u64)KIND_AGAIN << 16 | gap << AGAIN_GAP | duration << AGAIN_DURATION;
	if (length > 8)
		words[1] = regs->r10;
	complete(cpu, head + length, end);
	return 1;
}

INLINE int put_small(struct slot *slot, u64 plan, u64 end, s64 result)
{
	struct place place;
	u64 fd = slot->arguments[0], size = slot->arguments[2];
	if (!fits(result, end - slot->start, fd, size))
		return 0;
	if (!reserve(&place, sizeof(struct small_record), SPARE))
		return 1;
	u32 at = place.at;
	if (at > CHUNK - sizeof(struct small_record))
		return 1;
	void *record = place.chunk->bytes + at;
	u32 length = put_short(&place, record, slot, plan, end, result);
	if (!length)
		length = put_whole(record, slot, plan, end, result);
	slot->size = size;
	slot->result = result;
	place.cpu->before = left_out(slot, fd);
	commit(&place, length, end);
	return 1;
}

INLINE void put_general(struct slot *slot, u64 plan, u64 end, s64 result, u64 sixth)
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
	for (u32 index = 0; index < 5; index++)
		record->arguments[index] = slot->arguments[index];
	record->arguments[5] = sixth;
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
	commit(&place, at - base, end);
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
	commit(&place, size, now);
}

INLINE u64 plan_of(u64 number)
{
	/* Else the compiler looks up another copy of it than the one it has compared. */
	KEEP(number);
	return number < CALL_NUMBERS ? plans[number & (CALL_NUMBERS - 1)] : 0;
}

/* Was the instruction that made the call that of 64-bit programs? It leaves the address behind it there; the others leave
 * what was there before. A program that wants to be mistaken for another can have it so, and falsifies its own record. */
INLINE int is_native(struct pt_regs *regs) { return regs->cx == regs->ip; }

INLINE int is_anonymous(u64 plan, struct pt_regs *regs)
{
	return plan & PLAN_MAPS && (s32)regs->r8 == -1;
}

#endif
