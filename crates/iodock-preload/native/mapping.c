/* Parts of the session's file as memory. A part of record.c, kept apart for reading. */

/* Makes sure that the pages up to `end` are there: a page that the file system has no room for would be
 * a SIGBUS at first touch. */
static int populate(u8 *from, u8 *end)
{
	long result = kernel3(SYS_madvise, from, end - from, MADV_POPULATE_WRITE);
	/* Before Linux 5.14 there is no such advice, and a filter that was there before us may forbid it: trust. */
	return result != -EFAULT && result != -ENOMEM && result != -EHWPOISON;
}

/* A program that may have so much and no more wants it for itself. */
static int is_limited(u64 resource)
{
	u64 limit[2];
	return failed(kernel(SYS_prlimit64, 0, (long)resource, 0, (long)limit, 0, 0)) || limit[0] != RLIM_INFINITY;
}

/* `bytes` of the file from `at` on, in memory that is `memory`, or new if that is 0. No descriptor is needed, nor the right or the way to
 * open the file again: the header's mapping is doubled, and turned to another part of the file. Nothing of it is touched yet. */
static u8 *map_part(u8 *memory, u64 at, u64 bytes)
{
	if (!memory) {
		long new = kernel(SYS_mremap, (long)session, 0, (long)bytes, MREMAP_MAYMOVE, 0, 0);
		if (failed(new))
			return 0;
		memory = (u8 *)new;
	}
	/* If it fails nobody knows what is there now: it is left. */
	return failed(kernel(SYS_remap_file_pages, (long)memory, (long)bytes, 0, (long)(at >> 12), MAP_NONBLOCK, 0)) ? 0 : memory;
}

static u8 *map_by(u8 *memory, long file, u64 at, u64 bytes)
{
	u64 fixed = memory ? MAP_FIXED : 0;
	long new = kernel(SYS_mmap, (long)memory, (long)bytes, PROT_READ | PROT_WRITE, (long)(MAP_SHARED | fixed), file, (long)at);
	return failed(new) ? 0 : (u8 *)new;
}

/* The same for a kernel without that. What is there is not given back first: a record that another coroutine was in the midst of may still
 * be written there. */
static u8 *open_part(u8 **memory, u64 at, u64 bytes)
{
	u8 *old = __atomic_exchange_n(memory, 0, __ATOMIC_RELAXED);
	long file = kernel3(SYS_open, session->session, O_RDWR | O_CLOEXEC, 0);
	if (failed(file)) {
		*memory = old;
		return 0;
	}
	u8 *new = *memory = map_by(old, file, at, bytes);
	kernel1(SYS_close, file);
	return new;
}

/* The chunk at `at` of the file, 0 if there is none. */
static u8 *chunk_memory(u8 **memory, u64 at)
{
	u64 bytes = session->chunk_bytes;
	if (session_file >= 0)
		return *memory = map_by(0, session_file, at, bytes);
	if (descriptors)
		return open_part(memory, at, bytes);
	u8 *old = __atomic_exchange_n(memory, 0, __ATOMIC_RELAXED);
	if ((*memory = map_part(old, at, bytes)) != 0)
		return *memory;
	descriptors = 1;
	return open_part(memory, at, bytes);
}

static int is_in_file(u64 at, u64 bytes)
{
	return at + bytes <= session->file_bytes;
}
