/* Makes known numbers of calls for a recording that counts them: `light many N`, `light threads N`, `light
 * fork`, `light kill N`, `light positions`, `light appends`. The files are created in the working
 * directory. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static char block[4096];
static int shared;

static void check(long done, long wanted) {
	if (done != wanted)
		abort();
}

static int make(const char *form, long number) {
	char name[64];
	snprintf(name, sizeof(name), form, number);
	int fd = open(name, O_CREAT | O_RDWR, 0600);
	check(fd >= 0, 1);
	return fd;
}

static void many(long count) {
	for (long i = 0; i < count; i++) {
		int fd = make("f%ld", i);
		check(write(fd, block, 100), 100);
		check(pread(fd, block, 50, 0), 50);
		close(fd);
	}
}

static void *work(void *number) {
	int fd = make("own%ld", (long)number);
	for (long i = 0; i < 100; i++) {
		check(write(fd, block, 64), 64);
		check(pwrite(shared, block, 32, 32 * i), 32);
	}
	close(fd);
	return 0;
}

static void threads(long count) {
	pthread_t made[1000];
	shared = make("shared", 0);
	for (long i = 0; i < count; i++)
		check(pthread_create(&made[i], 0, work, (void *)i), 0);
	for (long i = 0; i < count; i++)
		pthread_join(made[i], 0);
}

static void children(void) {
	int fd = make("both", 0);
	check(write(fd, block, 10), 10);
	if (!fork()) {
		check(write(fd, block, 20), 20);
		_exit(0);
	}
	wait(0);
	if (!vfork()) {
		check(write(fd, block, 40), 40);
		_exit(0);
	}
	check(write(fd, block, 80), 80);
}

static void positions(void) {
	int fd = make("data", 0), copy;
	for (int i = 0; i < 1000; i++)
		check(write(fd, block, 4096), 4096);
	lseek(fd, 0, SEEK_SET);
	struct iovec pieces[2] = {{block, 1000}, {block, 2000}};
	check(readv(fd, pieces, 2), 3000);
	check(read(fd, block, 1096), 1096);
	for (int i = 0; i < 500; i++)
		check(pread(fd, block, 4096, 8192l * (i % 250)), 4096);
	copy = dup(fd);
	check(read(copy, block, 5), 5);
	fsync(fd);
	check(read(-1, block, 5), -1);
	check(rename("data", "renamed"), 0);
}

/* Opens a file for appending and executes a program, as a shell does for `program >> log`. The descriptor is
 * already open when that program starts. */
static void appends(void) {
	int fd = make("log", 0);
	check(write(fd, block, 1000), 1000);
	close(fd);
	check(open("log", O_WRONLY | O_APPEND), fd);
	execl("/proc/self/exe", "light", "appended", (char *)0);
	abort();
}

static void appended(int fd) {
	struct stat about;
	check(fstat(fd, &about), 0);
	check(lseek(fd, 0, SEEK_CUR), 0);
	for (int i = 0; i < 5; i++)
		check(write(fd, block, 10), 10);
}

int main(int count, char **told) {
	long number = count > 2 ? atol(told[2]) : 0;
	if (!strcmp(told[1], "many"))
		many(number);
	else if (!strcmp(told[1], "threads"))
		threads(number);
	else if (!strcmp(told[1], "fork"))
		children();
	else if (!strcmp(told[1], "positions"))
		positions();
	else if (!strcmp(told[1], "appends"))
		appends();
	else if (!strcmp(told[1], "appended"))
		appended(3);
	else {
		many(number);
		kill(getpid(), SIGKILL);
	}
	return 0;
}
