/* Calls that are made outside of the stub: what is told of them before and after. A part of record.c, kept apart for reading. */

/* (Of the register the kernel reads 32 bits.) */
static const struct shape *shape_of(u32 number)
{
	return number < CALL_NUMBERS ? &session->shapes[number] : &session->shapes[CALL_NUMBERS - 1];
}

/* Of the structure that clone3 is given, 0 where the kernel will refuse it. It mostly lies on the stack, as the arguments do: what shares a
 * page with them is there, and need not be asked for. */
static u64 clone3_word(const u64 *arguments, u64 at)
{
	const u64 *word = (const u64 *)(arguments[0] + at);
	u64 here = (u64)arguments >> 12, copy = 0;
	if (arguments[1] < CLONE3_LEAST)
		return 0;
	if ((u64)word >> 12 == here && ((u64)word + sizeof(*word) - 1) >> 12 == here)
		return *(const unaligned_u64 *)word;
	ask_for_word(&copy, word);
	return copy;
}

static u64 clone_flags(u64 number, const u64 *arguments)
{
	switch (number) {
	case SYS_clone:
		return arguments[0];
	case SYS_vfork:
		return CLONE_VM | CLONE_VFORK;
	case SYS_clone3:
		return clone3_word(arguments, 0);
	default:
		return 0;
	}
}

/* A thread will have the thread-local storage that the caller gives it (pthread_create; or its own idea of such). Is there room for our
 * word in it, and is that 0, as in a new one? */
static int has_own_word(u64 number, const u64 *arguments)
{
	u64 storage = number == SYS_clone ? arguments[4] : clone3_word(arguments, CLONE3_TLS), word = 1, here;
	__asm__("movq %%fs:0, %0" : "=r"(here));
	return ask_for_word(&word, (const u64 *)(storage + ((u64)&own - here))) && !word;
}

/* Where a call that is made from here would have the frame of one that the stub makes. */
static inline u64 flight_around(const struct frame *frame)
{
	return ((u64)frame - __builtin_offsetof(struct plain_frame, frame)) | NO_FRAME;
}

/* 0: recording must stop. `outer`: what forget_interrupted() is to be told when the fork is over. */
static int before_fork(struct state *state, const struct frame *frame, u64 flags, struct interrupted **outer)
{
	u64 kind = flags & (CLONE_VM | CLONE_VFORK | CLONE_SETTLS);
	/* A thread that will share our thread-local storage: two writers of one state. Or one that has none. (Of vfork's children their parent
	 * waits until they are done.) */
	if (kind == CLONE_VM ||
	    (kind == (CLONE_VM | CLONE_SETTLS) && !has_own_word(frame->number, frame->arguments)))
		return 0;
	if (flags & CLONE_THREAD)
		map_ahead();
	int interrupts = unlikely(state->level);
	if (!interrupts)
		forget_interrupted(0);
	*outer = interrupted;
	if (interrupts && !(flags & CLONE_VM))
		keep_interrupted(state);
	return 1;
}

#include "sight.c"

#include "counted.c"

#include "environment.c"

#include "untold.c"

#include "traced.c"

/* The beginning of a call that may not come back. */
static void write_beginning(struct state *state, const struct shape *shape, u64 number, const u64 *arguments,
			    u64 now)
{
	struct place here;
	u32 level = enter(state, &here);
	struct fields fields;
	u8 *copy;
	nothing_yet(&fields);
	if (shape->kind == KIND_EXIT) {
		write_usage(state, level, number == SYS_exit_group, now);
		if (number == SYS_exit_group)
			write_counted(state, level, now);
		fields.more = MORE_ARGUMENT;
		fields.argument = (s32)arguments[0];
	} else if ((copy = room(state, level, 2 * PLAIN_LIMIT + 2 * PATH_LIMIT, now)) != 0) {
		/* The kernel has not read the path yet, and may refuse it. */
		copy += PLAIN_LIMIT;
		u32 at = shape->roles[0] == ROLE_PATH ? 0 : 1;
		if (at == 1)
			fields.has = HAS_FD, fields.fd = (s32)arguments[0];
		if (copy_path(copy, (const u8 *)arguments[at]))
			fields.more = MORE_PATH, fields.path = copy;
	}
	write_fields(state, level, shape, &fields, PHASE_ENTER, now, now, 0);
	/* Its memory can be given back at once. (A child of vfork leaves its parent's alone.) */
	struct chunk *chunk = chunk_of(&state->streams[level]);
	if (number == SYS_exit_group && !is_lent(state) && chunk)
		chunk->over = 1, give_back_ahead();
	leave(state, level, &here);
}

#include "pending.c"

#include "lent.c"

/* Is told before the kernel makes it, so that it is known when it is back, or that it never is. `made`: for an exec, if anything. */
static void begin(struct state *state, const struct shape *shape, const struct frame *frame, struct environment *made)
{
	u64 stack = stack_of(frame), start = ticks(), now = start >> TIME_SHIFT;
	struct interrupted *outer = 0;
	int forks = shape->kind == KIND_FORK;
	u64 flags = forks ? clone_flags(frame->number, frame->arguments) : 0;
	if (forks && !before_fork(state, frame, flags, &outer)) {
		has_strangers = 1;
		stop();
		return;
	}
	if (!has_room(state, flags, stack, now)) {
		/* Whose calls come would not be known behind a fork. */
		if (forks)
			stop();
		else
			__atomic_fetch_add(&session->lost_calls, 1, __ATOMIC_RELAXED);
		return;
	}
	struct pending *pending = begin_pending(state, stack);
	for (u32 i = 0; i < 6; i++)
		pending->arguments[i] = frame->arguments[i];
	if (forks) {
		pending->fork.flags = flags;
		pending->fork.level = state->level;
		pending->fork.flight = state->flight;
		pending->fork.child = 0;
		pending->fork.outer = outer;
	}
	if (shape->kind == KIND_EXEC)
		pending->exec.made = made;
	/* What the rest means is told by this. */
	barrier();
	pending->number = (u32)frame->number;
	int is_noted = 0;
	if (!forks && shape->kind != KIND_EXEC) {
		take_off(state, frame, flight_around(frame), start);
		is_noted = state->flight == flight_around(frame);
	}
	pending->start = now;
	barrier();
	pending->stack = stack | (is_noted ? NOTED : 0);
	if (forks)
		update_lent(state);
}

/* Which argument of exec is the environment? */
static u32 environment_place(const struct shape *shape)
{
	return shape->roles[0] == ROLE_PATH ? 2 : 3;
}

static inline ALWAYS void record_before(struct frame *frame)
{
	u64 stack = stack_of(frame);
	struct state *state;
	const struct shape *shape = shape_of(frame->number);
	u32 environment_at = environment_place(shape);
	if (stopped)
		return;
	u64 now = ticks() >> TIME_SHIFT;
	if (!(state = mine(now, stack))) {
		/* The recorder has gone, and perhaps the library. (The memory goes with the exec; of one that fails it is lost.) */
		struct environment *made = shape->kind == KIND_EXEC ? new_environment() : 0;
		if (made)
			make_environment(made, &frame->arguments[environment_at]);
		return;
	}
	end_left_at(state, stack, now);
	if (shape->kind == KIND_IGNORED || shape->kind == KIND_CONFINE)
		return;
	if (shape->kind == KIND_GUARD || shape->kind == KIND_MAP) {
		if (guard(frame))
			frame->back += SYSCALL_BYTES;
		if (shape->kind == KIND_GUARD || stopped)
			return;
	}
	/* (The call in flight may be that of a parent who waits.) */
	if (shape->kind == KIND_EXIT) {
		if (state->flight != flight_lent(state))
			write_no_return(state, now);
		end_with_thread(state, now);
	}
	/* What was left is not the child's to find, and not what a handler leaves now. */
	if ((shape->kind == KIND_FORK || shape->kind == KIND_EXEC) && state->flight && was_left(state, state->flight, flight_around(frame)))
		write_no_return(state, now);
	if (shape->kind == KIND_EXIT || shape->kind == KIND_EXEC)
		write_beginning(state, shape, frame->number, frame->arguments, now);
	if (shape->kind == KIND_EXIT) {
		/* exit of a thread: its slot is free for the next one. */
		if (frame->number == SYS_exit && !is_lent(state))
			give_state_back(state);
		return;
	}
	struct environment *made = 0;
	if (shape->kind == KIND_EXEC) {
		made = prepare_exec(state, shape, frame, environment_at, now);
		before_exec(state, made);
		/* In the child of a handler's fork nobody uses this state. */
		if (!state->taken)
			return;
	}
	begin(state, shape, frame, made);
}

__attribute__((visibility("hidden"))) void iodock_record_before(struct frame *frame)
{
	if (!session)
		return;
	frame->number = (u32)frame->number;
	/* (A thread that it has stopped for may have no storage for ours.) */
	if (unlikely((frame->number == SYS_prctl || frame->number == SYS_seccomp) && forbids(frame))) {
		stop_before(frame);
		return;
	}
	if (!stopped) {
		struct state *calling = begin_calling();
		record_before(frame);
		end_calling(calling);
	}
	if (stopped && (frame->number == SYS_execve || frame->number == SYS_execveat))
		execute_untold(frame, frame->number == SYS_execve ? 2 : 3);
}

static inline ALWAYS void record_after(struct frame *frame)
{
	s64 result = (s64)frame->number;
	struct state *state = own;
	if (!state)
		return;
	if (*(volatile u32 *)&stopped)
		return;
	u64 end = ticks() >> TIME_SHIFT;
	if (!state->taken) {
		/* The child of a fork: a chunk of its own, so that it is known even if it makes no call. */
		if ((state = adopt(end)) != 0) {
			struct place here;
			u32 level = enter(state, &here);
			write_task(state, level, end);
			leave(state, level, &here);
		}
		return;
	}
	struct pending *pending = begun(state, stack_of(frame));
	if (pending && result && is_fork(pending)) {
		fork_is_over(state, pending, 0, end, result);
		return;
	}
	if (unlikely(state->taken == LENT)) {
		settle(state, end, 0);
		pending = begun(state, stack_of(frame));
	}
	if (!pending && state->flight == flight_around(frame)) {
		/* It was given up for others. */
		__atomic_fetch_add(&session->lost_calls, 1, __ATOMIC_RELAXED);
		come_back(state, flight_around(frame));
		end_flight(state);
	}
	if (!pending || pending->tid != state->tid)
		return;
	const struct shape *shape = shape_of(pending->number);
	struct pending done = *pending;
	struct environment *made = environment_of(&done);
	if (result == -E2BIG && made && made->is_made) {
		/* Who traced it has let go when it failed. */
		if (made->sight == SEEN)
			made->sight = BLIND;
		before_exec(state, made);
		result = exec_without_ours(made, &done, environment_place(shape));
		frame->number = (u64)result;
	}
	end_pending(state, done.order);
	int lands = shape->kind != KIND_EXEC && come_back(state, flight_around(frame));
	struct place here;
	u32 level = enter(state, &here);
	if (shape->kind == KIND_EXEC) {
		struct fields fields;
		nothing_yet(&fields);
		write_fields(state, level, shape, &fields, PHASE_EXIT, done.start, end, result);
	} else {
		record_general(state, level, shape, done.arguments, lands, done.start, end, result);
	}
	land(state, level, &here, lands ? flight_around(frame) : 0);
}

__attribute__((visibility("hidden"))) void iodock_record_after(struct frame *frame)
{
	if (!session)
		return;
	/* (See above.) */
	if (stopped) {
		give_back_copy();
		return;
	}
	struct state *calling = begin_calling();
	record_after(frame);
	end_calling(calling);
}
