/* A handler's fork while a record is being written. A part of record.c, kept apart for reading.
 *
 * When the handler returns the child goes on with that record, as its parent does, and with the same pointers into the parent's chunk. So
 * it gets the wiped state back as it was, nobody's now, and memory of its own in the place of the chunks: what is written there nobody
 * reads. */

/* The state as it was before the fork; and, where a handler interrupts another one that is about to fork, what that one has kept. */
struct interrupted {
	struct state state;
	struct interrupted *outer;
};
_Static_assert(sizeof(struct interrupted) <= SLOT_BYTES, "as large as a state's place");

static __thread struct interrupted *interrupted;

static inline struct interrupted *take_interrupted(void)
{
	struct interrupted *last = interrupted;
	if (likely(!last))
		return 0;
	return __atomic_exchange_n(&interrupted, 0, __ATOMIC_RELAXED);
}

/* What has been kept since `outer` was the last one: these forks are over, or never were. */
static void forget_interrupted(const struct interrupted *outer)
{
	/* (A handler may come, and do the same.) */
	for (struct interrupted *last; unlikely((last = take_interrupted()) != 0);) {
		if (last == outer) {
			interrupted = last;
			break;
		}
		interrupted = last->outer;
		kernel2(SYS_munmap, last, SLOT_BYTES);
	}
}

/* Before the fork. (Where there is no memory, the record is damaged.) */
static void keep_interrupted(const struct state *state)
{
	long copy = kernel(SYS_mmap, 0, SLOT_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (failed(copy)) {
		/* What is kept already is not what the child is to go on with. */
		interrupted = 0;
		return;
	}
	put_bytes((u8 *)copy, (const u8 *)state, sizeof(*state));
	((struct interrupted *)copy)->outer = interrupted;
	interrupted = (struct interrupted *)copy;
}

/* In the child: `state` was the thread's. It stays out of use. */
static void leave_to_nobody(struct state *state)
{
	if (likely(!interrupted))
		return;
	put_bytes((u8 *)state, (const u8 *)&interrupted->state, sizeof(*state));
	state->taken = 0;
	state->calling = 0;
	set_taken(state->number);
	for (u32 level = 0; level < LEVELS; level++) {
		struct chunk *chunk = state->streams[level].chunk;
		long memory = !chunk ? -1 : kernel(SYS_mmap, (long)chunk, (long)session->chunk_bytes, PROT_READ | PROT_WRITE,
						   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
		/* What goes on finds it as it was: nothing is lost. (A chunk that is being begun has no place yet.) */
		const u8 *at = state->streams[level].at;
		if (!failed(memory))
			chunk->used = at ? (u32)(at - (const u8 *)chunk) : sizeof(*chunk);
	}
	forget_interrupted(0);
}
