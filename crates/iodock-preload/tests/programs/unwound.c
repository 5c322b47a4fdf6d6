/* Single-steps a thread in a call, and ends it by pthread_exit (like a cancellation) after one instruction,
 * in each new thread one instruction later. `unwound openat|syscall|close` prints the number of these
 * instructions, and the number of those at which the cleanup of the calling function did not run. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#define TRAP_FLAG 0x100ul

static int is_openat, is_syscall;
static volatile int steps_left, is_over, cleanups;

static void cleaned(int *unused)
{
	cleanups++;
}

static void on_step(int number, siginfo_t *info, void *context)
{
	if (--steps_left && !is_over)
		return;
	((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
	if (!is_over)
		pthread_exit(0);
}

/* This is not the function whose cleanup must run, because a function's cleanups are known only where it
 * calls another function. */
__attribute__((noinline)) static void call_stepping(void)
{
	__asm__ volatile("pushfq; orq $0x100, (%%rsp); popfq" ::: "memory", "cc");
	if (is_openat)
		openat(AT_FDCWD, "/nothing", O_RDONLY);
	else if (is_syscall)
		syscall(SYS_lseek, -1, 0, 0);
	else
		close(-1);
	is_over = 1;
}

static void *make_call(void *unused)
{
	int guard __attribute__((cleanup(cleaned))) = 0;
	void (*volatile call)(void) = call_stepping;
	/* The first call of a thread takes more instructions, because its state is created, so it is made
	 * before. */
	close(-1);
	call();
	return 0;
}

static void *end_at_once(void *unused)
{
	pthread_exit(0);
}

int main(int count, char **arguments)
{
	struct sigaction action = {.sa_sigaction = on_step, .sa_flags = SA_SIGINFO};
	int instructions = 0;
	pthread_t first;
	is_openat = !strcmp(arguments[1], "openat");
	is_syscall = !strcmp(arguments[1], "syscall");
	/* These calls resolve symbols and load libraries that are needed later. */
	pthread_create(&first, 0, end_at_once, 0);
	pthread_join(first, 0);
	openat(AT_FDCWD, "/nothing", O_RDONLY);
	syscall(SYS_lseek, -1, 0, 0);
	close(-1);
	sigaction(SIGTRAP, &action, 0);
	while (!is_over) {
		pthread_t thread;
		steps_left = ++instructions;
		pthread_create(&thread, 0, make_call, 0);
		pthread_join(thread, 0);
	}
	printf("%d %d\n", instructions, instructions - cleanups);
	return 0;
}
