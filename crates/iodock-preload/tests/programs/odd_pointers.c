/* Makes calls whose memory the kernel accepts, although it is unmapped, overwritten or not read at all, or of
 * whose registers the kernel reads only the lower half. odd_pointers WHAT prints the result; its working
 * directory must be writable. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/io_uring.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/xattr.h>
#include <unistd.h>

#define HALF (1ul << 32)

/* Returns the address of the last bytes of a page that is followed by unmapped memory. */
static char *before_nothing(size_t bytes)
{
	char *memory = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	munmap(memory + 4096, 4096);
	return memory + 4096 - bytes;
}

static long vector_with_half(void)
{
	static char bytes[100];
	struct iovec *vector = (struct iovec *)before_nothing(sizeof(*vector));
	*vector = (struct iovec){bytes, sizeof(bytes)};
	return syscall(SYS_readv, open("/proc/self/maps", O_RDONLY), vector, 7 * HALF | 1);
}

static long link_over_path(void)
{
	char *path = before_nothing(16);
	symlink("a-link-that-is-longer-than-its-room", "link");
	strcpy(path, "link");
	return readlink(path, path, 16);
}

static long link_beside_path(void)
{
	struct { char path[16], found[64]; } both = {"beside", ""};
	symlink("elsewhere", "beside");
	return readlink(both.path, both.found, sizeof(both.found));
}

static long splice_of_nothing(void)
{
	int ends[2];
	return pipe(ends) ? -1 : syscall(SYS_splice, open("/proc/self/exe", O_RDONLY), (loff_t *)1, ends[1], 0, 0, 0);
}

static long attribute_over_path(void)
{
	char value[64], *path = before_nothing(64);
	memset(value, 'A', sizeof(value));
	close(open("file", O_CREAT | O_RDWR, 0600));
	if (setxattr("file", "user.a", value, sizeof(value), 0))
		return -1;
	strcpy(path, "file");
	return getxattr(path, "user.a", path, sizeof(value));
}

static long times_without_path(void)
{
	struct timespec times[2] = {{0, UTIME_OMIT}, {0, UTIME_OMIT}};
	return utimensat(AT_FDCWD, (char *)1, times, 0);
}

static long message_over_itself(void)
{
	static union { struct msghdr message; char bytes[200]; } all;
	struct iovec vector = {&all, sizeof(all)};
	char bytes[56];
	int ends[2];
	socketpair(AF_UNIX, SOCK_DGRAM, 0, ends);
	memset(bytes, 'A', sizeof(bytes));
	write(ends[0], bytes, sizeof(bytes));
	all.message.msg_iov = &vector, all.message.msg_iovlen = 1;
	return recvmsg(ends[1], &all.message, 0);
}

/* Installs a filter that kills programs that allocate memory in advance, as a long recording does. */
static long filter_with_half(void)
{
	struct sock_filter rules[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = {4, rules};
	char byte;
	int fd = open("/proc/self/exe", O_RDONLY);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	long result = syscall(SYS_prctl, 3 * HALF | PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
	for (int i = 0; i < 30000; i++)
		pread(fd, &byte, 1, i * 7);
	return result;
}

static long pipe_without_flags(void)
{
	int ends[2];
	return syscall(SYS_pipe, ends, O_CLOEXEC) || fcntl(ends[0], F_GETFD);
}

static long number_with_half(void)
{
	char bytes[10];
	return syscall((long)(HALF | SYS_pread64), open("/proc/self/exe", O_RDONLY), bytes, sizeof(bytes), 0);
}

/* Registers a ring as liburing does, so that an index identifies it. Then it closes the ring's descriptor,
 * whose number a file gets. */
static long ring_without_descriptor(void)
{
	static char bytes[100];
	struct io_uring_params params = {0};
	int fd = (int)syscall(SYS_io_uring_setup, 8, &params);
	struct io_uring_rsrc_update update = {.offset = -1U, .data = (unsigned)fd};
	if (fd < 0)
		return -1;
	size_t size = params.cq_off.cqes + params.cq_entries * 16 + params.sq_off.array + params.sq_entries * 4;
	char *ring = mmap(0, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	struct io_uring_sqe *request = mmap(0, params.sq_entries * 64, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0x10000000);
	if (syscall(SYS_io_uring_register, fd, IORING_REGISTER_RING_FDS, &update, 1) != 1)
		return -2;
	close(fd);
	int file = open("/proc/self/exe", O_RDONLY);
	mmap(0, 4096, PROT_READ, MAP_PRIVATE, file, 0);
	memset(request, 0, sizeof(*request));
	request->opcode = IORING_OP_READ, request->fd = file, request->addr = (unsigned long)bytes, request->len = 50;
	*(unsigned *)(ring + params.sq_off.array) = 0;
	*(unsigned *)(ring + params.sq_off.tail) = 1;
	return syscall(SYS_io_uring_enter, update.offset, 1, 1, IORING_ENTER_GETEVENTS | 1u << 4, 0, 0) == 1 && file == fd ? 1 : -3;
}

static const struct { const char *name; long (*call)(void); } all[] = {
	{"vector-with-half", vector_with_half}, {"link-over-path", link_over_path}, {"attribute-over-path", attribute_over_path},
	{"times-without-path", times_without_path}, {"message-over-itself", message_over_itself},
	{"filter-with-half", filter_with_half}, {"pipe-without-flags", pipe_without_flags}, {"number-with-half", number_with_half}, {"link-beside-path", link_beside_path}, {"splice-of-nothing", splice_of_nothing},
	{"ring-without-descriptor", ring_without_descriptor},
};

int main(int count, char **arguments)
{
	for (size_t i = 0; count > 1 && i < sizeof(all) / sizeof(*all); i++)
		if (!strcmp(arguments[1], all[i].name))
			return printf("%ld\n", all[i].call()) < 0;
	return 2;
}
