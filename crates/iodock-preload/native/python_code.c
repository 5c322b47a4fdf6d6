/* Reads code objects of Python: their file, their name, and the line of an instruction. */

#include "stacks.h"

enum { OBJECT_TYPE = 8, TEXT_STATE = 32, LINES_MOST = 1 << 20, TEXT_COMPACT = 32, TEXT_ASCII = 64 };

static u64 live_word(u64 from) {
	u64 word;
	return copy_live(&word, from, 8) ? word : 0;
}

static u8 *put_character(u8 *at, u32 c) {
	/* This character stands for a byte of the name that is not valid UTF-8. */
	if (c >= 0xdc80 && c <= 0xdcff)
		return *at = (u8)c, at + 1;
	if (c < 0x80)
		return *at = (u8)c, at + 1;
	if (c < 0x800)
		return at[0] = (u8)(0xc0 | c >> 6), at[1] = (u8)(0x80 | (c & 63)), at + 2;
	if (c < 0x10000)
		return at[0] = (u8)(0xe0 | c >> 12), at[1] = (u8)(0x80 | (c >> 6 & 63)), at[2] = (u8)(0x80 | (c & 63)), at + 3;
	return at[0] = (u8)(0xf0 | (c >> 18 & 7)), at[1] = (u8)(0x80 | (c >> 12 & 63)), at[2] = (u8)(0x80 | (c >> 6 & 63)), at[3] = (u8)(0x80 | (c & 63)), at + 4;
}

#define UNREADABLE (~0ul)

/* Copies a Python string that contains no NUL; the copy is empty if the string has more than `most` bytes.
 * Returns the number of bytes, or UNREADABLE. `to` has room for `most` and 8 more bytes. */
static u64 read_text(u8 *to, u64 text, u64 most) {
	const struct layout *layout = &stack_tables->python.layout;
	u8 pieces[64];
	u64 head[5], done = 0;
	to[0] = 0;
	if (!copy_live(head, text, sizeof(head)))
		return UNREADABLE;
	/* In a string's state, the kind comes after 2 bits, since Python 3.14 after 16 bits. TEXT_COMPACT is
	 * set only at the position that is right for the version. */
	u64 count = head[SIZE_AT / 8], state = (u32)head[TEXT_STATE / 8];
	state = state & TEXT_COMPACT ? state : state >> 14;
	u64 kind = state >> 2 & 7, from = text + (state & TEXT_ASCII ? layout->ascii : layout->wide);
	if (!(state & TEXT_COMPACT) || count > most || (kind != 1 && kind != 2 && kind != 4))
		return 0;
	for (u64 i = 0; i < count;) {
		u64 some = (count - i) * kind < sizeof(pieces) ? (count - i) * kind : sizeof(pieces);
		if (!copy_live(pieces, from + i * kind, some)) {
			to[0] = 0;
			return UNREADABLE;
		}
		for (u64 j = 0; j < some; j += kind, i++) {
			u32 c = kind == 1 ? pieces[j] : kind == 2 ? *(const unaligned_u16 *)(pieces + j) : *(const unaligned_u32 *)(pieces + j);
			u8 *end = put_character(to + done, c ? c : '?');
			done = (u64)(end - to);
			if (done > most)
				return to[0] = 0;
		}
	}
	to[done] = 0;
	return done;
}

/* Whether the user wrote this source outside of a file, as in a console. Other code without a file is made
 * by packages. event/src/stacks.rs has the same rule. */
static int is_typed(const u8 *name) {
	static const char typed[][16] = {"<stdin>", "<string>", "<console>", "<ipython-input", "<python-input"};
	for (u32 i = 0; i < sizeof(typed) / sizeof(*typed); i++)
		if (begins(name, typed[i]))
			return 1;
	return 0;
}

/* Returns facts about a code object as bits of one word; 0 if its texts can't be read now. */
u64 facts_of_code(u64 code) {
	u8 text[PYTHON_FILE_MOST + 9];
	const struct python *python = &stack_tables->python;
	if (live_word(code + OBJECT_TYPE) != python->code_type)
		return 0;
	u64 name_bytes = read_text(text, live_word(code + python->layout.name), PYTHON_NAME_MOST);
	u64 file_bytes = read_text(text, live_word(code + python->layout.file), PYTHON_FILE_MOST);
	if (name_bytes == UNREADABLE || file_bytes == UNREADABLE)
		return 0;
	u64 known = CODE_KNOWN | name_bytes << CODE_NAME_SHIFT | file_bytes << CODE_FILE_SHIFT;
	if (text[0] && !is_installed((const char *)text) && (text[0] != '<' || is_typed(text)))
		known |= CODE_OWN;
	return known;
}

/* Reads a bytes object in pieces. */
struct table { u64 at, end, from, have; u8 piece[256]; };

static u32 next_byte(struct table *table) {
	if (table->at >= table->end)
		return 0;
	if (table->at - table->from >= table->have) {
		u64 count = table->end - table->at;
		count = count < sizeof(table->piece) ? count : sizeof(table->piece);
		table->from = table->at;
		table->have = copy_live(table->piece, table->at, count);
		if (!table->have) {
			table->end = table->at;
			return 0;
		}
	}
	return table->piece[table->at++ - table->from];
}

/* Reads a number from bytes of six bits each, the lowest first. */
static u64 next_number(struct table *table) {
	u64 value = 0;
	for (u32 shift = 0, byte = 64; byte & 64; shift += 6) {
		byte = next_byte(table);
		if (shift < 60)
			value |= (u64)(byte & 63) << shift;
	}
	return value;
}

/* Returns the line of a frame's instruction, 0 if it has none. CPython documents the form of the table in
 * Objects/locations.md (InternalDocs/code_objects.md since 3.13). */
static u64 line_of(const struct python_frame *frame) {
	enum { FORM_SHORT_MOST = 9, FORM_LINE_MOST = 12, FORM_NO_COLUMN = 13, FORM_LONG = 14, FORM_NONE = 15 };
	const struct layout *layout = &stack_tables->python.layout;
	struct table table;
	u32 first = 0;
	u64 lines = live_word(frame->code + layout->lines), bytes = live_word(lines + SIZE_AT);
	if (!copy_live(&first, frame->code + layout->first_line, 4))
		return 0;
	s64 line = (s32)first, at = (s64)(frame->instruction - frame->code - layout->bytecode), reached = 0;
	table.at = lines + BYTES_AT;
	table.end = table.at + (bytes < LINES_MOST ? bytes : LINES_MOST);
	table.from = table.have = 0;
	if (at < 0)
		return (u64)line;
	while (table.at < table.end) {
		u32 head = next_byte(&table), form = head >> 3 & 15;
		u64 change;
		if (form == FORM_NO_COLUMN || form == FORM_LONG) {
			change = next_number(&table);
			line += change & 1 ? -(s64)(change >> 1) : (s64)(change >> 1);
		} else if (form > FORM_SHORT_MOST && form <= FORM_LINE_MOST) {
			line += form - FORM_SHORT_MOST - 1;
		}
		reached += 2 * ((head & 7) + 1);
		if (at < reached)
			return form == FORM_NONE || line < 0 ? 0 : (u64)line;
		for (u32 i = 0; i < 3 && form == FORM_LONG; i++)
			next_number(&table);
		for (u32 i = 0; i < (form <= FORM_SHORT_MOST ? 1u : form <= FORM_LINE_MOST ? 2u : 0u); i++)
			next_byte(&table);
	}
	return 0;
}

/* Writes a text; an empty one if the text has more than `most` bytes, or more than *left bytes of the
 * record. */
static u8 *put_text_of(struct state *state, u8 *at, u64 text, u64 most, u64 *left) {
	u8 bytes[PYTHON_FILE_MOST + 17];
	struct path path;
	u64 count = read_text(bytes, text, most < *left ? most : *left);
	*left -= count == UNREADABLE ? 0 : count;
	look_at(&path, bytes);
	return put_path(state, 0, at, &path);
}

/* Writes the file, the function and the line of each frame. */
u8 *put_python(struct state *state, u8 *at, const struct stacks *stacks) {
	const struct layout *layout = &stack_tables->python.layout;
	u64 left = stacks->text_room;
	for (u32 i = 0; i < stacks->pythons; i++) {
		const struct python_frame *frame = &stacks->python[i];
		at = put_text_of(state, at, live_word(frame->code + layout->file), PYTHON_FILE_MOST, &left);
		at = put_text_of(state, at, live_word(frame->code + layout->name), PYTHON_NAME_MOST, &left);
		at = put(at, line_of(frame));
	}
	return at;
}
