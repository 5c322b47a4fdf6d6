/* Records the parts of calls that have several: requests of libaio that are submitted or completed, and
 * messages. The kernel copies the control blocks, because another thread may have freed them during the
 * call. */

#include "recorder.h"

enum block_operation { BLOCK_READ = 0, BLOCK_WRITE = 1, BLOCK_READ_VECTOR = 7, BLOCK_WRITE_VECTOR = 8 };
enum { EVENT_WORDS = 4, MESSAGE_BYTES = 64 /* size of struct mmsghdr; the number of bytes moved is at offset 56 */ };
enum { ITEM_BYTES = 40, ITEM_WRITES = 1, ITEM_MOVES = 2 /* bytes and an offset follow */ };

int sum_vectors(struct blocks *blocks, u64 from, u64 count, u64 *sum) {
	*sum = 0;
	for (u64 done = 0; done < count; done += SOME_VECTORS) {
		u64 some = count - done < SOME_VECTORS ? count - done : SOME_VECTORS;
		if (copy_in(blocks->vectors, (const u8 *)from + done * 16, some * 16) != some * 16)
			return 0;
		*sum += vector_sum(blocks->vectors[0], some);
	}
	return 1;
}

/* Writes the block's address, its flags and its descriptor; for a transfer also its size and offset. */
static u8 *put_block(u8 *at, struct blocks *blocks, u64 address, const u64 *words) {
	u16 operation = (u16)words[2];
	u32 is_vector = operation == BLOCK_READ_VECTOR || operation == BLOCK_WRITE_VECTOR;
	u32 moves = is_vector || operation == BLOCK_READ || operation == BLOCK_WRITE;
	u64 bytes = words[4];
	if (is_vector)
		moves = words[4] <= 1024 && sum_vectors(blocks, words[3], words[4], &bytes);
	at = put(at, address);
	*at++ = (operation == BLOCK_WRITE || operation == BLOCK_WRITE_VECTOR ? ITEM_WRITES : 0) | (moves ? ITEM_MOVES : 0);
	at = put_signed(at, (s32)(words[2] >> 32));
	if (moves)
		at = put_signed(put(at, bytes), (s64)words[5]);
	return at;
}

/* Copies the words of `some` control blocks, whose addresses are in `pieces`. Returns 0 if one can't be
 * read. */
int read_words(struct blocks *blocks, u64 some) {
	long bytes = (long)(some * sizeof(blocks->words[0]));
	for (u64 i = 0; i < some; i++)
		blocks->pieces[i][1] = sizeof(blocks->words[i]);
	return read_pieces(blocks->words, (u64)bytes, blocks->pieces, some) == bytes;
}

static u8 *put_blocks(u8 *at, struct blocks *blocks, u64 list, u64 count) {
	for (u64 done = 0; done < count; done += SOME_BLOCKS) {
		u64 some = count - done < SOME_BLOCKS ? count - done : SOME_BLOCKS;
		if (copy_in(blocks->pointers, (const u64 *)list + done, some * 8) != some * 8)
			return at;
		for (u64 i = 0; i < some; i++)
			blocks->pieces[i][0] = blocks->pointers[i];
		if (!read_words(blocks, some))
			return at;
		for (u64 i = 0; i < some; i++)
			at = put_block(at, blocks, blocks->pointers[i], blocks->words[i]);
	}
	return at;
}

/* Writes each completed block's address and result. */
static u8 *put_events(u8 *at, const u64 *event, u64 count) {
	for (; count; count--, event += EVENT_WORDS)
		at = put_signed(put(at, event[1]), (s64)event[2]);
	return at;
}

/* Writes each message's size, and its control data if they pass descriptors and there is room. `came`: the
 * messages were received, and their data may have overwritten the structures. */
static u8 *put_messages(u8 *at, u8 *limit, const u8 *message, u64 count, int came) {
	for (; count; count--, message += MESSAGE_BYTES) {
		const u8 *control = 0;
		u64 bytes = came && !is_message_there(message) ? 0 : passing(message, &control);
		if (bytes > (u64)(limit - at) - count * ITEM_BYTES)
			bytes = 0;
		at = put(put(at, *(const u32 *)(message + 56)), bytes);
		at = put_bytes(at, control, bytes);
	}
	return at;
}

/* Writes the call's items after the space for the record, as the record's text. Items beyond MOST_ITEMS are
 * counted as lost. */
NOINLINE void gather_items(struct state *state, u32 level, const struct shape *shape, const u64 *arguments, struct fields *f, u64 now, s64 result) {
	u64 count = (u64)result < MOST_ITEMS ? (u64)result : MOST_ITEMS;
	u64 bytes = count * ITEM_BYTES + MOST_ANCILLARY;
	u8 *at = room(state, level, 2 * PLAIN_LIMIT + bytes + sizeof(struct blocks), now);
	if (!at)
		return;
	u8 *first = at + PLAIN_LIMIT, *end;
	if (shape->roles[1] == ROLE_MESSAGES)
		end = put_messages(first, first + bytes, (const u8 *)arguments[1], count, shape == &session->shapes[SYS_recvmmsg]);
	else if (shape->roles[2] == ROLE_BLOCKS)
		end = put_blocks(first, (struct blocks *)(((u64)first + bytes + 7) & ~7ul), arguments[2], count);
	else
		end = put_events(first, (const u64 *)arguments[3], count);
	count_lost((u64)result - count);
	f->more |= MORE_TEXT, f->text = first, f->text_bytes = (u64)(end - first);
}
