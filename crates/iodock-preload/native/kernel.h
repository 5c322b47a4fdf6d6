/* Plain system calls and the few numbers of the kernel's that the recorder needs. */
#ifndef IODOCK_KERNEL_H
#define IODOCK_KERNEL_H

#define SYS_read 0
#define SYS_open 2
#define SYS_close 3
#define SYS_stat 4
#define SYS_lstat 6
#define SYS_mmap 9
#define SYS_mprotect 10
#define SYS_munmap 11
#define SYS_ioctl 16
#define SYS_pread64 17
#define SYS_access 21
#define SYS_mremap 25
#define SYS_madvise 28
#define SYS_getpid 39
#define SYS_vfork 58
#define SYS_clone 56
#define SYS_execve 59
#define SYS_exit 60
#define SYS_getcwd 79
#define SYS_chdir 80
#define SYS_mkdir 83
#define SYS_rmdir 84
#define SYS_unlink 87
#define SYS_lseek 8
#define SYS_readlink 89
#define SYS_getrusage 98
#define SYS_getuid 102
#define SYS_geteuid 107
#define SYS_getppid 110
#define SYS_gettid 186
#define SYS_munlock 150
#define SYS_prlimit64 302
#define RLIMIT_AS 9
#define RLIM_INFINITY (~0ul)
#define SYS_prctl 157
#define SYS_sched_yield 24
#define SYS_recvmsg 47
#define SYS_getxattr 191
#define SYS_lgetxattr 192
#define SYS_listxattr 194
#define SYS_llistxattr 195
#define SYS_remap_file_pages 216
#define SYS_exit_group 231
#define SYS_openat 257
#define SYS_mkdirat 258
#define SYS_newfstatat 262
#define SYS_unlinkat 263
#define SYS_readlinkat 267
#define SYS_faccessat 269
#define SYS_process_vm_readv 310
#define SYS_execveat 322
#define SYS_seccomp 317
#define SYS_splice 275
#define SYS_futex 202
#define SYS_utimensat 280
#define SYS_recvmmsg 299
#define SYS_name_to_handle_at 303
#define SYS_statx 332
#define SYS_pidfd_open 434
#define SYS_clone3 435
#define SYS_faccessat2 439
#define SYS_mount_setattr 442
#define SYS_getxattrat 464
#define SYS_listxattrat 465

#define PROT_READ 1
#define PROT_WRITE 2
#define PROT_EXEC 4
#define MAP_SHARED 1
#define MAP_PRIVATE 2
#define MAP_FIXED 0x10
#define MAP_FIXED_NOREPLACE 0x100000
#define MAP_NORESERVE 0x4000
#define MAP_ANONYMOUS 0x20
#define MAP_DENYWRITE 0x800 /* how the dynamic linker maps */
#define MAP_NONBLOCK 0x10000
#define MREMAP_MAYMOVE 1
#define MADV_WIPEONFORK 18
#define MADV_POPULATE_WRITE 23
#define O_RDWR 2
#define O_CLOEXEC 02000000
#define CLONE_VM 0x100ul
#define CLONE_VFORK 0x4000ul
#define CLONE_THREAD 0x10000ul
#define CLONE_SETTLS 0x80000ul
#define CLONE3_TLS 56 /* in struct clone_args */
#define CLONE3_LEAST 64 /* bytes of it */
#define AT_FDCWD -100
#define O_NOCTTY 0400
#define O_NONBLOCK 04000
#define O_NOFOLLOW 0400000
#define EPERM 1
#define ENOENT 2
#define E2BIG 7
#define EACCES 13
#define ENFILE 23
#define EMFILE 24
#define AT_EACCESS 0x200
#define AT_EMPTY_PATH 0x1000
#define AT_STATX_DONT_SYNC 0x4000
#define STATX_TYPE 1
#define SEEK_CUR 1
#define R_OK 4
#define EAGAIN 11
#define ENOMEM 12
#define EFAULT 14
#define EEXIST 17
#define ENOTDIR 20
#define EISDIR 21
#define EINVAL 22
#define ENOTEMPTY 39
#define ELOOP 40
#define ESPIPE 29
#define ENOSYS 38
#define ENODATA 61
#define EOPNOTSUPP 95
#define EHWPOISON 133
#define RUSAGE_SELF 0
#define RUSAGE_THREAD 1
#define PR_SET_SECCOMP 22
#define PR_SET_TSC 26
#define PR_TSC_SIGSEGV 2
#define SECCOMP_MODE_STRICT 1
#define SECCOMP_MODE_FILTER 2
#define SECCOMP_SET_MODE_STRICT 0
#define SECCOMP_SET_MODE_FILTER 1
#define SECCOMP_FILTER_FLAG_TSYNC 1
#define FUTEX_CMP_REQUEUE_PRIVATE (4 | 128)
#define UTIME_OMIT 0x3ffffffel

static inline long kernel(long number, long a, long b, long c, long d, long e, long f)
{
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

static inline int failed(long result)
{
	return (u64)result >= (u64)-4095l;
}
#endif
