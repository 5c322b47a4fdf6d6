/* Defines the session file, which the recorder creates and all recorded processes share.
 * docs/explanation/rewrite-buffers.md documents it; src/format.rs is the same in Rust. All numbers are little
 * endian. */
#ifndef IODOCK_SESSION_H
#define IODOCK_SESSION_H

#include "hot.h"

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long u64;
typedef int s32;
typedef long s64;
typedef u16 __attribute__((aligned(1), may_alias)) unaligned_u16;
typedef u32 __attribute__((aligned(1), may_alias)) unaligned_u32;
typedef u64 __attribute__((aligned(1), may_alias)) unaligned_u64;
typedef u64 __attribute__((may_alias)) aligned_u64;

#define SESSION_MAGIC 0x0a524b434f444f49ul /* the characters "IODOCKR\n" */
#define SESSION_VERSION 18
#define CHUNK_MAGIC 0x4b4e4843u /* the characters "CHNK" */

enum { CALL_NUMBERS = 512, MOST_ROLES = 6, BIRTHS = 1024, MODULES = 256, OFFERED = 64, RANGES_MOST = 64, MODULE_NAME = 247 };
#define HEAD_LEAST (128l << 10) /* smallest size of the file's head, in bytes */

/* How a call is handled. */
enum kind {
	KIND_IGNORED = 0,
	KIND_DATA = 1,       /* (fd, buffer, size): read, write */
	KIND_POSITIONED = 2, /* (fd, buffer, size, offset): pread64, pwrite64 */
	KIND_GENERAL = 3,    /* as its roles define */
	KIND_FORK = 4,       /* fork, vfork, clone, clone3 */
	KIND_EXEC = 5,
	KIND_EXIT = 6,
	KIND_MAP = 7, /* a general call, recorded if it has a descriptor */
	KIND_CONFINE = 8, /* not recorded: prctl and seccomp may forbid calls, so recording ends before them */
	KIND_OPEN = 9,    /* a general call whose result is a new descriptor */
	KIND_GUARD = 10,  /* not recorded: munmap and similar calls may unmap our memory */
};

/* Meaning of an argument; 0: not relevant. */
enum role {
	ROLE_NONE = 0, ROLE_FD, ROLE_FD2, ROLE_PATH, ROLE_PATH2, ROLE_SIZE, ROLE_VECTOR, ROLE_MESSAGE, ROLE_OFFSET, ROLE_OFFSET_POINTER,
	ROLE_OFFSET_POINTER2, ROLE_SEEK_POINTER, ROLE_FLAGS,
	ROLE_POINTED_FLAGS, /* flags in the first u64 of the structure pointed to: openat2 */
	ROLE_ARGUMENT, ROLE_PAIR, ROLE_STAT, ROLE_STATX,
	ROLE_BLOCKS, ROLE_EVENTS, /* arguments of io_submit and io_getevents */
	ROLE_MESSAGES, ROLE_RING, /* arguments of sendmmsg and recvmmsg, and of io_uring_enter */
};

/* Programs that the recorder traces after an exec (bits of session->trace_what): */
enum trace {
	TRACE_NOTHING = 0,
	TRACE_UNSEEN = 1,     /* programs that this library does not reach */
	TRACE_ALL = 2,	      /* every program, until it has loaded the library */
	TRACE_PRIVILEGED = 4, /* also programs that gain privileges */
};

#define WATCH_ALL 1 /* value of watch_from: page faults in programs and libraries are sampled, too */

struct shape {
	u8 kind;
	u8 code; /* the call's code in records, from 1 to 191 */
	u8 roles[MOST_ROLES];
};

/* A loaded code file other than libc, which may make system calls outside of the patched sites. */
struct other {
	u64 hash; /* hash of the file's name; 0: the entry is empty */
	char name[MODULE_NAME + 1];
};

/* A range of ranks, including both ends. */
struct range {
	u32 from, to;
};

struct header {
	u64 magic;
	u32 version;
	u32 time_shift; /* value of TIME_SHIFT, for readers */
	u64 file_bytes, chunks_at;
	u32 chunk_bytes;
	u32 closed; /* the recorder has ended: nothing more is recorded */
	u64 sites_at, sites_bytes;
	u64 number; /* number of this session */
	/* The following fields have their own cache line, because all processes write to them. */
	u64 next_chunk __attribute__((aligned(64)));
	u64 lost_calls, lost_streams, sites_patched, sites_left;
	u64 stacks; /* which frames of a call are recorded: STACKS_OFF, STACKS_SITES or STACKS_ALL */
	u64 stopped_processes; /* number of processes in which recording stopped while the program continued */
	u64 births; /* number of processes created by fork and similar calls */
	u64 watch_from;   /* size from which a mapped file makes a process request sampling of its page faults; 0: never */
	u32 watch_asking; /* id of the process that requests sampling of its page faults, 0: none. Used as a futex */
	u32 watch_begun;  /* id of the last process whose page faults the recorder has begun to sample */
	u64 trace_what;   /* enum trace: before which execs a thread requests to be traced */
	u32 trace_asking; /* id of the thread that requests to be traced, 0: none. Used as a futex */
	u32 recorder;     /* process id of the recorder */
	u64 id_space;     /* the recorder's PID namespace: the inode of /proc/self/ns/pid */
	u64 head_bytes;   /* bytes of the file that every process maps */
	u32 owner;	  /* user id of the recorder, who owns the files with patched texts */
	u32 counts;	  /* whether the kernel's count (syscr, syscw) includes exactly the calls that read and write */
	u32 python_unread, python_version; /* number of processes whose Python frames could not be read, and Py_Version of the last one */
	/* Chunks that the recorder has read, which the threads that filled them may reuse. Each entry holds the
	 * chunk's number plus one; its index is the number modulo OFFERED. */
	u32 offered[OFFERED] __attribute__((aligned(64)));
	/* Used if calls are counted (--light): the file then has a table for each process after the chunks. */
	u64 tables_used __attribute__((aligned(64)));
	u64 tables_at, tables_most, table_bytes; /* table_bytes: 0 if calls are recorded */
	u64 first_accesses; /* number of a process's first accesses that are kept */
	u32 whole_count;    /* number of ranges of ranks whose calls are recorded; 0: no process records any */
	u32 counts_unranked; /* whether processes without a rank count their calls */
	u64 unplaced; /* number of threads that made calls on stacks that the recorder can't read */
	u8 counting[CALL_NUMBERS] __attribute__((aligned(512))); /* enum counting, in light.h */
	struct range whole[RANGES_MOST];
	char rank_names[256]; /* variables that may hold the MPI rank, each with its NUL; the first one set counts */
	struct shape shapes[CALL_NUMBERS] __attribute__((aligned(4096)));
	char library[1024]; /* path of the preloaded library, NUL-terminated */
	char session[1024]; /* path of this file */
	char texts[1024]; /* path of the folder with patched texts that have files of their own */
	char preloaded[1024]; /* our part of LD_PRELOAD: this library, and perhaps the library for interfaces */
	u32 born[BIRTHS] __attribute__((aligned(4096))); /* process ids of the last children */
	struct other others[MODULES] __attribute__((aligned(4096)));
};

/* Header of a patched module. In the area at sites_at it is followed by the module's sites, then by the
 * places in its trampolines that refer to the module. */
struct module {
	u8 build_id[32];
	u32 build_id_bytes, sites;
	u32 left;  /* number of sites that were found but are not safe to patch */
	u32 bytes; /* bytes of this header, the sites and the places */
	u32 moved; /* number of places that refer to the module */
	u32 trampolines_bytes;
	u64 trampolines_at; /* offset in the file of the stub's entries and the trampolines, mapped DISTANCE below the module */
	u64 text_at; /* offset in the file: a part of the module's text, patched with jumps; 0: there is none */
	u32 text_from, text_bytes; /* where that part begins, relative to the load address, and its size */
	u64 file; /* identity of the module's file: see is_same_file */
	u64 text_number; /* 0: the text is in the session's file; else the number of the file that contains it */
	u64 text_file; /* identity of that file */
};

#define DISTANCE (1l << 30)

/* Addresses of the stub's entries, which precede a module's trampolines. */
struct entries {
	void (*plain)(void), (*before)(void), (*after)(void), (*guarded)(void);
};

struct site {
	u32 at, trampoline; /* address of the jump, relative to the load address; offset of its trampoline from the entries */
};

/* The header of a chunk: a part of one thread's stream of records, which can be read without other chunks. */
struct chunk {
	u32 magic;
	u32 over; /* the process has called exit_group, so no more records follow */
	/* A single store changes both fields when the record of a call is complete. So at any moment a call is
	 * either in flight or recorded. */
	u32 used; /* bytes of this header and of complete records */
	u32 flight; /* number of the call in flight plus one; 0: no call is in flight */
	u32 tid, pid;
	u64 base;   /* start of the first record's gap, in units of time */
	u32 stream; /* number of the stream's first chunk */
	u32 sequence;
	u32 level; /* 0; from 1 for calls of a signal handler that interrupted the writing of a record */
	u32 owner; /* id of the process to which the chunk belongs (a child of vfork writes into its parent's chunk) */
	u64 flight_start; /* start of the call in flight, in ticks */
	s32 flight_fd; /* the first argument of the call in flight */
	u32 generation; /* number of times that the chunk was used before */
};

/* First byte of a record: the code of a call, one of the heads in hot.h, or 255 for records that are not
 * calls. */
#define CODE_CONTROL 255
/* Marks a call stack in front of a call's record. The stack also applies to later calls with the same
 * code. */
#define CODE_STACK 254
enum control { CONTROL_PROCESS = 1, CONTROL_TASK = 2, CONTROL_USAGE = 3, CONTROL_TRACED = 4, CONTROL_COUNTED = 5, CONTROL_INTERFACE = 6 };

/* Bits of a call's second byte, which follows the code. hot.h has the lowest bits. */
#define HAS_OFFSET 8 /* an offset follows, as the distance from the end of the previous positioned call */
#define HAS_MORE 16
#define STEP_BACK 32 /* the gap is negative */
#define PHASE_ENTER 64
#define PHASE_EXIT 128
#define PHASE_NO_RETURN (PHASE_ENTER | PHASE_EXIT) /* the call never returned: left by longjmp, or cancelled */

/* Bits of a call's third byte, which is present with HAS_MORE. */
enum { MORE_PATH = 1, MORE_PATH2 = 2, MORE_FLAGS = 4, MORE_ARGUMENT = 8, MORE_FD2 = 16, MORE_OFFSET2 = 32, MORE_STAT = 64, MORE_TEXT = 128 };

#endif
