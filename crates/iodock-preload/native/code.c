/* Finds the file whose code contains an address. The kernel copies the dynamic linker's list of modules for
 * this, because the list may change at any moment. */

#include "stacks.h"

enum { MODULES_ASKED = 4096, SEGMENTS_MOST = 24, REACH_MOST = 1 << 30 };
#define PT_GNU_EH_FRAME 0x6474e550
#define SEGMENT_EXECUTABLE 1

/* Folders of installed files; iodock-event/src/stacks.rs has the same list. */
static const char *const INSTALLED[] = {"/usr/", "/lib/", "/lib32/", "/lib64/", "/libx32/", "/bin/", "/sbin/", "/nix/store/", "["};
static const char *const PACKAGES[] = {"/site-packages/", "/dist-packages/", "/lib/python3.", "/bin/python3.", "/libpython3."};
#define COUNT(list) (sizeof(list) / sizeof(*(list)))

int is_installed(const char *name) {
	for (u32 i = 0; i < COUNT(INSTALLED); i++)
		if (begins((const u8 *)name, INSTALLED[i]))
			return 1;
	for (; *name; name++)
		for (u32 i = 0; i < COUNT(PACKAGES); i++)
			if (*name == '/' && begins((const u8 *)name, PACKAGES[i]))
				return 1;
	return 0;
}

/* Copies bytes of a mapped module, whose content stays the same until other code is loaded. Whole pages are
 * cached, because a system call takes longer than all work on its result. While another thread uses the
 * cache, the bytes are copied without it. Returns the number of bytes. */
u64 copy_code(void *to, u64 from, u64 count) {
	struct stack_tables *tables = stack_tables;
	u64 page = from / CODE_PAGE, place = page % CODE_PAGES, loads = *(volatile u32 *)&tables->loads, done = 0;
	if ((from + count - 1) / CODE_PAGE != page || __atomic_exchange_n(&tables->pages_taken, 1, __ATOMIC_ACQUIRE))
		return copy_in(to, (const void *)from, count);
	if (tables->code_keys[place].page != page || tables->code_keys[place].loads != loads) {
		tables->code_keys[place].page = 0;
		if (copy_in(tables->code_pages[place], (const void *)(page * CODE_PAGE), CODE_PAGE) == CODE_PAGE)
			tables->code_keys[place].loads = loads, tables->code_keys[place].page = page;
	}
	if (tables->code_keys[place].page == page) {
		put_bytes(to, tables->code_pages[place] + from % CODE_PAGE, count);
		done = count;
	}
	__atomic_store_n(&tables->pages_taken, 0, __ATOMIC_RELEASE);
	return done;
}

/* Copies the name at `from`, or an empty name if it can't be read. The page after the name's end may be
 * unmapped. */
static void copy_name(char *to, u64 from) {
	u64 done = 0;
	while (done < MODULE_NAME) {
		u64 count = 4096 - ((from + done) & 4095);
		count = count < MODULE_NAME - done ? count : MODULE_NAME - done;
		if (copy_in(to + done, (const void *)(from + done), count) != count)
			break;
		u64 found = length((const u8 *)to + done, count);
		done += found;
		if (found < count) {
			to[done] = 0;
			return;
		}
	}
	to[0] = 0;
}

/* Whether a file is in the folder of this library, which also contains the library for interfaces. `library`
 * is a list as in LD_PRELOAD. */
static int is_ours(const char *name) {
	u64 folder = 0;
	for (u64 i = 0; library[i] && library[i] != ':' && library[i] != ' '; i++)
		folder = library[i] == '/' ? i + 1 : folder;
	for (u64 i = 0; i < folder; i++)
		if (name[i] != (char)library[i])
			return 0;
	return folder > 1;
}

static int name_code(struct code *code, const struct link *link, int is_program) {
	if (is_program)
		put_bytes((u8 *)code->name, (const u8 *)stack_tables->program, MODULE_NAME);
	else
		copy_name(code->name, (u64)link->name);
	u64 bytes = length((const u8 *)code->name, MODULE_NAME), folders = 0;
	for (u64 i = 0; i < bytes; i++)
		folders += code->name[i] == '/';
	/* The only module whose name has no folder is the kernel's vDSO. */
	if (bytes && !folders) {
		bytes = 6;
		put_bytes((u8 *)code->name, (const u8 *)"[vdso]", bytes);
	}
	code->name[bytes] = 0;
	code->name_bytes = (u32)bytes;
	code->is_ours = (u16)is_ours(code->name);
	code->is_own = !code->is_ours && !is_installed(code->name);
	code->is_python = (u16)is_python(link);
	return bytes != 0;
}

/* Finds the executable segment that contains pc in the module's headers. Returns 0 if there is none. */
static int look_at_module(struct code *code, const struct link *link, int is_program, u64 pc) {
	struct segment segments[SEGMENTS_MOST];
	u64 at = stack_tables->segments_at, count = stack_tables->segments;
	if (!is_program) {
		struct elf elf;
		if (copy_code(&elf, link->load, sizeof(elf)) != sizeof(elf) || *(const unaligned_u32 *)elf.ident != ELF_MAGIC)
			return 0;
		at = link->load + elf.segments_at;
		count = elf.segments;
	}
	count = count < SEGMENTS_MOST ? count : SEGMENTS_MOST;
	if (copy_code(segments, at, count * sizeof(*segments)) != count * sizeof(*segments))
		return 0;
	code->from = code->table = 0;
	for (u64 i = 0; i < count; i++) {
		u64 from = link->load + segments[i].address;
		if (segments[i].type == PT_GNU_EH_FRAME)
			code->table = from;
		if (segments[i].type != PT_LOAD || !(segments[i].flags & SEGMENT_EXECUTABLE) || pc < from ||
		    pc - from >= segments[i].file_bytes)
			continue;
		code->from = from;
		code->to = from + segments[i].file_bytes;
		code->adjust = from - segments[i].offset;
	}
	return code->from != 0;
}

static int find_module(struct code *code, u64 pc) {
	struct link link, nearest = {0, 0, 0, 0};
	u64 at = (u64)stack_tables->modules, found = 0;
	for (u32 turns = 0; at && turns < MODULES_ASKED; turns++, at = (u64)link.next) {
		if (copy_in(&link, (const void *)at, sizeof(link)) != sizeof(link))
			return 0;
		if (link.load <= pc && (!found || link.load > nearest.load))
			nearest = link, found = at;
	}
	int is_program = found == (u64)stack_tables->modules;
	if (!found || pc - nearest.load > REACH_MOST || !look_at_module(code, &nearest, is_program, pc))
		return 0;
	return name_code(code, &nearest, is_program);
}

u32 code_of(u64 pc) {
	u32 count = __atomic_load_n(&stack_tables->count, __ATOMIC_ACQUIRE);
	for (u32 i = 0; i < count && i < CODES_MOST; i++)
		if (pc >= stack_tables->codes[i].from && pc < stack_tables->codes[i].to)
			return i + 1;
	struct code found;
	if (count >= CODES_MOST || !find_module(&found, pc))
		return 0;
	/* If a signal handler leaves by longjmp after it took a slot and before it filled it, the slot stays
	 * empty. */
	u32 place = __atomic_fetch_add(&stack_tables->count, 1, __ATOMIC_RELAXED);
	if (place >= CODES_MOST)
		return 0;
	struct code *code = &stack_tables->codes[place];
	u64 to = found.to;
	found.to = 0;
	put_bytes((u8 *)code, (const u8 *)&found, sizeof(found));
	set(code->to, to);
	return place + 1;
}

/* Whether STACKS_SITES may need frames of that file: because it is the user's own code, or Python's library.
 * A name without a folder belongs to the kernel's vDSO. */
static int has_own_code(const char *name) {
	u64 folders = 0;
	for (u64 i = 0; name[i]; i++) {
		if (begins((const u8 *)name + i, "/libpython"))
			return 1;
		folders += name[i] == '/';
	}
	return folders && !is_installed(name) && !is_ours(name);
}

/* Called while the library is being loaded. Most programs that a shell script starts contain no code of the
 * user. For these the recorder walks no stacks until they load such code. */
void find_own_code(void) {
	const struct link *link = stack_tables->modules;
	if (stack_tables->which != STACKS_SITES || !link || has_own_code(stack_tables->program) || is_python(link))
		return;
	for (link = link->next; link; link = link->next)
		if (has_own_code(link->name))
			return;
	stack_tables->idle = 1;
}

/* Called after code of a file was mapped (`name` is empty if the file is unknown). Discards the knowledge
 * about other code at these addresses. */
void code_is_mapped(u64 from, u64 bytes, const char *name) {
	if (!stack_tables)
		return;
	if (stack_tables->idle && (!name[0] || has_own_code(name)))
		set(stack_tables->idle, 0);
	u32 count = stack_tables->count;
	for (u32 i = 0; i < count && i < CODES_MOST; i++) {
		struct code *code = &stack_tables->codes[i];
		if (code->from < from + bytes && code->to > from) {
			set(code->to, 0);
			__atomic_fetch_add(&stack_tables->replaced, 1, __ATOMIC_RELAXED);
		}
	}
	__atomic_fetch_add(&stack_tables->loads, 1, __ATOMIC_RELAXED);
}
