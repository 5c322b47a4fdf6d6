/* The program's other code: calls that it makes itself, past libc, are not seen. What is loaded is noted. A part of record.c, kept apart for
 * reading. */

/* So that the recorder can look whether it makes calls of its own. (Where all places are taken it can't.) */
static void note_other(const char *name)
{
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

/* What is loaded by a path from where the program begins. (Another name without a folder is the kernel's own.) */
static __attribute__((noinline)) void note_relative(const char *name)
{
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

static void note_loaded(const char *name)
{
	if (name[0] == '/')
		note_other(name);
	else
		note_relative(name);
}

/* mmap has returned. The dynamic linker loads what the program asks for later (dlopen; also a libc of its own: dlmopen). */
static __attribute__((noinline)) void has_loaded(const u64 *arguments, s64 result)
{
	u8 link[LINK_BYTES], name[MODULE_NAME + 1];
	if (!(arguments[2] & PROT_EXEC) || !(arguments[3] & MAP_DENYWRITE) || (arguments[3] & MAP_ANONYMOUS) || failed(result))
		return;
	put_descriptor(link, (s32)arguments[4]);
	long bytes = kernel3(SYS_readlink, link, name, sizeof(name));
	/* A longer one is cut off. */
	if (failed(bytes) || bytes == sizeof(name))
		return;
	name[bytes] = 0;
	note_other((const char *)name);
}
