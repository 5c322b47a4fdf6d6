/* Makes one or more calls of each kind, with arguments of every kind, in a folder. fields DIRECTORY */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/xattr.h>
#include <unistd.h>

static char buffer[8192];

int main(int argc, char **argv)
{
	int ends[2], pair[2];
	struct stat status;
	struct statx extended;
	struct statfs system;
	if (argc < 2 || chdir(argv[1]))
		return 2;
	unlink("one"), unlink("two"), unlink("three"), rmdir("folder"), unlink("link");
	int one = open("one", O_RDWR | O_CREAT | O_TRUNC, 0600);
	int two = open("two", O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	for (int i = 0; i < 4; i++)
		pipe(ends), write(ends[1], buffer, 100 + i), read(ends[0], buffer, 4096), close(ends[0]), close(ends[1]);
	pipe2(ends, O_CLOEXEC | O_NONBLOCK);
	read(ends[0], buffer, 10);
	socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
	struct iovec vector[3] = {{buffer, 10}, {buffer, 0}, {buffer, 1000}};
	struct msghdr message = {.msg_iov = vector, .msg_iovlen = 3};
	sendmsg(pair[0], &message, 0);
	recvmsg(pair[1], &message, 0);
	send(pair[0], buffer, 77, 0), recv(pair[1], buffer, 4096, 0);
	write(one, buffer, sizeof buffer);
	pwrite(one, buffer, 1, 1l << 40);
	pread(one, buffer, 100, (1l << 40) - 50);
	ftruncate(one, 8192);
	lseek(one, -100, SEEK_END), lseek(one, 0, SEEK_CUR), lseek(one, -1, SEEK_SET);
	writev(two, vector, 3), readv(one, vector, 3), preadv(one, vector, 3, 4096), pwritev(one, vector, 3, 5);
	preadv2(one, vector, 3, 0, 0), preadv2(one, vector, 3, -1, 0);
	off_t offset = 10;
	sendfile(two, one, NULL, 100), sendfile(pair[0], one, &offset, 200);
	loff_t in = 1000, out = 20;
	lseek(one, 0, SEEK_SET);
	int three = open("three", O_RDWR | O_CREAT, 0600);
	copy_file_range(one, &in, three, &out, 300, 0), copy_file_range(one, NULL, three, NULL, 400, 0);
	splice(one, &in, ends[1], NULL, 50, 0), tee(ends[0], ends[1], 0, 0);
	fsync(one), fdatasync(two), syncfs(one), sync_file_range(one, 0, 100, 0);
	stat("one", &status), lstat("nothing", &status), fstat(one, &status), stat("", &status);
	fstatat(AT_FDCWD, ".", &status, 0), statx(AT_FDCWD, "two", 0, STATX_ALL, &extended);
	statfs(".", &system), fstatfs(one, &system);
	access("one", R_OK), faccessat(AT_FDCWD, "one", W_OK, 0);
	mkdir("folder", 0700), rename("two", "folder/two"), link("folder/two", "two"), symlink("one", "link");
	readlink("link", buffer, 100), readlink("one", buffer, 100), unlink("folder/two"), rmdir("folder");
	int folder = open(".", O_RDONLY | O_DIRECTORY);
	int inside = openat(folder, "one", O_RDONLY);
	renameat(folder, "three", folder, "four"), unlinkat(folder, "four", 0);
	close(inside), fchdir(folder), close(folder);
	chmod("one", 0640), fchmod(one, 0600), truncate("one", 100), utimensat(AT_FDCWD, "one", NULL, 0);
	setxattr("one", "user.a", "b", 1, 0), getxattr("one", "user.a", buffer, 10), fgetxattr(one, "user.b", buffer, 10);
	int copy = dup(one), other = dup2(one, 50);
	dup3(one, 51, O_CLOEXEC), fcntl(one, F_GETFL), fcntl(one, F_DUPFD_CLOEXEC, 60), fcntl(one, F_SETFD, FD_CLOEXEC);
	close(copy), close(other), close(999), close_range(50, 70, 0);
	fallocate(one, 0, 0, 10), posix_fadvise(one, 0, 0, POSIX_FADV_RANDOM), flock(one, 2);
	memfd_create("name", MFD_CLOEXEC), eventfd(3, EFD_CLOEXEC), epoll_create1(0);
	mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, one, 0), mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct pollfd wait = {pair[0], POLLOUT, 0};
	poll(&wait, 1, 10);
	struct {
		unsigned long flags, mode, resolve;
	} how = {O_RDONLY, 0, 0};
	syscall(SYS_openat2, AT_FDCWD, "one", &how, sizeof how);
	syscall(SYS_read, one, buffer, 10);
	openat(-5, "relative", O_RDONLY), open("/nonexistent/file", O_RDONLY), open("one/two", O_RDONLY);
	open("one", O_RDONLY | O_CREAT | O_EXCL, 0600), open(buffer + 4096, 0x80000000);
	return 0;
}
