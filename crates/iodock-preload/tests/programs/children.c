/* Creates threads and children of every kind, and executes programs, in ways that are hard to record inside
 * the process. children WHAT */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static char buffer[4096];
static int zero;

static void *many(void *what)
{
	(void)what;
	for (int i = 0; i < 10; i++)
		pread(zero, (char[16]){0}, 16, i);
	return NULL;
}

static pthread_barrier_t all_are_there;

static void *many_at_once(void *what)
{
	many(what);
	pthread_barrier_wait(&all_are_there);
	return many(what);
}

static int threads(int count, void *(*each)(void *))
{
	pthread_t *all = calloc(count, sizeof *all);
	pthread_attr_t small;
	pthread_barrier_init(&all_are_there, NULL, count);
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 16384);
	for (int i = 0; i < count; i++)
		if (pthread_create(&all[i], &small, each, NULL))
			return 1;
	for (int i = 0; i < count; i++)
		pthread_join(all[i], NULL);
	printf("%d threads\n", count);
	return 0;
}

static void *exec_here(void *what)
{
	char *arguments[] = {"echo", "from a thread", NULL};
	(void)what;
	execv("/bin/echo", arguments);
	return NULL;
}

static int exec_in_thread(void)
{
	pthread_t thread;
	pthread_create(&thread, NULL, exec_here, NULL);
	pause();
	return 1;
}

static int spawns(void)
{
	char *arguments[] = {"sh", "-c", "exit 7", NULL};
	char *none[] = {NULL};
	for (int i = 0; i < 5; i++) {
		pid_t child;
		int status;
		if (posix_spawn(&child, "/bin/sh", NULL, NULL, arguments, none))
			return 1;
		waitpid(child, &status, 0);
		printf("%d\n", WEXITSTATUS(status));
	}
	return 0;
}

/* Executes cat with another library in LD_PRELOAD, with our library out of reach, or without permission to
 * read it. Shows the messages of the dynamic linker. */
static int executes(const char *how)
{
	char *arguments[] = {"cat", "/proc/version", NULL};
	char *session = getenv("IODOCK_SESSION");
	char *environment[] = {"A=1", "LD_PRELOAD=libm.so.6", "B=2", session ? session - 15 : "S=", "C=3", NULL};
	int status;
	for (int i = 0; i < 3; i++) {
		pid_t child = fork();
		if (child == 0) {
			dup2(1, 2);
			if (!strcmp(how, "others"))
				execve("/bin/cat", arguments, i ? environment : environment + 1);
			if (setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534))
				_exit(1);
			execv("/bin/cat", arguments);
		}
		waitpid(child, &status, 0);
		printf("%d\n", WEXITSTATUS(status));
		fflush(stdout);
	}
	return 0;
}

static int child_of_clone(void *what)
{
	(void)what;
	pread(zero, buffer, 16, 0);
	return 9;
}

static int clones(void)
{
	char *stack = malloc(65536);
	int kinds[] = {0, CLONE_VM | CLONE_VFORK, CLONE_VM, CLONE_VM | CLONE_FILES | CLONE_FS};
	for (int i = 0; i < 4; i++) {
		int status;
		pid_t child = clone(child_of_clone, stack + 65536, kinds[i] | SIGCHLD, NULL);
		waitpid(child, &status, 0);
		printf("%d\n", WEXITSTATUS(status));
	}
	pid_t child = syscall(SYS_fork);
	if (child == 0)
		_exit(3);
	int status;
	waitpid(child, &status, 0);
	printf("%d\n", WEXITSTATUS(status));
	child = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	if (child == 0)
		_exit(4);
	waitpid(child, &status, 0);
	printf("%d\n", WEXITSTATUS(status));
	return 0;
}

static volatile int finished;

static int raw_thread(void *what)
{
	pread(zero, (char[16]){0}, 16, 0);
	__sync_fetch_and_add(&finished, 1);
	syscall(SYS_exit, 0);
	return 0;
}

/* Creates threads without libc: without thread-local storage of their own, or with storage that has no memory
 * below the thread pointer. */
static int raw_threads(int has_storage)
{
	int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM;
	for (int i = 0; i < 4; i++) {
		char *stack = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		char *storage = mmap(NULL, 12288, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		munmap(storage, 4096);
		*(void **)(storage + 4096) = storage + 4096;
		clone(raw_thread, stack + 65536, flags | (has_storage ? CLONE_SETTLS : 0), NULL, NULL, storage + 4096, NULL);
	}
	while (finished < 4)
		usleep(1000);
	printf("%d\n", finished);
	return 0;
}

/* Calls vfork with a new PID namespace for children: the child's own process id differs from the id that its
 * parent sees. */
static int in_name_space(void)
{
	char *arguments[] = {"true", NULL}, *none[] = {"A=1", NULL};
	int status;
	if (unshare(CLONE_NEWPID))
		return puts("may not"), 0;
	pid_t child = vfork();
	if (child == 0) {
		execve("/nowhere/true", arguments, none);
		execve("/bin/true", arguments, none);
		_exit(9);
	}
	waitpid(child, &status, 0);
	printf("%d\n", status);
	return 0;
}

static int bomb(int count)
{
	int wrong = 0;
	for (int i = 0; i < count; i++) {
		pid_t child = fork();
		if (child == 0)
			_exit(i & 127);
		int status;
		waitpid(child, &status, 0);
		wrong += WEXITSTATUS(status) != (i & 127);
	}
	printf("%d wrong\n", wrong);
	return 0;
}

int main(int count, char **arguments)
{
	const char *what = count > 1 ? arguments[1] : "";
	zero = open("/dev/zero", O_RDONLY);
	if (!strcmp(what, "threads"))
		return threads(1000, many);
	if (!strcmp(what, "threads-at-once"))
		return threads(1000, many_at_once);
	if (!strcmp(what, "exec-in-thread"))
		return exec_in_thread();
	if (!strcmp(what, "spawns"))
		return spawns();
	if (!strcmp(what, "others") || !strcmp(what, "out-of-reach"))
		return executes(what);
	if (!strcmp(what, "clones"))
		return clones();
	if (!strcmp(what, "raw-threads"))
		return raw_threads(0);
	if (!strcmp(what, "raw-threads-with-storage"))
		return raw_threads(1);
	if (!strcmp(what, "name-space"))
		return in_name_space();
	if (!strcmp(what, "bomb"))
		return bomb(500);
	return 64;
}
