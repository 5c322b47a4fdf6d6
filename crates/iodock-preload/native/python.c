/* Frames of Python: which lines of a program's source a call comes from, read from the memory of CPython in this process, without its lock
 * and without a call of its functions. docs/decisions/0047 says why that is safe.
 *
 * A thread's frames and their code live as long as the thread runs them, and nobody but the thread itself changes them. All the same memory is
 * read only where its page was found to be there; pages that are unmapped are forgotten before. */

#include "stacks.h"

enum { WALKED_MOST = 4096, SLOTS_FROM = 0x310, SLOTS = 32, SLOT = 16, TRIES = 16, ASKED_AGAIN = 63 };
enum { OBJECT_TYPE = 8, SIZE_AT = 16, HASH_AT = 24, TEXT_STATE = 32, BYTES_AT = 32, LINES_MOST = 1 << 20, TEXT_COMPACT = 32, TEXT_ASCII = 64,
       NAME_KEYED = 1024, LINES_KEYED = 256 };

/* Where a thread's frames begin, and its code: CPython's Include/internal/pycore_frame.h, pycore_runtime.h, pycore_interp.h and
 * Include/cpython/code.h, pystate.h of these versions. Patch releases keep them. */
static const struct layout LAYOUTS[] = {
	{0x030b00f0, 0x030bffff, 40, 24, 0, 16, 8, 152, 56, 8, 32, 48, 56, 69, 255, 72, 112, 128, 136, 184, 48, 72},
	{0x030c00f0, 0x030cffff, 40, 24, 0, 72, 8, 136, 56, 0, 0, 8, 56, 70, 3, 68, 112, 128, 136, 192, 40, 56},
};

static u64 word_in(u64 from) {
	u64 word;
	return copy_in(&word, (const void *)from, 8) == 8 ? word : 0;
}

/* Looking up a name that a module exports: DT_GNU_HASH. */
struct exports { u64 load, symbols, names, table; };

static int find_exports(struct exports *exports, const struct link *link) {
	u64 entry[2], at = link->dynamic;
	*exports = (struct exports){link->load, 0, 0, 0};
	for (u32 i = 0; at && i < 128; i++, at += sizeof(entry)) {
		if (copy_code(entry, at, sizeof(entry)) != sizeof(entry) || !entry[0])
			break;
		/* (The dynamic linker has made addresses of them, but in the kernel's own module.) */
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
	for (u32 i = bucket; i - bucket < WALKED_MOST; i++) {
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

/* From 3.13 on _PyRuntime begins with its own offsets: Include/internal/pycore_debug_offsets.h. Here are their places there, in words. */
enum { DEBUG_WORDS = 50, DEBUG_COOKIE = 0, DEBUG_VERSION, DEBUG_FREE_THREADED, DEBUG_RUNTIME, DEBUG_INTERPRETER = 6 };
#define COOKIE 0x7970677562656478ul /* "xdebugpy" */
static const struct debug { u32 version, version_most, thread, frame, code, bytecode; } DEBUGS[] = {
	{0x030d00f0, 0x030dffff, 19, 28, 34, 43},
	{0x030e00f0, 0x030effff, 22, 31, 39, 48},
};

/* Are all of them offsets in a structure of that size? */
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
	/* (Read in one piece.) */
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

/* Its frames stay unknown. */
static void count_unread(u32 version) {
	if (stack_tables->python.is_unread)
		return;
	stack_tables->python.is_unread = 1;
	set(session->python_version, version);
	__atomic_fetch_add(&session->python_unread, 1, __ATOMIC_RELAXED);
}

/* Is the module an interpreter of Python? The first one's frames are read from then on. */
NOINLINE int is_python(const struct link *link) {
	struct exports exports;
	struct python *python = &stack_tables->python;
	u64 runtime = find_exports(&exports, link) ? find_export(&exports, "_PyRuntime") : 0;
	if (!runtime || python->runtime)
		return runtime != 0;
	u64 version_at = find_export(&exports, "Py_Version"), code_type = find_export(&exports, "PyCode_Type");
	u32 version = version_at ? (u32)word_in(version_at) : 0;
	if (!code_type || !find_layout(&python->layout, runtime, version)) {
		count_unread(version);
		return 1;
	}
	python->code_type = code_type;
	python->slot = python->tries = 0;
	set(python->runtime, runtime);
	return 1;
}

static ALWAYS u64 *page_place(u64 page) { return &stack_tables->pages[page * 0x9e3779b97f4a7c15ul >> 55 & (PYTHON_PAGES - 1)]; }

/* Is the page there? It is noted if no memory was unmapped meanwhile. */
static NOINLINE int learn_page(u64 page) {
	u8 byte;
	u64 unmapped = __atomic_load_n(&stack_tables->unmapped, __ATOMIC_SEQ_CST), *place = page_place(page);
	if (copy_in(&byte, (const void *)(page << 12), 1) != 1)
		return 0;
	__atomic_store_n(place, page, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&stack_tables->unmapped, __ATOMIC_SEQ_CST) != unmapped)
		__atomic_store_n(place, 0, __ATOMIC_SEQ_CST);
	return 1;
}

static ALWAYS int page_is_there(u64 page, int keep) {
	return likely(*(const volatile u64 *)page_place(page) == page) || (keep && learn_page(page) && *page_place(page) == page);
}

/* Can so many bytes be read there? */
static ALWAYS int is_there(u64 at, u64 bytes, int keep) {
	u64 first = at >> 12, last = (at + bytes - 1) >> 12;
	return first && !(at & 7) && page_is_there(first, keep) && (likely(first == last) || page_is_there(last, keep));
}

/* Copies what lives as long as this thread runs the code that it belongs to: up to two pages' bytes, all or none. Returns how many. Where another
 * thread has just unmapped memory, or noted another page in this one's place, the kernel reads. */
static u64 copy_live(void *to, u64 from, u64 count) {
	u64 first = from >> 12, last = (from + count - 1) >> 12;
	if (!first)
		return 0;
	if (!page_is_there(first, 1) || (last != first && !page_is_there(last, 1)))
		return copy_in(to, (const void *)from, count) == count ? count : 0;
	put_bytes(to, (const u8 *)from, count);
	return count;
}

static u64 live_word(u64 from) {
	u64 word;
	return copy_live(&word, from, 8) ? word : 0;
}

/* Threads that read now have a level. */
static NOINLINE void wait_for_readers(void) {
	struct state *state;
	u64 left = SEEN_AFTER;
	while (may_wait(&left))
		;
	left = QUIET_MOST;
	for (u32 at = 0; (state = next_state(&at)) != 0;)
		while (!is_own(state) && *(volatile u32 *)&state->level && may_wait(&left))
			;
}

/* May frames be read of a thread with that state? While the interpreter ends, it gives back the memory of all threads but the one that ends it:
 * it waits, once, for those that read now. Thread 0: memory is about to be given back. */
static ALWAYS int python_is_there(u64 thread) {
	struct python *python = &stack_tables->python;
	u64 runtime = *(const volatile u64 *)&python->runtime;
	if (!runtime)
		return 0;
	u64 ending = *(const volatile u64 *)(runtime + python->layout.finalizing);
	if (unlikely(ending != 0)) {
		if (!python->ends && (!thread || thread == ending)) {
			wait_for_readers();
			set(python->ends, 1);
		}
		return ending == thread && *(const volatile u64 *)(runtime + python->layout.interpreters);
	}
	if (unlikely(python->ends))
		set(python->ends, 0);
	return 1;
}

/* That range is about to be unmapped, or was. */
void forget_pages(u64 from, u64 bytes) {
	struct stack_tables *tables = stack_tables;
	if (!tables || !tables->python.runtime)
		return;
	u64 first = from >> 12, last = (from + bytes + 4095) >> 12;
	__atomic_fetch_add(&tables->unmapped, 1, __ATOMIC_SEQ_CST);
	for (u32 i = 0; i < PYTHON_PAGES; i++)
		if (tables->pages[i] >= first && tables->pages[i] < last)
			set(tables->pages[i], 0);
	if (tables->python.runtime >> 12 >= first && tables->python.runtime >> 12 < last)
		set(tables->python.runtime, 0);
	else
		python_is_there(0);
}

/* A child has not all pages of its parent (MADV_DONTFORK), and no thread that would give back what it has taken. */
void forget_pages_of_parent(u32 process) {
	if (!stack_tables || __atomic_exchange_n(&stack_tables->process, process, __ATOMIC_SEQ_CST) == process)
		return;
	stack_tables->pages_taken = 0;
	if (stack_tables->python.runtime)
		for (u32 i = 0; i < PYTHON_PAGES; i++)
			set(stack_tables->pages[i], 0);
}

/* The state of the interpreter that a thread with this thread pointer has, 0: none was found. */
static u64 find_thread(const struct python *python, u64 pointer) {
	const struct layout *layout = &python->layout;
	u64 interpreter = word_in(python->runtime + layout->interpreters);
	for (u32 turns = 0; interpreter && turns < WALKED_MOST; turns++, interpreter = word_in(interpreter + layout->next_interpreter)) {
		u64 thread = word_in(interpreter + layout->threads);
		for (; thread && turns < WALKED_MOST; turns++, thread = word_in(thread + layout->next_thread))
			if (word_in(thread + layout->thread_id) == pointer)
				return thread;
	}
	return 0;
}

/* CPython keeps it as the thread's value of a key of pthreads: in glibc's descriptor of the thread, if the key is one of the first 32. */
static NOINLINE void learn_slot(struct python *python, u64 pointer) {
	u64 slots[SLOTS * SLOT / 8], thread;
	/* (Before Python has begun there is none to be found.) */
	if (!word_in(python->runtime + python->layout.interpreters))
		return;
	if (python->tries > TRIES && ++python->tries & ASKED_AGAIN)
		return;
	python->tries++;
	thread = find_thread(python, pointer);
	if (!thread || copy_in(slots, (const void *)(pointer + SLOTS_FROM), sizeof(slots)) != sizeof(slots))
		return;
	for (u64 i = 0; i < SLOTS; i++)
		if (slots[2 * i + 1] == thread) {
			set(python->slot, SLOTS_FROM + SLOT * i + 8);
			return;
		}
	if (python->tries == TRIES)
		count_unread(python->layout.version);
}

/* Finds what is read of a code object; 0: its pages are not there. */
static NOINLINE int see_code(const struct layout *layout, u64 code, int keep, struct seen_code *seen) {
	seen->code = 0;
	u64 unmapped = *(const volatile u64 *)&stack_tables->unmapped;
	if (!is_there(code, layout->bytecode, keep))
		return 0;
	u64 file = *(const u64 *)(code + layout->file), lines = *(const u64 *)(code + layout->lines);
	if (!is_there(file, 40, keep) || !is_there(lines, 48, keep))
		return 0;
	u64 name_bytes = *(const u64 *)(file + SIZE_AT), line_bytes = *(const u64 *)(lines + SIZE_AT);
	u64 name_keyed = name_bytes < NAME_KEYED ? name_bytes : NAME_KEYED, lines_keyed = line_bytes < LINES_KEYED ? line_bytes & ~7ul : LINES_KEYED;
	if (!is_there(file, layout->ascii + name_keyed, keep) || !is_there(lines, BYTES_AT + lines_keyed + 16, keep))
		return 0;
	*seen = (struct seen_code){code, file, lines, name_bytes, line_bytes, unmapped, 0, 0};
	return 1;
}

/* Are those the pages that were seen? */
static ALWAYS int is_seen(const struct layout *layout, u64 code, const struct seen_code *seen) {
	return code && seen->code == code && seen->unmapped == *(const volatile u64 *)&stack_tables->unmapped &&
	       seen->file == *(const u64 *)(code + layout->file) && seen->lines == *(const u64 *)(code + layout->lines) &&
	       seen->name_bytes == *(const u64 *)(seen->file + SIZE_AT) && seen->line_bytes == *(const u64 *)(seen->lines + SIZE_AT);
}

/* What tells a code object from others that lay in its place before. */
static ALWAYS u64 key_of(const struct layout *layout, u64 code, int keep, struct seen_code *seen) {
	if (unlikely(!is_seen(layout, code, seen)) && !see_code(layout, code, keep, seen))
		return 0;
	/* What was made by compile() or exec() often differs in the end of its file's name alone, or in a few lines. */
	u64 file = seen->file, lines = seen->lines, name_bytes = seen->name_bytes, line_bytes = seen->line_bytes;
	name_bytes = name_bytes < NAME_KEYED ? name_bytes : NAME_KEYED;
	line_bytes = line_bytes < LINES_KEYED ? line_bytes & ~7ul : LINES_KEYED;
	/* (Products that do not wait for each other.) */
	u64 name_end = file + layout->ascii + name_bytes;
	u64 place = (code ^ (u64) * (const u32 *)(code + layout->first_line) << 40) * 0x9e3779b97f4a7c15ul;
	u64 named = (file ^ *(const u64 *)(file + HASH_AT)) * 0xc2b2ae3d27d4eb4ful + *(const u64 *)(file + SIZE_AT);
	named += *(const unaligned_u64 *)(name_end - 8) * 0xa0761d6478bd642ful + *(const unaligned_u64 *)(name_end - 16) * 0xe7037ed1a0b428dbul;
	u64 lined = (*(const u64 *)(code + layout->name) ^ *(const u64 *)(lines + SIZE_AT) << 44) * 0x165667b19e3779f9ul;
	u64 begins = (*(const u64 *)(lines + BYTES_AT) ^ *(const u64 *)(lines + BYTES_AT + 8) << 1) * 0xd6e8feb86659fd93ul;
	for (u64 i = 16; i < line_bytes + 8; i += 8)
		begins += *(const u64 *)(lines + BYTES_AT + i) * (0x8ebc6af09c88c6e3ul + i * 0x9e3779b97f4a7c16ul);
	return mix(place ^ (named >> 29 | named << 35), lined + (begins >> 31 | begins << 33)) | 1;
}

static ALWAYS struct known_rule *codes_like(u64 key) { return stack_tables->pythons[key >> 40 & (PYTHON_SETS - 1)]; }

/* What is known of a code object, in a word: */
#define CODE_KNOWN 1ul
#define CODE_OWN 2ul
#define CODE_FILE_SHIFT 2
#define CODE_NAME_SHIFT 12
static ALWAYS u64 known_code(u64 key) {
	const volatile struct known_rule *ways = codes_like(key);
	for (u32 i = 0; i < PYTHON_WAYS; i++) {
		u64 known = ways[i].rule;
		if ((ways[i].check ^ disguised(known)) == key && known)
			return known;
	}
	return 0;
}

static u8 *put_character(u8 *at, u32 c) {
	/* A byte of a name that is no UTF-8. */
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

/* A text of Python, without NUL in it; empty if it has more than `most` bytes. Returns how many it has, or UNREADABLE. `to` has room for `most` and 8. */
static u64 read_text(u8 *to, u64 text, u64 most) {
	const struct layout *layout = &stack_tables->python.layout;
	u8 pieces[64];
	u64 head[5], done = 0;
	to[0] = 0;
	if (!copy_live(head, text, sizeof(head)))
		return UNREADABLE;
	/* Before its kind stand 2 bits, since 3.14 they are 16. Of these forms one is a text's. */
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

/* Source without a file that the user has written; other such code is made by packages. event/src/stacks.rs has the same. */
static int is_typed(const u8 *name) {
	static const char typed[][16] = {"<stdin>", "<string>", "<console>", "<ipython-input", "<python-input"};
	for (u32 i = 0; i < sizeof(typed) / sizeof(*typed); i++)
		if (begins(name, typed[i]))
			return 1;
	return 0;
}

static NOINLINE u64 learn_code(u64 code, u64 key) {
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
	struct known_rule *ways = codes_like(key), *way = &ways[stack_tables->turn++ % PYTHON_WAYS];
	for (u32 i = 0; i < PYTHON_WAYS; i++)
		if (!ways[i].rule)
			way = &ways[i];
	set(way->rule, known);
	set(way->check, key ^ disguised(known));
	return known;
}

/* This thread's innermost frame; 0: there is none. */
static ALWAYS enum walked first_frame(struct stacks *stacks, int keep, u64 *frame) {
	struct python *python = &stack_tables->python;
	const struct layout *layout = &python->layout;
	u64 pointer = thread_pointer(), running;
	*frame = 0;
	if (unlikely(!python->slot)) {
		if (!keep)
			return python->tries > TRIES && (python->tries + 1) & ASKED_AGAIN ? (python->tries++, WHOLE) : UNKNOWN_RULE;
		learn_slot(python, pointer);
		if (!python->slot)
			return WHOLE;
	}
	/* (In the thread's own descriptor.) */
	u64 thread = *(const volatile u64 *)(pointer + python->slot);
	if (!thread || !python_is_there(thread))
		return WHOLE;
	if (unlikely(thread != stacks->python_thread)) {
		if (!keep)
			return UNKNOWN_RULE;
		if (word_in(thread + layout->thread_id) != pointer)
			return WHOLE;
		stacks->python_thread = thread;
	}
	if (unlikely(!is_there(thread + layout->running, 8, keep)))
		return keep ? WHOLE : UNKNOWN_RULE;
	running = *(const volatile u64 *)(thread + layout->running);
	if (layout->frame != DIRECT) {
		/* (Mostly on this thread's stack.) */
		running += layout->frame;
		if ((running < stacks->low || running >= stacks->top || running & 7) && unlikely(!is_there(running, 8, keep)))
			return keep || !running ? WHOLE : UNKNOWN_RULE;
		running = *(const volatile u64 *)running;
	}
	*frame = running;
	return WHOLE;
}

/* Walks this thread's frames of Python outward. In `found`: whether there is one that is no package's. */
enum walked walk_python(struct stacks *stacks, u64 which, int keep, u64 *hash, u32 *found) {
	const struct layout *layout = &stack_tables->python.layout;
	u64 frame, turns = 0;
	u32 count = 0;
	*found = 0;
	if (first_frame(stacks, keep, &frame) != WHOLE)
		return UNKNOWN_RULE;
	for (; frame && turns < PYTHONS_SEEN_MOST; turns++) {
		if (unlikely(!is_there(frame, layout->owner + 1ul, keep))) {
			if (!keep)
				return UNKNOWN_RULE;
			break;
		}
		u64 code = *(const volatile u64 *)(frame + layout->code) & ~7ul, at = *(const volatile u64 *)(frame + layout->instruction);
		u32 owner = *(const volatile u8 *)(frame + layout->owner);
		frame = *(const volatile u64 *)(frame + layout->previous);
		if (owner == layout->shim)
			continue;
		struct seen_code *seen = &stacks->seen[turns % SEEN_CODES];
		u64 key = key_of(layout, code, keep, seen), known = seen->known;
		if (unlikely(!key || seen->key != key)) {
			known = key ? known_code(key) : 0;
			if (!known && !keep)
				return UNKNOWN_RULE;
			if (!known && (!key || !(known = learn_code(code, key))))
				break;
			seen->key = key;
			seen->known = known;
		}
		/* Of those that are too many, the one to change is kept. */
		if (count >= PYTHONS_MOST - 1 && which == STACKS_SITES && !(known & CODE_OWN))
			continue;
		if (count >= PYTHONS_MOST)
			break;
		if (keep)
			stacks->python[count] = (struct python_frame){code, at};
		count++;
		*hash = mix(*hash, key ^ at);
		if (known & CODE_OWN) {
			*found = 1;
			if (which == STACKS_SITES)
				break;
		}
	}
	if (keep)
		stacks->pythons = count;
	return WHOLE;
}

/* How many bytes put_python() writes, at most: its texts get no more room than is found here, whatever another thread learns meanwhile. */
u64 python_bytes(struct stacks *stacks) {
	struct seen_code seen = {.code = 0};
	u64 texts = 0;
	for (u32 i = 0; i < stacks->pythons; i++) {
		u64 key = key_of(&stack_tables->python.layout, stacks->python[i].code, 0, &seen), known = key ? known_code(key) : 0;
		texts += known ? (known >> CODE_FILE_SHIFT & 1023) + (known >> CODE_NAME_SHIFT & 255) : PYTHON_FILE_MOST + PYTHON_NAME_MOST;
	}
	stacks->text_room = (u32)texts;
	return texts + 64 * stacks->pythons;
}

/* A bytes object, piece by piece. */
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

/* Six bits in each byte, the lowest first. */
static u64 next_number(struct table *table) {
	u64 value = 0;
	for (u32 shift = 0, byte = 64; byte & 64; shift += 6) {
		byte = next_byte(table);
		if (shift < 60)
			value |= (u64)(byte & 63) << shift;
	}
	return value;
}

/* The line of an instruction, 0: it has none. The form of the table: Objects/locations.md of CPython (InternalDocs/code_objects.md since 3.13). */
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

/* Where it has more than `most` bytes, or more than are `left`, it is empty. */
static u8 *put_text_of(struct state *state, u8 *at, u64 text, u64 most, u64 *left) {
	u8 bytes[PYTHON_FILE_MOST + 17];
	struct path path;
	u64 count = read_text(bytes, text, most < *left ? most : *left);
	*left -= count == UNREADABLE ? 0 : count;
	look_at(&path, bytes);
	return put_path(state, 0, at, &path);
}

/* Of each frame the file, the function and the line. */
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
