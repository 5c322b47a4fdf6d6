/* Numbers and texts as they are written. A part of record.c, kept apart for reading. */

/* Seven bits a byte; as many zeros as there are bytes behind the first, and a one, are its lowest bits. So the
 * length needs no branch that a processor could guess wrong. A number of more than 56 bits stands as it is behind
 * a zero. Up to nine bytes at `at` are overwritten. */
static inline u8 *put(u8 *at, u64 value)
{
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

static inline u8 *put_signed(u8 *at, s64 value)
{
	return put(at, (u64)value << 1 ^ (u64)(value >> 63));
}

static inline u8 *put_fixed(u8 *at, u64 value, u32 bytes)
{
	for (u32 i = 0; i < bytes; i++)
		*at++ = (u8)(value >> 8 * i);
	return at;
}

/* Eight at a time: `rep movsb` takes longer to begin than most paths are to copy. What is copied may overlap what it is copied from, if
 * it comes to lie eight bytes before it or more. */
static u8 *put_bytes(u8 *at, const u8 *bytes, u64 count)
{
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

/* The lowest bit that is set is the highest of the first byte that is zero. */
static inline u64 zero_bytes(u64 word)
{
	return (word - 0x0101010101010101ul) & ~word & 0x8080808080808080ul;
}

/* Words as they are aligned, for those end where a page does. */
static u64 length(const u8 *text, u64 limit)
{
	const aligned_u64 *word = (const aligned_u64 *)((u64)text & ~7ul);
	u64 before = (1ul << 8 * ((u64)text & 7)) - 1;
	u64 zeros = zero_bytes(*word | before);
	while (!zeros && (u64)(word + 1) - (u64)text < limit)
		zeros = zero_bytes(*++word);
	u64 bytes = (u64)word - (u64)text + (u64)__builtin_ctzl(zeros | 1ul << 63) / 8;
	return zeros && bytes < limit ? bytes : limit;
}

static int begins(const u8 *text, const char *with)
{
	while (*with)
		if (*text++ != (u8)*with++)
			return 0;
	return 1;
}

static int is_same(const u8 *text, const char *as, u64 most)
{
	return begins(text, as) && !text[length((const u8 *)as, most)];
}
