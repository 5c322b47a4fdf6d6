/* Removes the mappings that are not its own, by munmap, mprotect, madvise, mremap, or mmap at the same
 * address. It reads before and after that; a child and threads read, too. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *how;
static int zero;
static volatile int go_on = 1;

static void read_some(int count)
{
	char byte;
	while (count--)
		if (pread(zero, &byte, 1, 0) != 1)
			_exit(9);
}

static int is(const char *name)
{
	return strcmp(how, name) == 0;
}

static void take(char *from, size_t bytes)
{
	if (is("munmap"))
		munmap(from, bytes);
	if (is("syscall"))
		syscall(SYS_munmap, from, bytes);
	if (is("none"))
		mprotect(from, bytes, PROT_NONE);
	if (is("read-only"))
		mprotect(from, bytes, PROT_READ);
	if (is("dontfork"))
		madvise(from, bytes, MADV_DONTFORK);
	if (is("dontneed"))
		madvise(from, bytes, MADV_DONTNEED);
	if (is("remove"))
		madvise(from, bytes, MADV_REMOVE);
	if (is("wipe"))
		madvise(from, bytes, MADV_WIPEONFORK), madvise(from, bytes, 19);
	if (is("over") || is("over-threads"))
		mmap(from, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	if (is("move"))
		mremap(from, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, mmap(0, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	if (is("shrink"))
		mremap(from, bytes, 4096, 0);
	if (is("move-over")) {
		char *mine = mmap(0, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		mremap(mine, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, from);
	}
}

static void *thread(void *nothing)
{
	while (go_on)
		read_some(1);
	return nothing;
}

/* Removes all shared mappings, and with `private` also the private mappings of the session and the preloaded
 * library. */
static void take_all(int private)
{
	static struct { char *from; size_t bytes; } found[1000];
	static char text[1 << 20];
	size_t got = 0, count = 0;
	int maps = open("/proc/self/maps", O_RDONLY);
	for (ssize_t more; (more = read(maps, text + got, sizeof(text) - 1 - got)) > 0;)
		got += more;
	close(maps);
	for (char *line = text; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : 0) {
		unsigned long from, to, inode;
		char rights[5];
		sscanf(line, "%lx-%lx %4s %*s %*s %lu", &from, &to, rights, &inode);
		char *name = strchr(line, '/'), *end = strchr(line, '\n');
		int is_ours = name && name < end && (memmem(name, end - name, "/session", 8) || memmem(name, end - name, "libiodock_preload.so", 20));
		if (rights[3] == 's' || (private && is_ours))
			found[count].from = (char *)from, found[count++].bytes = to - from;
	}
	for (size_t i = 0; i < count; i++)
		take(found[i].from, found[i].bytes);
}

int main(int count, char **arguments)
{
	pthread_t threads[3];
	how = arguments[1];
	zero = open("/dev/zero", O_RDONLY);
	if (is("over-threads"))
		for (int i = 0; i < 3; i++)
			pthread_create(&threads[i], 0, thread, 0);
	read_some(1000);
	take_all(count > 2);
	read_some(1000);
	int status;
	pid_t child = fork();
	if (child == 0) {
		read_some(1000);
		_exit(0);
	}
	waitpid(child, &status, 0);
	go_on = 0;
	if (is("over-threads"))
		for (int i = 0; i < 3; i++)
			pthread_join(threads[i], 0);
	printf("done %d\n", status);
	return 7;
}
