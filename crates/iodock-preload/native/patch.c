/* Redirects the system-call sites of libc and other modules to the stub. For each module the recorder has
 * prepared a text with jumps, and trampolines at a fixed distance from it. This code maps both. If the
 * trampolines' address is not free, or the text must not be replaced (map_text), it writes the jumps to the
 * text in memory. */

#include "recorder.h"

#define JUMP_BYTES 5
/* Largest distance of the trampolines from a module: the reach of a jump, minus the largest size of both. */
#define REACH 0x7f000000l
/* Bits of an entry of /proc/self/pagemap. PAGE_THERE: the page is in memory, or swapped out. */
#define PAGE_THERE (3ul << 62)
#define PAGE_OF_FILE (1ul << 61)
#define SOME_PAGES 256
/* Since Linux 6.7 one call queries all pages: see linux/fs.h. */
#define PAGEMAP_SCAN 0xc0606610
#define CATEGORY_FILE 4
#define CATEGORY_THERE 24

struct page_scan {
	u64 bytes, flags, start, end, walk_end, regions, most_regions, most_pages;
	u64 inverted, all_of, any_of, wanted;
};

/* Finds a module's build id. Returns its length, 0 if there is none. */
static u32 build_id(const struct elf *elf, const u8 **found) {
	const struct segment *segment = (const struct segment *)((const u8 *)elf + elf->segments_at);
	for (u32 i = 0; i < elf->segments; i++) {
		if (segment[i].type != PT_NOTE)
			continue;
		const u8 *at = (const u8 *)elf + segment[i].address;
		const u32 *note = find_note(at, segment[i].memory_bytes, NT_GNU_BUILD_ID, NAME_GNU);
		if (note) {
			*found = (const u8 *)(note + 4);
			return note[1];
		}
	}
	return 0;
}

static const struct module *module_of(const u8 *id, u32 bytes) {
	const u8 *at = (const u8 *)session + session->sites_at;
	const u8 *end = at + session->sites_bytes;
	while (at + sizeof(struct module) <= end) {
		const struct module *module = (const struct module *)at;
		u32 same = module->build_id_bytes == bytes;
		for (u32 i = 0; same && i < bytes; i++)
			same = module->build_id[i] == id[i];
		if (same)
			return module;
		at += module->bytes;
	}
	return 0;
}

/* Corrects the addresses in the trampolines that refer to the module, which are relative. The trampolines are
 * mapped `farther` bytes below the address for which the recorder computed them. */
static void correct(u8 *trampolines, const struct module *module, s64 farther) {
	const u32 *moved = (const u32 *)((const struct site *)(module + 1) + module->sites);
	for (u32 i = 0; i < module->moved; i++)
		*(unaligned_u32 *)(trampolines + moved[i]) += (u32)farther;
}

/* Maps the trampolines, DISTANCE below the module if that address is free. Returns 0 if they can't be mapped
 * within reach of a jump. */
static u8 *map_trampolines(const struct module *module, const u8 *load) {
	const u8 *wanted = load - DISTANCE;
	u64 bytes = module->trampolines_bytes;
	long prot = PROT_READ | PROT_WRITE;
	long at = kernel(SYS_mmap, (long)wanted, (long)bytes, prot, MAP_PRIVATE | MAP_FIXED_NOREPLACE, session_file, (long)module->trampolines_at);
	if (failed(at))
		at = kernel(SYS_mmap, 0, (long)bytes, prot, MAP_PRIVATE, session_file, (long)module->trampolines_at);
	if (failed(at))
		return 0;
	u8 *trampolines = (u8 *)at;
	if (load - trampolines > -REACH && load - trampolines < REACH) {
		*(struct entries *)trampolines = (struct entries){iodock_stub, iodock_before, iodock_after, iodock_guarded};
		if (trampolines != wanted)
			correct(trampolines, module, wanted - trampolines);
		if (!failed(kernel3(SYS_mprotect, trampolines, bytes, PROT_READ | PROT_EXEC))) {
			note_span(trampoline_spans, trampolines, bytes);
			return trampolines;
		}
	}
	kernel2(SYS_munmap, trampolines, bytes);
	return 0;
}

/* Returns a hash of fields of struct stat: device, inode, size, and the time of the last modification. */
static u64 identity(const u64 *status) {
	const u64 told[] = {status[0], status[1], status[6], status[11], status[12]};
	u64 hash = 0;
	for (u32 i = 0; i < sizeof(told) / sizeof(*told); i++)
		hash = mix(hash, told[i]);
	return hash;
}

/* Whether this is the file that the recorder has read. The build id is not enough, because another file may
 * have the same one. */
static int is_same_file(const struct module *module, const char *name) {
	u64 status[STAT_WORDS];
	return !failed(kernel2(SYS_stat, name, status)) && identity(status) == module->file;
}

/* Whether no page of the text was changed in memory. Breakpoints, and patches by other libraries, must be
 * kept. */
static int is_untouched(const struct module *module, const u8 *load, long pagemap) {
	u64 pages[SOME_PAGES], at = (u64)(load + module->text_from) / 4096, left = module->text_bytes / 4096;
	struct page_scan scan = {
		.bytes = sizeof(scan), .start = at * 4096, .end = (at + left) * 4096,
		.regions = (u64)pages, .most_regions = 1, .most_pages = 1,
		.inverted = CATEGORY_FILE, .all_of = CATEGORY_FILE, .any_of = CATEGORY_THERE, .wanted = CATEGORY_THERE,
	};
	long found = kernel3(SYS_ioctl, pagemap, PAGEMAP_SCAN, &scan);
	if (!failed(found))
		return found == 0;
	while (left) {
		u64 count = left < SOME_PAGES ? left : SOME_PAGES;
		if (kernel(SYS_pread64, pagemap, (long)pages, (long)count * 8, (long)at * 8, 0, 0) != (long)count * 8)
			return 0;
		for (u64 i = 0; i < count; i++)
			if ((pages[i] & PAGE_THERE) && !(pages[i] & PAGE_OF_FILE))
				return 0;
		at += count;
		left -= count;
	}
	return 1;
}

/* Opens the file with a patched text. Returns a negative number if it does not exist, or was not written by
 * the recorder. */
static long open_text(const struct module *module) {
	u64 status[STAT_WORDS];
	char path[sizeof(session->texts) + 32];
	u8 *at = put_text((u8 *)path, session->texts);
	at = put_text(at, "/text-");
	for (u32 digit = 16; digit--;)
		*at++ = (u8) "0123456789abcdef"[module->text_number >> 4 * digit & 15];
	*at = 0;
	long file = kernel3(SYS_open, path, O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0);
	/* The owner is checked too, because another user could create a file with the same times. */
	if (failed(file) || (!failed(kernel2(SYS_fstat, file, status)) && (u32)(status[3] >> 32) == session->owner &&
			     identity(status) == module->text_file))
		return file;
	kernel1(SYS_close, file);
	return -1;
}

static int map_text_over(const struct module *module, const u8 *load) {
	long file = module->text_number ? open_text(module) : session_file;
	if (failed(file))
		return 0;
	long at = kernel(SYS_mmap, (long)(load + module->text_from), module->text_bytes, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, file,
			 (long)module->text_at);
	if (module->text_number)
		kernel1(SYS_close, file);
	if (!failed(at))
		note_span(text_spans, (const u8 *)at, module->text_bytes);
	return !failed(at);
}

/* Maps the patched text over the module. With WATCH_ALL it does not, so that page faults are attributed to
 * the library's own file. */
static int map_text(const struct module *module, const struct link *link, long pagemap) {
	u8 *load = (u8 *)link->load;
	return (module->text_at || module->text_number) && session->watch_from != WATCH_ALL && is_same_file(module, link->name) &&
	       is_untouched(module, load, pagemap) && map_text_over(module, load);
}

static int write_jumps(const struct module *module, u8 *load, const u8 *trampolines) {
	const struct site *sites = (const struct site *)(module + 1);
	u8 *first = (u8 *)((u64)(load + sites[0].at) & ~4095ul);
	u64 bytes = (u64)(load + sites[module->sites - 1].at + JUMP_BYTES - first + 4095) & ~4095ul;
	if (failed(kernel3(SYS_mprotect, first, bytes, PROT_READ | PROT_WRITE)))
		return 0;
	for (u32 i = 0; i < module->sites; i++) {
		u8 *at = load + sites[i].at;
		*at = 0xe9;
		put_fixed(at + 1, (u64)(trampolines + sites[i].trampoline - (at + JUMP_BYTES)), 4);
	}
	kernel3(SYS_mprotect, first, bytes, PROT_READ | PROT_EXEC);
	return 1;
}

/* Patches one module. Returns the number of sites that jump to the stub. */
static u32 patch(const struct link *link, const struct module *module, long pagemap) {
	u8 *load = (u8 *)link->load;
	u8 *trampolines = module->sites ? map_trampolines(module, load) : 0;
	u32 is_patched = trampolines && ((trampolines == load - DISTANCE && map_text(module, link, pagemap)) ||
					 write_jumps(module, load, trampolines));
	u32 done = is_patched ? module->sites : 0;
	__atomic_fetch_add(&session->sites_patched, done, __ATOMIC_RELAXED);
	__atomic_fetch_add(&session->sites_left, module->left + module->sites - done, __ATOMIC_RELAXED);
	return done;
}

/* Patches all modules. Returns the total number of sites. */
u32 patch_all(struct link *link, const char *program) {
	u32 done = 0;
	long pagemap = kernel3(SYS_open, "/proc/self/pagemap", O_CLOEXEC, 0);
	for (; link; link = link->next) {
		/* A main program that is not position independent has load address 0, and is skipped. */
		const struct elf *elf = (const struct elf *)link->load;
		const u8 *id;
		const struct module *module;
		if (!elf || *(const u32 *)elf != ELF_MAGIC)
			continue;
		u32 id_bytes = build_id(elf, &id);
		if (id_bytes && (module = module_of(id, id_bytes)) != 0)
			done += patch(link, module, pagemap);
		else
			note_loaded(link->name[0] ? link->name : program);
	}
	if (!failed(pagemap))
		kernel1(SYS_close, pagemap);
	return done;
}
