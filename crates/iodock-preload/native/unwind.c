/* Reads .eh_frame (DWARF 5, 6.4; Linux Standard Base, 10.6) to find the rule that leads from a frame to its
 * caller, once for each return address. The kernel copies the program's memory for this, because it may be
 * unmapped at any moment. The walk ends at a frame whose rule has an unusual form. */

#include "stacks.h"

enum { PIECE_BYTES = 256, ENTRIES_AT_ONCE = 32, KEPT_MOST = 4, ENTRIES_MOST = 1 << 24, SKIPPED_MOST = 1 << 16 };
enum { REGISTER_BASE = 6, REGISTER_STACK = 7, REGISTER_RETURN = 16 };
/* Supported encodings in .eh_frame_hdr (the index) and .eh_frame. Addresses have 32 bits, signed, relative to
 * their own address or to the index; counts have 32 bits, unsigned. */
enum { RELATIVE_HERE = 0x1b, RELATIVE_INDEX = 0x3b, COUNTED = 0x03 };

/* A reader of the program's memory, which copies it piece by piece. */
struct bytes {
	u64 at, end, from;
	u32 have, failed;
	u8 piece[PIECE_BYTES];
};

static void begin_bytes(struct bytes *bytes, u64 at, u64 end) {
	bytes->at = at;
	bytes->end = end;
	bytes->from = bytes->have = bytes->failed = 0;
}

static u8 take(struct bytes *bytes) {
	if (bytes->failed || bytes->at >= bytes->end) {
		bytes->failed = 1;
		return 0;
	}
	if (bytes->at - bytes->from >= bytes->have) {
		u64 count = bytes->end - bytes->at, page = 4096 - (bytes->at & 4095);
		count = count < PIECE_BYTES ? count : PIECE_BYTES;
		count = count < page ? count : page;
		bytes->from = bytes->at;
		bytes->have = (u32)copy_code(bytes->piece, bytes->at, count);
		if (!bytes->have) {
			bytes->failed = 1;
			return 0;
		}
	}
	return bytes->piece[bytes->at++ - bytes->from];
}

static u64 take_fixed(struct bytes *bytes, u32 count) {
	u64 value = 0;
	for (u32 i = 0; i < count; i++)
		value |= (u64)take(bytes) << 8 * i;
	return value;
}

static s64 take_signed32(struct bytes *bytes) { return (s32)take_fixed(bytes, 4); }

/* Reads a LEB128 number; bits above 64 are ignored. */
static u64 take_number(struct bytes *bytes) {
	u64 value = 0;
	u8 byte;
	u32 shift = 0;
	do {
		byte = take(bytes);
		if (shift < 64)
			value |= (u64)(byte & 127) << shift;
		shift += 7;
	} while (byte & 128 && !bytes->failed);
	return value;
}

static s64 take_signed(struct bytes *bytes) {
	u64 value = 0;
	u8 byte;
	u32 shift = 0;
	do {
		byte = take(bytes);
		if (shift < 64)
			value |= (u64)(byte & 127) << shift;
		shift += 7;
	} while (byte & 128 && !bytes->failed);
	if (byte & 64 && shift < 64)
		value |= ~0ul << shift;
	return (s64)value;
}

static void skip(struct bytes *bytes, u64 count) {
	if (count > SKIPPED_MOST || count > bytes->end - bytes->at)
		bytes->failed = 1;
	else
		bytes->at += count;
}

/* An entry of .eh_frame: of one function (FDE), or the part that several functions share (CIE). */
struct entry {
	u64 at, end; /* bounds of the instructions */
	u64 code_step, from;
	s64 data_step;
};

/* Reads the shared part (CIE) at `at`. Returns 0 if there is none, or one that is not supported. */
static int read_common(struct entry *entry, u64 at) {
	struct bytes bytes;
	begin_bytes(&bytes, at, at + 8);
	u64 length = take_fixed(&bytes, 4), id = take_fixed(&bytes, 4);
	if (bytes.failed || id || length < 8 || length > SKIPPED_MOST)
		return 0;
	entry->end = at + 4 + length;
	begin_bytes(&bytes, at + 8, entry->end);
	u8 version = take(&bytes), letter, is_relative = 0;
	u64 letters_at = bytes.at;
	if (version != 1 && version != 3)
		return 0;
	while (take(&bytes))
		;
	entry->code_step = take_number(&bytes);
	entry->data_step = take_signed(&bytes);
	if ((version == 1 ? take(&bytes) : take_number(&bytes)) != REGISTER_RETURN)
		return 0;
	struct bytes letters;
	begin_bytes(&letters, letters_at, entry->end);
	if (take(&letters) != 'z')
		return 0;
	u64 more = take_number(&bytes);
	entry->at = bytes.at + more;
	while ((letter = take(&letters)) != 0) {
		if (letter == 'R') {
			is_relative = take(&bytes) == RELATIVE_HERE;
		} else if (letter == 'L') {
			take(&bytes);
		} else if (letter == 'P') {
			u8 kind = take(&bytes) & 15;
			skip(&bytes, kind == 0 || kind == 4 || kind == 12 ? 8 : kind == 2 || kind == 10 ? 2 : 4);
		} else {
			/* For example 'S' marks the frame to which a signal handler returns, which is not
			 * supported: the kernel has called the handler at an arbitrary instruction. */
			return 0;
		}
	}
	return is_relative && !bytes.failed && !letters.failed && entry->at <= entry->end;
}

/* Reads the function's entry (FDE) at `at`. Returns 0 if pc is not in the function, or the form is not
 * supported. */
static int read_entry(struct entry *entry, struct entry *common, u64 at, u64 pc) {
	struct bytes bytes;
	begin_bytes(&bytes, at, at + 16);
	u64 length = take_fixed(&bytes, 4), back = take_fixed(&bytes, 4);
	u64 from = at + 8 + (u64)take_signed32(&bytes), count = take_fixed(&bytes, 4);
	if (bytes.failed || length < 12 || length > SKIPPED_MOST * 16 || !back || pc < from || pc - from >= count)
		return 0;
	if (!read_common(common, at + 4 - back))
		return 0;
	*entry = (struct entry){at + 16, at + 4 + length, common->code_step, from, common->data_step};
	begin_bytes(&bytes, entry->at, entry->end);
	u64 more = take_number(&bytes);
	entry->at = bytes.at + more;
	return !bytes.failed && entry->at <= entry->end;
}

/* Returns the address of the entry of the function that may contain pc; 0 if there is none. */
static u64 find_entry(u64 index, u64 pc) {
	struct { u8 version, pointer, count, table; s32 frames; u32 entries; } head;
	struct { s32 from, entry; } pairs[ENTRIES_AT_ONCE];
	if (!index || copy_code(&head, index, sizeof(head)) != sizeof(head) || head.version != 1 ||
	    head.pointer != RELATIVE_HERE || head.count != COUNTED || head.table != RELATIVE_INDEX || head.entries > ENTRIES_MOST)
		return 0;
	s64 wanted = (s64)(pc - index);
	u64 low = 0, high = head.entries, table = index + sizeof(head);
	while (high - low > ENTRIES_AT_ONCE) {
		u64 middle = low + (high - low) / 2;
		if (copy_code(pairs, table + 8 * middle, 8) != 8)
			return 0;
		if (pairs[0].from <= wanted)
			low = middle;
		else
			high = middle;
	}
	u64 count = high - low, found = 0;
	if (!count || copy_code(pairs, table + 8 * low, 8 * count) != 8 * count)
		return 0;
	for (u64 i = 0; i < count && pairs[i].from <= wanted; i++)
		found = index + (u64)(s64)pairs[i].entry;
	return found;
}

enum saved { SAME, SAVED, LOST, NOWHERE };

struct row {
	u64 origin; /* register whose value plus `size` is the end of the frame */
	s64 size, base_at, return_at;
	enum saved base, back;
};

struct rows {
	struct row row, first, kept[KEPT_MOST];
	u32 depth, failed;
};

static void put_register(struct row *row, u64 which, enum saved how, s64 at) {
	if (which == REGISTER_BASE)
		row->base = how, row->base_at = at;
	else if (which == REGISTER_RETURN)
		row->back = how, row->return_at = at;
}

static void restore_register(struct rows *rows, u64 which) {
	if (which == REGISTER_BASE)
		rows->row.base = rows->first.base, rows->row.base_at = rows->first.base_at;
	else if (which == REGISTER_RETURN)
		rows->row.back = rows->first.back, rows->row.return_at = rows->first.return_at;
}

/* Executes a call frame instruction that has no operand in its first byte, except those that advance the
 * address. Returns 0 if the instruction is unknown. */
static int follow_extended(struct rows *rows, struct bytes *bytes, const struct entry *entry, u8 code) {
	struct row *row = &rows->row;
	u64 which;
	switch (code) {
	case 0x00: return 1; /* nop */
	case 0x05: which = take_number(bytes); put_register(row, which, SAVED, (s64)take_number(bytes) * entry->data_step); return 1;
	case 0x06: restore_register(rows, take_number(bytes)); return 1;
	case 0x07: put_register(row, take_number(bytes), NOWHERE, 0); return 1;
	case 0x08: put_register(row, take_number(bytes), SAME, 0); return 1;
	case 0x09: put_register(row, take_number(bytes), LOST, 0); take_number(bytes); return 1;
	case 0x0a:
		if (rows->depth >= KEPT_MOST)
			return 0;
		rows->kept[rows->depth++] = *row;
		return 1;
	case 0x0b:
		if (!rows->depth)
			return 0;
		*row = rows->kept[--rows->depth];
		return 1;
	case 0x0c: row->origin = take_number(bytes); row->size = (s64)take_number(bytes); return 1;
	case 0x0d: row->origin = take_number(bytes); return 1;
	case 0x0e: row->size = (s64)take_number(bytes); return 1;
	case 0x0f: row->origin = REGISTER_RETURN; skip(bytes, take_number(bytes)); return 1; /* rule_from() refuses expressions */
	case 0x10: case 0x16: put_register(row, take_number(bytes), LOST, 0); skip(bytes, take_number(bytes)); return 1;
	case 0x11: which = take_number(bytes); put_register(row, which, SAVED, take_signed(bytes) * entry->data_step); return 1;
	case 0x12: row->origin = take_number(bytes); row->size = take_signed(bytes) * entry->data_step; return 1;
	case 0x13: row->size = take_signed(bytes) * entry->data_step; return 1;
	case 0x14: put_register(row, take_number(bytes), LOST, 0); take_number(bytes); return 1;
	case 0x15: put_register(row, take_number(bytes), LOST, 0); take_signed(bytes); return 1;
	case 0x2e: take_number(bytes); return 1; /* GNU_args_size */
	default: return 0;
	}
}

/* Executes the entry's instructions up to the row that applies at `pc`. */
static int follow(struct rows *rows, const struct entry *entry, u64 pc) {
	struct bytes bytes;
	u64 at = entry->from;
	begin_bytes(&bytes, entry->at, entry->end);
	while (bytes.at < bytes.end && !bytes.failed) {
		u8 code = take(&bytes);
		u64 step = 0, which = code & 63;
		switch (code >> 6) {
		case 1: step = which; break;
		case 2: put_register(&rows->row, which, SAVED, (s64)take_number(&bytes) * entry->data_step); break;
		case 3: restore_register(rows, which); break;
		default:
			if (code >= 0x02 && code <= 0x04)
				step = take_fixed(&bytes, 1u << (code - 0x02));
			else if (!follow_extended(rows, &bytes, entry, code))
				return 0;
		}
		at += step * entry->code_step;
		if (at > pc)
			break;
	}
	return !bytes.failed;
}

/* Encodes the row as a rule without the number of the file; 0 if the caller's frame can't be determined. */
static u64 rule_from(const struct row *row) {
	if (row->back != SAVED || row->return_at != -8 || row->size <= 0 || row->size & 7 || (u64)row->size / 8 > RULE_SIZE_MOST ||
	    (row->origin != REGISTER_STACK && row->origin != REGISTER_BASE))
		return 0;
	u64 rule = (row->origin == REGISTER_STACK ? WAY_STACK : WAY_BASE) | (u64)row->size / 8 << RULE_SIZE_SHIFT;
	if (row->base == SAME)
		return rule;
	u64 below = (u64)-row->base_at;
	if (row->base != SAVED || below < 16 || below & 7 || below / 8 > RULE_SAVED_MOST)
		return rule | RULE_LOST;
	return rule | RULE_SAVED | below / 8 << RULE_SAVED_SHIFT;
}

/* Finds the rule for the call that returns to pc. The call instruction ends directly before pc, so the row at
 * pc - 1 applies. */
static u64 read_rule(u64 index, u64 pc) {
	struct entry entry, common;
	struct rows rows;
	u64 at = find_entry(index, pc - 1);
	if (!at || !read_entry(&entry, &common, at, pc - 1))
		return 0;
	rows.depth = 0;
	rows.row = rows.first = (struct row){REGISTER_RETURN, 0, 0, 0, SAME, SAME};
	common.from = entry.from;
	if (!follow(&rows, &common, pc - 1))
		return 0;
	rows.first = rows.row;
	return follow(&rows, &entry, pc - 1) ? rule_from(&rows.row) : 0;
}

/* Finds the rule for a return address, and stores it in the table of rules. */
NOINLINE u64 learn_rule(u64 pc) {
	u32 loads = *(volatile u32 *)&stack_tables->loads, number = code_of(pc);
	u64 key = KEY(pc), rule = 0;
	if (number) {
		const struct code *code = &stack_tables->codes[number - 1];
		rule = read_rule(code->table, pc);
		rule = (rule ? rule : WAY_ENDS) | (u64)number << RULE_CODE_SHIFT | (code->is_own ? RULE_OWN : 0) | (code->is_python ? RULE_PYTHON : 0);
	} else {
		rule = WAY_ENDS | (u64)loads << RULE_SIZE_SHIFT;
	}
	struct known_rule *ways = rules_of(pc), *way = &ways[stack_tables->turn++ % RULE_WAYS];
	for (u32 i = 0; i < RULE_WAYS; i++)
		if (!ways[i].rule || (ways[i].check ^ disguised(ways[i].rule)) == key)
			way = &ways[i];
	set(way->rule, rule);
	set(way->check, key ^ disguised(rule));
	return rule;
}
