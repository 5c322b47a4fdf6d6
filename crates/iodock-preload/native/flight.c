/* The call that a thread is in stands in its chunk's header, so that one which never returns is known: the thread is killed, or a handler
 * leaves the call by longjmp. A part of record.c, kept apart for reading. */

#define SYS_sigaltstack 131
#define SS_ONSTACK 1
/* No stack is larger: farther up is another one. */
#define STACK_MOST (1ul << 30)

/* Whether the call at `stack`, which has returned, is the one in flight. If it is, what came in between is over, and what of that is not
 * written was left. (A handler's calls, while another is in flight, are not noted.) */
static inline int come_back(struct state *state, u64 stack)
{
	if (unlikely(state->flight != stack))
		return 0;
	if (unlikely(state->level)) {
		__atomic_fetch_add(&session->lost_calls, state->level, __ATOMIC_RELAXED);
		abandon(state, 0);
	}
	return 1;
}

/* What is recorded at this level is written. From here on no call is in flight, if it was the one at `flight` whose record this is (0: it is of
 * one that was not noted, as a handler's while it interrupts another). */
static inline ALWAYS void land(struct state *state, u32 level, const struct place *here, u64 flight)
{
	int lands = flight && state->flight == flight;
	if (likely(lands))
		no_flight_in(chunk_of(&state->streams[0]));
	leave(state, level, here);
	barrier();
	if (likely(lands))
		end_flight(state);
}

/* Called by the stub, which does the same where nothing has come in between. */
__attribute__((visibility("hidden"))) void iodock_land_late(struct state *state, u64 flight)
{
	if (state->flight != flight)
		return;
	leave_level(state, 0);
	state->flight = 0;
}

/* Called by the stub where is_next() would say no. One that is in flight still is lost; one that is not was taken to be left. */
__attribute__((visibility("hidden"))) void iodock_not_next(struct state *state, u64 flight)
{
	state->streams[0].limit = 0;
	if (state->flight != flight)
		return;
	__atomic_fetch_add(&session->lost_calls, 1, __ATOMIC_RELAXED);
	leave_level(state, 0);
	end_flight(state);
}

static struct flight flight_of(const struct state *state)
{
	const struct chunk *chunk = chunk_of(&state->streams[0]);
	if (state->kept.call || !chunk)
		return state->kept;
	return (struct flight){chunk->flight_start, chunk->flight, chunk->flight_fd};
}

static void write_left(struct state *state, struct flight flight, u64 now)
{
	const struct shape *shape = &session->shapes[(flight.call - 1) & (CALL_NUMBERS - 1)];
	struct fields fields;
	nothing_yet(&fields);
	if (shape->roles[0] == ROLE_FD)
		fields.has = HAS_FD, fields.fd = flight.fd;
	fields.lands = 1;
	/* Of a map it is not known whether it has a file. */
	if (shape->code && shape->kind != KIND_MAP)
		write_fields(state, 0, shape, &fields, PHASE_NO_RETURN, flight.start >> TIME_SHIFT, now, 0);
}

/* How many records were being written: all that has begun is left. That of the call in flight is not lost, it is noted. */
static u32 records_left(const struct state *state, u64 flight)
{
	/* (Of who had just taken its place it is not known whether it has begun.) */
	if (flight & WRITES)
		return state->level ? state->level : 1;
	return state->level ? state->level - 1 : 0;
}

/* The call in flight will not return: it is written without a result, unless its record is there. So it is for all that began since: for
 * each record that was being written one call is counted as lost. */
static void write_no_return(struct state *state, u64 now)
{
	u64 flight = state->flight;
	if (!flight)
		return;
	u32 lost = records_left(state, flight);
	if (unlikely(lost))
		__atomic_fetch_add(&session->lost_calls, lost, __ATOMIC_RELAXED);
	if (unlikely(state->level))
		abandon(state, 0);
	/* From here on a handler's calls do not find it left: it is being seen to. */
	struct place here;
	here.start = (u64)&here | MARKED;
	barrier();
	state->flight = (u64)&here | WRITES_LEFT;
	barrier();
	u32 level = enter(state, &here);
	struct flight noted = flight_of(state);
	if (noted.call)
		write_left(state, noted, now);
	land(state, level, &here, (u64)&here | WRITES_LEFT);
}

/* Does a handler run on a stack of its own, which may lie anywhere? */
static int on_other_stack(void)
{
	struct { u64 start; u32 flags, padding; u64 bytes; } stack;
	return failed(kernel2(SYS_sigaltstack, 0, &stack)) || (stack.flags & SS_ONSTACK);
}

/* Does a handler that interrupted the call in flight have to be deeper in the stack, and is it not? */
static int is_above(u64 flight, u64 stack)
{
	u64 there = flight & ~KINDS;
	return stack >= there && stack - there < STACK_MOST && !on_other_stack();
}

/* Is that not what a word is, or is none there any more? It is asked for by waking nobody who waits for it: quicker than to read it. */
static int has_changed(const u64 *word, u32 value)
{
	long asked = kernel(SYS_futex, (long)word, FUTEX_CMP_REQUEUE_PRIVATE, 0, 0, (long)word, value);
	return asked == -EAGAIN || asked == -EFAULT;
}

/* What stands in the frame of what is in flight as long as it is there; 0 if that is not known. */
static u64 mark_of_flight(const struct state *state, u64 flight)
{
	struct flight noted = flight_of(state);
	if (flight & (WRITES | WRITES_LEFT))
		return (flight & ~KINDS) | MARKED;
	/* What a chunk says that is being begun may be of its time before. */
	int is_known = noted.call && (state->kept.call || state->streams[0].at);
	return is_known && !(flight & NO_FRAME) ? noted.start : 0;
}

/* Has something else been written where that frame was? (Its stack may have been given back, too.) */
static int frame_is_gone(const struct state *state, u64 flight, u64 stack)
{
	const u64 *there = &((const struct plain_frame *)(flight & ~KINDS))->start;
	u64 mark = mark_of_flight(state, flight);
	if (!mark)
		return 0;
	/* What shares a page with the stack is there. */
	return (u64)there >> 12 == stack >> 12 ? *(const volatile u64 *)there != mark : has_changed(there, (u32)mark);
}

static u64 flight_lent(const struct state *state);

/* Was what is in flight left by who makes a call at `stack`? (A parent that waits for its child has not left its own.) */
static int was_left(const struct state *state, u64 flight, u64 stack)
{
	return flight != flight_lent(state) && (frame_is_gone(state, flight, stack) || is_above(flight, stack));
}

static inline u64 flight_now(const struct state *state)
{
	return *(const volatile u64 *)&state->flight;
}

/* Who writes a record is in flight, or interrupts what is. So where nothing is, who had the level does not go on, and nobody has given it back: a
 * coroutine that was taken to be left has taken its sign away. */
static int is_level_left(struct state *state)
{
	u32 level = state->level;
	if (flight_now(state))
		return 0;
	__atomic_fetch_add(&session->lost_calls, level, __ATOMIC_RELAXED);
	abandon(state, 0);
	return 1;
}

/* A call begins whose stack ends at `stack`. */
static void take_off(struct state *state, const struct frame *frame, u64 stack, u64 start)
{
	u64 now = start >> TIME_SHIFT, flight;
	/* (A handler may find out first that it was left.) */
	while ((flight = flight_now(state)) != 0 && !was_left(state, flight, stack))
		if (flight_now(state) == flight)
			return;
	write_no_return(state, now);
	if (unlikely(state->level) && !is_level_left(state))
		return;
	state->flight = stack;
	barrier();
	struct place here;
	u32 level = enter(state, &here);
	struct stream *stream = &state->streams[0];
	struct chunk *chunk = chunk_of(stream);
	if (unlikely(!chunk) && extend(state, 0, PLAIN_LIMIT, now))
		chunk = chunk_of(stream);
	if (likely(chunk)) {
		chunk->flight_fd = (s32)frame->arguments[0];
		chunk->flight_start = start;
		barrier();
		/* (Another coroutine may have begun other chunks.) */
		if (likely(flight_now(state) == stack && chunk_of(stream) == chunk))
			*(volatile u32 *)&chunk->flight = (u32)frame->number + 1;
		leave(state, level, &here);
	} else {
		land(state, level, &here, stack);
	}
}

/* Called by the stub before a call, where a thread has no chunk yet or has a call in flight already. */
__attribute__((visibility("hidden"))) void iodock_begin(const u64 *begun)
{
	struct state *calling = begin_calling(), *state;
	/* (Stopped since? As in iodock_record.) */
	if (!*(volatile u32 *)&stopped && (state = mine(begun[0] >> TIME_SHIFT, (u64)(begun - 1))) != 0)
		take_off(state, (const struct frame *)(begun + 1), (u64)(begun - 1), begun[0]);
	end_calling(calling);
}
