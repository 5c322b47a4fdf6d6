/* Declares the functions of the recorder's source files, from those that write records to those that handle
 * calls. */
#ifndef IODOCK_RECORDER_H
#define IODOCK_RECORDER_H

#include "state.h"

/* Functions that the stub calls. */
void iodock_plain(void), iodock_plain_stacks(void), iodock_light(void), iodock_before(void), iodock_after(void), iodock_guarded(void);
extern void (*iodock_stub)(void) __attribute__((visibility("hidden"))); /* the stub that makes most calls */
void iodock_begin(const u64 *begun);
void iodock_record(struct plain_frame *plain, u64 end, u64 base);
u32 iodock_has_same_stack(struct state *state, const struct plain_frame *plain, u64 base);
u64 iodock_record_short(struct state *state, const struct plain_frame *plain, u64 end);
void iodock_land_late(struct state *state, u64 flight), iodock_not_next(struct state *state, u64 flight);
int iodock_guard(struct frame *frame);
void iodock_record_before(struct frame *frame), iodock_record_after(struct frame *frame);

/* numbers.c */
u8 *put(u8 *at, u64 value), *put_signed(u8 *at, s64 value), *put_fixed(u8 *at, u64 value, u32 bytes);
u8 *put_bytes(u8 *at, const u8 *bytes, u64 count), *put_text(u8 *at, const char *text);
u64 length(const u8 *text, u64 limit);
int begins(const u8 *text, const char *with), is_same(const u8 *text, const char *as, u64 most);

/* Finds zero bytes of a word: the lowest set bit of the result is the highest bit of the first zero byte. */
static inline u64 zero_bytes(u64 word) { return (word - 0x0101010101010101ul) & ~word & 0x8080808080808080ul; }

/* mapping.c, ahead.c, reuse.c: memory of chunks */
int populate(u8 *from, u8 *end), is_limited(u64 resource);
void map_ahead(void), give_back_ahead(void);
u8 *map_part(u8 *memory, u64 at, u64 bytes), *chunk_memory(u8 **memory, u64 at);
u8 *take_ahead(u64 *index), *use_again(struct state *state, u64 *index), *map_next(struct state *state, struct stream *stream, u32 level, u64 at);

/* levels.c */
void abandon(struct state *state, u32 from), end_flight(struct state *state), no_flight_in(struct chunk *chunk);
int is_crowded(struct state *state);
u32 enter(struct state *state, struct place *here);
void leave_level(struct state *state, u32 level), leave(struct state *state, u32 level, const struct place *here);

/* The pointer is read once, because a handler's calls may change it before a second read. */
static inline struct chunk *chunk_of(const struct stream *stream) { return *(struct chunk *const volatile *)&stream->chunk; }
static inline u64 flight_now(const struct state *state) { return *(const volatile u64 *)&state->flight; }
static inline u64 writer_on(const struct state *state, u32 level) { return *(const volatile u64 *)&state->writers[level]; }

/* chunks.c */
int extend(struct state *state, u32 level, u64 bytes, u64 now);
u8 *room(struct state *state, u32 level, u64 bytes, u64 now);
void commit(struct stream *stream, const u8 *begin, u8 *end), commit_landing(struct stream *stream, const u8 *begin, u8 *end);

/* Returns the process id and the thread id in one number. */
static inline u64 task_of(const struct state *state) { return (u64)state->pid << 32 | state->tid; }

/* threads.c, handler_fork.c. struct rusage is read as words. */
enum { RUSAGE_WORDS = 18, RUSAGE_READ = 11, RUSAGE_WRITTEN = 12, RUSAGE_WAITS = 16, STAT_WORDS = 18 };
struct state *next_state(u32 *at), *adopt(u64 now), *mine(u64 now, u64 stack);
struct block *get_block(u32 index);
void keep_taken(u32 number), give_state_back(struct state *state);
u8 *put_control(u8 *at, const struct state *state, enum control kind, u64 now);
void commit_control(struct state *state, u32 level, const u8 *begin, u8 *end, u64 now);
void write_control(struct state *state, u32 level, enum control kind, u64 now), record_control(struct state *state, enum control kind, u64 now);
void write_usage(struct state *state, u32 level, u32 ends_process, u64 now);
struct interrupted *last_interrupted(void);
void keep_interrupted(const struct state *state), forget_interrupted(const struct interrupted *outer), leave_to_nobody(struct state *state);

/* Limits of waits in stop.c, in loop iterations. SEEN_AFTER: until a thread's writes are visible to all
 * threads. QUIET_MOST: for other threads in general. OTHERS_MOST: for threads that a seccomp filter would
 * kill; enough for a hundred threads on two processors that each wait seconds for their turn. */
enum { SEEN_AFTER = 1 << 13, QUIET_MOST = 1 << 23, OTHERS_MOST = 1 << 29 };
struct state *begin_own_calls(void);
void end_own_calls(struct state *state), hold(void), end_hold(void), stop(void), stop_for_strangers(void), stop_before(const struct frame *frame);
void end_records(void), wait_for_others(int writes, u64 most);
int may_wait(u64 *left), is_own(const struct state *state), forbids(const struct frame *frame);

/* guard.c */
#define PATCHED_MOST 8
extern struct span trampoline_spans[PATCHED_MOST], text_spans[PATCHED_MOST], header_span, copy_span, library_span, light_span, table_span, stacks_span;
void note_span(struct span *spans, const u8 *at, u64 bytes);
int guard(struct frame *frame);

/* paths.c */
#define HASH_BEGIN 0x9e3779b97f4a7c15ul
struct path {
	const u8 *text;
	u64 bytes, hash;
	u64 words[LAST_PATH / 8 + 1]; /* the path's first LAST_PATH bytes, with zeros after its end */
};
int path_was_read(u64 number, const u64 *arguments, s64 result), ask_for_word(u64 *to, const u64 *from), copy_path(u8 *to, const u8 *from);
void look_at(struct path *path, const u8 *text), keep_path(struct cached *ways, u64 hash, u64 index);
struct cached *ways_of(struct state *state, u64 hash);
u64 known_path(const struct cached *ways, u64 hash), copy_in(void *to, const void *from, u64 count);
u8 *put_path(struct state *state, u32 level, u8 *at, const struct path *path);
long read_pieces(void *to, u64 bytes, const void *pieces, u64 count);

/* Returns a mask of all bits below the lowest zero byte; `zeros` is the result of zero_bytes(). */
static inline u64 text_before(u64 zeros) { return ((zeros & -zeros) - 1) >> 7; }

static inline u64 mix(u64 hash, u64 word) {
	hash = (hash ^ word) * 0xff51afd7ed558ccdul;
	return hash ^ hash >> 32;
}

/* fields.c, asynchronous.c, rings.c: the arguments of a call */
enum { MOST_VECTORS = 1024, MOST_ANCILLARY = 1040, NAME_BYTES = 64, SLOW_OPEN = 4096 /* units of time */ };
#define UNKNOWN (1ul << 63) /* the value that stands for an unknown number in records */
/* The stub's frame of a call (0 if a trampoline makes the call), and the program's %rbp. */
struct caller {
	const struct plain_frame *plain;
	u64 base;
};
struct fields {
	u32 has, more, always; /* always: bits of `more` that every call of this shape has */
	s64 fd, fd2, offset, offset2, argument;
	u64 size, flags, stat_size;
	const u8 *path, *path2, *text;
	u64 text_bytes;
	const struct caller *caller;
	u8 stat_type, lands; /* lands: the fields are those of the call that this thread has begun (see flight.c) */
};
u64 vector_sum(const u64 *vector, u64 count), passing(const u8 *message, const u8 **control);
void nothing_yet(struct fields *f), gather(struct fields *f, const struct shape *shape, const u64 *arguments, s64 result);
void name_peer(struct fields *f, u8 *name, const u64 *arguments, s64 fd);
long name_of_descriptor(u8 *name, u64 most, s64 fd);
int is_message_there(const u8 *message);
u8 special_type(s64 fd), *put_stat(u8 *at, u64 size, u8 type);
void write_fields(struct state *state, u32 level, const struct shape *shape, struct fields *f, u32 phase, u64 start, u64 end, s64 result);
void refused_paths(struct state *state, u32 level, const struct shape *shape, const u64 *arguments, struct fields *f, u64 now);

/* Whether an open took so long that special_type() determines the file's type: opening a FIFO waits until
 * another process opens the other end. */
static inline int is_slow_open(u32 kind, s64 result, u64 units) { return kind == KIND_OPEN && result >= 0 && units >= SLOW_OPEN; }

enum { SOME_BLOCKS = 32, SOME_VECTORS = 64, BLOCK_WORDS = 8, MOST_ITEMS = 1024 };
struct blocks {
	u64 pointers[SOME_BLOCKS];
	u64 pieces[SOME_BLOCKS][2];
	u64 words[SOME_BLOCKS][BLOCK_WORDS];
	u64 vectors[SOME_VECTORS][2];
};
int sum_vectors(struct blocks *blocks, u64 from, u64 count, u64 *sum), read_words(struct blocks *blocks, u64 some);
void gather_items(struct state *state, u32 level, const struct shape *shape, const u64 *arguments, struct fields *f, u64 now, s64 result);

static inline int has_items(const struct shape *shape) {
	return shape->roles[1] == ROLE_MESSAGES || shape->roles[2] == ROLE_BLOCKS || shape->roles[3] == ROLE_EVENTS;
}

#define RING_IS_SHOWN 1 /* argument in the record of an io_uring_setup whose entries the recorder reads */
extern u32 rings_used;
int ring_is_made(const struct state *state, const u64 *arguments, s64 result);
void ring_is_mapped(const struct state *state, const u64 *arguments, s64 result);
void ring_is_entered(struct state *state, u32 level, const u64 *arguments, struct fields *f, u64 now, s64 result);

/* loaded_code.c, watch.c, light.c */
void note_loaded(const char *name), has_loaded(const u64 *arguments, s64 result);
void has_mapped(const struct state *state, const u64 *arguments, s64 result);
void write_counted(struct state *state, u32 level, u64 now), count_before_exec(struct state *state, u64 now);

/* stacks.c, code.c: the call sites of system calls, recorded with --stacks */
struct link;
extern struct stack_tables *stack_tables;
int begin_stacks(u64 top, u64 segments_at, u64 segments, const struct link *modules);
void forget_stack(struct state *state), forget_known_stacks(struct state *state), code_is_mapped(u64 from, u64 bytes, const char *name);
void forget_pages(u64 from, u64 bytes), forget_pages_of_parent(u32 process);
u64 see_stack(struct state *state, const struct plain_frame *plain, u64 base);
u8 *put_stack(struct state *state, u8 *at, u32 code);

/* flight.c, record.c */
#define STACK_MOST (1ul << 30) /* assumed upper limit of a stack's size, in bytes */
int come_back(struct state *state, u64 stack), on_other_stack(void), was_abandoned(const struct state *state, u64 flight, u64 stack);
void land(struct state *state, u32 level, const struct place *here, u64 flight), write_no_return(struct state *state, u64 now);
void take_off(struct state *state, const struct frame *frame, u64 stack, u64 start);
void record_general(struct state *state, u32 level, const struct shape *shape, const u64 *arguments, int lands, u64 start, u64 end,
		    s64 result, const struct caller *caller);

/* around.c, pending.c, vfork.c */
#define SYSCALL_BYTES 2
const struct shape *shape_of(u32 number);
int is_fork(const struct pending *pending), lends(const struct pending *pending), is_lent(const struct state *state);
struct pending *inner(const struct state *state, u32 order), *innermost(const struct state *state);
struct pending *begun(const struct state *state, u64 stack), *begin_pending(struct state *state, u64 stack);
struct environment *environment_of(const struct pending *pending);
void end_pending(struct state *state, u32 order), end_all_pending(struct state *state), end_with_thread(struct state *state, u64 now);
int is_abandoned(const struct pending *pending, u32 tid, u64 stack), has_room(struct state *state, u64 flags, u64 stack, u64 now);
void end_abandoned_at(struct state *state, u64 stack, u64 now);
void update_lent(struct state *state), settle(struct state *state, u64 now, u64 stack);
u64 flight_lent(const struct state *state);
int fork_is_over(struct state *state, struct pending *pending, u32 phase, u64 end, s64 result);

/* Returns the stack address that identifies a call that a trampoline makes. */
static inline u64 stack_of(const struct frame *frame) { return (u64)(frame + 1) & ~STAGES; }
static inline u64 place_of(const struct pending *pending) { return pending->stack & ~STAGES; }

/* executable.c, environment.c, without_ours.c, traced.c: programs that are executed */
enum { HEAD_BYTES = 2048 /* 35 segments */, NOTE_BYTES = 256 };
enum sight {
	SEEN,	/* as far as is known, the program will load this library */
	BLIND,	/* the program won't load the library, or makes calls that the library can't see */
	FOREIGN, /* the program's dynamic linker or libc can't load the library, so LD_PRELOAD must not contain it */
	PRIVILEGED, /* the program won't load the library, and would lose its privileges under an unprivileged tracer */
};
struct program {
	long file;	 /* descriptor of the program's file, or the error of opening it */
	u32 is_borrowed; /* the program's own descriptor: closing even a copy would release its locks on the file */
};
const u32 *find_note(const u8 *at, u64 bytes, u32 type, u32 name);
struct program open_program(const u64 *arguments, u32 at);
void close_program(const struct program *program);
enum sight sight_of(struct program program, u8 *head, u32 *is_foreign);

/* An environment: its variables, and its LD_PRELOAD if that contains our library. */
struct given {
	const u64 *list;
	u64 count, preload, preload_bytes;
	u32 has_session;
};
struct environment *new_environment(void);
void give_back_environment(struct environment *environment), make_environment(struct environment *environment, u64 *argument);
long place_of_library(const u8 *value);
struct environment *prepare_exec(struct state *state, const struct shape *shape, struct frame *frame, u32 environment_at, u64 now);
void trace_exec(struct state *state, const struct environment *environment);
s64 execute_again(struct state *state, const struct pending *exec, u32 environment_at, s64 result);
void map_copy(void), give_back_copy(void), copy_others(u64 *list, u8 *preload, const struct given *given);
int find_ours(struct given *given, const u64 *list);
u8 *put_other_libraries(u8 *to, const u8 *libraries, u64 at);
s64 execute_with(u64 number, const u64 *given, u32 environment_at, const u64 *list);
void execute_without_ours(struct frame *frame, u32 environment_at);

/* Messages to a tracer. MARK_ASKED: is the thread traced? MARK_LOADING: the library makes the following calls
 * itself; if the answer is STAY_OFF, it must not record. MARK_LOADED: the library records calls from now on.
 * MARK_FAILED: it does not. */
enum mark { MARK_ASKED = 1, MARK_LOADING = 2, MARK_LOADED = 3, MARK_FAILED = 4, STAY_OFF = 1 };
enum answer { NOT_ASKED, ANSWERED, NO_ANSWER };
long mark(enum mark what);
enum answer ask_recorder(u32 *asking, u32 me, const u64 *wanted, u32 turn_tries, u32 answer_tries, long look_ns);
void before_exec(struct state *state, enum sight sight);

/* patch.c */
struct link {
	u64 load;
	const char *name;
	u64 dynamic;
	struct link *next;
};
u32 patch_all(struct link *link, const char *program);
#endif
