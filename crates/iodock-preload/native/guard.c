/* Handles calls of the program that would unmap or damage our memory. munmap, mprotect and madvise are made
 * for the rest of the range only. Calls that replace or move memory (mmap with MAP_FIXED, mremap) can't be
 * made for a part of the range: recording stops before them. The recorder does not see calls made without
 * libc. */

#include "recorder.h"

#define PAGE_BYTES 4096ul

/* For each patched library: the span of its trampolines, and the span of its text if that is mapped from
 * one of our files. */
struct span trampoline_spans[PATCHED_MOST], text_spans[PATCHED_MOST];
struct span header_span, copy_span, library_span;
/* The tables of counters, which exist if calls are counted. */
struct span light_span, table_span;
/* Memory of the tables of code, which exist with --stacks. */
struct span stacks_span;

void note_span(struct span *spans, const u8 *at, u64 bytes) {
	u32 i = 0;
	while (i < PATCHED_MOST && spans[i].to)
		i++;
	if (i < PATCHED_MOST)
		spans[i] = (struct span){(u64)at, (u64)at + bytes};
}

/* Sets *found to the lower one of `found` and the span at `at`, if that span overlaps the range. */
static inline void look_for(struct span *found, struct span range, const void *at, u64 bytes) {
	u64 from = (u64)at, to = (from + bytes + PAGE_BYTES - 1) & ~(PAGE_BYTES - 1);
	if (at && from < range.to && to > range.from && from < found->from)
		*found = (struct span){from, to};
}

static void look_at_spans(struct span *found, struct span range, const struct span *spans, u32 most) {
	for (u32 i = 0; i < most && spans[i].to; i++)
		look_for(found, range, (const u8 *)spans[i].from, spans[i].to - spans[i].from);
}

/* Searches the chunks of one thread. While the thread is mapping memory that it has not noted yet, this waits
 * for it, up to a limit: a handler may have left the mapping by longjmp, and then the mark stays set. */
static void look_at_state(struct span *found, struct span range, struct state *state) {
	for (u64 left = QUIET_MOST; state->is_mapping && !is_own(state);)
		if (!may_wait(&left))
			state->is_mapping = 0;
	for (u32 level = 0; level < LEVELS; level++)
		look_for(found, range, state->memory[level], chunk_bytes);
	for (u32 slot = 0; slot < SPENT && !table_span.to; slot++)
		look_for(found, range, state->spent_memory[slot], chunk_bytes);
}

/* Returns the first of our own mappings in the range of call `number`; an empty span at the range's end if
 * there is none. */
static struct span first_of_ours(u64 number, struct span range) {
	struct span found = {range.to, range.to};
	look_at_spans(&found, range, &header_span, 1);
	look_at_spans(&found, range, &library_span, 1);
	look_at_spans(&found, range, &copy_span, 1);
	look_at_spans(&found, range, &light_span, 1);
	look_at_spans(&found, range, &table_span, 1);
	look_at_spans(&found, range, &stacks_span, 1);
	look_at_spans(&found, range, trampoline_spans, PATCHED_MOST);
	/* For libc's text only munmap and madvise are handled, because a debugger may write to it or replace
	 * it. */
	if (number == SYS_munmap || number == SYS_madvise)
		look_at_spans(&found, range, text_spans, PATCHED_MOST);
	const struct ahead *ahead = blocks[0] ? &blocks[0]->ahead : 0;
	u64 next = ahead ? __atomic_load_n(&ahead->next, __ATOMIC_ACQUIRE) : 0;
	if (next & AHEAD_LEFT && !(next & AHEAD_CLOSED))
		look_for(&found, range, ahead->origin + next / AHEAD_ONE * chunk_bytes, (next & AHEAD_LEFT) * chunk_bytes);
	for (u32 index = 0; index < BLOCKS && blocks[index]; index++)
		look_for(&found, range, blocks[index], BLOCK_BYTES);
	struct state *state;
	for (u32 at = 0; (state = next_state(&at)) != 0;)
		look_at_state(&found, range, state);
	return found;
}

/* Whether the range is valid for the kernel and contains memory of ours. */
static int is_ours_in(u64 number, u64 from, u64 bytes) {
	struct span range = {from, from + bytes};
	return !(from & (PAGE_BYTES - 1)) && bytes && range.to > from && first_of_ours(number, range).from < range.to;
}

/* Makes the call for the part of its range that is not ours. */
static s64 make_for_the_rest(const struct frame *frame) {
	const u64 *told = frame->arguments;
	u64 end = (told[0] + told[1] + PAGE_BYTES - 1) & ~(PAGE_BYTES - 1);
	s64 result = 0;
	for (u64 at = told[0]; at < end;) {
		struct span next = first_of_ours(frame->number, (struct span){at, end});
		u64 until = next.from > at ? next.from : at;
		s64 made = until == at ? 0 : kernel((long)frame->number, (long)at, (long)(until - at), (long)told[2], (long)told[3], 0, 0);
		/* Like the kernel, madvise continues after a part of the range that is unmapped; other calls stop at
		 * an error. */
		if (made && frame->number != SYS_madvise)
			return made;
		result = result ? result : made;
		at = next.to;
	}
	return result;
}

/* Stops recording before the program replaces memory of ours. */
static NOINLINE void give_way(u64 from, u64 bytes) {
	struct span range = {from, from + bytes};
	if (!stopped) {
		stop();
		end_records();
		wait_for_others(1, QUIET_MOST);
	}
	if (header_span.from < range.to && header_span.to > range.from)
		header_span = (struct span){0, 0};
	for (u32 index = 0; index < BLOCKS && blocks[index]; index++)
		if ((u64)blocks[index] < range.to && (u64)blocks[index] + BLOCK_BYTES > range.from)
			blocks[index] = 0;
}

static int spoils_memory(u64 advice) {
	return advice == MADV_DONTNEED || (advice >= MADV_FREE && advice <= MADV_DONTFORK) ||
	       (advice >= MADV_WIPEONFORK && advice <= MADV_KEEPONFORK) || advice == MADV_DONTNEED_LOCKED || advice == MADV_HWPOISON ||
	       advice == MADV_GUARD_INSTALL;
}

/* Called before a call that changes the program's mappings. Returns 1 if the call was made here; its
 * result is then in `number`. */
int guard(struct frame *frame) {
	const u64 *told = frame->arguments;
	switch (frame->number) {
	case SYS_mmap:
		if (unlikely((told[3] & (MAP_FIXED | MAP_FIXED_NOREPLACE)) == MAP_FIXED && is_ours_in(frame->number, told[0], told[1])))
			give_way(told[0], told[1]);
		return 0;
	case SYS_mremap:
		if (unlikely(is_ours_in(frame->number, told[0], told[1])))
			give_way(told[0], told[1]);
		if (unlikely(told[3] & MREMAP_FIXED && is_ours_in(frame->number, told[4], told[2])))
			give_way(told[4], told[2]);
		return 0;
	case SYS_madvise:
		if (!spoils_memory((u32)told[2]))
			return 0;
		break;
	}
	if (likely(!is_ours_in(frame->number, told[0], told[1])))
		return 0;
	frame->number = (u64)make_for_the_rest(frame);
	return 1;
}

/* Called by the stub. Returns 1 if the call has been made here. The stub makes and records mmap itself;
 * the other calls are not recorded. */
int iodock_guard(struct frame *frame) {
	const u64 *told = frame->arguments;
	frame->number = (u32)frame->number;
	u64 number = frame->number;
	if (unlikely(stack_tables != 0) && (number != SYS_mmap || told[3] & MAP_FIXED) && number != SYS_madvise)
		forget_pages(told[0], told[1]);
	if (session && guard(frame))
		return 1;
	if (number == SYS_mmap)
		return 0;
	frame->number = (u64)kernel((long)frame->number, (long)told[0], (long)told[1], (long)told[2], (long)told[3], (long)told[4], (long)told[5]);
	/* Pages are forgotten again, because another thread may have noted them during the call. */
	if (unlikely(stack_tables != 0) && number != SYS_madvise)
		forget_pages(told[0], told[1]);
	return 1;
}
