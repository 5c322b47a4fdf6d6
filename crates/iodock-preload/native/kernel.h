/* Defines how to make system calls without libc, and the constants of the kernel that the library needs. */
#ifndef IODOCK_KERNEL_H
#define IODOCK_KERNEL_H

#include "session.h"

enum {
	SYS_read = 0, SYS_open = 2, SYS_close = 3, SYS_stat = 4, SYS_fstat = 5, SYS_lstat = 6, SYS_lseek = 8, SYS_mmap = 9,
	SYS_mprotect = 10, SYS_munmap = 11, SYS_ioctl = 16, SYS_pread64 = 17, SYS_access = 21, SYS_mremap = 25, SYS_madvise = 28,
	SYS_getpid = 39, SYS_recvmsg = 47, SYS_clone = 56, SYS_vfork = 58, SYS_execve = 59, SYS_exit = 60, SYS_fcntl = 72,
	SYS_getcwd = 79,
	SYS_chdir = 80, SYS_mkdir = 83, SYS_rmdir = 84, SYS_unlink = 87, SYS_readlink = 89, SYS_getrusage = 98, SYS_getuid = 102,
	SYS_geteuid = 107, SYS_getppid = 110, SYS_sigaltstack = 131, SYS_munlock = 150, SYS_prctl = 157, SYS_gettid = 186,
	SYS_getxattr = 191, SYS_lgetxattr = 192, SYS_fgetxattr = 193, SYS_listxattr = 194, SYS_llistxattr = 195, SYS_futex = 202,
	SYS_remap_file_pages = 216, SYS_exit_group = 231, SYS_openat = 257, SYS_mkdirat = 258, SYS_newfstatat = 262,
	SYS_unlinkat = 263, SYS_readlinkat = 267, SYS_faccessat = 269, SYS_splice = 275, SYS_utimensat = 280, SYS_recvmmsg = 299,
	SYS_prlimit64 = 302, SYS_name_to_handle_at = 303, SYS_process_vm_readv = 310, SYS_seccomp = 317, SYS_execveat = 322,
	SYS_pkey_mprotect = 329, SYS_statx = 332, SYS_io_uring_setup = 425, SYS_pidfd_open = 434, SYS_clone3 = 435,
	SYS_faccessat2 = 439, SYS_mount_setattr = 442, SYS_getxattrat = 464, SYS_listxattrat = 465,
};

enum {
	EPERM = 1, ENOENT = 2, E2BIG = 7, EAGAIN = 11, ENOMEM = 12, EACCES = 13, EFAULT = 14, EEXIST = 17, ENOTDIR = 20, EISDIR = 21,
	EINVAL = 22, ENFILE = 23, EMFILE = 24, ESPIPE = 29, ENOSYS = 38, ENOTEMPTY = 39, ELOOP = 40, ENODATA = 61, EOPNOTSUPP = 95,
	EHWPOISON = 133,
};

enum {
	PROT_READ = 1, PROT_WRITE = 2, PROT_EXEC = 4,
	MAP_SHARED = 1, MAP_PRIVATE = 2, MAP_FIXED = 0x10, MAP_ANONYMOUS = 0x20, MAP_DENYWRITE = 0x800, /* set by the dynamic linker */
	MAP_NORESERVE = 0x4000, MAP_NONBLOCK = 0x10000, MAP_FIXED_NOREPLACE = 0x100000, MREMAP_MAYMOVE = 1, MREMAP_FIXED = 2,
	MADV_DONTNEED = 4, MADV_FREE = 8, MADV_REMOVE = 9, MADV_DONTFORK = 10, MADV_WIPEONFORK = 18, MADV_KEEPONFORK = 19,
	MADV_POPULATE_WRITE = 23, MADV_DONTNEED_LOCKED = 24, MADV_HWPOISON = 100, MADV_GUARD_INSTALL = 102,
	O_RDWR = 2, O_NOCTTY = 0400, O_NONBLOCK = 04000, O_NOFOLLOW = 0400000, O_CLOEXEC = 02000000, SEEK_CUR = 1, R_OK = 4,
	AT_FDCWD = -100, AT_EACCESS = 0x200, AT_EMPTY_PATH = 0x1000, AT_STATX_DONT_SYNC = 0x4000, STATX_TYPE = 1,
	CLONE_VM = 0x100, CLONE_VFORK = 0x4000, CLONE_THREAD = 0x10000, CLONE_SETTLS = 0x80000,
	CLONE3_TLS = 56, CLONE3_LEAST = 64, /* offset in struct clone_args, and the smallest size that includes it */
	RLIMIT_AS = 9, RUSAGE_SELF = 0, RUSAGE_THREAD = 1, SS_ONSTACK = 1, UTIME_OMIT = 0x3ffffffe,
	FUTEX_WAIT = 0, FUTEX_WAKE = 1, FUTEX_CMP_REQUEUE_PRIVATE = 4 | 128,
	PR_SET_SECCOMP = 22, PR_SET_TSC = 26, PR_TSC_SIGSEGV = 2, PR_SET_PTRACER = 0x59616d61,
	SECCOMP_MODE_STRICT = 1, SECCOMP_MODE_FILTER = 2, SECCOMP_SET_MODE_STRICT = 0, SECCOMP_SET_MODE_FILTER = 1,
	SECCOMP_FILTER_FLAG_TSYNC = 1, TIOCGPTPEER = 0x5441, /* opens the other end of a pseudo-terminal without naming it */
	AT_NULL = 0, AT_PHDR = 3, AT_PHNUM = 5, AT_EXECFN = 31, DT_DEBUG = 21, DT_STRTAB = 5, DT_SYMTAB = 6, DT_GNU_HASH = 0x6ffffef5,
	PT_LOAD = 1, PT_DYNAMIC = 2, PT_INTERP = 3, PT_NOTE = 4, PT_PHDR = 6, NT_GNU_BUILD_ID = 3, NT_GO_BUILD_ID = 4,
	NAME_GNU = 0x554e47, NAME_GO = 0x6f47, MACHINE_X86_64 = 62,
};
#define RLIM_INFINITY (~0ul)

#define ELF_MAGIC 0x464c457f
struct elf {
	u8 ident[16];
	u16 type, machine;
	u32 version;
	u64 entry, segments_at, sections_at;
	u32 flags;
	u16 header_bytes, segment_bytes, segments;
};
struct segment {
	u32 type, flags;
	u64 offset, address, physical, file_bytes, memory_bytes, align;
};

static inline long kernel(long number, long a, long b, long c, long d, long e, long f) {
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long result;
	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return result;
}
#define kernel0(n) kernel(n, 0, 0, 0, 0, 0, 0)
#define kernel1(n, a) kernel(n, (long)(a), 0, 0, 0, 0, 0)
#define kernel2(n, a, b) kernel(n, (long)(a), (long)(b), 0, 0, 0, 0)
#define kernel3(n, a, b, c) kernel(n, (long)(a), (long)(b), (long)(c), 0, 0, 0)

static inline int failed(long result) { return (u64)result >= (u64)-4095l; }
#endif
