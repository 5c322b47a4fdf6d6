/* Makes thousands of random calls; each argument is sometimes unchanged and sometimes arbitrary. The
 * reader must restore fields that a record omits. anything DIRECTORY */
#define _GNU_SOURCE
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define CALLS 30000
#define FILES 12
#define LOCKS ((void *)0x20000000)

static unsigned long state = 88172645463325252ul;

static unsigned long lot(unsigned long below)
{
	state ^= state << 13, state ^= state >> 7, state ^= state << 17;
	return state % below;
}

/* Returns a random offset: small, a multiple of a block, odd, far beyond the end of any file, or negative. */
static long place(void)
{
	switch (lot(8)) {
	case 0:
		return 0;
	case 1:
		return (long)lot(1 << 20);
	case 2:
		return (long)lot(1l << 40);
	case 3:
		return LONG_MAX - (long)lot(3);
	case 4:
		return -(long)lot(1l << 50);
	case 5:
		return LONG_MIN + (long)lot(3);
	default:
		return (long)lot(256) * 512;
	}
}

static char longest[PATH_MAX + 100];

/* Returns a random name: an empty one, one with a common beginning, or one that is about as long as a name
 * may be. */
static const char *name(void)
{
	static const char *begin[] = {"", "./", "folder/", "folder/../folder/./", "r\303\251sultats/\001\n/", "/proc/self/"};
	char number[32];
	unsigned long kind = lot(40);
	snprintf(number, sizeof number, "file_%lu.dat", lot(kind < 20 ? 4 : 3000));
	if (kind == 0)
		return "";
	longest[0] = 0;
	strcat(longest, begin[lot(6)]);
	for (unsigned long i = kind == 1 ? lot(2020) : kind == 2 ? lot(150) : 0; i; i--)
		strcat(longest, "./");
	return strcat(longest, number);
}

int main(int argc, char **argv)
{
	static char buffer[70000];
	int files[FILES];
	struct stat status;
	if (argc < 2 || chdir(argv[1]) || mkdir("folder", 0700))
		return 2;
	for (int i = 0; i < FILES; i++) {
		snprintf(buffer, sizeof buffer, "open%d", i);
		files[i] = open(buffer, O_RDWR | O_CREAT, 0600);
		pwrite(files[i], buffer, sizeof buffer, 0);
	}
	/* The record contains the address that fcntl gets, so it must be the same in each run. */
	struct flock *locks = mmap(LOCKS, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	int last = files[0];
	unsigned long size = 512;
	for (int i = 0; i < CALLS; i++) {
		if (lot(4) == 0)
			/* Sometimes use an invalid descriptor, but never one that we may have inherited. */
			last = lot(20) ? files[lot(FILES)] : lot(2) ? -1 - (int)lot(500) : 100000 + (int)lot(500);
		if (lot(3) == 0)
			size = lot(3) ? lot(sizeof buffer) : lot(9) * 512;
		struct iovec vector[2] = {{buffer, size}, {buffer, lot(100)}};
		int opened;
		switch (lot(19)) {
		case 0:
		case 1:
			pread(last, buffer, size, place());
			break;
		case 2:
			for (unsigned long times = lot(40); times; times--)
				pread(last, buffer, size, (long)(lot(64) * 512));
			break;
		case 3:
			read(last, buffer, size);
			break;
		case 4:
			/* Writes a hundred bytes at most, at small offsets, because other programs use this disk too. */
			pwrite(last, buffer, lot(100), (long)lot(60000));
			break;
		case 5:
			lseek(last, place(), (int)lot(4));
			break;
		case 6:
			lseek(last, 0, SEEK_SET);
			break;
		case 7:
			fstat(last, &status);
			break;
		case 8:
		case 9:
			fstatat(lot(5) ? AT_FDCWD : last, name(), &status, (int)lot(2) * AT_SYMLINK_NOFOLLOW);
			break;
		case 10:
			opened = openat(lot(5) ? AT_FDCWD : last, name(), lot(2) ? O_RDONLY | O_CLOEXEC : O_RDWR | O_CREAT, 0600);
			if (opened >= 0 && lot(2))
				read(opened, buffer, size);
			if (opened >= 0)
				close(opened);
			break;
		case 11:
			access(name(), (int)lot(8));
			break;
		case 12:
			fcntl(last, lot(2) ? F_GETFL : F_GETFD);
			break;
		case 13:
			locks[0].l_type = lot(2) ? F_RDLCK : F_UNLCK;
			fcntl(last, F_SETLK, locks + lot(2));
			break;
		case 14:
			/* The recorder does not read the vector of a call that fails. */
			preadv(files[lot(FILES)], vector, 2, (long)lot(1 << 20));
			break;
		case 15:
			unlinkat(AT_FDCWD, name(), lot(9) ? 0 : AT_REMOVEDIR);
			break;
		case 16: {
			char other[sizeof longest];
			strcpy(other, name());
			renameat(AT_FDCWD, other, lot(3) ? AT_FDCWD : last, name());
			break;
		}
		case 17:
			/* The result is -EBADF, which is -9 and equals the requested size. */
			for (int times = 3; times; times--)
				pread(-1, buffer, (size_t)-9, 4096);
			break;
		default:
			write(last, buffer, lot(20));
		}
	}
	return 0;
}
