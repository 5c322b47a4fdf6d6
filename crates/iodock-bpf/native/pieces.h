/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Copies of what a call's pointers point to, behind its record. */
#ifndef IODOCK_PIECES_H
#define IODOCK_PIECES_H

#include "buffers.h"

struct general_record {
	u64 first, end, duration;
	s64 result;
	u64 arguments[6];
};

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

#define CONTROL_LIMIT 1040

/* The control data of a message: at 32 in its header, its length at 40. */
INLINE u32 put_control(struct chunk *chunk, u32 at, u32 index, u64 address)
{
	u64 control[2];
	/* What is checked must be what is used. */
	KEEP(at);
	if (at > CHUNK - CONTROL_LIMIT - 8 || read_user(control, sizeof control, (void *)(address + 32)))
		return at;
	u32 size = (control[1] > CONTROL_LIMIT ? CONTROL_LIMIT : (u32)control[1]) & 0x7ff;
	if (!size || size > CONTROL_LIMIT || read_user(chunk->bytes + at + 8, size, (void *)control[0]))
		return at;
	return put_head(chunk, at, index, size);
}

#define BLOCK 64
/* More at a time are not looked into. The verifier follows each that a function goes through: so it goes through few. */
#define BLOCK_LIMIT 256
#define FEW_BLOCKS 4
#define EVENT 32
#define EVENT_LIMIT 512

/* The next few control blocks that io_submit's list points to, each behind its address; where they end. */
ONCE u32 put_few_blocks(struct chunk *chunk, u32 at, u64 list, u64 count)
{
	if (!chunk)
		return at;
	for (u32 number = 0; number < FEW_BLOCKS && number < count; number++) {
		u64 address;
		/* What is checked must be what is used. */
		KEEP(at);
		if (at > CHUNK - BLOCK - 8 || read_user(&address, 8, (void *)(list + 8 * number)))
			break;
		u32 word = at & ~7u;
		chunk->words[word / 8] = address;
		if (read_user(chunk->bytes + word + 8, BLOCK, (void *)address))
			break;
		at += BLOCK + 8;
	}
	return at;
}

/* All of them. */
INLINE u32 put_blocks(struct chunk *chunk, u32 at, u32 index, u64 list, u64 count)
{
	u32 start = at, end = at + 8;
	for (u32 number = 0; number < BLOCK_LIMIT && number < count; number += FEW_BLOCKS) {
		u32 before = end;
		end = put_few_blocks(chunk, before, list + 8 * number, count - number);
		if (end != before + FEW_BLOCKS * (BLOCK + 8))
			break;
	}
	put_head(chunk, start, index, end - start - 8);
	return end;
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

#define MULTI_MESSAGE 64
/* More at a time are not looked into. */
#define MULTI_MESSAGE_LIMIT 256

/* The struct mmsghdr of each message that went or came. */
INLINE u32 put_messages(struct chunk *chunk, u32 at, u32 index, u64 address, s64 count)
{
	if (at > CHUNK - MULTI_MESSAGE_LIMIT * MULTI_MESSAGE - 8)
		return at;
	u32 size = (count > MULTI_MESSAGE_LIMIT ? MULTI_MESSAGE_LIMIT : (u32)count) * MULTI_MESSAGE & 0x7fff;
	if (size > MULTI_MESSAGE_LIMIT * MULTI_MESSAGE)
		return at;
	long failed = size ? read_user(chunk->bytes + at + 8, size, (void *)address) : 0;
	return put_head(chunk, at, index, failed ? -1 : (s64)size);
}

/* Appends one piece of the record at `base`; where the record ends then. A function of its own, of which the
 * verifier takes nothing for granted: so it looks at it once, and not along every way that leads here. */
ONCE u32 put_piece(struct chunk *chunk, u32 base, u32 at, u32 piece)
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
		return put_control(chunk, put_message(chunk, at, index, address), index + 1, address);
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
	if (what == PIECE_MESSAGES)
		return put_messages(chunk, at, index, address, result);
	return at;
}

#endif
