/* Programs executed in a sandbox, where we may make no call, or where recording has stopped. A part of record.c, kept apart for reading. */

/* A program that is executed in a sandbox inherits it, and can't know: a call of our library may be its end. It is not told of the session, nor of the
 * library, which may not be there for it. What is changed has to live until the kernel has read it, and other threads, whose children
 * share this memory, do the same meanwhile. So the call is made here: small environments stand on the stack, which is as small as posix_spawn's
 * 32 KiB, or smaller; others in one of these places. */
#define MOST_COPIED 16384
#define ON_STACK 1024
#define PLACES 32
#define PLACES_NARROW 4
#define SYSCALL_BYTES 2

struct copy {
	u64 owner; /* its thread pointer, which a child of vfork shares with its parent. 0: it is nobody's */
	u64 list[MOST_COPIED + 1];
	u8 preload[PATH_LIMIT + 8];
};

static struct copy *copies;
static u32 copies_are_tried, copies_are;

/* While calls are still allowed. */
static void map_copies(void)
{
	if (__atomic_exchange_n(&copies_are_tried, 1, __ATOMIC_RELAXED))
		return;
	u32 count = is_limited(RLIMIT_AS) || is_limited(RLIMIT_DATA) || is_filled_at_once() ? PLACES_NARROW : PLACES;
	long flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, rights = PROT_READ | PROT_WRITE;
	long memory = kernel(SYS_mmap, 0, (long)(count * sizeof(struct copy)), rights, flags, -1, 0);
	if (failed(memory))
		return;
	/* A child's only thread has none of them. */
	kernel3(SYS_madvise, memory, count * sizeof(struct copy), MADV_WIPEONFORK);
	copies_are = count;
	copies_span = (struct span){(u64)memory, (u64)memory + count * sizeof(struct copy)};
	__atomic_store_n(&copies, (struct copy *)memory, __ATOMIC_RELEASE);
}

/* A place for this thread, 0: there is none for a while. */
static struct copy *take_copy(void)
{
	for (u64 tries = copies ? 1ul << 22 : 0; tries; tries--, __builtin_ia32_pause())
		for (u32 i = 0; i < copies_are; i++)
			if (!copies[i].owner && becomes(&copies[i].owner, 0, OF_THREAD(u64, BLOCK_AT))) {
				__atomic_fetch_add(&copies_used, 1, __ATOMIC_RELAXED);
				return &copies[i];
			}
	return 0;
}

/* A parent is back from its vfork: what its child has executed something with is nobody's. */
static __attribute__((noinline)) void give_back_copies(void)
{
	for (u32 i = 0; i < copies_are; i++)
		if (becomes(&copies[i].owner, OF_THREAD(u64, BLOCK_AT), 0))
			__atomic_fetch_sub(&copies_used, 1, __ATOMIC_RELAXED);
}

/* A program's environment as it is given, and what of it is ours. */
struct given {
	const u64 *list;
	u64 count;
	u64 preload; /* the variable with our library, 0: there is none */
	u64 preload_bytes;
	u32 has_session;
};

/* (In a sandbox we may not ask the kernel what can be read: it is believed to be there.) */
static int can_be_read(const void *from, u64 count)
{
	u64 copy;
	if (had_filters)
		return 1;
	/* (The storage of a thread that recording has stopped for may have no room for ours.) */
	long got = ask_kernel((u32)kernel0(SYS_getpid), &copy, from, count);
	return got == (long)count || got == -EPERM || got == -ENOSYS;
}

static int is_list(const u64 *list)
{
	return (u64)list >= 65536 && !((u64)list >> 47) && !((u64)list & 7) && can_be_read(list, 8);
}

/* 0: it can't be read, or there is nothing of ours in it. */
static int find_ours(struct given *given, const u64 *list)
{
	*given = (struct given){list, 0, 0, 0, 0};
	for (; is_list(list) && *list; list++) {
		if (++given->count > MOST_COPIED || !can_be_read((const void *)*list, 1))
			return 0;
		const u8 *variable = (const u8 *)*list;
		given->has_session |= (u32)begins(variable, "IODOCK_SESSION=");
		if (begins(variable, "LD_PRELOAD=") && place_of_library(variable + 11) >= 0)
			given->preload = *list, given->preload_bytes = length(variable, PATH_LIMIT) + 1;
	}
	return is_list(list) && given->preload_bytes <= PATH_LIMIT && (given->has_session || given->preload);
}

/* `list` has room for as many and one more, `preload` for all of the variable. */
static void copy_others(u64 *list, u8 *preload, const struct given *given)
{
	u64 count = 0;
	for (u64 i = 0; i < given->count; i++) {
		u64 variable = given->list[i];
		if (begins((const u8 *)variable, "IODOCK_SESSION="))
			continue;
		if (variable == given->preload) {
			const u8 *libraries = (const u8 *)variable + 11;
			put_others(put_text(preload, "LD_PRELOAD="), libraries, (u64)place_of_library(libraries));
			if (!preload[11])
				continue;
			variable = (u64)preload;
		}
		list[count++] = variable;
	}
	list[count] = 0;
}

static __attribute__((noinline)) s64 execute_from_stack(const struct frame *frame, u32 environment_at, const struct given *given)
{
	u64 list[given->count + 1];
	u8 preload[given->preload_bytes + 8];
	copy_others(list, preload, given);
	return execute_with(frame->number, frame->arguments, environment_at, list);
}

static __attribute__((noinline)) s64 execute_from_copy(const struct frame *frame, u32 environment_at, const struct given *given)
{
	struct copy *copy = take_copy();
	/* More than that execute something at this moment: perhaps the stack has the room. */
	if (!copy)
		return execute_from_stack(frame, environment_at, given);
	copy_others(copy->list, copy->preload, given);
	s64 result = execute_with(frame->number, frame->arguments, environment_at, copy->list);
	__atomic_store_n(&copy->owner, 0, __ATOMIC_RELEASE);
	__atomic_fetch_sub(&copies_used, 1, __ATOMIC_RELAXED);
	return result;
}

/* Executes the program without a word of us, if there is one in its environment; else the trampoline does. */
static void execute_untold(struct frame *frame, u32 environment_at)
{
	struct given given;
	if (!find_ours(&given, (const u64 *)frame->arguments[environment_at]))
		return;
	if (!had_filters)
		map_copies();
	int is_small = given.count * 8 + given.preload_bytes <= ON_STACK;
	const struct state *state = stopped ? 0 : own;
	if (state)
		note_leaving(state, 1);
	frame->number = (u64)(is_small ? execute_from_stack : execute_from_copy)(frame, environment_at, &given);
	if (state)
		note_leaving(state, 0);
	/* It was made. */
	frame->back += SYSCALL_BYTES;
}
