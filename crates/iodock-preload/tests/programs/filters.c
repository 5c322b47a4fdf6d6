/* Sets a filter that kills the process for calls of the recorder, while other threads make calls that the
 * recorder handles, or after recording has ended. filters WHAT [OFFSET]: OFFSET is that of the word in the
 * session's file that says that the recorder has ended. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "own_filter.h"

#define THREADS 8

static volatile int over;
static int file;

static void *read_on(void *unused)
{
	char bytes[10];
	while (!over)
		pread(file, bytes, sizeof(bytes), rand());
	return unused;
}

static void *rename_on(void *unused)
{
	while (!over)
		rename("/nowhere/a", "/nowhere/b");
	return unused;
}

/* Repeats a call that the kernel refuses. */
static void *filter_on(void *unused)
{
	struct sock_filter rule = {0xffff, 0, 0, 0};
	struct sock_fprog filter = {1, &rule};
	while (!over)
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
	return unused;
}

/* Requests strict mode, which the kernel refuses if there is a filter. */
static void *refuse_strictness(void *unused)
{
	for (int i = 0; i < 300; i++)
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
	return unused;
}

static long strict(void)
{
	struct sock_filter rule = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog filter = {1, &rule};
	pthread_t threads[THREADS];
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], 0, refuse_strictness, 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], 0);
	for (int i = 0; i < 500; i++)
		mkdir("/nowhere/at-all", 0700);
	return 0;
}

/* Two threads each create a child by vfork, and both children set a filter. One child executes a program
 * while the other still uses its parent's memory. */
static void *make_child(void *first)
{
	int status = -1;
	pid_t child = vfork();
	if (!child) {
		set_filter(0);
		if (first)
			usleep(3000), execl("/bin/true", "true", NULL);
		usleep(30000);
		for (int i = 0; i < 60; i++)
			rename("/nowhere/a", "/nowhere/b");
		_exit(0);
	}
	waitpid(child, &status, 0);
	return (void *)(long)status;
}

static long twins(void)
{
	pthread_t threads[2];
	void *status[2];
	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], 0, make_child, i ? 0 : &threads);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], &status[i]);
	return (long)status[0] | (long)status[1];
}

static long beside(void *(*others)(void *), int count, unsigned flags)
{
	pthread_t threads[THREADS];
	file = open("/proc/self/exe", O_RDONLY);
	for (int i = 0; i < count; i++)
		pthread_create(&threads[i], 0, others, 0);
	usleep(5000 + (getpid() * 7919) % 5000);
	long result = set_filter(flags);
	for (int i = 0; i < 60; i++) {
		rename("/nowhere/a", "/nowhere/b");
		usleep(50);
	}
	over = 1;
	for (int i = 0; i < count; i++)
		pthread_join(threads[i], 0);
	return result;
}

static void execute(void)
{
	execl("/bin/echo", "echo", "executed", NULL);
	_exit(3);
}

static int nothing(void *unused)
{
	return unused != 0;
}

/* Creates a child that shares memory and thread-local storage with its parent, so that the recorder can't
 * distinguish them and stops. */
static void end_recording(void)
{
	static char stack[65536];
	int child = clone(nothing, stack + sizeof(stack), CLONE_VM | SIGCHLD, 0);
	waitpid(child, 0, __WALL);
}

static void say_that_recorder_has_gone(long offset)
{
	const char *session = getenv("IODOCK_SESSION");
	int one = 1, at = session ? open(session, O_RDWR) : -1;
	if (at >= 0)
		pwrite(at, &one, sizeof(one), offset), close(at);
}

static int in_child(void (*what)(void))
{
	int status = -1;
	fflush(stdout);
	if (!fork()) {
		what();
		_exit(4);
	}
	wait(&status);
	return status;
}

static void filter_and_execute(void)
{
	set_filter(0);
	execute();
}

static void forbid_clock(void)
{
	prctl(PR_SET_TSC, PR_TSC_SIGSEGV);
	_exit(open("/proc/self/exe", O_RDONLY) < 0);
}

static long in_narrow_space(void)
{
	struct rlimit limit = {1400ul << 20, 1400ul << 20};
	setrlimit(RLIMIT_AS, &limit);
	long result = set_filter(0);
	void *memory = mmap(0, 900ul << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return memory == MAP_FAILED ? 1 : result;
}

int main(int count, char **arguments)
{
	const char *what = count > 1 ? arguments[1] : "";
	long result = 2, offset = count > 2 ? atol(arguments[2]) : 0;
	if (!strcmp(what, "readers"))
		result = beside(read_on, THREADS, SECCOMP_FILTER_FLAG_TSYNC);
	if (!strcmp(what, "renamers"))
		result = beside(rename_on, THREADS, SECCOMP_FILTER_FLAG_TSYNC);
	if (!strcmp(what, "refused"))
		result = beside(filter_on, 1, 0);
	if (!strcmp(what, "strict"))
		result = strict();
	if (!strcmp(what, "twins"))
		result = twins();
	if (!strcmp(what, "stopped"))
		end_recording(), filter_and_execute();
	if (!strcmp(what, "gone"))
		say_that_recorder_has_gone(offset), result = in_child(filter_and_execute);
	if (!strcmp(what, "gone-clock"))
		say_that_recorder_has_gone(offset), result = in_child(forbid_clock);
	if (!strcmp(what, "narrow"))
		result = in_narrow_space();
	printf("%ld\n", result);
	return 0;
}
