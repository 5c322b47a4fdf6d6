/* A signal handler interrupts calls at any instruction and leaves them by siglongjmp. `left SIGNALS
 * reads|vforks` prints the number of reads that the kernel has counted, and of calls that were left. With
 * `left CALLS deeper` the program continues deeper in the stack after each call that was left. */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define EACH_NS 20000

static sigjmp_buf out;
static volatile unsigned signals, left;
static int file;

static void handler(int number)
{
	char byte;
	pread(file, &byte, 1, 0);
	if (++signals % 3 == 0) {
		left++;
		siglongjmp(out, 1);
	}
}

static void leave_it(int number)
{
	left++;
	siglongjmp(out, 1);
}

/* Makes `count` reads of an empty pipe, each one stack frame deeper; a signal abandons each of them. */
__attribute__((noinline)) static int wait_deeper(int pipe, int count)
{
	struct itimerspec soon = {{0, 0}, {0, 100 * EACH_NS}};
	char bytes[16];
	if (!count)
		return 0;
	if (!sigsetjmp(out, 1)) {
		struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN};
		timer_t timer;
		timer_create(CLOCK_MONOTONIC, &event, &timer);
		timer_settime(timer, 0, &soon, 0);
		read(pipe, bytes, sizeof(bytes));
	}
	return wait_deeper(pipe, count - 1) + 1;
}

/* Returns the kernel's count of reads of this thread. */
static long reads_of_kernel(void)
{
	char text[512];
	int status = open("/proc/thread-self/io", O_RDONLY);
	text[read(status, text, sizeof(text) - 1)] = 0;
	close(status);
	return atol(strstr(text, "syscr: ") + strlen("syscr: "));
}

__attribute__((noinline)) static void make_child(void)
{
	int child = vfork();
	if (child == 0)
		_exit(0);
	waitpid(child, 0, 0);
}

int main(int count, char **arguments)
{
	unsigned wanted = (unsigned)atoi(arguments[1]);
	int vforks = !strcmp(arguments[2], "vforks");
	struct sigaction action = {.sa_handler = handler};
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN};
	struct itimerspec often = {{0, EACH_NS}, {0, EACH_NS}};
	sigset_t all;
	timer_t timer;
	char byte;
	file = open("/etc/passwd", O_RDONLY);
	if (!strcmp(arguments[2], "deeper")) {
		int ends[2];
		action.sa_handler = leave_it;
		sigaction(SIGRTMIN, &action, 0);
		pipe(ends);
		int made = wait_deeper(ends[0], (int)wanted);
		printf("%d %u\n", made, left);
		return 0;
	}
	sigaction(SIGRTMIN, &action, 0);
	timer_create(CLOCK_MONOTONIC, &event, &timer);
	long before = reads_of_kernel();
	if (!sigsetjmp(out, 1))
		timer_settime(timer, 0, &often, 0);
	while (signals < wanted) {
		pread(file, &byte, 1, 0);
		if (vforks)
			make_child();
	}
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, 0);
	printf("%ld %u\n", reads_of_kernel() - before - 1, left);
	return 0;
}
