/* Maps parts of the session's file. */

#include "recorder.h"

/* Creates the pages from `from` up to `end`. Otherwise the first access to a page for which the file system
 * has no space would raise SIGBUS. Returns 0 if there is no space. */
int populate(u8 *from, u8 *end) {
	long result = kernel3(SYS_madvise, from, end - from, MADV_POPULATE_WRITE);
	/* Other errors are ignored: Linux before 5.14 does not support this advice, and a container may forbid
	 * it. */
	return result != -EFAULT && result != -ENOMEM && result != -EHWPOISON;
}

/* Whether a resource limit is set. Then the recorder uses less of the resource, and leaves it to the
 * program. */
int is_limited(u64 resource) {
	u64 limit[2];
	return failed(kernel(SYS_prlimit64, 0, (long)resource, 0, (long)limit, 0, 0)) || limit[0] != RLIM_INFINITY;
}

/* Maps `bytes` bytes of the session's file from offset `at`, over the mapping `memory`, or at a new address
 * if that is 0. It duplicates the header's mapping and redirects the copy to another part of the file. This
 * needs no descriptor, no path, and no permission to open the file again. */
u8 *map_part(u8 *memory, u64 at, u64 bytes) {
	if (!memory) {
		long new = kernel(SYS_mremap, (long)session, 0, (long)bytes, MREMAP_MAYMOVE, 0, 0);
		if (failed(new))
			return 0;
		memory = (u8 *)new;
	}
	/* If remap_file_pages fails, the mapping may be gone, so it is not unmapped here. */
	return failed(kernel(SYS_remap_file_pages, (long)memory, (long)bytes, 0, (long)(at >> 12), MAP_NONBLOCK, 0)) ? 0 : memory;
}

static u8 *map_by(u8 *memory, long file, u64 at, u64 bytes) {
	u64 fixed = memory ? MAP_FIXED : 0;
	long new = kernel(SYS_mmap, (long)memory, (long)bytes, PROT_READ | PROT_WRITE, (long)(MAP_SHARED | fixed), file, (long)at);
	return failed(new) ? 0 : (u8 *)new;
}

/* Maps a part of the file through a descriptor, if the kernel has no remap_file_pages. The new mapping
 * replaces the old one at the same address, because an interrupted coroutine may still write a record
 * there. */
static u8 *open_part(u8 **memory, u64 at, u64 bytes) {
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

/* Maps the chunk at `at` of the file. Returns 0 if that fails. */
u8 *chunk_memory(u8 **memory, u64 at) {
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
