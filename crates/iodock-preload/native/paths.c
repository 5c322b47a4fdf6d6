/* Decides which paths of calls are readable, and writes paths to records. */

#include "recorder.h"

/* Whether only the look-up of a path gives this error, so that the kernel has read the path. */
static inline int is_of_lookup(s64 result) {
	return result == -ENOENT || result == -ENOTDIR || result == -EEXIST || result == -ELOOP || result == -EISDIR ||
	       result == -ENOTEMPTY;
}

/* Whether the call's output buffer has overwritten the path's end. The values and handles that these calls
 * write do not end with a zero. */
static inline int is_overwritten(const u64 *arguments, u32 path, u64 buffer, u64 bytes) {
	u64 text = arguments[path], before = buffer - text;
	if (buffer <= text)
		return text < buffer + bytes;
	return text && bytes && before < PATH_LIMIT && length((const u8 *)text, before) == before;
}

#define HANDLE_BYTES 136

/* Whether the kernel has read the path of a successful call, and the path is still in memory. */
static inline int is_there_still(u64 number, const u64 *arguments, s64 result) {
	switch (number) {
	case SYS_readlink: case SYS_listxattr: case SYS_llistxattr:
		return !is_overwritten(arguments, 0, arguments[1], (u64)result);
	case SYS_getxattr: case SYS_lgetxattr:
		return !is_overwritten(arguments, 0, arguments[2], (u64)result);
	case SYS_readlinkat: case SYS_listxattrat:
		return !is_overwritten(arguments, 1, arguments[number == SYS_readlinkat ? 2 : 3], (u64)result);
	case SYS_getxattrat:
		/* The address of the value is in a structure that the call may have overwritten, too. If the value
		 * is empty, nothing was overwritten. */
		return !result;
	case SYS_name_to_handle_at:
		return !is_overwritten(arguments, 1, arguments[2], HANDLE_BYTES);
	case SYS_utimensat: {
		/* If the call changes neither time, the kernel does not read the path. */
		const s64 *times = (const s64 *)arguments[2];
		return !times || times[1] != UTIME_OMIT || times[3] != UTIME_OMIT;
	}
	case SYS_mount_setattr:
		/* Here too the kernel may not read the path, and the recorder does not check in which cases. */
		return 0;
	default:
		return 1;
	}
}

/* Whether the kernel has read the path. A call may fail before that, and then the pointer may be invalid. The
 * calls listed here often fail, and their errors show that the path was read. */
int path_was_read(u64 number, const u64 *arguments, s64 result) {
	if (result >= 0)
		return is_there_still(number, arguments, result);
	switch (number) {
	case SYS_readlink: case SYS_readlinkat:
		/* EINVAL means that the file is no symbolic link, or that the buffer's size is not positive; then the
		 * kernel has not read the path. */
		return is_of_lookup(result) || (result == -EINVAL && (s32)arguments[number == SYS_readlink ? 2 : 3] > 0);
	case SYS_open: case SYS_openat: case SYS_stat: case SYS_lstat: case SYS_newfstatat: case SYS_statx:
	case SYS_access: case SYS_faccessat: case SYS_faccessat2: case SYS_chdir:
	case SYS_unlink: case SYS_unlinkat: case SYS_mkdir: case SYS_mkdirat: case SYS_rmdir:
		return is_of_lookup(result);
	case SYS_getxattr: case SYS_lgetxattr:
		return result == -ENODATA || result == -EOPNOTSUPP;
	default:
		return 0;
	}
}

/* Returns the next eight bytes of a text. Does not read the next page if the text ends before it. */
static inline u64 word_at(const u8 *text) {
	if (likely(((u64)text & 4095) <= 4096 - 8))
		return *(const unaligned_u64 *)text;
	const aligned_u64 *words = (const aligned_u64 *)((u64)text & ~7ul);
	u32 bits = 8 * ((u64)text & 7);
	u64 word = words[0] >> bits;
	return zero_bytes(word | ~0ul << (64 - bits)) ? word : word | words[1] << (64 - bits);
}

/* Determines the length and the hash of a path and copies it, all in one loop. The end of each loop is a
 * mispredicted branch, which takes longer than all other work. */
ALWAYS void look_at(struct path *path, const u8 *text) {
	u64 hash = HASH_BEGIN, at = 0, word, zeros;
	path->text = text;
	while (!(zeros = zero_bytes(word = word_at(text + at))) && at < PATH_LIMIT - 8) {
		hash = mix(hash, word);
		if (likely(at < LAST_PATH))
			path->words[at / 8] = word;
		at += 8;
	}
	word &= zeros ? text_before(zeros) : ~0ul;
	if (likely(at < LAST_PATH)) {
		path->words[at / 8] = word;
		path->words[at / 8 + 1] = 0;
	}
	path->bytes = at + (zeros ? (u64)__builtin_ctzl(zeros) / 8 : 8);
	path->hash = mix(hash, word) | 1;
}

/* Returns the number of bytes at the beginning that the path and the last new path have in common. */
static inline u64 shared_with_last(const struct state *state, const struct path *path) {
	u64 most = path->bytes < state->last_path_bytes ? path->bytes : state->last_path_bytes;
	for (u64 at = 0; at < most; at += 8) {
		u64 differ = path->words[at / 8] ^ state->last_path[at / 8];
		if (differ)
			return at + (u64)__builtin_ctzl(differ) / 8;
	}
	return most;
}

/* Writes the part that differs from the last new path, and stores the path as the last one, in one pass. */
static inline u8 *put_rest(struct state *state, u8 *at, const struct path *path, u64 shared) {
	u64 count = path->bytes - shared, i = shared / 8;
	if (unlikely(path->bytes >= LAST_PATH)) {
		for (; i < LAST_PATH / 8; i++)
			state->last_path[i] = path->words[i];
		state->last_path_bytes = LAST_PATH;
		/* The first LAST_PATH bytes are written from the copy, because another thread may have changed the
		 * text since. */
		at = put_bytes(at, (const u8 *)path->words + shared, LAST_PATH - shared);
		return put_bytes(at, path->text + LAST_PATH, path->bytes - LAST_PATH);
	}
	u8 *to = at;
	const u8 *from = (const u8 *)path->words + shared;
	for (; i <= path->bytes / 8; i++, to += 8, from += 8) {
		state->last_path[i] = path->words[i];
		*(unaligned_u64 *)to = *(const unaligned_u64 *)from;
	}
	state->last_path_bytes = path->bytes;
	return at + count;
}

ALWAYS struct cached *ways_of(struct state *state, u64 hash) {
	return state->cache[hash >> 1 & (CACHED_PATHS / PATH_WAYS - 1)];
}

/* Returns the path's number in this chunk, 0 if the cache does not have it. */
ALWAYS u64 known_path(const struct cached *ways, u64 hash) {
	u64 index = 0;
	/* The loop compares all ways without a branch, which would often be mispredicted. */
#pragma GCC unroll 4
	for (u32 i = 0; i < PATH_WAYS; i++)
		index = ways[i].hash == hash ? ways[i].index : index;
	return index;
}

/* Stores the path in the cache in place of the oldest of these ways. */
ALWAYS void keep_path(struct cached *ways, u64 hash, u64 index) {
#pragma GCC unroll 4
	for (u32 i = PATH_WAYS - 1; i > 0; i--)
		ways[i] = ways[i - 1];
	ways[0] = (struct cached){hash, index};
}

/* Writes a new path: a 0, the number of bytes that it shares with the last new path, the number of other
 * bytes, and these bytes. Paths are numbered from 1 in each chunk. */
static NOINLINE u8 *put_new_path(struct state *state, u32 level, u8 *at, const struct path *path) {
	struct stream *stream = &state->streams[level];
	stream->paths++;
	if (unlikely(level))
		return put_bytes(put(put(put(at, 0), 0), path->bytes), path->text, path->bytes);
	u64 shared = shared_with_last(state, path);
	keep_path(ways_of(state, path->hash), path->hash, stream->paths);
	return put_rest(state, put(put(put(at, 0), shared), path->bytes - shared), path, shared);
}

/* Writes the path, or only its number if this chunk already contains it. */
ALWAYS u8 *put_path(struct state *state, u32 level, u8 *at, const struct path *path) {
	u64 index = level ? 0 : known_path(ways_of(state, path->hash), path->hash);
	return likely(index) ? put(at, index) : put_new_path(state, level, at, path);
}

/* Copies memory that may be unmapped. Returns the number of bytes, or an error. `of_process` is a process
 * that uses this memory: this one, or the parent of a child of vfork. */
static long ask_kernel(u32 of_process, void *to, const void *from, u64 count) {
	u64 into[2] = {(u64)to, count}, source[2] = {(u64)from, count};
	return kernel(SYS_process_vm_readv, (long)of_process, (long)into, 1, (long)source, 1, 0);
}

/* Copies several pieces of this process's memory, which may be unmapped. Returns the number of bytes, or an
 * error. */
long read_pieces(void *to, u64 bytes, const void *pieces, u64 count) {
	u64 into[2] = {(u64)to, bytes};
	return kernel(SYS_process_vm_readv, kernel0(SYS_getpid), (long)into, 1, (long)pieces, (long)count, 0);
}

static long ask_for(void *to, const void *from, u64 count) {
	const struct state *state = own;
	/* The known process id is not used in a child of vfork, whose id differs from its parent's. */
	u32 of_process = state && state->taken == TAKEN && state->pid == state->owner ? state->owner : 0;
	return ask_kernel(of_process ? of_process : (u32)kernel0(SYS_getpid), to, from, count);
}

/* Reads one word that may be unmapped. If a container forbids process_vm_readv, a futex call that wakes no
 * thread shows whether the word is readable. */
int ask_for_word(u64 *to, const u64 *from) {
	long got = ask_for(to, from, sizeof(*to));
	if (got != -EPERM && got != -ENOSYS)
		return got == sizeof(*to);
	got = kernel(SYS_futex, (long)from, FUTEX_CMP_REQUEUE_PRIVATE, 0, 0, (long)from, 0);
	if ((u64)from & 7 || (got && got != -EAGAIN))
		return 0;
	*to = *(const volatile u64 *)from;
	return 1;
}

/* Copies from memory that may be unmapped. Returns the number of bytes that could be read. */
u64 copy_in(void *to, const void *from, u64 count) {
	long result = ask_for(to, from, count);
	return failed(result) ? 0 : (u64)result;
}

/* Copies a path that may be unmapped, page by page, because the page after the path's end may be unmapped.
 * `to` has space for PATH_LIMIT + 1 bytes. Returns 0 if the path can't be read. */
int copy_path(u8 *to, const u8 *from) {
	for (u64 done = 0; done < PATH_LIMIT;) {
		u64 count = 4096 - ((u64)(from + done) & 4095);
		/* Most paths are shorter than 256 bytes. */
		u64 most = done ? PATH_LIMIT - done : 256;
		if (count > most)
			count = most;
		if (copy_in(to + done, from + done, count) != count)
			return 0;
		u64 found = length(to + done, count);
		done += found;
		to[done] = 0;
		if (found < count)
			return 1;
	}
	return 1;
}
