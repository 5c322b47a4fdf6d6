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
INLINE u32 put_short(struct place *place, u64 *words, struct slot *slot, struct pt_regs *regs, u64 plan, u64 end,
		     s64 result)
{
	u64 fd = regs->di, size = regs->dx, duration = end - slot->start;
	u32 positioned = plan & PLAN_POSITIONED, same = slot->size == size && slot->result == result;
	if (fd > 0xffff || duration >= SHORT_DURATION || end - place->cpu->last >= SHORT_GAP || (positioned && !same))
		return 0;
	u32 kind = positioned ? KIND_SHORT_POSITIONED : same ? KIND_SHORT : KIND_SHORT_SIZED;
	words[0] = fd | (u64)kind << 16 | (u64)slot->number << 20 | (u64)slot->tid << 32;
	words[1] = (end & SHORT_TIME_MASK) | duration << SHORT_TIME;
	if (kind == KIND_SHORT)
		return 16;
	words[2] = positioned ? regs->r10 : (u32)result | size << 32;
	return 24;
}

INLINE u32 put_whole(struct small_record *record, struct slot *slot, struct pt_regs *regs, u64 plan, u64 end, s64 result)
{
	u32 positioned = plan & PLAN_POSITIONED, length = positioned ? 40 : 32;
	record->first = first_word(positioned ? KIND_POSITIONED : KIND_SMALL, slot->number, slot->tid, length);
	record->end = end;
	record->duration = end - slot->start;
	record->result = result;
	record->fd = regs->di;
	record->size = regs->dx;
	if (positioned)
		record->offset = regs->r10;
	return length;
}

INLINE int put_small(struct slot *slot, struct pt_regs *regs, u64 plan, u64 end, s64 result)
{
	struct place place;
	if (!fits(result, end - slot->start, regs->di, regs->dx))
		return 0;
	if (!reserve(&place, sizeof(struct small_record), SPARE))
		return 1;
	u32 at = place.at;
	if (at > CHUNK - sizeof(struct small_record))
		return 1;
	void *record = place.chunk->bytes + at;
	u32 length = put_short(&place, record, slot, regs, plan, end, result);
	if (!length)
		length = put_whole(record, slot, regs, plan, end, result);
	slot->size = regs->dx;
	slot->result = result;
	commit(&place, length, end);
	return 1;
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
	return number < CALL_NUMBERS ? plans[number & (CALL_NUMBERS - 1)] : 0;
}

INLINE int is_anonymous(u64 plan, struct pt_regs *regs)
{
	return plan & PLAN_MAPS && (s32)regs->r8 == -1;
}

#endif
