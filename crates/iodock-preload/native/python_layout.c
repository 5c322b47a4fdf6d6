/* Finds the version of CPython that a module contains, and the layout of frames and code objects in its
 * memory. */

#include "stacks.h"

enum { CHAIN_MOST = 4096 };

/* Layouts of Python 3.11 and 3.12, from CPython's Include/internal/pycore_frame.h, pycore_runtime.h,
 * pycore_interp.h and Include/cpython/code.h, pystate.h. Patch releases do not change them. */
static const struct layout LAYOUTS[] = {
	{0x030b00f0, 0x030bffff, 40, 24, 0, 16, 8, 152, 56, 8, 32, 48, 56, 69, 255, 72, 112, 128, 136, 184, 48, 72},
	{0x030c00f0, 0x030cffff, 40, 24, 0, 72, 8, 136, 56, 0, 0, 8, 56, 70, 3, 68, 112, 128, 136, 192, 40, 56},
};

/* Addresses of a module's tables of exported symbols, their names and their hash table (DT_GNU_HASH). */
struct exports { u64 load, symbols, names, table; };

static int find_exports(struct exports *exports, const struct link *link) {
	u64 entry[2], at = link->dynamic;
	*exports = (struct exports){link->load, 0, 0, 0};
	for (u32 i = 0; at && i < 128; i++, at += sizeof(entry)) {
		if (copy_code(entry, at, sizeof(entry)) != sizeof(entry) || !entry[0])
			break;
		/* The dynamic linker has relocated these entries to addresses, except in the kernel's
		 * vDSO. */
		u64 place = entry[1] < link->load ? entry[1] + link->load : entry[1];
		if (entry[0] == DT_SYMTAB)
			exports->symbols = place;
		else if (entry[0] == DT_STRTAB)
			exports->names = place;
		else if (entry[0] == DT_GNU_HASH)
			exports->table = place;
	}
	return exports->symbols && exports->names && exports->table;
}

static u64 find_export(const struct exports *exports, const char *name) {
	struct { u32 buckets, first, words, shift; } head;
	struct { u32 name; u8 info, other; u16 section; u64 value, size; } symbol;
	char text[32];
	u32 hash = 5381, bucket, chain;
	u64 bytes = length((const u8 *)name, sizeof(text) - 1);
	for (u64 i = 0; i < bytes; i++)
		hash = hash * 33 + (u8)name[i];
	if (copy_code(&head, exports->table, sizeof(head)) != sizeof(head) || !head.buckets || !head.words)
		return 0;
	u64 filter = exports->table + sizeof(head), buckets = filter + 8ul * head.words, chains = buckets + 4ul * head.buckets;
	u64 word = 0;
	if (copy_code(&word, filter + 8ul * (hash / 64 % head.words), 8) != 8 || !(word >> hash % 64 & 1) || !(word >> (hash >> (head.shift & 31)) % 64 & 1))
		return 0;
	if (copy_code(&bucket, buckets + 4ul * (hash % head.buckets), 4) != 4 || bucket < head.first)
		return 0;
	for (u32 i = bucket; i - bucket < CHAIN_MOST; i++) {
		if (copy_code(&chain, chains + 4ul * (i - head.first), 4) != 4)
			return 0;
		if ((chain | 1) == (hash | 1) && copy_code(&symbol, exports->symbols + 24ul * i, 24) == 24 && symbol.section &&
		    copy_code(text, exports->names + symbol.name, bytes + 1) == bytes + 1 && is_same((const u8 *)text, name, bytes + 1))
			return exports->load + symbol.value;
		if (chain & 1)
			break;
	}
	return 0;
}

/* Since Python 3.13 _PyRuntime begins with a list of its own offsets:
 * Include/internal/pycore_debug_offsets.h. These are positions in that list, in words. */
enum { DEBUG_WORDS = 50, DEBUG_COOKIE = 0, DEBUG_VERSION, DEBUG_FREE_THREADED, DEBUG_RUNTIME, DEBUG_INTERPRETER = 6 };
#define COOKIE 0x7970677562656478ul /* "xdebugpy" */
static const struct debug { u32 version, version_most, thread, frame, code, bytecode; } DEBUGS[] = {
	{0x030d00f0, 0x030dffff, 19, 28, 34, 43},
	{0x030e00f0, 0x030effff, 22, 31, 39, 48},
};

/* Whether the `count` words from words[from] on are offsets in a structure of words[size] bytes. */
static int are_offsets(const u64 *words, u32 size, u32 from, u32 count) {
	for (u32 i = from; i < from + count; i++)
		if (words[i] >= words[size])
			return 0;
	return words[size] < 1 << 24;
}

static int find_debug_offsets(struct layout *layout, u64 runtime, u32 version) {
	u64 words[DEBUG_WORDS];
	const struct debug *debug = DEBUGS;
	while (version > debug->version_most)
		if (++debug == DEBUGS + sizeof(DEBUGS) / sizeof(*DEBUGS))
			return 0;
	u32 thread = debug->thread, frame = debug->frame, code = debug->code;
	if (version < debug->version || copy_in(words, (const void *)runtime, sizeof(words)) != sizeof(words) || words[DEBUG_COOKIE] != COOKIE ||
	    words[DEBUG_VERSION] != version || words[DEBUG_FREE_THREADED] || !are_offsets(words, DEBUG_RUNTIME, DEBUG_RUNTIME + 1, 2) ||
	    !are_offsets(words, DEBUG_INTERPRETER, DEBUG_INTERPRETER + 1, 3) || !are_offsets(words, thread, thread + 1, 8) ||
	    !are_offsets(words, frame, frame + 1, 5) || !are_offsets(words, code, code + 1, debug->bytecode - code))
		return 0;
	*layout = (struct layout){
		.interpreters = (u32)words[DEBUG_RUNTIME + 2], .finalizing = (u32)words[DEBUG_RUNTIME + 1],
		.next_interpreter = (u32)words[DEBUG_INTERPRETER + 2], .threads = (u32)words[DEBUG_INTERPRETER + 3],
		.next_thread = (u32)words[thread + 2], .thread_id = (u32)words[thread + 5], .running = (u32)words[thread + 4], .frame = DIRECT,
		.code = (u32)words[frame + 2], .previous = (u32)words[frame + 1], .instruction = (u32)words[frame + 3],
		.owner = (u32)words[frame + 5], .shim = 3,
		.first_line = (u32)words[code + 5], .file = (u32)words[code + 1], .name = (u32)words[code + 3], .lines = (u32)words[code + 4],
		.bytecode = (u32)words[debug->bytecode], .ascii = 40, .wide = 56};
	/* walk_python() and see_code() check that memory is readable only up to `owner` and `bytecode`. */
	return layout->owner >= layout->code && layout->owner >= layout->previous && layout->owner >= layout->instruction &&
	       layout->bytecode > layout->lines && layout->bytecode > layout->file && layout->bytecode > layout->name;
}

static int find_layout(struct layout *layout, u64 runtime, u32 version) {
	for (u32 i = 0; i < sizeof(LAYOUTS) / sizeof(*LAYOUTS); i++)
		if (version >= LAYOUTS[i].version && version <= LAYOUTS[i].version_most) {
			put_bytes((u8 *)layout, (const u8 *)&LAYOUTS[i], sizeof(*layout));
			return 1;
		}
	return find_debug_offsets(layout, runtime, version);
}

/* Counts a process whose Python frames can't be read, and notes the version of its Python. */
void count_unread(u32 version) {
	if (stack_tables->python.is_unread)
		return;
	stack_tables->python.is_unread = 1;
	set(session->python_version, version);
	__atomic_fetch_add(&session->python_unread, 1, __ATOMIC_RELAXED);
}

/* Whether the module is a Python interpreter. The first one found is the one whose frames are read. */
NOINLINE int is_python(const struct link *link) {
	struct exports exports;
	struct python *python = &stack_tables->python;
	u64 runtime = find_exports(&exports, link) ? find_export(&exports, "_PyRuntime") : 0;
	if (!runtime || python->runtime)
		return runtime != 0;
	u64 version_at = find_export(&exports, "Py_Version"), code_type = find_export(&exports, "PyCode_Type");
	u32 version;
	if (!version_at || copy_in(&version, (const void *)version_at, sizeof(version)) != sizeof(version))
		version = 0;
	if (!code_type || !find_layout(&python->layout, runtime, version)) {
		count_unread(version);
		return 1;
	}
	python->code_type = code_type;
	python->slot = python->tries = 0;
	set(python->runtime, runtime);
	return 1;
}
