/* Numbers, texts, and the chunks that they are written into. A part of record.c, kept apart for reading. */

/* Seven bits a byte; as many zeros as there are bytes behind the first, and a one, are its lowest bits. So the
 * length needs no branch that a processor could guess wrong. A number of more than 56 bits stands as it is behind
 * a zero. Up to nine bytes at `at` are overwritten. */
static inline u8 *put(u8 *at, u64 value)
{
	if (unlikely(value >> 56)) {
		*at++ = 0;
		*(unaligned_u64 *)at = value;
		return at + 8;
	}
	u32 bits = 63 - (u32)__builtin_clzl(value | 1);
	/* bits / 7 + 1 */
	u32 bytes = (bits * 37 >> 8) + 1;
	*(unaligned_u64 *)at = (value << 1 | 1) << (bytes - 1);
	return at + bytes;
}

static inline u8 *put_signed(u8 *at, s64 value)
{
	return put(at, (u64)value << 1 ^ (u64)(value >> 63));
}

static inline u8 *put_fixed(u8 *at, u64 value, u32 bytes)
{
	for (u32 i = 0; i < bytes; i++)
		*at++ = (u8)(value >> 8 * i);
	return at;
}

/* Eight at a time: `rep movsb` takes longer to begin than most paths are to copy. What is copied may overlap what it is copied from, if
 * it comes to lie eight bytes before it or more. */
static u8 *put_bytes(u8 *at, const u8 *bytes, u64 count)
{
	u8 *end = at + count;
	if (count < 8) {
		while (at < end)
			*at++ = *bytes++;
		return end;
	}
	const u8 *last = bytes + count - 8;
	for (; bytes < last; at += 8, bytes += 8)
		*(unaligned_u64 *)at = *(const unaligned_u64 *)bytes;
	*(unaligned_u64 *)(end - 8) = *(const unaligned_u64 *)last;
	return end;
}

/* The lowest bit that is set is the highest of the first byte that is zero. */
static inline u64 zero_bytes(u64 word)
{
	return (word - 0x0101010101010101ul) & ~word & 0x8080808080808080ul;
}

/* Words as they are aligned, for those end where a page does. */
static u64 length(const u8 *text, u64 limit)
{
	const aligned_u64 *word = (const aligned_u64 *)((u64)text & ~7ul);
	u64 before = (1ul << 8 * ((u64)text & 7)) - 1;
	u64 zeros = zero_bytes(*word | before);
	while (!zeros && (u64)(word + 1) - (u64)text < limit)
		zeros = zero_bytes(*++word);
	u64 bytes = (u64)word - (u64)text + (u64)__builtin_ctzl(zeros | 1ul << 63) / 8;
	return zeros && bytes < limit ? bytes : limit;
}

/* ---- chunks ---- */

/* Makes sure that the pages up to `end` are there: a page that the file system has no room for would be
 * a SIGBUS at first touch. */
static int populate(u8 *from, u8 *end)
{
	if (confined)
		return 1;
	long result = kernel3(SYS_madvise, from, end - from, MADV_POPULATE_WRITE);
	/* Before Linux 5.14 there is no such advice: trust. */
	return result != -EFAULT;
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

static u8 *map_by(long file, u64 at, u64 bytes)
{
	long memory = kernel(SYS_mmap, 0, (long)bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, (long)at);
	return failed(memory) ? 0 : (u8 *)memory;
}

/* The same for a kernel without that. */
static u8 *open_part(u64 at, u64 bytes)
{
	long file = kernel3(SYS_open, session->session, O_RDWR | O_CLOEXEC, 0);
	if (failed(file))
		return 0;
	u8 *memory = map_by(file, at, bytes);
	kernel1(SYS_close, file);
	return memory;
}

/* The stream has no chunk: its next record begins one. The memory stays, for that. */
static void forget_chunk(struct stream *stream)
{
	stream->chunk = 0;
	stream->at = 0;
	stream->limit = 0;
}

/* The chunk at `at` of the file, in the window of a sandbox. 0 if it lies outside. */
static u8 *in_window(u64 at)
{
	return window && at >= window_at && at + session->chunk_bytes <= window_at + window_bytes ? window + (at - window_at) : 0;
}

/* The chunk at `at` of the file, 0 if there is none. */
static u8 *chunk_memory(u8 **memory, u64 at)
{
	u64 bytes = session->chunk_bytes;
	if (session_file >= 0)
		return *memory = map_by(session_file, at, bytes);
	u8 *old = *memory;
	*memory = 0;
	if (!descriptors && (*memory = map_part(old, at, bytes)) != 0)
		return *memory;
	if (descriptors && old)
		kernel2(SYS_munmap, old, bytes);
	descriptors = 1;
	return *memory = open_part(at, bytes);
}

/* ---- chunks for threads to come ----
 *
 * A thread that maps its first chunk itself waits for the others, which map their stacks and heaps at that time. So who makes a thread
 * maps some chunks at once. What is said of them lies with the states, which a fork wipes. One that no thread ever takes stays without a
 * header. */

#define CHUNKS_AHEAD 4

/* `next` is one word, so that it changes at once or not at all: a handler may fork at any moment, and what its child goes on with is told
 * from what the child knows by that. */
struct ahead {
	u64 next;   /* the number of the next chunk << 8 | how many are left; or what is AHEAD_CLOSED */
	u8 *origin; /* where chunk 0 would be mapped */
};
/* One is mapping them, or they could not be mapped. */
#define AHEAD_CLOSED (1ul << 63)
#define AHEAD_ONE (1ul << 8)
#define AHEAD_LEFT (AHEAD_ONE - 1)

static struct ahead *ahead_of_threads(void)
{
	return blocks[0] ? (struct ahead *)(blocks[0] + AHEAD_AT) : 0;
}

static inline int becomes(u64 *word, u64 from, u64 to)
{
	return __atomic_compare_exchange_n(word, &from, to, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

static int is_in_file(u64 at, u64 bytes)
{
	return at + bytes <= session->file_bytes;
}

/* A thread is about to be made. */
static void map_ahead(void)
{
	struct ahead *ahead = ahead_of_threads();
	if (!ahead || ahead->next || confined || descriptors || session->closed || !becomes(&ahead->next, 0, AHEAD_CLOSED))
		return;
	u64 bytes = session->chunk_bytes;
	u64 index = __atomic_fetch_add(&session->next_chunk, CHUNKS_AHEAD, __ATOMIC_RELAXED);
	u64 at = session->chunks_at + index * bytes;
	u8 *memory = is_in_file(at, CHUNKS_AHEAD * bytes) ? map_part(0, at, CHUNKS_AHEAD * bytes) : 0;
	if (!memory)
		return;
	ahead->origin = memory - index * bytes;
	/* Not in the child of a handler's fork: they are its parent's. */
	becomes(&ahead->next, AHEAD_CLOSED, index * AHEAD_ONE | CHUNKS_AHEAD);
}

/* One of them and its number; 0 if there is none. */
static u8 *take_ahead(u64 *index)
{
	struct ahead *ahead = ahead_of_threads();
	if (!ahead || confined)
		return 0;
	for (u64 next; (next = __atomic_load_n(&ahead->next, __ATOMIC_ACQUIRE)) & AHEAD_LEFT;) {
		u8 *origin = ahead->origin;
		/* The last one makes room for the next ones. */
		u64 rest = (next & AHEAD_LEFT) > 1 ? next + AHEAD_ONE - 1 : 0;
		if (becomes(&ahead->next, next, rest)) {
			*index = next / AHEAD_ONE;
			return origin + *index * session->chunk_bytes;
		}
	}
	return 0;
}

/* The process ends: numbers that nobody has used are the next one's, unless others were given out since. */
static void give_back_ahead(void)
{
	struct ahead *ahead = ahead_of_threads();
	u64 next = ahead ? __atomic_load_n(&ahead->next, __ATOMIC_ACQUIRE) : 0, left = next & AHEAD_LEFT;
	if (left && becomes(&ahead->next, next, 0))
		becomes(&session->next_chunk, next / AHEAD_ONE + left, next / AHEAD_ONE);
}

/* What the calls of the first stream had last: a chunk is read alone. */
static void forget_calls(struct state *state)
{
	for (u32 i = 0; i < CACHED_PATHS; i++)
		state->cache[i / PATH_WAYS][i % PATH_WAYS].hash = 0;
	for (u32 i = 0; i < HABITS; i++)
		state->habits[i] = (struct habit){0, 0, 0};
	state->last_path_bytes = 0;
}

/* A number that is nobody's. One that could not be mapped is kept: who records in vain takes no more than one. */
static u64 take_number(struct state *state)
{
	u64 kept = __atomic_exchange_n(&state->kept_number, 0, __ATOMIC_RELAXED);
	return kept ? kept - 1 : __atomic_fetch_add(&session->next_chunk, 1, __ATOMIC_RELAXED);
}

/* ---- chunks that are used again ----
 *
 * A page takes 3 microseconds to make, and what that pushes out of the processor's caches costs as much again. So the last chunks of a
 * thread's first stream stay mapped, and one that the recorder has read and offers back is the next one. It stays that thread's: no other
 * knows its number. All this may be left at any point (longjmp out of a handler, a child of vfork that is killed): then no memory
 * is said to be two chunks', but one mapping may be nobody's. */

static u32 spent_in_process;

/* What is in a place, which is empty then. */
static u8 *take_spent(struct state *state, u32 place)
{
	u8 *memory = state->spent_memory[place];
	state->spent_memory[place] = 0;
	barrier();
	return memory;
}

/* Where nothing is; SPENT if there is no such place. */
static u32 empty_place(const struct state *state)
{
	u32 place = 0;
	while (place < SPENT && state->spent_memory[place])
		place++;
	return place;
}

/* The full chunk stays mapped, if there is a place. */
static void keep_full(struct state *state)
{
	u8 *memory = state->memory[0];
	u32 number = state->mapped - 1, place = empty_place(state);
	if (!memory || !state->mapped || place == SPENT)
		return;
	state->memory[0] = 0;
	state->mapped = 0;
	barrier();
	state->spent_number[place] = number;
	barrier();
	state->spent_memory[place] = memory;
}

/* One that is offered back, and its number; the full one is put in its place. 0 if there is none. */
static u8 *use_again(struct state *state, u64 *index)
{
	for (u32 place = 0; place < SPENT; place++) {
		u32 number = state->spent_number[place], offer = number + 1;
		/* (What is offered to its parent is not for the child of a handler's fork.) */
		if (!state->spent_memory[place] || !state->taken ||
		    !__atomic_compare_exchange_n(&session->offered[number % OFFERED], &offer, 0, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			continue;
		u8 *memory = take_spent(state, place);
		*index = number;
		if (memory)
			keep_full(state);
		return memory;
	}
	return 0;
}

/* Memory beside that of the full chunk, for the one at `at` of the file. 0 where a program might want the room itself, or there is none. */
static u8 *map_beside(u64 at)
{
	u64 bytes = session->chunk_bytes, limit[2];
	if (failed(kernel(SYS_prlimit64, 0, RLIMIT_AS, 0, (long)limit, 0, 0)) || limit[0] != RLIM_INFINITY)
		return 0;
	if (__atomic_fetch_add(&spent_in_process, 1, __ATOMIC_RELAXED) < SPENT_MOST) {
		u8 *memory = map_part(0, at, bytes);
		/* Where all memory is locked, what a program may lock is its own. */
		if (memory)
			kernel2(SYS_munlock, memory, bytes);
		return memory;
	}
	__atomic_fetch_sub(&spent_in_process, 1, __ATOMIC_RELAXED);
	return 0;
}

/* Memory for the chunk at `at` of the file while the full one stays mapped: new, or that of the one that has been full for longest. */
static u8 *go_on_beside(struct state *state, u64 at)
{
	u8 *memory;
	if (empty_place(state) < SPENT) {
		memory = map_beside(at);
	} else {
		u8 *oldest = take_spent(state, state->spent_turn++ % SPENT);
		memory = oldest ? map_part(oldest, at, session->chunk_bytes) : 0;
	}
	if (memory)
		keep_full(state);
	return memory;
}

/* Memory for the chunk at `at` of the file, 0 if there is none. */
static u8 *map_next(struct state *state, struct stream *stream, u32 level, u64 at)
{
	u8 **mapped = &state->memory[level], *memory = 0;
	int stays = level == 0 && stream->sequence && !descriptors && session_file < 0;
	if (stays && *mapped && state->mapped)
		memory = go_on_beside(state, at);
	if (memory)
		return memory;
	/* What is mapped there now is no longer that. */
	if (level == 0)
		state->mapped = 0;
	return chunk_memory(mapped, at);
}

/* Memory and number of a stream's next chunk, 0 if there is none; and how often it was used before. */
static u8 *next_chunk(struct state *state, struct stream *stream, u32 level, u64 *index, u32 *generation)
{
	/* Another thread may change it meanwhile. */
	u32 in_sandbox = confined;
	u8 *memory = 0;
	*generation = 0;
	forget_chunk(stream);
	/* (A stream is told by its first number, which is to be its lowest.) */
	if (level == 0 && stream->sequence && !in_sandbox && (memory = use_again(state, index)) != 0)
		*generation = ((struct chunk *)memory)->generation + 1;
	else if (!state->memory[level] && !stream->sequence)
		memory = take_ahead(index);
	if (!memory) {
		*index = take_number(state);
		u64 at = session->chunks_at + *index * session->chunk_bytes;
		if (is_in_file(at, session->chunk_bytes))
			memory = in_sandbox ? in_window(at) : map_next(state, stream, level, at);
	}
	if (!memory) {
		if (state->taken)
			state->kept_number = *index + 1;
		return 0;
	}
	/* A sandbox's lie in its window. */
	if (!in_sandbox) {
		state->memory[level] = memory;
		if (level == 0)
			state->mapped = (u32)*index + 1;
	}
	return memory;
}

static int new_chunk(struct state *state, struct stream *stream, u32 level, u64 now)
{
	if (session->closed || !state->taken)
		return 0;
	/* A handler may fill a chunk while the call that it interrupted is in flight. */
	struct chunk *old = level == 0 ? stream->chunk : 0;
	u64 flight_start = old ? old->flight_start : 0;
	u32 flight_number = old ? old->flight_number : 0;
	s32 flight_fd = old ? old->flight_fd : 0;
	if (old)
		old->flight_start = 0;
	u64 index;
	u32 generation;
	u8 *memory = next_chunk(state, stream, level, &index, &generation);
	if (!memory)
		return 0;
	/* Many programs are done with one page. Who has filled two chunks will fill this. */
	u64 first_bytes = stream->sequence > 1 ? session->chunk_bytes : stream->sequence ? 16384 : 4096;
	if (!populate(memory, memory + first_bytes)) {
		__atomic_fetch_add(&session->lost_streams, 1, __ATOMIC_RELAXED);
		stop();
		return 0;
	}
	struct chunk *chunk = (struct chunk *)memory;
	/* In the child of a handler's fork the state is nobody's, and the chunk its parent's. From here on it is known which one the child
	 * gets memory of its own for. */
	stream->chunk = chunk;
	barrier();
	if (!state->taken)
		return 0;
	/* The recorder sees that it is another one from here on, and that it is begun by the magic number. */
	chunk->magic = 0;
	barrier();
	chunk->generation = generation;
	if (!stream->sequence)
		stream->first = (u32)index;
	chunk->tid = state->tid;
	chunk->pid = state->pid;
	chunk->base = now;
	chunk->stream = stream->first;
	chunk->sequence = stream->sequence++;
	chunk->level = level;
	chunk->owner = state->owner;
	chunk->over = 0;
	chunk->flight_number = flight_number;
	chunk->flight_fd = flight_fd;
	chunk->flight_start = flight_start;
	chunk->used = sizeof(*chunk);
	barrier();
	chunk->magic = CHUNK_MAGIC;
	stream->at = memory + sizeof(*chunk);
	stream->limit = memory + first_bytes;
	stream->last_end = now;
	stream->last_size = 0;
	stream->next_offset = 0;
	stream->last_fd = -1;
	stream->last_directory = AT_FDCWD;
	stream->last_opened = 0;
	stream->paths = 0;
	if (level == 0)
		forget_calls(state);
	return 1;
}

/* A page of shared memory takes longer to make than to ask for. */
#define GROW_MOST 8192ul

/* Room for `bytes` more at stream->at. */
static __attribute__((noinline)) int extend(struct state *state, u32 level, u64 bytes, u64 now)
{
	struct stream *stream = &state->streams[level];
	if (stream->chunk) {
		u8 *end = (u8 *)stream->chunk + session->chunk_bytes;
		u64 have = (u64)(stream->limit - (u8 *)stream->chunk);
		u64 need = ((u64)(stream->at + bytes - stream->limit) + 4095) & ~4095ul;
		u64 grow = have < GROW_MOST ? have : GROW_MOST;
		if (grow < need)
			grow = need;
		if (stream->at + bytes <= end) {
			u8 *limit = stream->limit + grow < end ? stream->limit + grow : end;
			if (!populate(stream->limit, limit))
				return 0;
			stream->limit = limit;
			return 1;
		}
	}
	if (!new_chunk(state, stream, level, now))
		return 0;
	return stream->at + bytes <= stream->limit || extend(state, level, bytes, now);
}

static inline int room(struct state *state, u32 level, u64 bytes, u64 now)
{
	struct stream *stream = &state->streams[level];
	if (likely(stream->at + bytes <= stream->limit && stream->at))
		return 1;
	if (extend(state, level, bytes, now))
		return 1;
	__atomic_fetch_add(&session->lost_calls, 1, __ATOMIC_RELAXED);
	return 0;
}

/* From here on the record is there, whatever happens to this process. */
static inline void commit(struct stream *stream, u8 *end)
{
	stream->at = end;
	barrier();
	*(volatile u32 *)&stream->chunk->used = (u32)(end - (u8 *)stream->chunk);
}
