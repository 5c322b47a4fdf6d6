/* Reads Python's frames, to find the lines of source from which a call is made. The recorder reads the memory
 * of CPython in this process, without its lock and without calling its functions. docs/decisions/0047
 * explains why that is safe.
 *
 * A thread's frames and their code exist as long as the thread runs them, and only the thread itself changes
 * them. Still, a page is read only after the kernel has confirmed that it is present; the recorder discards
 * this knowledge before the page is unmapped. */

#include "stacks.h"

enum { WALKED_MOST = 4096, SLOTS_FROM = 0x310, SLOTS = 32, SLOT = 16, TRIES = 16, ASKED_AGAIN = 63 };
enum { HASH_AT = 24, NAME_KEYED = 1024, LINES_KEYED = 256 };

static u64 word_in(u64 from) {
	u64 word;
	return copy_in(&word, (const void *)from, 8) == 8 ? word : 0;
}

static ALWAYS u64 *page_place(u64 page) { return &stack_tables->pages[page * 0x9e3779b97f4a7c15ul >> 55 & (PYTHON_PAGES - 1)]; }

/* Whether the page is present, according to the kernel. Notes the page unless memory was unmapped during the
 * query. */
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

/* Whether `bytes` bytes at `at` are readable. With `keep` the kernel is queried about unknown pages. */
static ALWAYS int is_there(u64 at, u64 bytes, int keep) {
	u64 first = at >> 12, last = (at + bytes - 1) >> 12;
	return first && !(at & 7) && page_is_there(first, keep) && (likely(first == last) || page_is_there(last, keep));
}

/* Copies memory of a code object that this thread is running: all bytes or none, from up to two pages.
 * Returns the number of bytes. If a page is not noted as present (another thread has just unmapped memory, or
 * noted another page in the same slot), the kernel does the reading. */
u64 copy_live(void *to, u64 from, u64 count) {
	u64 first = from >> 12, last = (from + count - 1) >> 12;
	if (!first)
		return 0;
	if (!page_is_there(first, 1) || (last != first && !page_is_there(last, 1)))
		return copy_in(to, (const void *)from, count) == count ? count : 0;
	put_bytes(to, (const u8 *)from, count);
	return count;
}

/* Waits until no other thread is reading Python's memory, up to a limit. A thread that reads has a nonzero
 * level. */
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

/* Whether the frames of the thread with this interpreter state may be read. An interpreter that shuts down
 * frees the memory of all threads except the one that shuts it down. So the recorder waits once for other
 * threads to finish reading: at the first call of that thread, or before memory is unmapped. In the latter
 * case `thread` is 0. */
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

/* Forgets the pages of a range that the program is about to unmap, or has unmapped. */
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

/* Called in the child of a fork: it lacks some pages of its parent (MADV_DONTFORK), and the thread that may
 * have taken code_pages. */
void forget_pages_of_parent(u32 process) {
	if (!stack_tables || __atomic_exchange_n(&stack_tables->process, process, __ATOMIC_SEQ_CST) == process)
		return;
	stack_tables->pages_taken = 0;
	if (stack_tables->python.runtime)
		for (u32 i = 0; i < PYTHON_PAGES; i++)
			set(stack_tables->pages[i], 0);
}

/* Returns the interpreter's state for the thread with this thread pointer; 0 if none was found. */
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

/* Finds python->slot. CPython stores the thread's state as thread-specific data (pthread_setspecific); glibc
 * keeps the first 32 keys in its descriptor of the thread. */
static NOINLINE void learn_slot(struct python *python, u64 pointer) {
	u64 slots[SLOTS * SLOT / 8], thread;
	/* Before Python is initialized, no thread has a state. */
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

/* Finds the parts of a code object that are read. Returns 0 if their pages are not present. */
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

/* Whether `seen` still describes this code object, and no memory was unmapped since. */
static ALWAYS int is_seen(const struct layout *layout, u64 code, const struct seen_code *seen) {
	return code && seen->code == code && seen->unmapped == *(const volatile u64 *)&stack_tables->unmapped &&
	       seen->file == *(const u64 *)(code + layout->file) && seen->lines == *(const u64 *)(code + layout->lines) &&
	       seen->name_bytes == *(const u64 *)(seen->file + SIZE_AT) && seen->line_bytes == *(const u64 *)(seen->lines + SIZE_AT);
}

/* Returns a hash that distinguishes a code object from others that were at the same address before. */
static ALWAYS u64 key_of(const struct layout *layout, u64 code, int keep, struct seen_code *seen) {
	if (unlikely(!is_seen(layout, code, seen)) && !see_code(layout, code, keep, seen))
		return 0;
	/* Code objects made by compile() or exec() often differ only in the end of the file's name, or in a
	 * few lines. */
	u64 file = seen->file, lines = seen->lines, name_bytes = seen->name_bytes, line_bytes = seen->line_bytes;
	name_bytes = name_bytes < NAME_KEYED ? name_bytes : NAME_KEYED;
	line_bytes = line_bytes < LINES_KEYED ? line_bytes & ~7ul : LINES_KEYED;
	/* The products do not depend on each other, so that the processor computes them in parallel. */
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

static ALWAYS u64 known_code(u64 key) {
	const volatile struct known_rule *ways = codes_like(key);
	for (u32 i = 0; i < PYTHON_WAYS; i++) {
		u64 known = ways[i].rule;
		if ((ways[i].check ^ disguised(known)) == key && known)
			return known;
	}
	return 0;
}

static NOINLINE u64 learn_code(u64 code, u64 key) {
	u64 known = facts_of_code(code);
	if (!known)
		return 0;
	struct known_rule *ways = codes_like(key), *way = &ways[stack_tables->turn++ % PYTHON_WAYS];
	for (u32 i = 0; i < PYTHON_WAYS; i++)
		if (!ways[i].rule)
			way = &ways[i];
	set(way->rule, known);
	set(way->check, key ^ disguised(known));
	return known;
}

/* Sets *frame to this thread's innermost Python frame, 0 if it has none. */
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
	/* This word is in glibc's descriptor of the thread itself, and so always readable. */
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
		/* Usually the structure is on this thread's stack, whose pages are known to be present. */
		running += layout->frame;
		if ((running < stacks->low || running >= stacks->top || running & 7) && unlikely(!is_there(running, 8, keep)))
			return keep || !running ? WHOLE : UNKNOWN_RULE;
		running = *(const volatile u64 *)running;
	}
	*frame = running;
	return WHOLE;
}

/* Walks this thread's Python frames from the innermost to their callers. Sets *found to whether one of them
 * is the user's own code, not a package's. */
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
		/* STACKS_SITES records frames up to the first one of the user's own code, and its caller if that is
		 * own code, too. */
		if (which == STACKS_SITES && *found && !(known & CODE_OWN))
			break;
		/* If there are too many frames, the last entry is reserved for the first frame of the user's
		 * own code. */
		if (count >= PYTHONS_MOST - 1 && which == STACKS_SITES && !(known & CODE_OWN))
			continue;
		if (count >= PYTHONS_MOST)
			break;
		if (keep)
			stacks->python[count] = (struct python_frame){code, at};
		count++;
		*hash = mix(*hash, key ^ at);
		if (known & CODE_OWN) {
			if (which == STACKS_SITES && *found)
				break;
			*found = 1;
		}
	}
	if (keep)
		stacks->pythons = count;
	return WHOLE;
}

/* Returns the maximum number of bytes that put_python() writes. Its texts are limited to the room computed
 * here, even if another thread adds a code object to the tables in between. */
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
