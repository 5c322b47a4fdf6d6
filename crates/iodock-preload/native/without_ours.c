/* Removes our variables from the environment of an exec in a process where recording has stopped. A program
 * inherits the seccomp filter of the process that executes it, and the first call of our library could kill
 * it. After recording has stopped, the functions here make no system calls except the exec, because
 * the filter may forbid them. */

#include "recorder.h"

/* A small environment is copied to the stack, which may have only the 32 KiB of posix_spawn. A larger one is
 * copied to memory that is mapped when recording stops. One thread at a time uses that memory, until the
 * kernel has read the environment. */
#define MOST_COPIED 16384
#define ON_STACK 4096
#define THREAD_POINTER (*(volatile u64 __seg_fs *)0)

static struct copy {
	u64 owner; /* thread pointer of the thread that uses the copy; its child of vfork has the same one. 0: no thread */
	u64 list[MOST_COPIED + 1];
	u8 preload[PATH_LIMIT + 8];
} *copy;

/* Maps memory for a copy. Called before recording stops, while system calls are still allowed. */
void map_copy(void) {
	long flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
	long memory = copy ? -1 : kernel(SYS_mmap, 0, sizeof(struct copy), PROT_READ | PROT_WRITE, flags, -1, 0);
	if (failed(memory))
		return;
	/* A child created by fork does not need the copies for programs that other threads are executing. */
	kernel3(SYS_madvise, memory, sizeof(struct copy), MADV_WIPEONFORK);
	/* Another thread may stop recording at the same time. */
	if (becomes((u64 *)&copy, 0, (u64)memory))
		copy_span = (struct span){(u64)memory, (u64)memory + sizeof(struct copy)};
	else
		kernel2(SYS_munmap, memory, sizeof(struct copy));
}

static int take_copy(void) {
	for (u64 left = OTHERS_MOST / 4; copy && may_wait(&left);)
		if (!copy->owner && becomes(&copy->owner, 0, THREAD_POINTER))
			return 1;
	return 0;
}

/* Releases the copy. A parent calls this after its vfork: the child has executed a program or ended, and
 * can't release the copy itself. */
void give_back_copy(void) {
	if (copy && copy->owner)
		becomes(&copy->owner, THREAD_POINTER, 0);
}

/* Finds our variables in a list. It can't ask the kernel whether the list is readable, so it only checks the
 * address. Returns 0 if the address can't be a list, or the list contains nothing of ours. */
int find_ours(struct given *given, const u64 *list) {
	*given = (struct given){list, 0, 0, 0, 0};
	if ((u64)list < 65536 || (u64)list >> 47 || (u64)list & 7)
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

/* Writes LD_PRELOAD with the other libraries, without ours at position `at` and its separator. Returns the
 * end. */
u8 *put_other_libraries(u8 *to, const u8 *libraries, u64 at) {
	u64 behind = at + length((const u8 *)library, sizeof(session->preloaded));
	if (libraries[behind])
		behind++;
	else if (at)
		at--;
	return put_text(put_bytes(put_text(to, "LD_PRELOAD="), libraries, at), (const char *)libraries + behind);
}

/* Copies the variables that are not ours. `list` has room for given->count + 1 entries and may be the given
 * list; `preload` has room for the whole variable LD_PRELOAD. */
void copy_others(u64 *list, u8 *preload, const struct given *given) {
	/* The recorder sets this variable for programs that do not set it themselves. */
	static const char options[] = "ASAN_OPTIONS=:verify_asan_link_order=0";
	u64 count = 0;
	for (u64 i = 0; i < given->count; i++) {
		u64 variable = given->list[i];
		if (begins((const u8 *)variable, "IODOCK_SESSION=") || is_same((const u8 *)variable, options, sizeof(options)))
			continue;
		if (variable == given->preload) {
			const u8 *libraries = (const u8 *)variable + 11;
			put_other_libraries(preload, libraries, (u64)place_of_library(libraries));
			if (!preload[11])
				continue;
			variable = (u64)preload;
		}
		list[count++] = variable;
	}
	list[count] = 0;
}

/* Makes the exec with that environment. */
s64 execute_with(u64 number, const u64 *given, u32 environment_at, const u64 *list) {
	u64 arguments[6];
	for (u32 i = 0; i < 6; i++)
		arguments[i] = given[i];
	arguments[environment_at] = (u64)list;
	return kernel((long)number, (long)arguments[0], (long)arguments[1], (long)arguments[2], (long)arguments[3],
		      (long)arguments[4], (long)arguments[5]);
}

static NOINLINE s64 execute_from_stack(const struct frame *frame, u32 environment_at, const struct given *given) {
	u64 list[given->count + 1];
	u8 preload[given->preload_bytes + 8];
	copy_others(list, preload, given);
	return execute_with(frame->number, frame->arguments, environment_at, list);
}

static s64 execute_from_copy(const struct frame *frame, u32 environment_at, const struct given *given) {
	copy_others(copy->list, copy->preload, given);
	s64 result = execute_with(frame->number, frame->arguments, environment_at, copy->list);
	give_back_copy();
	return result;
}

/* Makes the exec if its environment contains variables of ours. Otherwise the trampoline makes it. */
void execute_without_ours(struct frame *frame, u32 environment_at) {
	struct given given;
	if (!find_ours(&given, (const u64 *)frame->arguments[environment_at]))
		return;
	int is_small = given.count * 8 + given.preload_bytes <= ON_STACK;
	frame->number = (u64)(!is_small && take_copy() ? execute_from_copy : execute_from_stack)(frame, environment_at, &given);
	/* The call was made here, so the trampoline's `syscall` is skipped. */
	frame->back += SYSCALL_BYTES;
}
