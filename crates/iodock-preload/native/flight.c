/* The call that a thread is in stands in its chunk's header, so that one which never returns is known: the thread is killed, or a handler
 * leaves the call by longjmp. A part of record.c, kept apart for reading. */

#define SYS_sigaltstack 131
#define SS_ONSTACK 1
/* No stack is larger: farther up is another one. */
#define STACK_MOST (1ul << 30)

/* The call at `stack` has returned. (A handler's calls, while another is in flight, are not noted.) Like all that touches the chunk it
 * stands behind enter(): a handler may go on to another chunk. */
static inline void has_landed(struct state *state, u64 stack)
{
	if (likely(state->flight == stack)) {
		state->flight = 0;
		if (likely(state->streams[0].chunk))
			state->streams[0].chunk->flight_start = 0;
	}
}

static void write_left(struct state *state, struct chunk *chunk, u64 now)
{
	u64 start = chunk->flight_start >> TIME_SHIFT;
	const struct shape *shape = &session->shapes[chunk->flight_number & (CALL_NUMBERS - 1)];
	struct fields fields;
	nothing_yet(&fields);
	if (shape->roles[0] == ROLE_FD)
		fields.has = HAS_FD, fields.fd = chunk->flight_fd;
	chunk->flight_start = 0;
	/* Of a map it is not known whether it has a file. */
	if (shape->code && shape->kind != KIND_MAP)
		write_fields(state, 0, shape, &fields, PHASE_NO_RETURN, start, now, 0);
}

/* The call in flight will not return: it is written without a result. */
static void write_no_return(struct state *state, u64 now)
{
	if (!state->flight || state->level)
		return;
	u32 level = enter(state);
	struct chunk *chunk = state->streams[0].chunk;
	state->flight = 0;
	if (chunk && chunk->flight_start)
		write_left(state, chunk, now);
	leave(state, level);
}

/* Does a handler run on a stack of its own, which may lie anywhere? */
static int on_other_stack(void)
{
	struct { u64 start; u32 flags, padding; u64 bytes; } stack;
	return confined || failed(kernel2(SYS_sigaltstack, 0, &stack)) || (stack.flags & SS_ONSTACK);
}

/* Was the call in flight left? A handler that interrupted it is deeper in the stack. */
static int was_left(const struct state *state, u64 stack)
{
	return stack >= state->flight && stack - state->flight < STACK_MOST && !on_other_stack();
}

/* A call begins whose stack ends at `stack`. */
static void take_off(struct state *state, const struct frame *frame, u64 stack, u64 start)
{
	u64 now = start >> TIME_SHIFT;
	if (state->level || (state->flight && !was_left(state, stack)))
		return;
	write_no_return(state, now);
	u32 level = enter(state);
	struct stream *stream = &state->streams[0];
	if (stream->at || (!confined && extend(state, 0, PLAIN_LIMIT, now))) {
		state->flight = stack;
		stream->chunk->flight_number = (u32)frame->number;
		stream->chunk->flight_fd = (s32)frame->arguments[0];
		barrier();
		stream->chunk->flight_start = start;
	}
	leave(state, level);
}

/* Called by the stub before a call, where a thread has no chunk yet or has a call in flight already. */
__attribute__((visibility("hidden"))) void iodock_begin(const u64 *begun)
{
	struct state *state = own;
	if (confined && (!state || !state->taken))
		return;
	if ((state = mine(begun[0] >> TIME_SHIFT)) != 0)
		take_off(state, (const struct frame *)(begun + 1), (u64)(begun - 1), begun[0]);
}
