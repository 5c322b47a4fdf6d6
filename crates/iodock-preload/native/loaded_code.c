/* Notes files of code that the program loads at run time. The recorder checks whether they make system calls
 * without libc, because it does not see such calls. */

#include "recorder.h"

/* Notes a loaded file for the check. If all entries are taken, the file is not checked. */
static void note_other(const char *name) {
	struct path path;
	look_at(&path, (const u8 *)name);
	if (path.bytes > MODULE_NAME)
		return;
	for (u32 i = 0; i < MODULES; i++) {
		struct other *other = &session->others[((path.hash >> 1) + i) % MODULES];
		u64 there = 0;
		if (__atomic_compare_exchange_n(&other->hash, &there, path.hash, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
			put_bytes((u8 *)other->name, path.text, path.bytes);
			return;
		}
		if (there == path.hash)
			return;
	}
}

/* Notes a file that was loaded by a path relative to the working directory. A name without a folder belongs
 * to the kernel's vDSO, and is ignored. */
static NOINLINE void note_relative(const char *name) {
	u8 path[2 * PATH_LIMIT];
	u64 bytes = length((const u8 *)name, PATH_LIMIT), folders = 0;
	for (u64 i = 0; i < bytes; i++)
		folders += name[i] == '/';
	long folder = folders && bytes < PATH_LIMIT ? kernel2(SYS_getcwd, path, PATH_LIMIT) : 0;
	if (folder <= 0)
		return;
	path[folder - 1] = '/';
	*put_bytes(path + folder, (const u8 *)name, bytes) = 0;
	note_other((const char *)path);
}

void note_loaded(const char *name) {
	if (name[0] == '/')
		note_other(name);
	else
		note_relative(name);
}

/* Called when mmap has returned: the dynamic linker may have loaded a library (dlopen), or even a second libc
 * (dlmopen). */
NOINLINE void has_loaded(const u64 *arguments, s64 result) {
	u8 name[MODULE_NAME + 2];
	if (!(arguments[2] & PROT_EXEC) || !(arguments[3] & MAP_DENYWRITE) || (arguments[3] & MAP_ANONYMOUS) || failed(result))
		return;
	long bytes = name_of_descriptor(name, MODULE_NAME + 1, (s32)arguments[4]);
	int is_named = !failed(bytes) && bytes <= MODULE_NAME;
	code_is_mapped((u64)result, arguments[1], is_named ? (const char *)name : "");
	if (is_named)
		note_other((const char *)name);
}
