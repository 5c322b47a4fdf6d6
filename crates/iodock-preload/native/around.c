/* Calls that a trampoline makes on the program's own stack, because they may return on another stack (clone),
 * twice (vfork) or not at all (exec, exit), or because their number is known only at run time (syscall(3)).
 * The stub calls this code before and after such a call. */

#include "recorder.h"
#include "light.h"

/* The kernel reads only 32 bits of the register that holds the call's number. */
const struct shape *shape_of(u32 number) {
	return number < CALL_NUMBERS ? &session->shapes[number] : &session->shapes[CALL_NUMBERS - 1];
}

/* Returns a word of the structure passed to clone3, 0 if the kernel will refuse it. A word in the same page
 * as the frame is read directly, because that page is certainly readable. */
static u64 clone3_word(const u64 *arguments, u64 at) {
	const u64 *word = (const u64 *)(arguments[0] + at);
	u64 here = (u64)arguments >> 12, copy = 0;
	if (arguments[1] < CLONE3_LEAST)
		return 0;
	if ((u64)word >> 12 == here && ((u64)word + sizeof(*word) - 1) >> 12 == here)
		return *(const unaligned_u64 *)word;
	ask_for_word(&copy, word);
	return copy;
}

static u64 clone_flags(u64 number, const u64 *arguments) {
	if (number == SYS_clone3)
		return clone3_word(arguments, 0);
	return number == SYS_clone ? arguments[0] : number == SYS_vfork ? CLONE_VM | CLONE_VFORK : 0;
}

/* Whether the new thread's thread-local storage contains the variable `own` with the value 0. */
static int has_own_word(u64 number, const u64 *arguments) {
	u64 storage = number == SYS_clone ? arguments[4] : clone3_word(arguments, CLONE3_TLS), word = 1, here;
	__asm__("movq %%fs:0, %0" : "=r"(here));
	return ask_for_word(&word, (const u64 *)(storage + ((u64)&own - here))) && !word;
}

/* Returns the value of state.flight for a call that a trampoline makes: where the stub's frame would be. */
static inline u64 flight_around(const struct frame *frame) {
	return ((u64)frame - __builtin_offsetof(struct plain_frame, frame)) | NO_FRAME;
}

/* Prepares for a fork. Returns 0 if the new thread would use this thread's state at the same time, because it
 * shares its thread-local storage, or has no space for `own`. (A parent waits for its child of vfork.) Sets
 * *outer for forget_interrupted() after the fork. */
static int before_fork(struct state *state, const struct frame *frame, u64 flags, struct interrupted **outer) {
	u64 kind = flags & (CLONE_VM | CLONE_VFORK | CLONE_SETTLS);
	if (kind == CLONE_VM || (kind == (CLONE_VM | CLONE_SETTLS) && !has_own_word(frame->number, frame->arguments)))
		return 0;
	if (flags & CLONE_THREAD && !counts_calls)
		map_ahead();
	int interrupts = unlikely(state->level);
	if (!interrupts)
		forget_interrupted(0);
	*outer = last_interrupted();
	if (interrupts && !(flags & CLONE_VM))
		keep_interrupted(state);
	return 1;
}

/* Collects the path of an exec before the call. The kernel copies it, because the pointer may be invalid. */
static void gather_exec(struct state *state, u32 level, const struct shape *shape, const u64 *arguments, struct fields *fields, u64 now) {
	u8 *copy = room(state, level, 2 * PLAIN_LIMIT + 2 * PATH_LIMIT, now);
	u32 at = shape->roles[0] == ROLE_PATH ? 0 : 1;
	if (!copy)
		return;
	if (at == 1)
		fields->has = HAS_FD, fields->fd = (s32)arguments[0];
	if (copy_path(copy + PLAIN_LIMIT, (const u8 *)arguments[at]))
		fields->more = MORE_PATH, fields->path = copy + PLAIN_LIMIT;
}

/* Records the beginning of a call that may not return. */
static void write_beginning(struct state *state, const struct shape *shape, u64 number, const u64 *arguments, u64 now) {
	struct place here;
	u32 level = enter(state, &here);
	struct fields fields;
	nothing_yet(&fields);
	if (shape->kind == KIND_EXIT) {
		write_usage(state, level, number == SYS_exit_group, now);
		if (number == SYS_exit_group)
			write_counted(state, level, now);
		fields.more = MORE_ARGUMENT;
		fields.argument = (s32)arguments[0];
	} else {
		gather_exec(state, level, shape, arguments, &fields, now);
	}
	write_fields(state, level, shape, &fields, PHASE_ENTER, now, now, 0);
	/* Tells the recorder that it can free the chunk at once. A child of vfork must not, as its parent
	 * still writes to the chunk. */
	struct chunk *chunk = chunk_of(&state->streams[level]);
	if (number == SYS_exit_group && !is_lent(state) && chunk)
		chunk->over = 1, give_back_ahead();
	leave(state, level, &here);
}

/* Adds a call to the list of pending calls. Calls other than fork and exec also become the call in flight.
 * `made` is the environment that was created for an exec, or 0. */
static void begin(struct state *state, const struct shape *shape, const struct frame *frame, struct environment *made) {
	u64 stack = stack_of(frame), start = ticks(), now = start >> TIME_SHIFT;
	struct interrupted *outer = 0;
	int forks = shape->kind == KIND_FORK;
	u64 flags = forks ? clone_flags(frame->number, frame->arguments) : 0;
	if (forks && !before_fork(state, frame, flags, &outer)) {
		stop_for_strangers();
		return;
	}
	if (!has_room(state, flags, stack, now)) {
		/* Calls after the fork could not be assigned to parent or child. */
		if (forks)
			stop();
		else
			count_lost(1);
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
	barrier();
	pending->number = (u32)frame->number;
	int is_noted = 0;
	if (!forks && shape->kind != KIND_EXEC) {
		take_off(state, frame, flight_around(frame), start);
		is_noted = state->flight == flight_around(frame);
	}
	set(pending->start, now);
	pending->stack = stack | (is_noted ? NOTED : 0);
	if (forks)
		update_lent(state);
}

static u32 environment_place(const struct shape *shape) {
	return shape->roles[0] == ROLE_PATH ? 2 : 3;
}

/* Notes in the process's table that the program ends or executes another. An exec that fails clears the
 * mark. */
static void mark_table(const struct state *state, u32 over) {
	if (counts_calls && light->table && !is_lent(state))
		light->table->over = over;
}

static void record_exit(struct state *state, const struct shape *shape, const struct frame *frame, u64 now) {
	/* An abandoned call in flight is recorded, unless it belongs to a parent that waits in vfork. */
	if (state->flight != flight_lent(state))
		write_no_return(state, now);
	end_with_thread(state, now);
	/* When calls are counted, a thread usually has no chunk, and its end alone needs none. */
	if (!counts_calls || frame->number == SYS_exit_group || state->streams[0].chunk)
		write_beginning(state, shape, frame->number, frame->arguments, now);
	if (frame->number == SYS_exit_group)
		mark_table(state, 1);
	if (frame->number == SYS_exit && !is_lent(state))
		give_state_back(state);
}

static void record_fork_or_exec(struct state *state, const struct shape *shape, struct frame *frame, u64 now) {
	/* If the call in flight was abandoned, it is recorded now. Otherwise the child of a fork would
	 * inherit it. */
	if (state->flight && was_abandoned(state, state->flight, flight_around(frame)))
		write_no_return(state, now);
	if (shape->kind == KIND_FORK) {
		begin(state, shape, frame, 0);
		return;
	}
	write_beginning(state, shape, frame->number, frame->arguments, now);
	mark_table(state, 1);
	struct environment *made = prepare_exec(state, shape, frame, environment_place(shape), now);
	trace_exec(state, made);
	/* If a handler has forked in between, the state is unused in its child. */
	if (state->taken)
		begin(state, shape, frame, made);
}

static void record_before(struct frame *frame) {
	u64 stack = stack_of(frame), now = ticks() >> TIME_SHIFT;
	const struct shape *shape = shape_of((u32)frame->number);
	struct state *state = mine(now, stack);
	if (!state) {
		/* The recorder may have ended, and its library may be removed: the new program must not load
		 * it. The exec frees the environment's memory; if it fails, the memory is leaked. */
		struct environment *made = shape->kind == KIND_EXEC ? new_environment() : 0;
		if (made)
			make_environment(made, &frame->arguments[environment_place(shape)]);
		return;
	}
	end_abandoned_at(state, stack, now);
	switch (shape->kind) {
	case KIND_IGNORED: case KIND_CONFINE:
		return;
	case KIND_GUARD: case KIND_MAP:
		if (guard(frame))
			frame->back += SYSCALL_BYTES;
		if (shape->kind == KIND_MAP && !stopped)
			begin(state, shape, frame, 0);
		return;
	case KIND_EXIT:
		record_exit(state, shape, frame, now);
		return;
	case KIND_FORK: case KIND_EXEC:
		record_fork_or_exec(state, shape, frame, now);
		return;
	default:
		begin(state, shape, frame, 0);
	}
}

/* Whether a thread that installs a seccomp filter for all threads must wait for the end of this call. After
 * an exec the new program loads our library, whose calls the filter may forbid. A fork copies the variable
 * `stopped` before the filter, so that the child could have the filter but not know it. A child of vfork
 * shares `stopped`. */
static int must_not_meet_a_filter(const struct frame *frame) {
	enum kind kind = shape_of((u32)frame->number)->kind;
	return kind == KIND_EXEC || (kind == KIND_FORK && !(clone_flags(frame->number, frame->arguments) & CLONE_VM));
}

void iodock_record_before(struct frame *frame) {
	if (!session)
		return;
	frame->number = (u32)frame->number;
	if (unlikely(forbids(frame))) {
		stop_before(frame);
		return;
	}
	if (!stopped) {
		struct state *began_in = begin_own_calls();
		/* iodock_record() explains why `stopped` is read again here. */
		if (!*(volatile u32 *)&stopped)
			record_before(frame);
		/* `stopped` is read again, because a new filter may forbid the call that reads clone3's
		 * argument. */
		if (!*(volatile u32 *)&stopped && must_not_meet_a_filter(frame))
			hold();
		end_own_calls(began_in);
	}
	if (stopped && (frame->number == SYS_execve || frame->number == SYS_execveat))
		execute_without_ours(frame, frame->number == SYS_execve ? 2 : 3);
}

static void record_end(struct state *state, struct frame *frame, const struct pending *done, u64 end) {
	const struct shape *shape = shape_of(done->number);
	int is_exec = shape->kind == KIND_EXEC, lands;
	s64 result = (s64)frame->number;
	if (is_exec)
		frame->number = (u64)(result = execute_again(state, done, environment_place(shape), result));
	end_pending(state, done->order);
	lands = !is_exec && come_back(state, flight_around(frame));
	struct place here;
	u32 level = enter(state, &here);
	if (is_exec) {
		struct fields fields;
		mark_table(state, 0);
		nothing_yet(&fields);
		write_fields(state, level, shape, &fields, PHASE_EXIT, done->start, end, result);
	} else if (counts_calls) {
		struct over over = {shape, done->arguments, result, done->number, done->start << TIME_SHIFT, end << TIME_SHIFT};
		count_over(state, &over);
	} else {
		record_general(state, level, shape, done->arguments, lands, done->start, end, result, 0);
	}
	land(state, level, &here, lands ? flight_around(frame) : 0);
}

static void record_after(struct frame *frame) {
	s64 result = (s64)frame->number;
	struct state *state = own;
	if (!state || *(volatile u32 *)&stopped)
		return;
	u64 end = ticks() >> TIME_SHIFT;
	if (!state->taken) {
		/* The child of a fork gets its own chunk at once, so that readers know it even if it makes no
		 * call. */
		if ((state = adopt(end)) != 0)
			record_control(state, CONTROL_TASK, end);
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
		/* give_one_up() has removed this call from the list of pending calls. */
		count_lost(1);
		come_back(state, flight_around(frame));
		end_flight(state);
	}
	if (pending && pending->tid == state->tid) {
		struct pending done = *pending;
		record_end(state, frame, &done, end);
	}
}

void iodock_record_after(struct frame *frame) {
	if (!session)
		return;
	end_hold();
	/* After recording has stopped, `own` must not be read: see stop.c. */
	if (stopped) {
		give_back_copy();
		return;
	}
	struct state *began_in = begin_own_calls();
	record_after(frame);
	end_own_calls(began_in);
}
