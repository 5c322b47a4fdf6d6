/* Contains the recorder's own sources. It records the same random calls twice: all by the general path, and
 * then by the fast path as far as that takes them. The records, and the state for the next call, must be the
 * same. The calls have all shapes except those with memory that only a kernel fills. The table of shapes
 * comes from standard input. */
#include "../../native/recorder.h"
#pragma GCC visibility pop

extern int printf(const char *, ...), sprintf(char *, const char *, ...);
extern void *mmap(void *, u64, int, int, int, long);
extern int memfd_create(const char *, u32), ftruncate(int, long);
extern int memcmp(const void *, const void *, u64);
extern long read(int, void *, u64);

void iodock_plain(void) {}
void iodock_before(void) {}
void iodock_guarded(void) {}
void iodock_after(void) {}
void iodock_light(void) {}
void iodock_plain_stacks(void) {}

#define CALLS 400000
#define CHUNK_BYTES 65536
#define CHUNKS 2048
#define NAMES 150

static struct header header;
static struct state states[2];
static int files[2];
static u8 *memory[2];
static char names[NAMES][300];
static u8 stats[8][256];
static u64 seed;

static u64 any(u64 below)
{
	seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
	return seed % below;
}

/* Returns a random number, usually a small one, else one of any size. */
static u64 number(void)
{
	return any(3) ? any(5) : seed >> any(64);
}

static u64 argument(u32 role)
{
	switch (role) {
	case ROLE_PATH: case ROLE_PATH2:
		return any(12) ? (u64)names[any(NAMES)] : 0;
	case ROLE_STAT: case ROLE_STATX:
		return any(8) ? (u64)stats[any(8)] : 0;
	case ROLE_FD: case ROLE_FD2:
		return any(6) ? 3 + any(4) : any(2) ? (u64)AT_FDCWD : number();
	case ROLE_NONE: case ROLE_SIZE: case ROLE_OFFSET: case ROLE_FLAGS: case ROLE_ARGUMENT:
		return number();
	default:
		return 0;
	}
}

static int is_possible(const struct shape *shape)
{
	/* For these calls the recorder reads more memory than their roles say. */
	static const u32 read_otherwise[] = {SYS_io_uring_setup, SYS_recvmsg, SYS_utimensat, SYS_getxattrat};
	for (u32 i = 0; i < sizeof(read_otherwise) / sizeof(*read_otherwise); i++)
		if (shape == &header.shapes[read_otherwise[i]])
			return 0;
	if (shape->kind != KIND_GENERAL && shape->kind != KIND_OPEN && shape->kind != KIND_MAP)
		return 0;
	for (u32 i = 0; i < MOST_ROLES; i++)
		if (shape->roles[i] == ROLE_RING || shape->roles[i] == ROLE_BLOCKS || shape->roles[i] == ROLE_EVENTS ||
		    shape->roles[i] == ROLE_MESSAGES)
			return 0;
	return 1;
}

static struct plain_frame any_call(u64 now)
{
	static const s64 errors[] = {-2, -13, -14, -20, -61, -95, -9, -22};
	struct plain_frame call = {0};
	const struct shape *shape;
	do
		call.frame.number = any(CALL_NUMBERS);
	while (shape = &header.shapes[call.frame.number], !is_possible(shape));
	for (u32 i = 0; i < MOST_ROLES; i++)
		call.frame.arguments[i] = argument(shape->roles[i]);
	if (call.frame.number == SYS_ioctl && any(4) == 0)
		call.frame.arguments[1] = TIOCGPTPEER;
	call.result = any(3) == 0 ? errors[any(8)] : any(2) ? 0 : (s64)any(4000);
	call.start = (any(30) ? now : now - 5000) << TIME_SHIFT;
	return call;
}

/* Records all calls, with `way` 1 by the fast path if possible. Returns the number of calls that it
 * recorded. */
static u64 written(u32 way)
{
	struct state *state = &states[way];
	u64 taken = 0, now = 1000000;
	state->taken = TAKEN;
	seed = 88172645463325252ul;
	session_file = files[way], header.next_chunk = 0;
	for (u64 i = 0; i < CALLS; i++) {
		now += any(3) ? any(300) : any(1ul << any(40));
		struct plain_frame call = any_call(now);
		const struct shape *shape = &header.shapes[call.frame.number];
		u64 end = (call.start >> TIME_SHIFT) + any(2000);
		if (way) {
			/* The call becomes the call in flight, as the stub does it. */
			state->flight = (u64)&call;
			state->level = 1;
			state->writers[0] = (u64)&call;
			u64 left = iodock_record_short(state, &call, end << TIME_SHIFT);
			state->flight = 0;
			if (!left) {
				taken++;
				continue;
			}
		}
		struct place here;
		u32 level = enter(state, &here);
		record_general(state, level, shape, call.frame.arguments, 0, call.start >> TIME_SHIFT, end, call.result, 0);
		leave(state, level, &here);
	}
	return taken;
}

/* Makes the pointers in a state comparable: they become relative to the chunk, whose address is arbitrary. */
static void without_places(struct state *state)
{
	struct stream *stream = &state->streams[0];
	stream->at -= (u64)stream->chunk, stream->limit -= (u64)stream->chunk;
	stream->chunk = 0;
	state->memory[0] = 0;
	state->writers[0] = 0;
}

int main(void)
{
	for (u64 have = 0; have < sizeof(header.shapes);) {
		long more = read(0, (u8 *)header.shapes + have, sizeof(header.shapes) - have);
		if (more <= 0)
			return 2;
		have += (u64)more;
	}
	session = &header;
	header.chunk_bytes = CHUNK_BYTES, header.chunks_at = 1 << 20, header.file_bytes = header.chunks_at + (u64)CHUNKS * CHUNK_BYTES;
	seed = 1234567;
	for (u32 i = 0; i < NAMES; i++)
		sprintf(names[i], "%s/%.*s%lu", any(2) ? "/usr/lib" : "a", (int)any(200),
			"a long name of a file that lies in a folder of its own, and so on, and on, and on and on and on and on, "
			"until it is as long as names are now and then, in the folders of people who like to say it all", any(1000));
	for (u32 i = 0; i < sizeof(stats); i++)
		((u8 *)stats)[i] = (u8)any(i % 256 < 200 ? 8 : 256);
	for (u32 way = 0; way < 2; way++) {
		files[way] = memfd_create("chunks", 0);
		ftruncate(files[way], (long)header.file_bytes);
		memory[way] = mmap(0, (u64)CHUNKS * CHUNK_BYTES, PROT_READ, MAP_SHARED, files[way], (long)header.chunks_at);
	}
	u64 none = written(0), chunks = header.next_chunk, lost = header.lost_calls;
	u64 taken = written(1);
	for (u32 way = 0; way < 2; way++)
		without_places(&states[way]);
	printf("%lu calls, %lu and %lu taken, %lu chunks, %lu lost\n", (u64)CALLS, none, taken, chunks, lost);
	if (chunks != header.next_chunk || header.lost_calls != 2 * lost)
		return 3;
	if (memcmp(&states[0], &states[1], sizeof(struct state)))
		return 4;
	/* After the complete records a chunk may contain a part of a record that was not committed. */
	for (u64 at = 0; at < chunks * CHUNK_BYTES; at += CHUNK_BYTES) {
		u32 used = ((struct chunk *)(memory[0] + at))->used;
		if (memcmp(memory[0] + at, memory[1] + at, used))
			return 5;
	}
	return taken > CALLS / 10 ? 0 : 6;
}
