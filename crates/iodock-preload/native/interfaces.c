/* Records calls of interfaces above system calls, such as MPI-IO. The library for interfaces (interfaces/)
 * reports when they begin and end. */

#include "recorder.h"

#define FACTS_MOST 8
#define FACTS_BYTES (9 * FACTS_MOST + 32)

/* Writes a mask of the known facts, followed by these facts. */
static u8 *put_facts(u8 *at, const u64 *facts, u32 count) {
	u8 *known = at++;
	*known = 0;
	for (u32 i = 0; i < count; i++)
		if (facts[i] != UNKNOWN) {
			*known |= (u8)(1 << i);
			at = put_signed(at, (s64)facts[i]);
		}
	return at;
}

static void write_interface(struct state *state, u32 part, u32 call, const u64 *facts, u32 count, const char *text, u64 now) {
	struct place here;
	u32 level = enter(state, &here);
	u64 bytes = text ? length((const u8 *)text, PATH_LIMIT) : 0;
	u8 *begin = room(state, level, FACTS_BYTES + bytes, now), *at = begin;
	if (begin) {
		at = put_control(at, state, CONTROL_INTERFACE, now);
		*at++ = (u8)part;
		at = put(at, call);
		at = put_facts(at, facts, count);
		at = put_bytes(put_fixed(at, bytes, 2), (const u8 *)text, bytes);
		commit_control(state, level, begin, at, now);
	}
	leave(state, level, &here);
}

/* Records a call of an interface. Values of `part`: 1: the call begins; 2: it has ended; 3: a hint of the
 * file that it opened; 4: a number of calls that made no system call. Returns 0 if the process does not
 * record its calls; the caller then need not collect facts about them. */
__attribute__((visibility("default"))) int iodock_interface(u32 part, u32 call, const u64 *facts, u32 count, const char *text) {
	if (unlikely(!session || *(volatile u32 *)&stopped || counts_calls || count > FACTS_MOST))
		return 0;
	struct state *began_in = begin_own_calls(), *state;
	/* iodock_record explains why `stopped` is read again here. */
	if (likely(!*(volatile u32 *)&stopped)) {
		u64 now = ticks() >> TIME_SHIFT;
		if (likely((state = mine(now, 0)) != 0))
			write_interface(state, part, call, facts, count, text, now);
	}
	end_own_calls(began_in);
	return 1;
}

/* Maps memory that a fork clears in the child, for the counters of the library for interfaces. Returns 0 if
 * there is none, or the process does not record its calls. */
__attribute__((visibility("default"))) void *iodock_memory_wiped_by_fork(u64 bytes) {
	if (!session || *(volatile u32 *)&stopped || counts_calls)
		return 0;
	bytes = (bytes + 4095) & ~4095ul;
	long memory = kernel(SYS_mmap, 0, (long)bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (failed(memory))
		return 0;
	if (!failed(kernel3(SYS_madvise, memory, bytes, MADV_WIPEONFORK)))
		return (void *)memory;
	kernel2(SYS_munmap, memory, bytes);
	return 0;
}
