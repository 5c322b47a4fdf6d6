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

/* Which pages came in, of what, when, and in which call of the task, if in one. */
struct addition {
	u64 mapping, index, pages, time, call;
};

INLINE struct addition addition_of(struct folio *folio)
{
	struct addition new = {.pages = 1};
	if (!EXISTS(folio->index)) {
		struct page___5_15 *page = (void *)folio;
		new.mapping = (u64)FIELD(page, mapping);
		new.index = page->index;
		return new;
	}
	new.mapping = (u64)FIELD(folio, mapping);
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
ONCE u64 mapping_of(u32 fd)
{
	struct files_struct *files = FIELD(current_task(), files);
	struct fdtable *table = files ? FIELD(files, fdt) : 0;
	struct file *file = 0;
	if (!table || fd >= FIELD(table, max_fds))
		return 0;
	read_kernel(&file, sizeof file, FIELD(table, fd) + fd);
	return file ? (u64)FIELD(file, f_mapping) : 0;
}

/* Its mode; 0 if there is none. */
ONCE u64 mode_of(u32 fd)
{
	struct address_space *mapping = (void *)mapping_of(fd);
	struct inode *inode = mapping ? FIELD(mapping, host) : 0;
	return inode ? FIELD(inode, i_mode) : 0;
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

/* Tells of a run. */
ONCE int put_pages(u32 tid, struct run *run, u64 now)
{
	struct place place;
	if (!run || !reserve(&place, sizeof(struct pages_record), SPARE))
		return 0;
	u32 at = place.at;
	if (at > CHUNK - sizeof(struct pages_record))
		return 0;
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
	return 0;
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

ONCE int put_identity(u32 tid, u64 mapping, u32 fd, u64 now)
{
	struct place place;
	u32 device, mark;
	u64 inode;
	if (!reserve(&place, sizeof(struct identity_record), SPARE))
		return 0;
	u32 at = place.at;
	if (at > CHUNK - sizeof(struct identity_record))
		return 0;
	struct identity_record *record = (void *)(place.chunk->bytes + at);
	record->first = first_word(KIND_REQUEST, NUMBER_IDENTITY, tid, sizeof *record);
	record->time = now;
	record->fd = fd;
	identify((void *)mapping, &device, &inode, &mark);
	record->device = device;
	record->inode = inode;
	commit(&place, sizeof *record, now);
	return 0;
}

/* What was mapped will be read without a call. */
INLINE void put_identity_of(u32 tid, u32 fd, u64 now)
{
	u64 mapping = mapping_of(fd);
	if (mapping)
		put_identity(tid, mapping, fd, now);
}

INLINE u64 call_of(struct slot *slot) { return slot->state == STATE_IN_CALL ? slot->start : 0; }

/* Why the task brings that in; and behind it, 32 bits each, by which descriptor of its call. */
ONCE u64 reason_of(struct slot *slot, u64 mapping)
{
	u64 by_none = (u64)NO_FD << 32;
	if (!slot || slot->state != STATE_IN_CALL)
		return CAUSE_READ | by_none;
	u64 plan = plan_of(slot->number);
	/* sendfile's output is its first argument and its input the second; copy_file_range's and splice's are the third
	 * and the first. mmap's descriptor is its fifth. */
	u32 both = plan & PLAN_TWO_ENDED, writes = plan & PLAN_WRITES;
	if (plan & PLAN_SUBMITS)
		return CAUSE_UNCLEAR | by_none;
	u32 fd = plan & PLAN_MAPS ? slot->arguments[4] : slot->arguments[0];
	if (mapping_of(fd) == mapping)
		return (writes ? CAUSE_WRITTEN : CAUSE_READ) | (u64)fd << 32;
	fd = writes ? slot->arguments[1] : slot->arguments[2];
	if (both && mapping_of(fd) == mapping)
		return (writes ? CAUSE_READ : CAUSE_WRITTEN) | (u64)fd << 32;
	return (both || writes ? CAUSE_UNCLEAR : CAUSE_READ) | by_none;
}

/* Begins a run with these pages; 1 if the file is told by that descriptor of the task. */
ONCE int begin_run(struct run *run, struct addition *new, u64 reason)
{
	u32 device, mark, fd = reason >> 32;
	u64 inode;
	if (!run || !new)
		return 0;
	identify((void *)new->mapping, &device, &inode, &mark);
	u32 told = run->mapping == new->mapping && run->inode == inode ? run->cause & RUN_TOLD : 0;
	u32 tells = fd != NO_FD && !told;
	run->device = device;
	run->inode = inode;
	run->cause = (u8)reason | mark | (tells ? RUN_TOLD : told);
	run->mapping = new->mapping;
	run->begun = new->time;
	run->last = new->time;
	run->call = new->call;
	run->first = new->index;
	BARRIER();
	run->next = new->index + new->pages;
	return tells;
}

/* Takes the pages into the run, if they follow it for the same reason. */
INLINE int continues(struct run *run, struct slot *slot, struct addition *new)
{
	if (!run->next || run->mapping != new->mapping || run->next != new->index || new->time - run->begun >= RUN_TIME)
		return 0;
	if (run->call != new->call && (u8)run->cause != (u8)reason_of(slot, new->mapping))
		return 0;
	run->call = new->call;
	run->last = new->time;
	run->next += new->pages;
	return 1;
}

/* Records a folio that the current task has added to the page cache. */
INLINE void came_in(struct folio *folio)
{
	struct slot *slot = submitter();
	if (!slot)
		return;
	struct addition new = addition_of(folio);
	if (!new.mapping)
		return;
	u32 tid = slot->tid;
	new.time = ktime_ns();
	if (tid != (u32)current_task()->pid) {
		/* A thread of the kernel's own, for requests inside io_uring: several may stand for one task. */
		struct run alone = {};
		begin_run(&alone, &new, CAUSE_UNCLEAR | (u64)NO_FD << 32);
		put_pages(tid, &alone, new.time);
		return;
	}
	struct run *run = run_of(tid);
	new.call = call_of(slot);
	if (!run || continues(run, slot, &new))
		return;
	if (run->next)
		put_pages(tid, run, new.time);
	u64 reason = reason_of(slot, new.mapping);
	if (begin_run(run, &new, reason))
		put_identity(tid, new.mapping, reason >> 32, new.time);
}

#endif
