/* A program forbids itself calls: what we need is made ready before. A part of record.c, kept apart for reading. */

/* Calls that may be on their way to forbid something. */
static u32 confining_now;

enum confining { CONFINES_NOTHING, CONFINES_CALLS, CONFINES_CLOCK };

/* What a call of prctl or seccomp would forbid if it succeeded. Libraries ask the kernel what it knows by calls that can't: those
 * forbid nothing. */
static enum confining confining(const struct frame *frame)
{
	u64 what = frame->arguments[0], value = frame->arguments[1], pointer = frame->arguments[2];
	if (frame->number == SYS_seccomp) {
		/* Strict mode forbids the clock too. */
		if (what == SECCOMP_SET_MODE_STRICT)
			return (u32)value || pointer ? CONFINES_NOTHING : CONFINES_CLOCK;
		return what == SECCOMP_SET_MODE_FILTER && pointer ? CONFINES_CALLS : CONFINES_NOTHING;
	}
	if (what == PR_SET_TSC)
		return value == PR_TSC_SIGSEGV ? CONFINES_CLOCK : CONFINES_NOTHING;
	if (what != PR_SET_SECCOMP)
		return CONFINES_NOTHING;
	if (value == SECCOMP_MODE_STRICT)
		return CONFINES_CLOCK;
	return value == SECCOMP_MODE_FILTER && pointer ? CONFINES_CALLS : CONFINES_NOTHING;
}

/* Maps where the next chunks will be. */
static void open_window(void)
{
	if (window)
		return;
	/* Where all memory is locked this would be too, every page of it. */
	kernel2(SYS_munlock, session, session->head_bytes);
	u64 next = session->chunks_at + __atomic_load_n(&session->next_chunk, __ATOMIC_RELAXED) * session->chunk_bytes;
	window_at = next;
	window_bytes = WINDOW_MOST;
	if (!descriptors && (window = map_part(0, next, window_bytes)) != 0)
		return;
	window_bytes = WINDOW_LEAST;
	window = descriptors ? open_part(&window, next, window_bytes) : map_part(0, next, window_bytes);
}

/* All of the first stream's chunk. */
static void populate_chunk(struct state *state)
{
	struct place here;
	u32 level = enter(state, &here);
	struct stream *stream = &state->streams[0];
	u8 *limit = stream->limit, *end = (u8 *)stream->chunk + session->chunk_bytes;
	if (level == 0 && limit)
		grow_to(stream, limit, end);
	leave(state, level, &here);
}

/* The program is about to forbid itself calls: what we need is made ready, and we make none any more. */
static void confine(struct state *state, const struct frame *frame)
{
	enum confining what = confining(frame);
	if (what == CONFINES_NOTHING)
		return;
	struct confinement *before = &state->confinement;
	__atomic_fetch_add(&confining_now, 1, __ATOMIC_RELAXED);
	before->stack = (u64)(frame + 1);
	before->tid = state->tid;
	before->was_confined = (u16)confined;
	before->was_stopped = (u16)stopped;
	prepare_lists();
	if (what == CONFINES_CLOCK) {
		stop();
		return;
	}
	populate_chunk(state);
	open_window();
	know_oneself(state);
	if (!confined || !is_lent(state))
		confined_by = state->tid;
	confined = 1;
}

/* The call has come back. One that failed has forbidden nothing. */
static void confine_after(struct state *state, const struct frame *frame)
{
	struct confinement *before = &state->confinement;
	if (before->stack != (u64)(frame + 1) || before->tid != state->tid)
		return;
	before->stack = 0;
	__atomic_fetch_sub(&confining_now, 1, __ATOMIC_RELAXED);
	if (!failed((s64)frame->number))
		return;
	confined = before->was_confined;
	if (stopped && !before->was_stopped)
		go_on();
}
