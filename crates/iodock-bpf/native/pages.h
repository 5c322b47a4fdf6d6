/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* What tasks bring into the page cache: runs of pages, one after the other, each of one file. */
#ifndef IODOCK_PAGES_H
#define IODOCK_PAGES_H

#include "calls.h"

/* A run is told of after that time, even if it goes on. ns. */
#define RUN_TIME 100000000ull

#define S_IFMT 0xf000
#define S_IFBLK 0x6000
#define NO_FD (~0u)
#define HEAD_FLAG (1ull << ENUMERATOR(enum pageflags, PG_head))

struct pages_record {
	u64 first, time, begun, last;
	u32 device, cause;
	u64 inode, page, count;
};

struct identity_record {
	u64 first, time;
	u32 device, fd;
	u64 inode;
};

/* Which pages came in, of what. */
struct addition {
	struct address_space *mapping;
	u64 index, pages;
};

INLINE struct addition addition_of(struct folio *folio)
{
	struct addition new = {.pages = 1};
	if (!EXISTS(folio->index)) {
		struct page___5_15 *page = (void *)folio;
		new.mapping = page->mapping;
		new.index = page->index;
		return new;
	}
	new.mapping = folio->mapping;
	new.index = folio->index;
	/* The flags come first in every kernel, under changing types. */
	if (!(*(u64 *)folio & HEAD_FLAG))
		return new;
	struct folio___6_1 *older = (void *)folio;
	u32 order = EXISTS(older->_folio_order) ? older->_folio_order : (u8)folio->_flags_1;
	new.pages = 1ull << (order & 31);
	return new;
}

/* The page cache's mapping of what a descriptor of the current task is open on; 0 if there is none. */
INLINE struct address_space *mapping_of(u32 fd)
{
	struct files_struct *files = FIELD(current_task(), files);
	struct fdtable *table = files ? FIELD(files, fdt) : 0;
	struct file *file = 0;
	if (!table || fd >= FIELD(table, max_fds))
		return 0;
	read_kernel(&file, sizeof file, FIELD(table, fd) + fd);
	return file ? FIELD(file, f_mapping) : 0;
}

/* A block device's own pages are known by the device, a file's by that of its file system. */
INLINE void identify(struct address_space *mapping, u32 *device, u64 *number, u32 *mark)
{
	struct inode *inode = FIELD(mapping, host);
	*mark = (FIELD(inode, i_mode) & S_IFMT) == S_IFBLK ? PAGES_OF_DEVICE : 0;
	*number = FIELD(inode, i_ino);
	if (*mark) {
		*device = FIELD(inode, i_rdev);
	} else {
		struct super_block *super = FIELD(inode, i_sb);
		*device = FIELD(super, s_dev);
	}
}

INLINE void put_pages(u32 tid, struct run *run, u64 now)
{
	struct place place;
	if (!reserve(&place, sizeof(struct pages_record), SPARE))
		return;
	u32 at = place.at;
	if (at > CHUNK - sizeof(struct pages_record))
		return;
	struct pages_record *record = (void *)(place.chunk->bytes + at);
	record->first = first_word(KIND_REQUEST, NUMBER_PAGES, tid, sizeof *record);
	record->time = now;
	record->begun = run->begun;
	record->last = run->last;
	record->device = run->device;
	record->cause = run->cause & ~RUN_TOLD;
	record->inode = run->inode;
	record->page = run->first;
	record->count = run->next - run->first;
	commit(&place, sizeof *record, now);
}

/* Tells of a task's run, if there is one. */
INLINE void put_run(u32 tid, struct run *run, u64 now)
{
	if (!run || !run->next)
		return;
	put_pages(tid, run, now);
	run->next = 0;
	run->mapping = 0;
}

INLINE void put_identity(u32 tid, struct address_space *mapping, u32 fd, u64 now)
{
	struct place place;
	u32 device, mark;
	u64 inode;
	if (!reserve(&place, sizeof(struct identity_record), SPARE))
		return;
	u32 at = place.at;
	if (at > CHUNK - sizeof(struct identity_record))
		return;
	struct identity_record *record = (void *)(place.chunk->bytes + at);
	record->first = first_word(KIND_REQUEST, NUMBER_IDENTITY, tid, sizeof *record);
	record->time = now;
	record->fd = fd;
	identify(mapping, &device, &inode, &mark);
	record->device = device;
	record->inode = inode;
	commit(&place, sizeof *record, now);
}

/* What was mapped will be read without a call. A function of its own: seen by the verifier once. */
__attribute__((noinline)) int put_identity_of(u32 tid, u32 fd, u64 now)
{
	struct address_space *mapping = mapping_of(fd);
	if (mapping)
		put_identity(tid, mapping, fd, now);
	return 0;
}

/* Which descriptor of the call that the task is in leads there, and so whether it is read or written. */
INLINE u32 descriptor_of(struct slot *slot, u64 plan, struct address_space *mapping, u32 *cause)
{
	/* sendfile's output is its first argument and its input the second; copy_file_range's and splice's are the third
	 * and the first. mmap's descriptor is its fifth. */
	u32 both = plan & PLAN_TWO_ENDED, writes = plan & PLAN_WRITES, output = both && !writes ? 2 : 0;
	u32 at = plan & PLAN_MAPS ? 4 : 0;
	*cause = both || writes || plan & PLAN_SUBMITS ? CAUSE_UNCLEAR : CAUSE_READ;
	if (plan & PLAN_SUBMITS)
		return NO_FD;
	if (mapping_of(slot->arguments[at]) == mapping) {
		*cause = (both || writes) && output == 0 ? CAUSE_WRITTEN : CAUSE_READ;
		return slot->arguments[at];
	}
	at = writes ? 1 : 2;
	if (both && mapping_of(slot->arguments[at]) == mapping) {
		*cause = output == at ? CAUSE_WRITTEN : CAUSE_READ;
		return slot->arguments[at];
	}
	return NO_FD;
}

INLINE u64 call_of(struct slot *slot) { return slot && slot->state == STATE_IN_CALL ? slot->start : 0; }

/* Why it brings that in; `fd`: by which descriptor. No slot: a request inside io_uring. */
INLINE u32 cause_of(struct slot *slot, struct address_space *mapping, u32 *fd)
{
	u32 cause = slot ? CAUSE_READ : CAUSE_UNCLEAR;
	*fd = NO_FD;
	if (call_of(slot))
		*fd = descriptor_of(slot, plan_of(slot->number), mapping, &cause);
	return cause;
}

INLINE void begin_run(struct run *run, u32 tid, struct slot *slot, struct addition *new, u64 now)
{
	u32 device, mark, fd, cause = cause_of(slot, new->mapping, &fd);
	u64 inode;
	identify(new->mapping, &device, &inode, &mark);
	u32 told = run->mapping == (u64)new->mapping && run->inode == inode ? run->cause & RUN_TOLD : 0;
	if (fd != NO_FD && !told) {
		put_identity(tid, new->mapping, fd, now);
		told = RUN_TOLD;
	}
	run->device = device;
	run->inode = inode;
	run->cause = cause | mark | told;
	run->mapping = (u64)new->mapping;
	run->begun = now;
	run->last = now;
	run->call = call_of(slot);
	run->first = new->index;
	BARRIER();
	run->next = new->index + new->pages;
}

/* Takes the pages into the run, if they follow it for the same reason. */
INLINE int continues(struct run *run, struct slot *slot, struct addition *new, u64 now)
{
	u32 fd;
	u64 call = call_of(slot);
	if (!run->next || run->mapping != (u64)new->mapping || run->next != new->index || now - run->begun >= RUN_TIME)
		return 0;
	if (run->call != call && (u8)run->cause != cause_of(slot, new->mapping, &fd))
		return 0;
	run->call = call;
	run->last = now;
	run->next += new->pages;
	return 1;
}

/* A folio that the current task has brought in. */
INLINE void came_in(struct folio *folio)
{
	struct slot *slot = submitter();
	if (!slot)
		return;
	struct addition new = addition_of(folio);
	if (!new.mapping)
		return;
	u32 tid = slot->tid;
	u64 now = ktime_ns();
	if (tid != (u32)current_task()->pid) {
		/* A thread of the kernel's own, for requests inside io_uring: several may stand for one task. */
		struct run alone = {};
		begin_run(&alone, tid, 0, &new, now);
		put_pages(tid, &alone, now);
		return;
	}
	struct run *run = run_of(tid);
	if (!run)
		return;
	if (continues(run, slot, &new, now))
		return;
	if (run->next)
		put_pages(tid, run, now);
	begin_run(run, tid, slot, &new, now);
}

#endif
