/* The program's other code: calls that it makes itself, past libc, are not seen. What is loaded is noted. A part of record.c, kept apart for
 * reading. */

/* So that the recorder can look whether it makes calls of its own. (Where all places are taken it can't.) */
static void note_other(const char *name)
{
	struct path path;
	look_at(&path, (const u8 *)name);
	if (name[0] != '/' || path.bytes > MODULE_NAME)
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

/* mmap has returned. The dynamic linker loads what the program asks for later (dlopen; also a libc of its own: dlmopen). */
static __attribute__((noinline)) void has_loaded(const u64 *arguments, s64 result)
{
	u8 link[LINK_BYTES], name[MODULE_NAME + 1];
	if (!(arguments[2] & PROT_EXEC) || !(arguments[3] & MAP_DENYWRITE) || (arguments[3] & MAP_ANONYMOUS) || confined || failed(result))
		return;
	put_descriptor(link, (s32)arguments[4]);
	long bytes = kernel3(SYS_readlink, link, name, sizeof(name));
	/* A longer one is cut off. */
	if (failed(bytes) || bytes == sizeof(name))
		return;
	name[bytes] = 0;
	note_other((const char *)name);
}
