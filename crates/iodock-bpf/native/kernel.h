/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* What the programs need of the kernel: types, helpers, and the few fields that they read. The loader moves
 * field offsets to where the running kernel has them (CO-RE), so only names and types matter here. */
#ifndef IODOCK_KERNEL_H
#define IODOCK_KERNEL_H

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef signed int s32;
typedef signed long long s64;

#define SECTION(name) __attribute__((section(name), used))
#define INLINE static inline __attribute__((always_inline))
#define RELOCATED __attribute__((preserve_access_index))
/* The compiler must not derive `value` anew from what it was made of. */
#define KEEP(value) asm volatile("" : "+r"(value))
#define BARRIER() asm volatile("" ::: "memory")

/* Maps are described by pointers to arrays of their figures (libbpf's convention). */
#define FIGURE(name, value) int(*name)[value]
#define BPF_MAP_TYPE_HASH 1
#define BPF_MAP_TYPE_ARRAY 2
#define BPF_F_MMAPABLE (1 << 10)
/* Memory that is shared with the recorder: an array of one element, which the programs reach without a lookup. The loader
 * makes it as long as it tells the programs, so the compiler must not know a length. */
#define SHARED(name) SECTION(".bss." name)
#define ELEMENT(of, index)                 \
	({                                 \
		typeof(&(of)[0]) all = of; \
		KEEP(all);                 \
		all + (index);             \
	})

/* Numbers of helper functions: include/uapi/linux/bpf.h. */
static void *(*map_lookup)(void *map, const void *key) = (void *)1;
static long (*map_update)(void *map, const void *key, const void *value, u64 flags) = (void *)2;
static long (*map_delete)(void *map, const void *key) = (void *)3;
static u64 (*ktime_ns)(void) = (void *)5;
static u32 (*this_cpu)(void) = (void *)8;
static long (*read_user)(void *to, u32 size, const void *from) = (void *)112;
static long (*read_user_string)(void *to, u32 size, const void *from) = (void *)114;
static long (*read_kernel_string)(void *to, u32 size, const void *from) = (void *)115;
static long (*read_kernel)(void *to, u32 size, const void *from) = (void *)113;
static struct task_struct *(*current_task)(void) = (void *)158;

/* A field by way of a copy: to follow a pointer in the program itself takes the verifier a search through all the
 * kernel's types. */
#define FIELD(of, name)                                                 \
	({                                                              \
		typeof((of)->name) value = 0;                           \
		read_kernel(&value, sizeof value, &(of)->name);         \
		value;                                                  \
	})

/* x86-64's registers at a system call. All but ax still hold the arguments at its end. */
struct pt_regs {
	unsigned long r10, r9, r8, cx, dx, si, di, orig_ax, ip;
} RELOCATED;

struct thread_info {
	u32 status;
} RELOCATED;
#define TS_COMPAT 2
/* The bit, above all, that marks the numbers of x32 calls. */
#define X32_SHIFT 30

struct mm_struct {
	unsigned long arg_start, arg_end;
} RELOCATED;

struct sched_entity {
	u64 sum_exec_runtime;
} RELOCATED;

struct signal_struct {
	unsigned long maxrss;
} RELOCATED;

struct files_struct;
struct fs_struct;

struct task_struct {
	struct thread_info thread_info;
	s32 pid, tgid, exit_code;
	struct mm_struct *mm;
	struct files_struct *files;
	struct fs_struct *fs;
	struct signal_struct *signal;
	struct sched_entity se;
	u64 utime, stime;
} RELOCATED;

struct file;

struct linux_binprm {
	const char *filename, *interp;
	struct file *file;
} RELOCATED;

/* A request of io_uring, which holds that of a read or write in its beginning, and its completion. */
struct io_cqe {
	s32 fd;
} RELOCATED;

struct io_kiocb {
	u8 opcode;
	struct io_cqe cqe;
	u64 flags;
} RELOCATED;

struct kiocb {
	s64 ki_pos;
} RELOCATED;

struct io_rw {
	struct kiocb kiocb;
	u32 len;
} RELOCATED;

struct io_uring_cqe {
	s32 res;
} RELOCATED;

/* From a descriptor to its file, and to what the page cache knows it by. */
struct super_block {
	u32 s_dev;
} RELOCATED;

struct inode {
	u16 i_mode;
	struct super_block *i_sb;
	unsigned long i_ino;
	u32 i_rdev;
} RELOCATED;

struct address_space {
	struct inode *host;
} RELOCATED;

struct file {
	struct address_space *f_mapping;
} RELOCATED;

struct fdtable {
	u32 max_fds;
	struct file **fd;
} RELOCATED;

struct files_struct {
	struct fdtable *fdt;
} RELOCATED;

/* Pages of the cache that came together. How many: Linux 6.1 to 6.5 keep that in a field of its own, later ones in the
 * second page's flags. Before there were folios (5.16) each page came alone. */
struct folio {
	struct address_space *mapping;
	unsigned long index;
	unsigned long _flags_1;
} RELOCATED;

struct folio___6_1 {
	u8 _folio_order;
} RELOCATED;

struct page___5_15 {
	struct address_space *mapping;
	unsigned long index;
} RELOCATED;

enum pageflags {
	PG_head,
};

#define EXISTS(field) __builtin_preserve_field_info(field, 2)
#define ENUMERATOR(of, name) __builtin_preserve_enum_value(*(of *)name, 1)

#endif
