/* Reads the requests and completions in an io_uring when io_uring_enter returns. A program may unmap its
 * rings, so the kernel copies them. Rings inherited by fork, and rings whose kernel thread polls for
 * requests, are not read. */

#include "recorder.h"

#define RINGS 64
enum {
	SETUP_SQE128 = 1 << 10, SETUP_CQE32 = 1 << 11, SETUP_NO_ARRAY = 1 << 16,
	SETUP_HARMLESS = 0x233fd, /* these flags change neither the layout nor the submitting task */
	SETUP_KNOWN = SETUP_HARMLESS | SETUP_SQE128 | SETUP_CQE32 | SETUP_NO_ARRAY,
	FEATURE_ONE_MAP = 1, MAP_AT_SUBMISSIONS = 0, MAP_AT_COMPLETIONS = 0x8000000, MAP_AT_REQUESTS = 0x10000000,
	ENTER_REGISTERED = 1 << 4, /* the descriptor field is an index of a registered ring */
	REQUEST_BYTES = 40, COMPLETION_BYTES = 20, MOST_REQUESTS = 512, /* sizes in records */
};

/* struct io_uring_params as an array of 32-bit numbers: indexes of its fields. */
enum { PARAM_SUBMISSIONS = 0, PARAM_COMPLETIONS = 1, PARAM_FLAGS = 2, PARAM_FEATURES = 5, PARAM_HEAD = 10, PARAM_ARRAY = 16,
       PARAM_REAPED = 20, PARAM_TAIL = 21, PARAM_ENTRIES = 25 };

struct ring {
	s32 fd;
	u32 owner; /* process id of the process that created the ring; 0: the entry is not valid */
	u32 busy;  /* whether a thread of the recorder's code is reading the ring */
	u32 flags, features;
	u32 submissions, completions; /* capacities of the two queues; powers of two */
	u32 head, array, reaped, tail, entries; /* offsets in the mappings of the ring */
	u32 taken; /* number of requests that the kernel has taken and the recorder has read */
	u32 seen;  /* number of completions that the recorder has read */
	const u8 *submission_map, *completion_map, *requests;
};

RARE struct ring rings[RINGS];
u32 rings_used;

static struct ring *ring_of(const struct state *state, s32 fd, u32 is_index) {
	u32 used = __atomic_load_n(&rings_used, __ATOMIC_ACQUIRE);
	struct ring *found = 0;
	for (u32 i = 0; i < used && i < RINGS; i++) {
		if (rings[i].owner != state->owner || (!is_index && rings[i].fd != fd))
			continue;
		/* It is not known which ring has a registered index, so the process must have only one ring. */
		if (found)
			return 0;
		found = &rings[i];
	}
	return found;
}

/* Called when io_uring_setup has returned: notes the new ring. Returns whether the recorder will read its
 * entries. */
int ring_is_made(const struct state *state, const u64 *arguments, s64 result) {
	const u32 *params = (const u32 *)arguments[1];
	struct ring *old = ring_of(state, (s32)result, 0);
	if (old)
		old->owner = 0;
	if (params[PARAM_FLAGS] & ~SETUP_KNOWN)
		return 0;
	u32 at = old ? (u32)(old - rings) : __atomic_fetch_add(&rings_used, 1, __ATOMIC_ACQ_REL);
	if (at >= RINGS)
		return 0;
	rings[at] = (struct ring){
		.fd = (s32)result, .flags = params[PARAM_FLAGS], .features = params[PARAM_FEATURES],
		.submissions = params[PARAM_SUBMISSIONS], .completions = params[PARAM_COMPLETIONS], .head = params[PARAM_HEAD],
		.array = params[PARAM_ARRAY], .reaped = params[PARAM_REAPED], .tail = params[PARAM_TAIL], .entries = params[PARAM_ENTRIES],
	};
	__atomic_store_n(&rings[at].owner, state->owner, __ATOMIC_RELEASE);
	return 1;
}

/* Whether the descriptor still belongs to an io_uring: a program may close the descriptor of a registered
 * ring, and reuse its number. If /proc is not readable, it is assumed to be a ring. */
static int is_ring(s32 fd) {
	static const char of_ring[] = "anon_inode:[io_uring]";
	u8 name[NAME_BYTES];
	return failed(name_of_descriptor(name, NAME_BYTES - 1, fd)) || is_same(name, of_ring, sizeof(of_ring));
}

void ring_is_mapped(const struct state *state, const u64 *arguments, s64 result) {
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

/* Copies `count` entries of `bytes` each from a circular buffer with room for `room` entries, beginning
 * with entry `from`. */
static int copy_circle(void *to, const u8 *circle, u32 room, u32 bytes, u32 from, u32 count) {
	u32 first = from & (room - 1), some = room - first < count ? room - first : count;
	u64 pieces[2][2] = {{(u64)circle + (u64)first * bytes, (u64)some * bytes}, {(u64)circle, (u64)(count - some) * bytes}};
	u64 all = (u64)count * bytes;
	return count <= room && read_pieces(to, all, pieces, some < count ? 2 : 1) == (long)all;
}

/* struct io_uring_sqe consists of five words that are read here: operation (8 bits), flags (8), another field
 * (16) and descriptor (32); offset; address; length (32) and flags (32); the program's own number for the
 * request. */
enum ring_operation { RING_READ_VECTOR = 1, RING_WRITE_VECTOR = 2 };

/* Writes the program's number of the request, the operation, the flags, the descriptor, the requested
 * bytes plus one (0: unknown), and the offset. */
static u8 *put_request(u8 *at, struct blocks *blocks, const u64 *words) {
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

/* Writes the last `count` requests before `head`, the position at which the kernel will continue to read.
 * Returns 0 if they can't be read. */
static u8 *put_requests(u8 *at, struct blocks *blocks, const struct ring *ring, u32 head, u32 count) {
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
		for (u32 i = 0; i < some; i++)
			blocks->pieces[i][0] = (u64)ring->requests + (places[i] & (ring->submissions - 1)) * bytes;
		if (!read_words(blocks, some))
			return 0;
		for (u32 i = 0; i < some; i++)
			at = put_request(at, blocks, blocks->words[i]);
	}
	return at;
}

/* Writes each completion's number, as chosen by the program, and its result. Returns 0 and changes nothing
 * if they can't be read. */
static u8 *put_completions(u8 *at, struct blocks *blocks, struct ring *ring, u32 count) {
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

/* The new entries of the ring's two queues, requests and completions. */
struct look {
	u32 head;     /* position at which the kernel will continue to read requests */
	u32 requests; /* number of new requests before `head` */
	u32 early;    /* number of new completions that the program took from the queue before this call */
	u32 done;     /* number of all new completions */
};

/* Finds the entries that are new since the last call, including entries of other threads' calls. Adds the
 * number of requests that the program has overwritten already to *unseen. A reader of the record detects
 * missing completions itself. */
static int look_into(struct look *look, struct ring *ring, u32 *unseen) {
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

/* Writes the record's text: the count of completions taken before this call, and these; the count of new
 * requests, and these; then the other completions. The order matters, because new requests may reuse the
 * program's numbers of completed ones. Returns the number of requests that are missing. */
static u32 gather_ring(struct state *state, u32 level, struct ring *ring, struct fields *f, u64 now, u32 submitted) {
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

/* Called when io_uring_enter has returned. The record's `argument` is the number of requests that are missing
 * in its text. */
NOINLINE void ring_is_entered(struct state *state, u32 level, const u64 *arguments, struct fields *f, u64 now, s64 result) {
	u32 free = 0, unseen = result > 0 ? (u32)result : 0;
	u32 is_registered = (u32)arguments[3] & ENTER_REGISTERED;
	struct ring *ring = ring_of(state, (s32)arguments[0], is_registered);
	if (is_registered)
		f->has |= HAS_FD, f->fd = -1;
	if (ring && ring->submission_map && ring->completion_map && ring->requests) {
		f->has |= HAS_FD, f->fd = ring->fd;
		/* If another thread is reading the ring, the next call records the requests that this call
		 * submitted. */
		if (!__atomic_compare_exchange_n(&ring->busy, &free, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			return;
		unseen = gather_ring(state, level, ring, f, now, unseen);
		__atomic_store_n(&ring->busy, 0, __ATOMIC_RELEASE);
	}
	if (unseen)
		f->more |= MORE_ARGUMENT, f->argument = unseen;
}
