/* Finds the call sites of system calls. The recorder walks the stack after a call, and a record begins with
 * the number of its stack if the last call with the same code had another stack. The walk reads only words
 * between the stack pointer and the end of the thread's own stack, after the kernel has confirmed that all
 * these pages are present. On other stacks (of handlers and coroutines) the call site stays unknown. */

#include "stacks.h"

#define RED_ZONE 128
#define SPAN_MOST (64ul << 20) /* largest distance from the stack pointer to the stack's end, in bytes */
#define PAGES_ASKED (2048ul)
/* After TRIES_MOST failed attempts to find the end of a thread's stack, only every 64th call tries again. */
#define TRIES_MOST 16
#define TRIES_MASK 63
#define PIECES 32
#define FRAME_BYTES 24
#define MORE_BYTES 64
/* The number after CODE_STACK. STACK_NEW: a new stack follows. STACK_NONE: the stack is unknown. Higher
 * numbers refer to stacks that were written earlier in this chunk. */
enum { STACK_NEW = 0, STACK_NONE = 1 };

struct stack_tables *stack_tables;

/* Called while the library is being loaded. Returns 0 if there is no memory for the tables; then call sites
 * stay unknown. */
int begin_stacks(u64 top, u64 segments_at, u64 segments, const struct link *modules) {
	long at = kernel(SYS_mmap, 0, sizeof(struct stack_tables), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (failed(at))
		return 0;
	struct stack_tables *tables = (struct stack_tables *)at;
	tables->main_top = top & ~7ul;
	tables->main_thread = thread_pointer();
	tables->segments_at = segments_at;
	tables->segments = segments;
	tables->modules = modules;
	tables->which = session->stacks;
	if (failed(kernel3(SYS_readlink, "/proc/self/exe", tables->program, MODULE_NAME)))
		tables->program[0] = 0;
	stacks_span = (struct span){(u64)at, (u64)at + sizeof(*tables)};
	stack_tables = tables;
	find_own_code();
	return 1;
}

/* Called at the first call of a thread or of a fork's child: forgets what was known about the stack. */
void forget_stack(struct state *state) {
	if (!stack_tables)
		return;
	struct stacks *stacks = stacks_of(state);
	stacks->low = stacks->top = 0;
	stacks->tries = 0;
	stacks->python_thread = 0;
	for (u32 i = 0; i < SEEN_CODES; i++)
		stacks->seen[i].code = 0;
	for (u32 i = 0; i < WALKS; i++)
		stacks->before[i].hash = 0;
	stacks->is_unplaced = 0;
	forget_known_stacks(state);
}

/* Called when a chunk begins: a chunk is read without the others, so its stacks are numbered from 1 again. */
void forget_known_stacks(struct state *state) {
	if (!stack_tables)
		return;
	struct stacks *stacks = stacks_of(state);
	stacks->count = 0;
	for (u32 i = 0; i < HABITS; i++)
		stacks->last[i] = 0;
	for (u32 i = 0; i < STACK_SETS; i++)
		for (u32 way = 0; way < STACK_WAYS; way++)
			stacks->known[i][way].hash = 0;
}

static u64 stack_at(const struct plain_frame *plain) { return (u64)(&plain->frame + 1) + RED_ZONE; }

static ALWAYS int is_known(const struct stacks *stacks, u64 stack) {
	return stack >= stacks->low && stack < stacks->top && !(stack & 7);
}

/* Whether all pages of the range are present. */
static int are_there(u64 from, u64 to) {
	u64 pieces[PIECES][2];
	u8 bytes[PIECES];
	if (to - from > PAGES_ASKED * 4096)
		return 0;
	while (from < to) {
		u64 count = 0;
		for (; count < PIECES && from < to; count++, from += 4096)
			pieces[count][0] = from, pieces[count][1] = 1;
		if (read_pieces(bytes, count, pieces, count) != (long)count)
			return 0;
	}
	return 1;
}

/* Returns the end of the thread's own stack, 0 if the current stack is another one. The end is below libc's
 * data (at the thread pointer), and for the main thread below the program's arguments. */
static u64 end_of_stack(u64 stack) {
	u64 main_top = stack_tables->main_top, thread = thread_pointer();
	if (stack < main_top && main_top - stack < SPAN_MOST)
		return main_top;
	return thread != stack_tables->main_thread && stack < thread && thread - stack < SPAN_MOST ? thread & ~7ul : 0;
}

/* Whether to ask the kernel if the stack's pages are present. */
static ALWAYS int may_be_own(struct stacks *stacks, u64 stack) {
	return end_of_stack(stack) && (stacks->tries < TRIES_MOST || !(++stacks->tries & TRIES_MASK));
}

/* Returns how many pages directly below `from` are present. The next calls may need them. */
static u64 pages_below(u64 from) {
	u64 pieces[PIECES][2];
	u8 bytes[PIECES];
	for (u64 i = 0; i < PIECES; i++)
		pieces[i][0] = from - (i + 1) * 4096, pieces[i][1] = 1;
	long got = read_pieces(bytes, PIECES, pieces, PIECES);
	return failed(got) ? 0 : (u64)got;
}

static NOINLINE void learn_stack(struct stacks *stacks, u64 stack) {
	u64 top = end_of_stack(stack), from = stack & ~4095ul;
	u64 to = top == stacks->top && stack < stacks->low ? stacks->low : top;
	if (are_there(from, to)) {
		stacks->top = top;
		stacks->low = from - pages_below(from) * 4096;
		stacks->tries = 0;
	} else {
		stacks->tries++;
	}
}

/* Removes frames of the preloaded libraries, which stand between the program and HDF5, MPI-IO etc. */
static void leave_out_ours(struct stacks *stacks, u32 count) {
	u32 kept = 0, pythons_at = stacks->pythons_at;
	for (u32 i = 0; i < count; i++) {
		if (stack_tables->codes[code_in(stacks->rule[i]) - 1].is_ours) {
			stacks->pythons_at -= i < pythons_at;
			continue;
		}
		stacks->pc[kept] = stacks->pc[i], stacks->rule[kept] = stacks->rule[i];
		kept++;
	}
	stacks->frames = kept;
}

static ALWAYS u64 word_read(struct words *words, u64 at) {
	u64 word = *(const u64 *)at;
	if (likely(words->count < WORDS_MOST))
		words->read[words->count].at = at, words->read[words->count].word = word;
	words->count++;
	return word;
}

/* Walks the stack from the call at pc to its callers. With `keep` it also learns unknown rules and stores the
 * frames; without, it returns UNKNOWN_RULE at the first unknown rule. */
static ALWAYS enum walked walk(struct stacks *stacks, u64 pc, u64 stack, u64 base, u64 which, int keep, u64 *found, struct words *words) {
	u64 hash = HASH_BEGIN, top = stacks->top;
	u32 count = 0, has_base = 1, has_python = !*(const volatile u64 *)&stack_tables->python.runtime, is_own = 0, pythons_own = 0;
	if (keep)
		stacks->pythons = stacks->pythons_at = 0;
	while (count < FRAMES_MOST) {
		u64 rule = rule_of(pc);
		if (unlikely(!rule || (!code_in(rule) && size_in(rule) != ((u64)stack_tables->loads & RULE_SIZE_MOST) * 8))) {
			if (!keep)
				return UNKNOWN_RULE;
			rule = learn_rule(pc);
		}
		if (unlikely(!code_in(rule)))
			break;
		if (unlikely(rule & RULE_PYTHON) && !has_python) {
			has_python = 1;
			if (keep)
				stacks->pythons_at = count;
			if (walk_python(stacks, which, keep, &hash, &pythons_own) != WHOLE)
				return UNKNOWN_RULE;
			is_own += pythons_own;
			if (is_own && which == STACKS_SITES)
				break;
		}
		/* STACKS_SITES records frames up to the first one of the user's own code, and its caller if that is
		 * own code, too. */
		if (which == STACKS_SITES && is_own && !(rule & RULE_OWN))
			break;
		if (keep)
			stacks->pc[count] = pc, stacks->rule[count] = rule;
		count++;
		hash = mix(hash, pc);
		if (which == STACKS_SITES && rule & RULE_OWN && is_own++)
			break;
		if ((rule & RULE_WAY) == WAY_ENDS)
			break;
		if ((rule & RULE_WAY) == WAY_BASE && !has_base)
			break;
		u64 end = ((rule & RULE_WAY) == WAY_STACK ? stack : base) + size_in(rule);
		/* The caller's frame must lie higher, and on this stack. */
		if (unlikely(end <= stack || end > top || end & 7))
			break;
		if (rule & RULE_SAVED) {
			u64 at = end - saved_in(rule);
			if (unlikely(at < stack || at >= end))
				break;
			base = word_read(words, at);
			has_base = 1;
		} else if (rule & RULE_LOST) {
			has_base = 0;
		}
		pc = word_read(words, end - 8);
		stack = end;
	}
	/* The walk has met no interpreter frame: machine code made at run time hides it, or the stack is too
	 * deep. */
	if (!has_python && !is_own) {
		if (keep)
			stacks->pythons_at = count;
		if (walk_python(stacks, which, keep, &hash, &is_own) != WHOLE)
			return UNKNOWN_RULE;
	}
	if (keep)
		leave_out_ours(stacks, count);
	*found = count ? hash | 1 : 0;
	return WHOLE;
}

static u32 code_at(const struct plain_frame *plain) { return session->shapes[plain->frame.number & (CALL_NUMBERS - 1)].code % HABITS; }

/* Returns the hash of this call's stack if it equals that of an earlier walk; 0 if the stack must be walked.
 * With Python it always must, because Python's frames are not on the stack. */
static ALWAYS u64 as_before(const volatile struct walk_before *before, const struct stacks *stacks, u64 pc, u64 stack, u64 base) {
	u32 turn = before->turn, count = before->words.count;
	u64 hash = before->hash;
	if (*(const volatile u64 *)&stack_tables->python.runtime)
		return 0;
	if (before->pc != pc || before->stack != stack || before->base != base || before->top != stacks->top ||
	    before->loads != *(volatile u32 *)&stack_tables->loads || before->replaced != *(volatile u32 *)&stack_tables->replaced || count > WORDS_MOST)
		return 0;
	for (u32 i = 0; i < count; i++) {
		u64 at = before->words.read[i].at;
		/* The address is checked because a handler may just have replaced the words. */
		if (at < stack || at >= stacks->top || *(const volatile u64 *)at != before->words.read[i].word)
			return 0;
	}
	return before->turn == turn ? hash : 0;
}

/* Stores a walk's result for as_before(). */
static void keep_walk(struct walk_before *before, const struct walk_before *found) {
	u32 turn = *(volatile u32 *)&before->turn + 1;
	set(before->turn, turn);
	set(before->hash, 0);
	barrier();
	before->pc = found->pc, before->stack = found->stack, before->base = found->base, before->top = found->top;
	before->loads = found->loads, before->replaced = found->replaced;
	before->words.count = found->words.count;
	for (u32 i = 0; i < found->words.count; i++)
		before->words.read[i] = found->words.read[i];
	barrier();
	/* If a handler wrote in between, the entry is a mixture of both, and stays invalid. */
	if (*(volatile u32 *)&before->turn == turn)
		set(before->hash, found->hash);
	set(before->turn, turn + 1);
}

/* The stub calls this before it writes a record. Returns 1 if the call has the same stack as the last call
 * with its code. Makes no system call. */
u32 iodock_has_same_stack(struct state *state, const struct plain_frame *plain, u64 base) {
	struct stacks *stacks = stacks_of(state);
	u64 stack = stack_at(plain), hash = 0;
	if (*(volatile u32 *)&stack_tables->idle)
		return 1;
	if (likely(is_known(stacks, stack))) {
		struct walk_before *before = &stacks->before[code_at(plain) % WALKS], found;
		hash = as_before(before, stacks, plain->frame.site, stack, base);
		if (likely(hash))
			return hash == stacks->last[code_at(plain)];
		found.pc = plain->frame.site, found.stack = stack, found.base = base, found.top = stacks->top;
		found.loads = *(volatile u32 *)&stack_tables->loads, found.replaced = *(volatile u32 *)&stack_tables->replaced;
		found.words.count = 0;
		if (walk(stacks, plain->frame.site, stack, base, stack_tables->which, 0, &hash, &found.words) != WHOLE)
			return 0;
		found.hash = hash;
		if (hash && hash == stacks->last[code_at(plain)] && found.words.count <= WORDS_MOST && !*(const volatile u64 *)&stack_tables->python.runtime)
			keep_walk(before, &found);
	} else if (may_be_own(stacks, stack)) {
		return 0;
	}
	return hash == stacks->last[code_at(plain)];
}

/* Finds the call's stack. Returns the maximum number of bytes that the stack takes in the record. `plain` is
 * 0 if the call's frame is unknown. */
u64 see_stack(struct state *state, const struct plain_frame *plain, u64 base) {
	struct stacks *stacks = stacks_of(state);
	stacks->hash = stacks->frames = stacks->pythons = 0;
	if (!plain || *(volatile u32 *)&stack_tables->idle)
		return MORE_BYTES;
	u64 stack = stack_at(plain);
	/* iodock_has_same_stack() has already counted this try: see may_be_own(). */
	if (!is_known(stacks, stack) && end_of_stack(stack) && (stacks->tries < TRIES_MOST || !(stacks->tries & TRIES_MASK)))
		learn_stack(stacks, stack);
	if (is_known(stacks, stack)) {
		struct words words = {.count = 0};
		walk(stacks, plain->frame.site, stack, base, stack_tables->which, 1, &stacks->hash, &words);
	} else if (!stacks->is_unplaced) {
		stacks->is_unplaced = 1;
		__atomic_fetch_add(&session->unplaced, 1, __ATOMIC_RELAXED);
	}
	u64 bytes = MORE_BYTES + (stacks->pythons ? python_bytes(stacks) : 0);
	u32 last = 0;
	for (u32 i = 0; i < stacks->frames; i++) {
		u32 code = code_in(stacks->rule[i]);
		bytes += FRAME_BYTES + (code != last ? stack_tables->codes[code - 1].name_bytes : 0);
		last = code;
	}
	return bytes;
}

static u8 *put_frames(struct state *state, u8 *at, const struct stacks *stacks) {
	struct path path;
	at = put(put(at, stacks->frames), stacks->pythons);
	if (stacks->pythons)
		at = put(at, stacks->pythons_at);
	for (u32 i = 0; i < stacks->frames; i++) {
		if (i == stacks->pythons_at)
			at = put_python(state, at, stacks);
		const struct code *code = &stack_tables->codes[code_in(stacks->rule[i]) - 1];
		look_at(&path, (const u8 *)code->name);
		at = put(put_path(state, 0, at, &path), stacks->pc[i] - code->adjust);
	}
	return stacks->pythons_at >= stacks->frames ? put_python(state, at, stacks) : at;
}

/* Writes the stack that see_stack() found, unless the last call with that code had the same one. */
u8 *put_stack(struct state *state, u8 *at, u32 code) {
	struct stacks *stacks = stacks_of(state);
	u64 hash = stacks->hash, *last = &stacks->last[code % HABITS];
	if (hash == *last)
		return at;
	*last = hash;
	*at++ = CODE_STACK;
	if (!hash)
		return put(at, STACK_NONE);
	struct cached *ways = stacks->known[hash >> 1 & (STACK_SETS - 1)];
	u64 index = known_path(ways, hash);
	if (index)
		return put(at, STACK_NONE + index);
	keep_path(ways, hash, ++stacks->count);
	return put_frames(state, put(at, STACK_NEW), stacks);
}
