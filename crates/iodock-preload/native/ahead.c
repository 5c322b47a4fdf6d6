/* Chunks for threads to come. A part of record.c, kept apart for reading.
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

/* A thread is about to be made. */
static void map_ahead(void)
{
	struct ahead *ahead = ahead_of_threads();
	if (!ahead || ahead->next || descriptors || session->closed || !becomes(&ahead->next, 0, AHEAD_CLOSED))
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
	if (!ahead)
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
