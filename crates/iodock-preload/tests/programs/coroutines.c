/* A timer's handler switches between coroutines at any instruction. `coroutines CALLS`: each coroutine
 * makes CALLS calls of two kinds; prints how many calls of the first kind were made. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

#define MANY 3
#define STACK_BYTES (1 << 18)
#define EACH_US 60

static ucontext_t contexts[MANY], end;
static volatile int now, is_done[MANY];
static volatile long made[MANY];
static long wanted;

/* Returns the next coroutine to continue; `now` if there is no other. */
static int next(void)
{
	int to = now;
	for (int i = 1; i < MANY; i++)
		if (!is_done[(now + i) % MANY])
			return (now + i) % MANY;
	return to;
}

static void handler(int number)
{
	int from = now, to = next();
	if (to == from)
		return;
	now = to;
	swapcontext(&contexts[from], &contexts[to]);
}

static void work(int me)
{
	char path[32];
	struct stat status;
	sigset_t all;
	sigfillset(&all);
	sigprocmask(SIG_UNBLOCK, &all, 0);
	for (long i = 0; i < wanted; i++) {
		snprintf(path, sizeof(path), "/none/%d/%ld", me, i);
		lstat(path, &status);
		lseek(1000 + me, i, SEEK_SET);
		made[me]++;
	}
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, 0);
	is_done[me] = 1;
	int to = next();
	if (to == me)
		setcontext(&end);
	now = to;
	setcontext(&contexts[to]);
}

int main(int count, char **arguments)
{
	struct sigaction action = {.sa_handler = handler};
	struct itimerval often = {{0, EACH_US}, {0, EACH_US}};
	sigset_t all;
	wanted = atol(arguments[1]);
	for (int i = 0; i < MANY; i++) {
		getcontext(&contexts[i]);
		/* swapcontext unblocks signals before it has switched. A handler that ran then would overwrite the
		 * saved context. */
		sigaddset(&contexts[i].uc_sigmask, SIGALRM);
		contexts[i].uc_stack.ss_sp = mmap(0, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		contexts[i].uc_stack.ss_size = STACK_BYTES;
		makecontext(&contexts[i], (void (*)(void))work, 1, i);
	}
	/* Signals are blocked only after the contexts were created, so these keep the original signal mask. */
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, 0);
	sigaction(SIGALRM, &action, 0);
	setitimer(ITIMER_REAL, &often, 0);
	swapcontext(&end, &contexts[0]);
	printf("%ld\n", made[0] + made[1] + made[2]);
	return 0;
}
