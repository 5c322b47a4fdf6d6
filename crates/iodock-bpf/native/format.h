/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The buffers' format, as docs/explanation/bpf-buffers.md describes it; src/format.rs holds the same. */
#ifndef IODOCK_FORMAT_H
#define IODOCK_FORMAT_H

#include "kernel.h"

/* A CPU's buffer is a ring of chunks; a record lies in one chunk. Bytes. */
#define CHUNK (128 * 1024)
/* Room that calls leave for births, execs and ends, which must not be lost. */
#define SPARE CHUNK
#define CALL_NUMBERS 512

#define STRING_LIMIT 4096
#define ARGUMENTS_LIMIT 32768
/* The longest record with names or vectors, and the longest of all (an exec). */
#define GENERAL_LIMIT (20 * 1024)
#define EXEC_LIMIT (ARGUMENTS_LIMIT + 3 * STRING_LIMIT)

/* Kinds of records, in the first word: words 16 | kind 4, number 12 | tid 32. Those between REQUEST and AGAIN the recorder writes
 * itself; a short one has a descriptor where others have their length. */
enum kind {
	KIND_PADDING,
	KIND_SMALL,
	KIND_POSITIONED,
	KIND_GENERAL,
	KIND_UNFINISHED,
	KIND_FORK,
	KIND_EXEC,
	KIND_EXIT,
	KIND_REQUEST,
	KIND_AGAIN = 12,
	KIND_SHORT,
	KIND_SHORT_POSITIONED,
	KIND_SHORT_SIZED,
};

/* A request's number is its operation; from here on it is no request, but tells of the page cache: a run of pages that
 * came in, and which file a descriptor is. The recorder adds names. */
#define NUMBER_PAGES 0x800
#define NUMBER_IDENTITY 0x801

/* The second word of a short record: time 40 | duration 24. */
#define SHORT_TIME 40
#define SHORT_TIME_MASK ((1ull << SHORT_TIME) - 1)
#define SHORT_DURATION (1u << 24)
/* So much later than the record before it, no record is short. */
#define SHORT_GAP (1ull << 38)

/* A record of one word, of the same thread, call and descriptor as the CPU's small record before: page 16 | kind 4 | time
 * since the CPU's record before 22 | duration 22. Where the offset is no page with a number below this, it follows. */
#define AGAIN_NO_PAGE 0xffffull
#define AGAIN_PAGE 12
#define AGAIN_GAP 20
#define AGAIN_BITS 22
#define AGAIN_DURATION (AGAIN_GAP + AGAIN_BITS)

/* How a call is recorded: bits of its plan, the first eight. */
#define PLAN_RECORDED 1
#define PLAN_SMALL 2
#define PLAN_POSITIONED 4
#define PLAN_EXITS 8
#define PLAN_MAPS 16
/* What it adds to the page cache it may have written: argument 0 or, where there are two ends, another. */
#define PLAN_WRITES 32
#define PLAN_TWO_ENDED 64
/* What it adds to the page cache may be of requests that it submits. */
#define PLAN_SUBMITS 128
/* It opens a file: in place of the sixth argument, which no such call has, comes the file's mode. */
#define PLAN_OPENS (1ull << 32)
/* Then up to three pieces of memory, a byte each from bit 8 on: what 5 | argument 3. */
#define PLAN_PIECES 8

enum piece {
	PIECE_NONE,
	PIECE_STRING,
	PIECE_PAIR,
	PIECE_STAT,
	PIECE_WORD,
	PIECE_VECTOR,
	PIECE_MESSAGE,
	PIECE_BLOCKS,
	PIECE_EVENTS,
	PIECE_MESSAGES,
};

/* A task that is followed; zero where none is. Size and result are those of its small record before. */
struct slot {
	u32 tid, size;
	u64 start;
	u16 number, state;
	s32 result;
	u64 arguments[5];
};

/* No call's result. */
#define NO_RESULT (-2147483647 - 1)

enum state { STATE_OUTSIDE, STATE_IN_CALL, STATE_SKIP };

/* Why pages came into the page cache; in the record with the mark of a block device's own pages. */
enum cause { CAUSE_READ, CAUSE_WRITTEN, CAUSE_UNCLEAR };
#define PAGES_OF_DEVICE (1u << 8)

/* The recorder knows by the run's descriptor which file it is: not written out. */
#define RUN_TOLD (1u << 9)

/* Pages of one file, one after the other, that a followed task brought in and that no record tells of yet; none where
 * `next` is 0. `call`: when the call began that it was in then, 0 for none. Times in ns, pages from the file's
 * beginning. */
struct run {
	u64 mapping, first, next, begun, last, call, inode;
	u32 device, cause;
};

/* One CPU's buffer, in bytes since the beginning: where its writer is, and up to where it may go without looking again.
 * The last record's time; of the last small one what AGAIN leaves out (0 for none).
 * Of the call that began last on this CPU: the address of its registers, which is the task's as long as it lives; its
 * beginning; its task's place among the slots; `inside` is not 0 until it ends, PLAN_POSITIONED with it.
 * Then where the reader is, and counts of losses. */
struct cpu {
	u64 head, limit, last, before, registers, start, unused;
	u32 place, inside;
	u64 tail, dropped, foreign, untracked, unused_too[4];
};

struct chunk {
	union {
		u8 bytes[CHUNK];
		u64 words[CHUNK / 8];
	};
};

#endif
