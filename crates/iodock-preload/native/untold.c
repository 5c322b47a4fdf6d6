/* Programs executed where recording has stopped. A part of record.c, kept apart for reading.
 *
 * A program inherits the filter that it is executed in, and can't know: the first call of our library may be its end, and the library may
 * be out of its reach. So our variables are taken out of its environment, without any call of ours. */

/* A small environment stands on the stack, which is as small as posix_spawn's 32 KiB; a larger one in memory that is mapped as recording
 * stops, by one thread at a time: it has to live until the kernel has read it. */
#define MOST_COPIED 16384
#define ON_STACK 4096
#define SYSCALL_BYTES 2

static struct copy {
	u64 owner; /* its thread pointer, which a child of vfork shares with its parent. 0: none */
	u64 list[MOST_COPIED + 1];
	u8 preload[PATH_LIMIT + 8];
} *copy;

/* While calls are still allowed. */
static void map_copy(void)
{
	long flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
	long memory = copy ? -1 : kernel(SYS_mmap, 0, sizeof(struct copy), PROT_READ | PROT_WRITE, flags, -1, 0);
	if (failed(memory))
		return;
	/* A child by fork does not have what other threads were executing. */
	kernel3(SYS_madvise, memory, sizeof(struct copy), MADV_WIPEONFORK);
	copy_span = (struct span){(u64)memory, (u64)memory + sizeof(struct copy)};
	__atomic_store_n(&copy, (struct copy *)memory, __ATOMIC_RELEASE);
}

#define THREAD_POINTER (*(volatile u64 __seg_fs *)0)

static int take_copy(void)
{
	for (u64 left = QUIET_MOST; copy && may_wait(&left);)
		if (!copy->owner && becomes(&copy->owner, 0, THREAD_POINTER))
			return 1;
	return 0;
}

/* A parent is back from its vfork: its child has executed something, or has ended. */
static void give_back_copy(void)
{
	if (copy && copy->owner)
		becomes(&copy->owner, THREAD_POINTER, 0);
}

/* A program's environment as it is given, and what of it is ours. */
struct given {
	const u64 *list;
	u64 count;
	u64 preload; /* the variable with our library, 0: there is none */
	u64 preload_bytes;
	u32 has_session;
};

/* (The kernel may not be asked what can be read.) */
static int is_list(const u64 *list)
{
	return (u64)list >= 65536 && !((u64)list >> 47) && !((u64)list & 7);
}

/* 0: it can't be one, or there is nothing of ours in it. */
static int find_ours(struct given *given, const u64 *list)
{
	*given = (struct given){list, 0, 0, 0, 0};
	if (!is_list(list))
		return 0;
	for (; *list; list++) {
		if (++given->count > MOST_COPIED)
			return 0;
		const u8 *variable = (const u8 *)*list;
		given->has_session |= (u32)begins(variable, "IODOCK_SESSION=");
		if (begins(variable, "LD_PRELOAD=") && place_of_library(variable + 11) >= 0)
			given->preload = *list, given->preload_bytes = length(variable, PATH_LIMIT) + 1;
	}
	return given->preload_bytes <= PATH_LIMIT && (given->has_session || given->preload);
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

static s64 execute_from_copy(const struct frame *frame, u32 environment_at, const struct given *given)
{
	copy_others(copy->list, copy->preload, given);
	s64 result = execute_with(frame->number, frame->arguments, environment_at, copy->list);
	give_back_copy();
	return result;
}

/* Executes the program, if there is something of ours in its environment; else the trampoline does. */
static void execute_untold(struct frame *frame, u32 environment_at)
{
	struct given given;
	if (!find_ours(&given, (const u64 *)frame->arguments[environment_at]))
		return;
	int is_small = given.count * 8 + given.preload_bytes <= ON_STACK;
	frame->number = (u64)(!is_small && take_copy() ? execute_from_copy : execute_from_stack)(frame, environment_at, &given);
	/* It was made. */
	frame->back += SYSCALL_BYTES;
}
