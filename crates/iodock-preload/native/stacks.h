/* Places from which calls are made (record --stacks): the tables of code, and of a thread's stack.
 * docs/decisions/0047 has the reasons. */
#ifndef IODOCK_STACKS_H
#define IODOCK_STACKS_H

#include "recorder.h"

enum { FRAMES_MOST = 32, RULE_SETS = 1024, RULE_WAYS = 4, CODES_MOST = 512, STACK_SETS = 32, STACK_WAYS = PATH_WAYS };
enum { STACKS_OFF = 0, STACKS_SITES = 1, STACKS_ALL = 2 };

/* Number of Python frames that a stack keeps, and number of frames that are searched for the line to
 * change. */
enum { PYTHONS_MOST = 24, PYTHONS_SEEN_MOST = 256, PYTHON_PAGES = 512, PYTHON_SETS = 256, PYTHON_WAYS = 4 };
enum { SEEN_CODES = 8, PYTHON_FILE_MOST = 511, PYTHON_NAME_MOST = 255 };

enum { CODE_PAGES = 64, CODE_PAGE = 4096 };

/* How a frame is left, by the address that a call returns to in it: one word.
 *
 *   bits 0-1    enum way, never 0
 *   bit 2       the caller's %rbp is saved
 *   bit 3       it can't be known
 *   bit 4       code that no package has installed
 *   bits 5-31   from %rsp or %rbp to the end of the frame, in words
 *   bits 32-51  where %rbp is saved: so many words below that
 *   bits 52-61  the file of code, its place in `codes` and one; 0: none. Then bits 5-31 say how much code was loaded when that was found.
 *   bit 62      code of the Python interpreter */
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

/* A part of a file that code lies in. An address less `adjust` is a place in the file. */
struct code {
	u64 from, to, adjust, table; /* the last: the index of its unwind information, 0: there is none */
	u16 is_own, is_python, is_ours;
	u32 name_bytes;
	char name[MODULE_NAME + 1];
};

/* A rule and its key in one: a pair that two threads have written fits no key. */
struct known_rule { u64 check, rule; };

/* Layout of CPython's structures from which a stack is built: offsets of their fields. */
struct layout {
	u32 version, version_most; /* as in Py_Version */
	u32 interpreters, finalizing; /* in _PyRuntime */
	u32 next_interpreter, threads; /* in an interpreter */
	u32 next_thread, thread_id, running; /* in a thread's state */
	u32 frame; /* `running` points to a structure that contains the frame; DIRECT: it is the frame */
	u32 code, previous, instruction, owner, shim; /* offsets in a frame; shim: owner of frames of no function */
	u32 first_line, file, name, lines, bytecode; /* in a code object */
	u32 ascii, wide; /* in a text: where its characters begin */
};
#define DIRECT (~0u)

/* The interpreter in this process. */
struct python {
	u64 runtime;   /* where _PyRuntime lies; 0: there is none, or none that is known */
	u64 code_type; /* PyCode_Type */
	u64 slot;      /* where a thread's state is found, from the thread pointer; 0: not found yet */
	u32 tries;     /* in vain */
	u32 ends;      /* it is being ended, and no other thread reads its memory any more */
	u32 is_unread; /* it was counted as one that is not known */
	struct layout layout;
};

/* Tables of the process. They are written without locks: an incomplete entry is never found. */
struct stack_tables {
	u64 main_top, main_thread, segments_at, segments; /* the main thread's stack ends there; its thread pointer; the program's headers */
	const struct link *modules;
	u64 which; /* frames are wanted */
	u32 idle; /* no module has a frame that is wanted */
	u32 pages_taken; /* a thread uses code_pages */
	u32 process; /* process to which these pages belong */
	u32 count; /* of codes */
	u32 loads; /* how often code was loaded */
	u32 replaced; /* how often in the place of other code */
	u32 turn;
	char program[MODULE_NAME + 1];
	struct python python;
	u64 unmapped;		   /* how often memory was */
	u64 pages[PYTHON_PAGES];   /* that can be read, by their addresses */
	struct known_rule pythons[PYTHON_SETS][PYTHON_WAYS] __attribute__((aligned(64))); /* code objects; the values are CODE_KNOWN and so on */
	struct known_rule rules[RULE_SETS][RULE_WAYS] __attribute__((aligned(64)));
	struct code codes[CODES_MOST];
	struct { u64 page, loads; } code_keys[CODE_PAGES];
	u8 code_pages[CODE_PAGES][CODE_PAGE] __attribute__((aligned(CODE_PAGE)));
};

/* The words of the stack that a walk has read: return addresses and saved registers. */
enum { WORDS_MOST = 8, WALKS = 8 };
struct words {
	u32 count; /* above WORDS_MOST: there was no room for all */
	struct { u64 at, word; } read[WORDS_MOST];
};

/* A walk that found the stack of a thread's last call with some code. A call from the same place, with the
 * same registers and words, has the same stack. */
struct walk_before {
	u64 pc, stack, base, top, loads, replaced, hash;
	u32 turn; /* changes when it is written, so that a handler cannot mix two of them up */
	struct words words;
};

/* Of a thread, behind its state. */
struct stacks {
	u64 low, top; /* the stack's pages are present from `low` to `top`; they are queried from the kernel */
	struct walk_before before[WALKS]; /* by the call's code */
	u64 last[HABITS]; /* the stack of the last call of a code, as a hash; 0: unknown */
	u32 tries; /* in vain */
	u32 count; /* of stacks in this chunk */
	/* For the call whose record is being written: */
	u64 hash;
	u32 frames, is_unplaced; /* the latter: it was counted */
	u64 pc[FRAMES_MOST], rule[FRAMES_MOST];
	u32 pythons, pythons_at; /* number of Python frames, and the frame in front of which they are inserted */
	u32 text_room; /* of the record, for the texts of all of them */
	struct python_frame { u64 code, instruction; } python[PYTHONS_MOST];
	u64 python_thread; /* this thread's state in the interpreter, once it was read */
	/* Code of the last call's innermost frames, whose pages were present: they still are if no memory was
	 * unmapped since. */
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

/* 0: it was not looked for yet. */
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
#define PYTHON_OWN 1u /* one of the frames did not belong to a package */
enum walked walk_python(struct stacks *stacks, u64 which, int keep, u64 *hash, u32 *found);
u64 python_bytes(struct stacks *stacks);
u64 copy_live(void *to, u64 from, u64 count);
enum { SIZE_AT = 16, BYTES_AT = 32 }; /* of a text or of bytes */

/* python_code.c */
/* Facts about a code object, in a word: */
#define CODE_KNOWN 1ul
#define CODE_OWN 2ul
#define CODE_FILE_SHIFT 2
#define CODE_NAME_SHIFT 12
u64 facts_of_code(u64 code);
u8 *put_python(struct state *state, u8 *at, const struct stacks *stacks);

/* python_layout.c */
int is_python(const struct link *link);
/* Frames of a Python of that version stay unknown. */
void count_unread(u32 version);

/* code.c: 0 if there is none; the number is its place and one. unwind.c */
u32 code_of(u64 pc);
int is_installed(const char *name);
u64 copy_code(void *to, u64 from, u64 count);
void find_own_code(void);
u64 learn_rule(u64 pc);
#endif
