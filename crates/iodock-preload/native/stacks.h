/* The call sites of system calls (record --stacks): tables of the process's code and of each thread's stack.
 * docs/decisions/0047 explains the design. */
#ifndef IODOCK_STACKS_H
#define IODOCK_STACKS_H

#include "recorder.h"

enum { FRAMES_MOST = 32, RULE_SETS = 1024, RULE_WAYS = 4, CODES_MOST = 512, STACK_SETS = 32, STACK_WAYS = PATH_WAYS };
enum { STACKS_OFF = 0, STACKS_SITES = 1, STACKS_ALL = 2 };

/* PYTHONS_MOST: number of Python frames that a recorded stack holds. PYTHONS_SEEN_MOST: number of frames that
 * are searched for the first one of the user's own code. */
enum { PYTHONS_MOST = 24, PYTHONS_SEEN_MOST = 256, PYTHON_PAGES = 512, PYTHON_SETS = 256, PYTHON_WAYS = 4 };
enum { SEEN_CODES = 8, PYTHON_FILE_MOST = 511, PYTHON_NAME_MOST = 255 };

enum { CODE_PAGES = 64, CODE_PAGE = 4096 };

/* The rule to find the caller of a frame, one word for each return address:
 *
 *   bits 0-1    enum way, never 0
 *   bit 2       The frame saves the caller's %rbp.
 *   bit 3       The caller's %rbp is unknown.
 *   bit 4       The code is the user's own: no package has installed it.
 *   bits 5-31   distance from %rsp or %rbp to the end of the frame, in words
 *   bits 32-51  where %rbp is saved: distance from the end of the frame down, in words
 *   bits 52-61  the file of the code: its index in `codes` plus one. 0: the address belongs to no known file;
 *               bits 5-31 then hold the value of `loads` at that time.
 *   bit 62      The code belongs to the Python interpreter. */
enum way { WAY_STACK = 1, WAY_BASE = 2, WAY_ENDS = 3 };
#define RULE_WAY 3ul
#define RULE_SAVED 4ul
#define RULE_LOST 8ul
#define RULE_OWN 16ul
#define RULE_SIZE_SHIFT 5
#define RULE_SIZE_MOST ((1ul << 27) - 1)
#define RULE_SAVED_SHIFT 32
#define RULE_SAVED_MOST ((1ul << 20) - 1)
#define RULE_CODE_SHIFT 52
#define RULE_PYTHON (1ul << 62)

static inline u64 size_in(u64 rule) { return (rule >> RULE_SIZE_SHIFT & RULE_SIZE_MOST) * 8; }
static inline u64 saved_in(u64 rule) { return (rule >> RULE_SAVED_SHIFT & RULE_SAVED_MOST) * 8; }
static inline u32 code_in(u64 rule) { return (u32)(rule >> RULE_CODE_SHIFT) & 1023; }

/* An executable segment of a mapped file. An address minus `adjust` is an offset in the file. */
struct code {
	u64 from, to, adjust, table; /* table: address of its .eh_frame_hdr; 0: it has none */
	u16 is_own, is_python, is_ours;
	u32 name_bytes;
	char name[MODULE_NAME + 1];
};

/* A rule and its key. `check` combines both, so that a pair written by two threads at once matches no key. */
struct known_rule { u64 check, rule; };

/* Layout of CPython's structures from which a stack is built: offsets of their fields. */
struct layout {
	u32 version, version_most; /* range of versions with this layout, as in Py_Version */
	u32 interpreters, finalizing; /* offsets in _PyRuntime */
	u32 next_interpreter, threads; /* offsets in an interpreter's state */
	u32 next_thread, thread_id, running; /* offsets in a thread's state */
	u32 frame; /* `running` points to a structure that contains the frame; DIRECT: it is the frame */
	u32 code, previous, instruction, owner, shim; /* offsets in a frame; shim: owner of frames of no function */
	u32 first_line, file, name, lines, bytecode; /* offsets in a code object */
	u32 ascii, wide; /* in a string object: where its characters begin, for ASCII and other strings */
};
#define DIRECT (~0u)

/* The interpreter in this process. */
struct python {
	u64 runtime;   /* address of _PyRuntime; 0: no interpreter, or one of an unknown version */
	u64 code_type; /* address of PyCode_Type */
	u64 slot;      /* offset from the thread pointer to the pointer to the thread's state; 0: not found yet */
	u32 tries;     /* number of failed attempts to find `slot` */
	u32 ends;      /* the interpreter is shutting down, and no other thread reads its memory any more */
	u32 is_unread; /* the process was counted as one whose Python frames can't be read */
	struct layout layout;
};

/* Tables of the process. All threads write them without locks; a lookup never finds an incomplete entry. */
struct stack_tables {
	/* The end of the main thread's stack, its thread pointer; address and number of the program's segment
	 * headers. */
	u64 main_top, main_thread, segments_at, segments;
	const struct link *modules;
	u64 which; /* which frames are recorded: STACKS_SITES or STACKS_ALL */
	u32 idle; /* no loaded module can have a frame to record */
	u32 pages_taken; /* a thread is using code_pages */
	u32 process; /* id of the process that these tables describe; a fork copies them to the child */
	u32 count; /* number of entries in `codes` */
	u32 loads; /* number of times that code was loaded */
	u32 replaced; /* number of loads that replaced other code */
	u32 turn;
	char program[MODULE_NAME + 1];
	struct python python;
	u64 unmapped;		   /* number of times that memory was unmapped */
	u64 pages[PYTHON_PAGES];   /* numbers of pages that are known to be readable, by a hash of the number */
	struct known_rule pythons[PYTHON_SETS][PYTHON_WAYS] __attribute__((aligned(64))); /* facts_of_code() by code object */
	struct known_rule rules[RULE_SETS][RULE_WAYS] __attribute__((aligned(64)));
	struct code codes[CODES_MOST];
	struct { u64 page, loads; } code_keys[CODE_PAGES];
	u8 code_pages[CODE_PAGES][CODE_PAGE] __attribute__((aligned(CODE_PAGE)));
};

/* The words of the stack that a walk has read: return addresses and saved registers. */
enum { WORDS_MOST = 8, WALKS = 8 };
struct words {
	u32 count; /* if larger than WORDS_MOST, only the first WORDS_MOST words are kept */
	struct { u64 at, word; } read[WORDS_MOST];
};

/* The result of an earlier stack walk of this thread. A call from the same site, with the same registers and
 * the same words on the stack, has the same call stack. */
struct walk_before {
	u64 pc, stack, base, top, loads, replaced, hash;
	u32 turn; /* changes with every write, so that a reader notices a handler's write in between */
	struct words words;
};

/* The stack data of one thread, stored in memory after its state. */
struct stacks {
	u64 low, top; /* the kernel has confirmed that the stack's pages from `low` to `top` are present */
	struct walk_before before[WALKS]; /* indexed by the call's code */
	u64 last[HABITS]; /* hash of the stack of the last call with each code; 0: unknown */
	u32 tries; /* number of failed attempts to find the stack's end */
	u32 count; /* number of stacks written to this chunk */
	/* The following fields are about the call whose record is being written. */
	u64 hash;
	u32 frames, is_unplaced; /* is_unplaced: the thread was counted in session->unplaced */
	u64 pc[FRAMES_MOST], rule[FRAMES_MOST];
	u32 pythons, pythons_at; /* number of Python frames, and the frame in front of which they are inserted */
	u32 text_room; /* bytes that the record reserves for the texts of all Python frames */
	struct python_frame { u64 code, instruction; } python[PYTHONS_MOST];
	u64 python_thread; /* address of the interpreter's state for this thread, once it was checked */
	/* Code objects of the last call's innermost frames. Their pages were present at that time, and still
	 * are if no memory was unmapped since. */
	struct seen_code { u64 code, file, lines, name_bytes, line_bytes, unmapped, key, known; } seen[SEEN_CODES];
	struct cached known[STACK_SETS][STACK_WAYS];
};
_Static_assert(sizeof(struct stacks) + sizeof(struct block) + SLOT_BYTES <= STATE_STRIDE, "behind a state");

static inline struct stacks *stacks_of(struct state *state) { return (struct stacks *)((u8 *)state + SLOT_BYTES); }

extern struct stack_tables *stack_tables;

static inline u64 thread_pointer(void) {
	u64 pointer;
	__asm__("movq %%fs:0, %0" : "=r"(pointer));
	return pointer;
}

#define KEY(pc) ((pc) ^ (u64)stack_tables->replaced << 48)

static ALWAYS u64 disguised(u64 rule) { return (rule ^ 0x9e3779b97f4a7c15ul) * 0xff51afd7ed558ccdul; }

static ALWAYS struct known_rule *rules_of(u64 pc) {
	return stack_tables->rules[pc * 0x9e3779b97f4a7c15ul >> 54 & (RULE_SETS - 1)];
}

/* Returns the known rule for pc; 0 if no rule was stored for it yet. */
static ALWAYS u64 rule_of(u64 pc) {
	const volatile struct known_rule *ways = rules_of(pc);
	for (u32 i = 0; i < RULE_WAYS; i++) {
		u64 rule = ways[i].rule;
		if ((ways[i].check ^ disguised(rule)) == KEY(pc))
			return rule;
	}
	return 0;
}

/* python.c */
enum walked { WHOLE, UNKNOWN_RULE };
#define PYTHON_OWN 1u /* one of the Python frames is the user's own code */
enum walked walk_python(struct stacks *stacks, u64 which, int keep, u64 *hash, u32 *found);
u64 python_bytes(struct stacks *stacks);
u64 copy_live(void *to, u64 from, u64 count);
enum { SIZE_AT = 16, BYTES_AT = 32 }; /* offsets in a Python object: size of a str or bytes, content of a bytes */

/* python_code.c */
/* Facts about a code object, as bits of one word. The lengths of its file and name are shifted: */
#define CODE_KNOWN 1ul
#define CODE_OWN 2ul
#define CODE_FILE_SHIFT 2
#define CODE_NAME_SHIFT 12
u64 facts_of_code(u64 code);
u8 *put_python(struct state *state, u8 *at, const struct stacks *stacks);

/* python_layout.c */
int is_python(const struct link *link);
/* Counts a process whose Python frames can't be read, and notes the version of its Python. */
void count_unread(u32 version);

/* code.c, unwind.c. code_of() returns the index in `codes` plus one; 0 if no file contains the address. */
u32 code_of(u64 pc);
int is_installed(const char *name);
u64 copy_code(void *to, u64 from, u64 count);
void find_own_code(void);
u64 learn_rule(u64 pc);
#endif
