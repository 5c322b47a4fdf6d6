/* Requests inside an io_uring: what was submitted, and what is done, as io_uring_enter comes back. A part of record.c, kept apart for
 * reading.
 *
 * The kernel has read the requests, but nobody forbids a program to unmap its rings: all of it is read as the kernel would. What another
 * process left of a ring after a fork, and rings whose kernel thread looks for requests by itself, are not followed. */

#define SYS_io_uring_setup 425

#define RINGS 64
#define RING_IS_SHOWN 1 /* the argument that io_uring_setup is written with */

#define SETUP_SQE128 (1u << 10)
#define SETUP_CQE32 (1u << 11)
#define SETUP_NO_ARRAY (1u << 16)
/* Those that change neither where things lie nor who submits. */
#define SETUP_HARMLESS 0x233fdu
#define SETUP_KNOWN (SETUP_HARMLESS | SETUP_SQE128 | SETUP_CQE32 | SETUP_NO_ARRAY)
#define FEATURE_ONE_MAP 1u
#define MAP_AT_SUBMISSIONS 0ul
#define MAP_AT_COMPLETIONS 0x8000000ul
#define MAP_AT_REQUESTS 0x10000000ul
#define ENTER_REGISTERED (1u << 4) /* the descriptor is an index */

/* struct io_uring_params, as numbers. */
enum { PARAM_SUBMISSIONS = 0, PARAM_COMPLETIONS = 1, PARAM_FLAGS = 2, PARAM_FEATURES = 5, PARAM_HEAD = 10, PARAM_ARRAY = 16,
       PARAM_REAPED = 20, PARAM_TAIL = 21, PARAM_ENTRIES = 25 };

struct ring {
	s32 fd;
	u32 owner; /* the process that made it; 0: none here */
	u32 busy;  /* a thread looks at it */
	u32 flags, features;
	u32 submissions, completions; /* how many there is room for; powers of two */
	u32 head, array, reaped, tail, entries; /* where these lie in their maps */
	u32 taken; /* requests so far */
	u32 seen;  /* completions so far */
	const u8 *submission_map, *completion_map, *requests;
};

/* Behind what every process touches. */
__attribute__((section(".bss.rare"))) static struct ring rings[RINGS];
static u32 rings_used;

static struct ring *ring_of(const struct state *state, s32 fd, u32 is_index)
{
	u32 used = __atomic_load_n(&rings_used, __ATOMIC_ACQUIRE);
	struct ring *found = 0;
	for (u32 i = 0; i < used && i < RINGS; i++) {
		if (rings[i].owner != state->owner || (!is_index && rings[i].fd != fd))
			continue;
		/* Which ring an index means is known where there is one only. */
		if (found)
			return 0;
		found = &rings[i];
	}
	return found;
}

/* io_uring_setup has come back: is this one of the rings that are followed? */
static int ring_is_made(const struct state *state, const u64 *arguments, s64 result)
{
	const u32 *params = (const u32 *)arguments[1];
	struct ring *old = ring_of(state, (s32)result, 0);
	if (old)
		old->owner = 0;
	if (params[PARAM_FLAGS] & ~SETUP_KNOWN)
		return 0;
	u32 at = old ? (u32)(old - rings) : __atomic_fetch_add(&rings_used, 1, __ATOMIC_ACQ_REL);
	if (at >= RINGS)
		return 0;
	struct ring *ring = &rings[at];
	ring->fd = (s32)result;
	ring->flags = params[PARAM_FLAGS];
	ring->features = params[PARAM_FEATURES];
	ring->submissions = params[PARAM_SUBMISSIONS];
	ring->completions = params[PARAM_COMPLETIONS];
	ring->head = params[PARAM_HEAD];
	ring->array = params[PARAM_ARRAY];
	ring->reaped = params[PARAM_REAPED];
	ring->tail = params[PARAM_TAIL];
	ring->entries = params[PARAM_ENTRIES];
	ring->taken = ring->seen = 0;
	ring->submission_map = ring->completion_map = ring->requests = 0;
	__atomic_store_n(&ring->owner, state->owner, __ATOMIC_RELEASE);
	return 1;
}

/* Who registers a ring may close its descriptor, and the number be another file's. (Where nothing tells, it is a ring.) */
static int is_ring(s32 fd)
{
	static const char of_ring[] = "anon_inode:[io_uring]";
	u8 link[LINK_BYTES], name[NAME_BYTES];
	put_descriptor(link, fd);
	long bytes = kernel3(SYS_readlink, link, name, NAME_BYTES - 1);
	if (failed(bytes))
		return 1;
	name[bytes] = 0;
	return is_same(name, of_ring, sizeof(of_ring));
}

static void ring_is_mapped(const struct state *state, const u64 *arguments, s64 result)
{
	struct ring *ring = ring_of(state, (s32)arguments[4], 0);
	if (!ring || failed(result))
		return;
	if (!is_ring(ring->fd)) {
		ring->fd = -1;
		return;
	}
	u64 at = arguments[5];
	if (at == MAP_AT_SUBMISSIONS)
		ring->submission_map = (const u8 *)result;
	if (at == MAP_AT_COMPLETIONS || (at == MAP_AT_SUBMISSIONS && ring->features & FEATURE_ONE_MAP))
		ring->completion_map = (const u8 *)result;
	if (at == MAP_AT_REQUESTS)
		ring->requests = (const u8 *)result;
}

/* `count` of the `room` things of `bytes` each that lie in a circle, from number `from` on. */
static int copy_circle(void *to, const u8 *circle, u32 room, u32 bytes, u32 from, u32 count)
{
	u32 first = from & (room - 1), some = room - first < count ? room - first : count;
	u64 into[2] = {(u64)to, (u64)count * bytes};
	u64 pieces[2][2] = {{(u64)circle + (u64)first * bytes, (u64)some * bytes}, {(u64)circle, (u64)(count - some) * bytes}};
	if (count > room)
		return 0;
	long got = kernel(SYS_process_vm_readv, kernel0(SYS_getpid), (long)into, 1, (long)pieces, some < count ? 2 : 1, 0);
	return got == (long)into[1];
}

/* struct io_uring_sqe, as words: operation 8, flags 8, 16, descriptor 32; offset; address; length 32, 32; the program's own number. */
enum ring_operation { RING_READ_VECTOR = 1, RING_WRITE_VECTOR = 2 };

/* The program's number, operation, flags, descriptor, bytes asked for and one (0: not known), offset. */
static u8 *put_request(u8 *at, struct blocks *blocks, const u64 *words)
{
	u8 operation = (u8)words[0];
	u64 bytes = (u32)words[3] + 1ul;
	if (operation == RING_READ_VECTOR || operation == RING_WRITE_VECTOR) {
		u64 sum = 0;
		bytes = (u32)words[3] <= 1024 && sum_vectors(blocks, words[2], (u32)words[3], &sum) ? sum + 1 : 0;
	}
	at = put(at, words[4]);
	*at++ = operation;
	*at++ = (u8)(words[0] >> 8);
	at = put_signed(at, (s32)(words[0] >> 32));
	return put_signed(put(at, bytes), (s64)words[1]);
}

/* Those before `head`, which is where the kernel will read on. */
static u8 *put_requests(u8 *at, struct blocks *blocks, const struct ring *ring, u32 head, u32 count)
{
	u64 bytes = ring->flags & SETUP_SQE128 ? 128 : 64;
	u32 *places = (u32 *)blocks->pointers;
	for (u32 done = 0; done < count; done += SOME_BLOCKS) {
		u32 some = count - done < SOME_BLOCKS ? count - done : SOME_BLOCKS, from = head - count + done;
		if (ring->flags & SETUP_NO_ARRAY) {
			for (u32 i = 0; i < some; i++)
				places[i] = from + i;
		} else if (!copy_circle(places, ring->submission_map + ring->array, ring->submissions, 4, from, some)) {
			return 0;
		}
		for (u32 i = 0; i < some; i++) {
			blocks->pieces[i][0] = (u64)ring->requests + (places[i] & (ring->submissions - 1)) * bytes;
			blocks->pieces[i][1] = sizeof(blocks->words[i]);
		}
		u64 into[2] = {(u64)blocks->words, some * sizeof(blocks->words[0])};
		long got = kernel(SYS_process_vm_readv, kernel0(SYS_getpid), (long)into, 1, (long)blocks->pieces, (long)some, 0);
		if (got != (long)into[1])
			return 0;
		for (u32 i = 0; i < some; i++)
			at = put_request(at, blocks, blocks->words[i]);
	}
	return at;
}

/* The program's number, and what it gave. 0, and nothing is done, where they can't be read. */
static u8 *put_completions(u8 *at, struct blocks *blocks, struct ring *ring, u32 count)
{
	u32 words = ring->flags & SETUP_CQE32 ? 4 : 2, most = sizeof(blocks->words) / (words * 8);
	u64 *copies = blocks->words[0];
	for (u32 done = 0; done < count; done += most) {
		u32 some = count - done < most ? count - done : most;
		if (!copy_circle(copies, ring->completion_map + ring->entries, ring->completions, words * 8, ring->seen + done, some))
			return 0;
		for (u32 i = 0; i < some; i++)
			at = put_signed(put(at, copies[words * i]), (s32)copies[words * i + 1]);
	}
	ring->seen += count;
	return at;
}

#define REQUEST_BYTES 40
#define COMPLETION_BYTES 20
#define MOST_REQUESTS 512

/* What there is of the two circles. */
struct look {
	u32 head;     /* where the kernel will read requests on */
	u32 requests; /* new ones, up to there */
	u32 early;    /* new completions that the program took before this call */
	u32 done;     /* new completions, these included */
};

/* Requests of other threads too, that have not been looked at. Which there were and are written over is added to `unseen`; of completions
 * the reader finds out. */
static int look_into(struct look *look, struct ring *ring, u32 *unseen)
{
	u32 reaped, tail;
	if (copy_in(&look->head, ring->submission_map + ring->head, 4) != 4 || copy_in(&tail, ring->completion_map + ring->tail, 4) != 4 ||
	    copy_in(&reaped, ring->completion_map + ring->reaped, 4) != 4)
		return 0;
	look->requests = look->head - ring->taken;
	u32 most = ring->submissions < MOST_REQUESTS ? ring->submissions : MOST_REQUESTS;
	if (look->requests > most) {
		*unseen += look->requests - most;
		look->requests = most;
	}
	if (tail - ring->seen > ring->completions)
		ring->seen = tail - ring->completions;
	look->done = tail - ring->seen;
	look->early = reaped - ring->seen <= look->done ? reaped - ring->seen : 0;
	if (look->done > MOST_ITEMS)
		look->done = MOST_ITEMS;
	if (look->early > look->done)
		look->early = look->done;
	return 1;
}

/* How many completions the program took before this call, and they: what it submits now may have their numbers again. Then the requests,
 * behind how many there are, and the other completions. They are made where the record's text will stand, or behind it. How many requests
 * are not among them. */
static u32 gather_ring(struct state *state, u32 level, struct ring *ring, struct fields *f, u64 now, u32 submitted)
{
	struct look look;
	u32 unseen = 0;
	if (!look_into(&look, ring, &unseen))
		return submitted;
	ring->taken = look.head;
	if (!look.requests && !look.done)
		return unseen;
	u64 bytes = look.requests * REQUEST_BYTES + look.done * COMPLETION_BYTES + 16;
	u8 *at = room(state, level, 2 * PLAIN_LIMIT + bytes + sizeof(struct blocks), now);
	if (!at)
		return unseen + look.requests;
	u8 *first = at + PLAIN_LIMIT;
	struct blocks *blocks = (struct blocks *)(((u64)first + bytes + 7) & ~7ul);
	u8 *start = put_completions(put(first, look.early), blocks, ring, look.early);
	if (!start) {
		look.early = look.done = 0;
		start = put(first, 0);
	}
	u8 *end = put_requests(put(start, look.requests), blocks, ring, look.head, look.requests);
	if (!end) {
		unseen += look.requests;
		end = put(start, 0);
	}
	u8 *all = put_completions(end, blocks, ring, look.done - look.early);
	f->more |= MORE_TEXT, f->text = first, f->text_bytes = (u64)((all ? all : end) - first);
	return unseen;
}

/* io_uring_enter has come back. Its plain argument says how many requests are not shown. */
static __attribute__((noinline)) void ring_is_entered(struct state *state, u32 level, const u64 *arguments, struct fields *f, u64 now,
						      s64 result)
{
	u32 free = 0, unseen = result > 0 ? (u32)result : 0;
	u32 is_registered = (u32)arguments[3] & ENTER_REGISTERED;
	struct ring *ring = ring_of(state, (s32)arguments[0], is_registered);
	if (is_registered)
		f->has |= HAS_FD, f->fd = -1;
	if (ring && ring->submission_map && ring->completion_map && ring->requests) {
		f->has |= HAS_FD, f->fd = ring->fd;
		/* Two threads at once: who comes next shows what this one has submitted. */
		if (!__atomic_compare_exchange_n(&ring->busy, &free, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			return;
		unseen = gather_ring(state, level, ring, f, now, unseen);
		__atomic_store_n(&ring->busy, 0, __ATOMIC_RELEASE);
	}
	if (unseen)
		f->more |= MORE_ARGUMENT, f->argument = unseen;
}
