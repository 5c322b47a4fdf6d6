/* Encodes numbers and texts in records. */

#include "recorder.h"

/* Writes a number of up to 56 bits with seven bits per byte. The number of zero bits at the low end is the
 * number of bytes after the first, so a reader needs no loop to find the length. A longer number is stored
 * unchanged after a zero byte. Up to nine bytes at `at` are overwritten. */
ALWAYS u8 *put(u8 *at, u64 value) {
	if (unlikely(value >> 56)) {
		*at++ = 0;
		*(unaligned_u64 *)at = value;
		return at + 8;
	}
	u32 bits = 63 - (u32)__builtin_clzl(value | 1);
	/* bits / 7 + 1 */
	u32 bytes = (bits * 37 >> 8) + 1;
	*(unaligned_u64 *)at = (value << 1 | 1) << (bytes - 1);
	return at + bytes;
}

ALWAYS u8 *put_signed(u8 *at, s64 value) {
	return put(at, (u64)value << 1 ^ (u64)(value >> 63));
}

u8 *put_fixed(u8 *at, u64 value, u32 bytes) {
	for (u32 i = 0; i < bytes; i++)
		*at++ = (u8)(value >> 8 * i);
	return at;
}

/* Copies eight bytes at a time, because `rep movsb` starts slowly. The areas may overlap if `at` is at least
 * eight bytes below `bytes`. */
u8 *put_bytes(u8 *at, const u8 *bytes, u64 count) {
	u8 *end = at + count;
	if (count < 8) {
		while (at < end)
			*at++ = *bytes++;
		return end;
	}
	const u8 *last = bytes + count - 8;
	for (; bytes < last; at += 8, bytes += 8)
		*(unaligned_u64 *)at = *(const unaligned_u64 *)bytes;
	*(unaligned_u64 *)(end - 8) = *(const unaligned_u64 *)last;
	return end;
}

u8 *put_text(u8 *at, const char *text) {
	while (*text)
		*at++ = (u8)*text++;
	*at = 0;
	return at;
}

/* Returns the length of a text, or `limit` if the text is as long or longer. It reads aligned words, which
 * never cross a page boundary. */
u64 length(const u8 *text, u64 limit) {
	const aligned_u64 *word = (const aligned_u64 *)((u64)text & ~7ul);
	u64 before = (1ul << 8 * ((u64)text & 7)) - 1;
	u64 zeros = zero_bytes(*word | before);
	while (!zeros && (u64)(word + 1) - (u64)text < limit)
		zeros = zero_bytes(*++word);
	u64 bytes = (u64)word - (u64)text + (u64)__builtin_ctzl(zeros | 1ul << 63) / 8;
	return zeros && bytes < limit ? bytes : limit;
}

int begins(const u8 *text, const char *with) {
	while (*with)
		if (*text++ != (u8)*with++)
			return 0;
	return 1;
}

int is_same(const u8 *text, const char *as, u64 most) {
	return begins(text, as) && !text[length((const u8 *)as, most)];
}
