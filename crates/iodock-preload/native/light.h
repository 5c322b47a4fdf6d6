/* Defines the table of counters that each process has in the session's file when calls are counted instead of
 * recorded (iodock record --light). docs/explanation/light-mode.md documents it; src/light.rs is the same in
 * Rust. */
#ifndef IODOCK_COUNTS_H
#define IODOCK_COUNTS_H

#include "state.h"

#define TABLE_MAGIC 0x4c424154u /* the characters "TABL" */

enum { SIZE_BINS = 10, GAP_BINS = 8, TIME_BINS = 12, DIRECTIONS = 2 };
enum { SLOTS_LEAST = 4096, SLOTS_MOST = 65536, DESCRIPTORS = 4096, NAME_MOST = 1024 /* stacks of signal handlers are small */ };

/* Meaning of a row's name. As free rows run out, later kinds are used: files are counted together. */
enum row_kind { ROW_FILE = 1, ROW_PATTERN = 2, ROW_FOLDER = 3, ROW_REST = 4 };

/* Counters of a file or a group of files. Times are in ticks. If a row has an owner, only that thread adds to
 * it, with single instructions that a signal handler can't interrupt. All threads add to other rows, with a
 * lock prefix. A call displaces the caches, so the fields for a read in a run are on few cache lines. */
struct row {
	u64 key; /* hash of the name; written last */
	u32 name_at, name_bytes;
	u32 owner; /* number of the thread's state, 0: all threads */
	u16 kind, twin; /* twin: number of the row for all threads, plus one; 0: none */
	u64 direction; /* direction of the last access, plus one */
	u64 alignments; /* a bit for each bin of offsets that occurred */
	u64 first, last, files; /* files: for rows of files counted together, the approximate number of different files */
	/* The following fields are on one cache line. */
	u64 calls[DIRECTIONS], bytes[DIRECTIONS];
	u64 end[DIRECTIONS], last_end; /* end of the last access in each direction, and in any direction */
	u64 unplaced; /* number of accesses with an unknown offset */
	/* The following fields are on the next cache lines. */
	u64 sequential[DIRECTIONS], consecutive[DIRECTIONS], gaps[GAP_BINS];
	u64 most_end[DIRECTIONS], switches, unaligned;
	u64 time[DIRECTIONS], meta_time;
	u64 untimed; /* number of accesses whose time is estimated from their neighbours */
	u64 opens, seeks, stats, syncs, maps, others, failed;
	u64 sizes[DIRECTIONS][SIZE_BINS], times[TIME_BINS];
	u64 unused[5];
};

/* One of the first reads and writes of the process, which are kept individually. */
struct access {
	u32 row, tid; /* the row's number plus one; written last */
	u64 start, duration, offset, bytes, direction;
};

struct table {
	u32 magic, pid;
	u64 begun; /* in ticks */
	u32 rows_most, names_most, accesses_most, seen_bits, slots;
	u32 over; /* the process ends, or executes another program */
	u64 index_at, accesses_at, rows_at, names_at, seen_at; /* offsets from the beginning of the table */
	u32 rows_used __attribute__((aligned(64))), names_used, accesses_used;
	u32 rows_ready, names_ready; /* sizes in bytes of the pages that have been created */
	u32 seen_ready;
	u64 folded; /* approximate number of files without a row of their own */
	u64 asynchronous, unplaced; /* number of uncounted calls: of io_uring and libaio; on objects without a name */
};

#define POSITION_UNKNOWN (~0ul)
enum { F_DUPFD = 0, F_GETFL = 3, F_SETFL = 4, F_DUPFD_CLOEXEC = 1030, O_APPEND = 02000 };

struct descriptor {
	u64 position;
	struct row *row; /* row of the descriptor's file; 0: the file is not known and must be queried */
};

/* Private data of the process. A fork clears it in the child, which so finds that it has no table. */
struct light {
	struct table *table;
	u32 is_failed, is_being_made, directory_bytes;
	char directory[NAME_MOST];
	struct descriptor descriptors[DESCRIPTORS];
};

extern struct light *light;

/* How a call is counted: the values of `counting` in session.h. */
enum counting {
	COUNT_NOTHING = 0, COUNT_READ, COUNT_WRITE, COUNT_COPY, COUNT_OPEN, COUNT_CLOSE, COUNT_CLOSE_RANGE, COUNT_DUP, COUNT_FCNTL, COUNT_SEEK,
	COUNT_STAT, COUNT_SYNC, COUNT_META, COUNT_MAP, COUNT_DIRECTORY, COUNT_NEW, COUNT_ASYNCHRONOUS,
};

/* A completed call. */
struct over {
	const struct shape *shape;
	const u64 *arguments;
	s64 result;
	u64 number, start, end; /* in ticks */
};

static inline struct row *rows_of(const struct table *table) { return (struct row *)((u8 *)table + table->rows_at); }

/* light.c */
int begin_counting(void);
struct table *table_of(void);
struct row *row_for_all(struct state *state, struct row *row), *row_of_name(struct state *state, const u8 *name, u64 bytes, u64 hash);
/* light_names.c */
struct row *row_of_descriptor(struct state *state, s64 fd), *row_of_path(struct state *state, const struct over *over);
void forget_directory(void);
u64 pattern_of(u8 *to, const u8 *name, u64 bytes), folder_of(u8 *to, const u8 *name, u64 bytes);
/* light_calls.c */
void iodock_count(struct plain_frame *plain);
void count_over(struct state *state, const struct over *over);

#endif
