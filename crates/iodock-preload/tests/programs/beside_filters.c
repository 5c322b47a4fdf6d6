/* Some threads or children set a filter that kills the process for calls of a recorder, while others execute
 * programs, fork or make calls. All must behave as without a recorder. beside_filters WHAT. If the variable
 * NUMBER is set, this is a program that was executed: see is_mine(). */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "own_filter.h"

#define THREADS 12

static char self[4096];
static volatile int over;
static int more_variables;
static pthread_barrier_t all_are_there;

static void *results[1000];

static long run(void *(*what)(void *), int count)
{
	static pthread_t threads[1000];
	long wrong = 0;
	pthread_barrier_init(&all_are_there, NULL, (unsigned)count);
	for (long i = 0; i < count; i++)
		if (pthread_create(&threads[i], NULL, what, (void *)i))
			return 1000;
	for (int i = 0; i < count; i++) {
		pthread_join(threads[i], &results[i]);
		wrong += (long)results[i];
	}
	return wrong;
}

static int ended_well(pid_t child)
{
	int status;
	return waitpid(child, &status, 0) == child && status == 0;
}

/* Called in the executed program. Whether it has the environment that it was given, without the recorder's
 * library. */
static int is_mine(const char *number)
{
	const char *there = getenv("NUMBER");
	return there && !strcmp(there, number) && !getenv("LD_PRELOAD");
}

static void *spawn_with_own(void *thread)
{
	long wrong = 0;
	for (int i = 0; i < 30; i++) {
		char number[32], variable[40];
		snprintf(number, sizeof(number), "%ld.%d", (long)thread, i);
		snprintf(variable, sizeof(variable), "NUMBER=%s", number);
		char *arguments[] = {self, number, NULL}, *environment[840] = {NULL};
		int count = 0;
		while (count < more_variables)
			environment[count++] = "A=1";
		for (char **one = environ; *one && count < more_variables + 30; one++)
			environment[count++] = *one;
		environment[count] = variable;
		pid_t child;
		wrong += posix_spawn(&child, self, NULL, NULL, arguments, environment) || !ended_well(child);
	}
	return (void *)wrong;
}

/* Executes a program with `count` variables, by posix_spawn, whose child has a small stack, or by fork. */
static long execute_with_many(long count, int spawns)
{
	char **environment = calloc((size_t)count + 100, sizeof(*environment)), *arguments[] = {self, "many", NULL};
	long there = 0;
	for (; there < count; there++)
		environment[there] = "A=1";
	for (char **one = environ; *one && there < count + 90; one++)
		environment[there++] = *one;
	environment[there] = "NUMBER=many";
	pid_t child;
	if (spawns)
		return posix_spawn(&child, self, NULL, NULL, arguments, environment) || !ended_well(child);
	child = fork();
	if (!child)
		execve(self, arguments, environment), _exit(9);
	return !ended_well(child);
}

/* Creates a child by vfork, which shares our memory, installs a filter and executes a program. */
static void *vfork_with_filter(void *unused)
{
	(void)unused;
	char *arguments[] = {"true", NULL};
	for (int i = 0; i < 10; i++) {
		pid_t child = vfork();
		if (!child)
			set_filter(0), execv("/bin/true", arguments), _exit(9);
		if (!ended_well(child))
			return (void *)1;
	}
	return NULL;
}

static long then_go_on(void)
{
	long wrong = run(vfork_with_filter, 3);
	for (int i = 0; i < 20; i++) {
		wrong += system("cat /proc/version > /dev/null") != 0;
		wrong += !rename("/nowhere/a", "/nowhere/b");
	}
	return wrong;
}

static void *rename_in_child(void *unused)
{
	(void)unused;
	for (int i = 0; i < 20; i++) {
		pid_t child = vfork();
		if (!child) {
			set_filter(0);
			rename("/nowhere/a", "/nowhere/b");
			_exit(0);
		}
		if (!ended_well(child))
			return (void *)1;
	}
	return NULL;
}

static void *rename_on(void *unused)
{
	(void)unused;
	while (!over)
		rename("/nowhere/a", "/nowhere/b");
	return NULL;
}

/* Sets a filter for all threads. The recorder must wait until each of the many other threads has left its
 * code, for which each needs a turn on a processor. */
static void *filter_for_all(void *unused)
{
	(void)unused;
	usleep(20000);
	long result = set_filter(SECCOMP_FILTER_FLAG_TSYNC);
	usleep(20000);
	over = 1;
	return (void *)result;
}

static void *rename_or_filter(void *thread)
{
	return thread ? rename_on(NULL) : filter_for_all(NULL);
}

static void *fork_on(void *unused)
{
	long wrong = 0;
	(void)unused;
	for (int i = 0; i < 8; i++) {
		pid_t child = fork();
		if (!child)
			rename("/nowhere/a", "/nowhere/b"), _exit(0);
		wrong += !ended_well(child);
	}
	return (void *)wrong;
}

static void *fork_or_filter(void *thread)
{
	if (thread)
		return fork_on(NULL);
	usleep(1000);
	return (void *)set_filter(SECCOMP_FILTER_FLAG_TSYNC);
}

/* Forks at about the moment when the kernel sets a filter for all threads. */
static long forks_beside(int rounds)
{
	long wrong = 0;
	for (int i = 0; i < rounds; i++) {
		pid_t child = fork();
		if (!child)
			_exit(run(fork_or_filter, 4) != 0);
		wrong += !ended_well(child);
	}
	return wrong;
}

static volatile int turns_left;

static void *filter_soon(void *turns)
{
	turns_left = (int)(long)turns;
	while (turns_left)
		turns_left--;
	set_filter(SECCOMP_FILTER_FLAG_TSYNC);
	pause();
	return NULL;
}

/* Executes a program at about the moment when another thread sets a filter for all threads. */
static long execute_beside_filter(int rounds)
{
	long wrong = 0;
	for (int i = 0; i < rounds; i++) {
		pid_t child = fork();
		if (!child) {
			pthread_t thread;
			volatile int turns = i * 2003 % 100000;
			pthread_create(&thread, NULL, filter_soon, (void *)(long)(i * 7919 % 100000));
			for (usleep(100); turns; turns--)
				;
			execl("/bin/true", "true", NULL), _exit(9);
		}
		wrong += !ended_well(child);
	}
	return wrong;
}

static void *filter_for_all_at_once(void *thread)
{
	pthread_barrier_wait(&all_are_there);
	set_filter((long)thread % 2 ? SECCOMP_FILTER_FLAG_TSYNC : 0);
	return NULL;
}

/* Several threads stop the recording at the same time, each before it installs a filter. */
static long many_filters(int rounds)
{
	long wrong = 0;
	for (int i = 0; i < rounds; i++) {
		pid_t child = fork();
		if (!child)
			_exit(run(filter_for_all_at_once, 40) != 0);
		wrong += !ended_well(child);
	}
	return wrong;
}

static void *filter_at_once(void *unused)
{
	(void)unused;
	int zero = open("/dev/zero", O_RDONLY);
	char byte;
	pthread_barrier_wait(&all_are_there);
	if (syscall(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || set_filter(0))
		return (void *)1;
	for (int i = 0; i < 40000; i++)
		pread(zero, &byte, 1, i);
	return NULL;
}

static void *refused_on(void *unused)
{
	(void)unused;
	struct sock_filter rule = {0xffff, 0, 0, 0};
	struct sock_fprog filter = {1, &rule};
	while (!over)
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
	return NULL;
}

static void *execute_beside(void *thread)
{
	long wrong = 0;
	if (thread)
		return refused_on(NULL);
	for (int i = 0; i < 40; i++) {
		pid_t child = fork();
		if (!child)
			execl("/bin/true", "true", NULL), _exit(9);
		wrong += !ended_well(child);
	}
	over = 1;
	return (void *)wrong;
}

static int in_own_storage(void *unused)
{
	(void)unused;
	for (int i = 0; i < 20; i++)
		rename("/nowhere/a", "/nowhere/b");
	syscall(SYS_exit, 0);
	return 0;
}

/* Creates a child that shares our memory and has a copy of our thread-local storage. */
static long clone_in_sandbox(void)
{
	static char stack[65536];
	char *here, *copy = mmap(NULL, 3 * 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) + 65536;
	__asm__("movq %%fs:0, %0" : "=r"(here));
	memcpy(copy, here, 2304);
	((char **)copy)[0] = ((char **)copy)[2] = copy;
	long wrong = set_filter(0);
	int child = clone(in_own_storage, stack + sizeof(stack), CLONE_VM | CLONE_SETTLS | SIGCHLD, NULL, NULL, copy);
	return wrong + !ended_well(child);
}

/* Forks by syscall(3), so that libc does not know of the child. */
static long fork_by_hand(void)
{
	int zero = open("/dev/zero", O_RDONLY);
	char byte;
	long wrong = set_filter(0);
	pid_t child = (pid_t)syscall(SYS_fork);
	for (int i = 0; i < 100; i++)
		pread(zero, &byte, 1, i);
	if (!child)
		_exit(0);
	return wrong + !ended_well(child);
}

static void forbid_clock(int signal)
{
	(void)signal;
	prctl(PR_SET_TSC, PR_TSC_SIGSEGV);
}

static void forbid_calls(int signal)
{
	(void)signal;
	prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
}

/* A signal handler interrupts a waiting call, and forbids reading the clock. */
static long interrupted(void (*handler)(int))
{
	struct sigaction action = {.sa_handler = handler};
	struct itimerspec soon = {.it_value = {0, 30000000}};
	timer_t timer;
	int ends[2];
	char byte;
	sigaction(SIGALRM, &action, NULL);
	if (pipe(ends) || timer_create(CLOCK_MONOTONIC, NULL, &timer) || timer_settime(timer, 0, &soon, NULL))
		return 1;
	long got = read(ends[0], &byte, 1);
	const char *text = got < 0 && errno == EINTR ? "interrupted\n" : "wrong\n";
	write(1, text, strlen(text));
	syscall(SYS_exit, 0);
	return 1;
}

int main(int count, char **arguments)
{
	const char *what = count > 1 ? arguments[1] : "";
	long wrong = -1;
	self[readlink("/proc/self/exe", self, sizeof(self) - 1)] = 0;
	if (getenv("NUMBER"))
		return !is_mine(what);
	if (!strcmp(what, "spawners"))
		wrong = set_filter(0) + run(spawn_with_own, THREADS);
	if (!strcmp(what, "large-spawners"))
		more_variables = 800, wrong = set_filter(0) + run(spawn_with_own, THREADS);
	if (!strcmp(what, "variables"))
		wrong = set_filter(0) + execute_with_many(1990, 0) + execute_with_many(5000, 0) + execute_with_many(5000, 1);
	if (!strcmp(what, "children"))
		wrong = then_go_on();
	if (!strcmp(what, "renaming-children"))
		wrong = run(rename_in_child, 3);
	if (!strcmp(what, "many"))
		wrong = run(rename_or_filter, 100);
	if (!strcmp(what, "at-once"))
		wrong = run(filter_at_once, 8);
	if (!strcmp(what, "refused"))
		wrong = run(execute_beside, 2);
	if (!strcmp(what, "forks"))
		wrong = forks_beside(150);
	if (!strcmp(what, "exec"))
		wrong = execute_beside_filter(150);
	if (!strcmp(what, "many-filters"))
		wrong = many_filters(60);
	if (!strcmp(what, "own-storage"))
		wrong = clone_in_sandbox();
	if (!strcmp(what, "by-hand"))
		wrong = fork_by_hand();
	if (!strcmp(what, "clock"))
		wrong = interrupted(forbid_clock);
	if (!strcmp(what, "strict"))
		wrong = interrupted(forbid_calls);
	printf("%ld wrong\n", wrong);
	return wrong != 0;
}
