/* Collects the content of a call (its arguments by their roles, and the memory that they point to) and
 * encodes it as a record. */

#include "recorder.h"

u64 vector_sum(const u64 *vector, u64 count) {
	u64 sum = 0;
	for (u64 i = 0; i < count && i < MOST_VECTORS; i++)
		sum += vector[2 * i + 1];
	return sum;
}

#define ANCILLARY_HEADER 16
#define PASSED_DESCRIPTORS (1ul << 32 | 1) /* SOL_SOCKET, SCM_RIGHTS */

/* Returns the length of a message's control data if it passes descriptors, else 0, and sets *control to its
 * address. In struct user_msghdr the address is at offset 32, and the length at 40. */
u64 passing(const u8 *message, const u8 **control) {
	u64 size = *(const u64 *)(message + 40), here, next;
	*control = *(const u8 *const *)(message + 32);
	if (!*control)
		return 0;
	size = size < MOST_ANCILLARY ? size : MOST_ANCILLARY;
	for (u64 at = 0; at + ANCILLARY_HEADER <= size; at += next) {
		if (*(const u64 *)(*control + at + 8) == PASSED_DESCRIPTORS)
			return size;
		here = *(const u64 *)(*control + at);
		next = (here + 7) & ~7ul;
		if (here < ANCILLARY_HEADER || here > MOST_ANCILLARY)
			break;
	}
	return 0;
}

#define SOME_PIECES 8

/* Adds a piece of one byte for each page of the range except page `known`. Returns the number of pieces. */
static u32 pages_of(u64 (*pieces)[2], u64 from, u64 bytes, u64 known) {
	u32 count = 0;
	u64 page = from >> 12, end = page + (bytes ? ((from & 4095) + bytes + 4095) >> 12 : 0);
	for (; page < end; page++)
		if (page != known)
			pieces[count][0] = page << 12, pieces[count++][1] = 1;
	return count;
}

/* Whether the vector and the control data that a message points to are readable. The kernel may have written
 * the received data over the pointers. Usually all are in the same page as the message itself. */
int is_message_there(const u8 *message) {
	u64 vector = *(const u64 *)(message + 16), count = *(const u64 *)(message + 24), known = (u64)message >> 12;
	u64 control = *(const u64 *)(message + 32), size = *(const u64 *)(message + 40), pieces[SOME_PIECES][2];
	u8 bytes[SOME_PIECES];
	if (count > MOST_VECTORS)
		return 0;
	u32 pages = pages_of(pieces, vector, 16 * count, known);
	pages += pages_of(pieces + pages, control, control ? size < MOST_ANCILLARY ? size : MOST_ANCILLARY : 0, known);
	if (!pages)
		return 1;
	long got = read_pieces(bytes, pages, pieces, pages);
	/* If a container forbids the check, the memory is assumed to be readable. */
	return got == pages || got == -EPERM || got == -ENOSYS;
}

static inline void pointed(struct fields *f, u32 role, const u8 *pointer, const u64 *next_argument, s64 result) {
	switch (role) {
	case ROLE_OFFSET_POINTER:
		/* The kernel has advanced the offset by the result. */
		f->has |= HAS_OFFSET, f->offset = *(const s64 *)pointer - result; break;
	case ROLE_OFFSET_POINTER2:
		f->more |= MORE_OFFSET2, f->offset2 = *(const s64 *)pointer - result; break;
	case ROLE_SEEK_POINTER:
		f->has |= HAS_OFFSET, f->offset = *(const s64 *)pointer; break;
	case ROLE_POINTED_FLAGS:
		f->more |= MORE_FLAGS, f->flags = *(const u64 *)pointer; break;
	case ROLE_VECTOR:
		/* The kernel reads only 32 bits of the count. */
		f->has |= HAS_SIZE, f->size = vector_sum((const u64 *)pointer, (u32)*next_argument); break;
	case ROLE_MESSAGE:
		f->has |= HAS_SIZE, f->size = vector_sum(*(const u64 *const *)(pointer + 16), *(const u64 *)(pointer + 24));
		f->text_bytes = passing(pointer, &f->text);
		f->more |= f->text_bytes ? MORE_TEXT : 0; break;
	case ROLE_PAIR:
		f->has |= HAS_FD, f->fd = ((const s32 *)pointer)[0];
		f->more |= MORE_FD2, f->fd2 = ((const s32 *)pointer)[1]; break;
	case ROLE_STAT:
		f->more |= MORE_STAT, f->stat_type = *(const u32 *)(pointer + 24) >> 12 & 15;
		f->stat_size = *(const u64 *)(pointer + 48); break;
	case ROLE_STATX:
		f->more |= MORE_STAT, f->stat_type = *(const u16 *)(pointer + 28) >> 12 & 15;
		f->stat_size = *(const u64 *)(pointer + 40); break;
	default: break;
	}
}

void nothing_yet(struct fields *f) {
	/* The other fields are valid only if one of these masks includes them. */
	f->has = f->more = f->always = 0;
	f->lands = 0;
	f->caller = 0;
	f->path = f->path2 = f->text = 0;
	f->text_bytes = 0;
}

/* Collects the field of one argument. For a vector it also reads the next argument, the vector's length. */
static ALWAYS void gather_one(struct fields *f, u32 role, const u64 *argument, int readable, s64 result) {
	u64 value = *argument;
	switch (role) {
	case ROLE_NONE: break;
	case ROLE_FD:
		f->has |= HAS_FD, f->fd = (s32)value; break;
	case ROLE_FD2:
		f->always |= MORE_FD2, f->fd2 = (s32)value; break;
	case ROLE_SIZE:
		f->has |= HAS_SIZE, f->size = value; break;
	case ROLE_OFFSET:
		f->has |= HAS_OFFSET, f->offset = (s64)value; break;
	case ROLE_FLAGS:
		f->always |= MORE_FLAGS, f->flags = value; break;
	case ROLE_ARGUMENT:
		f->always |= MORE_ARGUMENT, f->argument = (s64)value; break;
	case ROLE_PATH:
		if (value && readable)
			f->more |= MORE_PATH, f->path = (const u8 *)value;
		break;
	case ROLE_PATH2:
		if (value && readable)
			f->more |= MORE_PATH2, f->path2 = (const u8 *)value;
		break;
	default:
		/* Follows a pointer only if the kernel has just read or written the memory. */
		if (value && result >= 0)
			pointed(f, role, (const u8 *)value, argument + 1, result);
	}
}

void gather(struct fields *f, const struct shape *shape, const u64 *arguments, s64 result) {
	u64 roles = *(const u64 *)shape >> 16, number = (u64)(shape - session->shapes);
	int readable = path_was_read(number, arguments, result);
	if (unlikely(number == SYS_recvmsg && result >= 0 && !is_message_there((const u8 *)arguments[1])))
		roles &= 255;
	/* If there is nothing to move, the kernel has not read the offsets. */
	if (unlikely(number == SYS_splice && !arguments[4]))
		result = -1;
	for (; roles; roles >>= 8, arguments++)
		gather_one(f, roles & 255, arguments, readable, result);
	f->more |= f->always;
}

/* Reads the name of a descriptor's file from /proc, and adds a NUL. Returns the length without it, or an
 * error. A name longer than `most` is cut. */
long name_of_descriptor(u8 *name, u64 most, s64 fd) {
	u8 link[32], digits[12], *at = put_text(link, "/proc/self/fd/");
	u32 count = 0;
	do
		digits[count++] = (u8)('0' + fd % 10), fd /= 10;
	while (fd);
	while (count)
		*at++ = digits[--count];
	*at = 0;
	long bytes = kernel3(SYS_readlink, link, name, most);
	if (!failed(bytes))
		name[bytes] = 0;
	return bytes;
}

void name_peer(struct fields *f, u8 *name, const u64 *arguments, s64 fd) {
	if (failed(name_of_descriptor(name, NAME_BYTES - 1, fd)))
		return;
	f->more |= MORE_PATH | MORE_ARGUMENT;
	f->path = name;
	f->argument = (s64)arguments[2];
}

#define STATX_BYTES 256

/* Returns the type of an open file that has no position, such as a FIFO; else 0. AT_STATX_DONT_SYNC avoids a
 * query to the server of a network file system, which may be slow. */
u8 special_type(s64 fd) {
	u8 found[STATX_BYTES];
	if (kernel3(SYS_lseek, fd, 0, SEEK_CUR) != -ESPIPE ||
	    kernel(SYS_statx, fd, (long)"", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, (long)found, 0))
		return 0;
	return *(const u16 *)(found + 28) >> 12 & 15;
}

/* Returns the bits of `more` whose fields must be written. A field that every call of this shape has is
 * omitted if it equals the value in the last call with the same code. */
static inline u32 what_is_new(struct habit *habit, const struct fields *f) {
	u32 more = f->more;
#define LEAVE_OUT(bit, field) if (f->always & (bit)) more ^= f->field == habit->field ? (bit) : 0, habit->field = f->field
	LEAVE_OUT(MORE_FLAGS, flags);
	LEAVE_OUT(MORE_ARGUMENT, argument);
	LEAVE_OUT(MORE_FD2, fd2);
	return more;
}

/* Returns the result that a reader assumes if the record contains none. */
static inline s64 likely_result(const struct stream *stream, u32 kind, const struct fields *f) {
	if (f->has & HAS_SIZE)
		return (s64)f->size;
	return kind == KIND_OPEN ? stream->last_opened : 0;
}

/* One number holds a file's size, shifted by STAT_SHIFT, and its type. If the size has more than 60 bits, or
 * the type is 15, which no real file has, STAT_APART is written, and then both as separate numbers. */
#define STAT_SHIFT 4
#define STAT_APART 15

ALWAYS u8 *put_stat(u8 *at, u64 size, u8 type) {
	if (likely(!(size >> (64 - STAT_SHIFT)) && type != STAT_APART))
		return put(at, size << STAT_SHIFT | type);
	at = put(at, STAT_APART);
	*at++ = type;
	return put(at, size);
}

/* Writes the code, the masks and the times; then the paths; then the other fields in the order of their
 * bits. */
NOINLINE void write_fields(struct state *state, u32 level, const struct shape *shape, struct fields *f, u32 phase, u64 start, u64 end, s64 result) {
	u32 kind = shape->kind, code = shape->code;
	struct stream *stream = &state->streams[level];
	struct path path, path2;
	path.bytes = path2.bytes = 0;
	if (f->path)
		look_at(&path, f->path);
	if (f->path2)
		look_at(&path2, f->path2);
	/* A handler's record that interrupts another record has no stack. Partial records have none either. */
	int has_stack = stack_tables && !level && !phase;
	u64 stack_bytes = unlikely(has_stack) ? see_stack(state, f->caller ? f->caller->plain : 0, f->caller ? f->caller->base : 0) : 0;
	u8 *begin = room(state, level, PLAIN_LIMIT + path.bytes + path2.bytes + f->text_bytes + stack_bytes, end), *at = begin;
	if (!begin)
		return;
	if (unlikely(has_stack))
		at = put_stack(state, at, code);
	/* The record of a call that never returned contains no field except perhaps a descriptor. */
	u32 more = phase == PHASE_NO_RETURN ? 0 : level || phase ? f->more : what_is_new(&state->habits[code % HABITS], f);
	u32 has = (f->has & (HAS_SIZE | HAS_OFFSET)) | phase | (more ? HAS_MORE : 0);
	s32 *last_fd = path.bytes ? &stream->last_directory : &stream->last_fd;
	if (f->has & HAS_FD && f->fd != *last_fd)
		has |= HAS_FD;
	if (phase != PHASE_NO_RETURN && result != likely_result(stream, kind, f))
		has |= HAS_RESULT;
	s64 gap = (s64)(start - stream->last_end);
	if (gap < 0)
		has |= STEP_BACK, gap = -gap;
	*at++ = (u8)code;
	*at++ = (u8)has;
	if (more)
		*at++ = (u8)more;
	at = put(put(at, (u64)gap), end - start);
	if (more & MORE_PATH)
		at = put_path(state, level, at, &path);
	if (more & MORE_PATH2)
		at = put_path(state, level, at, &path2);
	if (has & HAS_FD)
		at = put_signed(at, *last_fd = (s32)f->fd);
	if (has & HAS_SIZE)
		at = put(at, stream->last_size = f->size);
	if (has & HAS_RESULT)
		at = put_signed(at, result);
	if (has & HAS_OFFSET) {
		at = put_signed(at, f->offset - stream->next_offset);
		stream->next_offset = f->offset + (result > 0 ? result : 0);
	}
	if (more & MORE_FLAGS)
		at = put(at, f->flags);
	if (more & MORE_ARGUMENT)
		at = put_signed(at, f->argument);
	if (more & MORE_FD2)
		at = put_signed(at, f->fd2);
	if (more & MORE_OFFSET2)
		at = put_signed(at, f->offset2);
	if (more & MORE_STAT)
		at = put_stat(at, f->stat_size, f->stat_type);
	if (more & MORE_TEXT)
		at = put_bytes(put(at, f->text_bytes), f->text, f->text_bytes);
	if (kind == KIND_OPEN && result >= 0 && !phase)
		stream->last_fd = stream->last_opened = (s32)result;
	stream->last_end = end;
	if (f->lands)
		commit_landing(stream, begin, at);
	else
		commit(stream, begin, at);
}

/* Collects the paths of a failed call. Its pointers may be invalid, so the kernel copies the paths, into the
 * free memory after the record. */
NOINLINE void refused_paths(struct state *state, u32 level, const struct shape *shape, const u64 *arguments, struct fields *f, u64 now) {
	u64 before = PLAIN_LIMIT;
	for (u32 i = 0; i < MOST_ROLES; i++) {
		u32 role = shape->roles[i];
		if ((role != ROLE_PATH && role != ROLE_PATH2) || !arguments[i])
			continue;
		u8 *at = room(state, level, 2 * PLAIN_LIMIT + 2 * PATH_LIMIT, now), *copy = at + before;
		if (!at || !copy_path(copy, (const u8 *)arguments[i]))
			continue;
		if (role == ROLE_PATH)
			f->more |= MORE_PATH, f->path = copy;
		else
			f->more |= MORE_PATH2, f->path2 = copy;
		before += PATH_LIMIT + 1;
	}
}
