/* Creates children that use their parent's memory, and runs signal handlers in between. `vforks WHAT`: each
 * process counts the reads that it makes and the children that it creates. At the end the program prints a
 * line for each process: its id and these two numbers. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#define MOST 65536
#define TRAP_FLAG 0x100ul

static struct count {
	int pid, reads, children;
} *counts;
static int file, parent, jump_at, read_at, steps;
static char stack[65536] __attribute__((aligned(16)));
static sigjmp_buf out;

static struct count *mine(void)
{
	int pid = (int)syscall(SYS_getpid), at = pid % MOST;
	while (counts[at].pid && counts[at].pid != pid)
		at = (at + 1) % MOST;
	counts[at].pid = pid;
	return &counts[at];
}

static void read_one(void)
{
	char byte;
	pread(file, &byte, 1, 0);
	mine()->reads++;
}

static void read_some(int many)
{
	while (many--)
		read_one();
}

static int child_of_clone(void *unused)
{
	read_some(3);
	return 0; /* clone's child ends by exit, not by exit_group */
}

static void made(int child)
{
	if (child > 0) {
		mine()->children++;
		while (waitpid(child, 0, 0) < 0)
			;
	}
}

static void by_clone(void)
{
	made(clone(child_of_clone, stack + sizeof(stack), CLONE_VM | CLONE_VFORK | SIGCHLD, 0));
}

/* Creates a child that ends by exit, which ends one thread, not by exit_group. */
__attribute__((noinline)) static void by_vfork(void)
{
	int child = vfork();
	if (child == 0) {
		read_some(2);
		syscall(SYS_exit, 3);
	}
	made(child);
}

__attribute__((noinline)) static void grandchild(void)
{
	int child = vfork();
	if (child == 0) {
		read_some(2);
		by_vfork();
		read_some(3);
		_exit(0);
	}
	made(child);
}

__attribute__((noinline)) static void executes(void)
{
	char *arguments[] = {"true", 0}, *variables[] = {"A=B", 0};
	int child = vfork();
	if (child == 0) {
		execve("/nowhere", arguments, variables);
		execve("/bin/true", arguments, variables);
		_exit(1);
	}
	made(child);
}

static void fails(void)
{
	char *arguments[] = {"true", 0}, *variables[] = {"A=B", 0};
	execve("/", arguments, variables);
}

__attribute__((noinline)) static void killed(int signal)
{
	int child = vfork();
	if (child == 0) {
		read_some(2);
		kill(parent, SIGUSR1);
		kill((int)syscall(SYS_getpid), signal);
		_exit(0);
	}
	made(child);
}

__attribute__((noinline)) static void cut_off(void)
{
	int child = vfork();
	if (child == 0) {
		read_some(2);
		kill((int)syscall(SYS_getpid), SIGKILL);
	}
	made(child);
}

static void on_signal(int signal)
{
	read_some(5);
	if (jump_at)
		siglongjmp(out, 1);
}

/* Runs after each instruction, because the trap flag is set. */
static void on_step(int signal, siginfo_t *info, void *context)
{
	int is_parent = (int)syscall(SYS_getpid) == parent;
	steps += is_parent;
	if (is_parent ? steps == jump_at || steps == read_at : read_at)
		((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
	if (is_parent && steps == jump_at)
		siglongjmp(out, 1);
	if (is_parent && steps == read_at)
		read_some(3);
	if (!read_at)
		read_one();
}

static void step(int on)
{
	if (on)
		__asm__ volatile("pushfq; orq $0x100, (%%rsp); popfq" ::: "memory", "cc");
	else
		__asm__ volatile("pushfq; andq $~0x100, (%%rsp); popfq" ::: "memory", "cc");
}

static void handle(int signal, void (*handler)(int))
{
	struct sigaction action = {.sa_handler = handler};
	sigaction(signal, &action, 0);
}

static void trap(void)
{
	struct sigaction action = {.sa_sigaction = on_step, .sa_flags = SA_SIGINFO};
	sigaction(SIGTRAP, &action, 0);
}

static void stepping(void (*what)(void))
{
	step(1);
	what();
	step(0);
	read_some(10);
}

/* Calls `what` again and again; each time the handler reads after one instruction, which is the next one each
 * time. */
static void interrupted(void (*what)(void))
{
	for (read_at = 1;; read_at++) {
		steps = 0;
		step(1);
		what();
		step(0);
		read_some(2);
		if (steps < read_at)
			break;
	}
	read_at = 0;
}

/* Calls `what` again and again; each time the handler leaves it by siglongjmp, `by` instructions later than
 * before. */
static void leaving(void (*what)(void), int from, int by)
{
	static volatile int at;
	for (at = from; at < 100000; at += by) {
		if (sigsetjmp(out, 1) == 0) {
			steps = 0;
			jump_at = at;
			step(1);
			what();
			step(0);
			return;
		}
		while (waitpid(-1, 0, WNOHANG) > 0)
			;
		read_some(2);
	}
}

/* Sets a filter that forbids nothing. */
static void forbid(void)
{
	struct sock_filter allow[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
	struct sock_fprog program = {1, allow};
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		_exit(77);
}

__attribute__((noinline)) static void forbids(void)
{
	int child = vfork();
	if (child == 0) {
		forbid();
		read_some(2);
		_exit(0);
	}
	made(child);
}

__attribute__((noinline)) static void exits_as_process(void)
{
	int child = vfork();
	if (child == 0) {
		read_some(2);
		_exit(0);
	}
	made(child);
}

__attribute__((noinline)) static void descend(int levels)
{
	int child = levels ? vfork() : 0;
	read_some(2);
	if (child == 0 && levels) {
		descend(levels - 1);
		_exit(0);
	}
	made(child);
}

static void leave(int signal)
{
	siglongjmp(out, 1);
}

/* Makes reads by syscall(3), each deeper in the stack than the one before, and abandons them by a signal. */
static void leave_some(int levels)
{
	static int pipe_ends[2];
	/* With a shorter time, the signal could arrive before the read begins on a busy machine. */
	struct itimerval soon = {{0, 0}, {0, 30000}};
	char byte;
	if (!pipe_ends[0])
		pipe(pipe_ends);
	if (!levels) {
		by_vfork();
		return;
	}
	if (!sigsetjmp(out, 1)) {
		setitimer(ITIMER_REAL, &soon, 0);
		syscall(SYS_read, pipe_ends[0], &byte, 1);
	}
	leave_some(levels - 1);
	by_vfork();
}

int main(int count, char **arguments)
{
	const char *what = arguments[1];
	counts = mmap(0, MOST * sizeof(*counts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	file = open("/proc/self/exe", O_RDONLY);
	parent = getpid();
	handle(SIGUSR1, on_signal);
	trap();
	if (!strcmp(what, "exits")) {
		for (int i = 0; i < 20; i++) {
			by_clone();
			by_vfork();
			read_some(7);
		}
	} else if (!strcmp(what, "sandbox")) {
		forbid();
		for (int i = 0; i < 20; i++) {
			by_vfork();
			read_some(7);
		}
	} else if (!strcmp(what, "sandbox_killed")) {
		forbid();
		exits_as_process();
		read_some(7);
		kill(parent, SIGKILL);
	} else if (!strcmp(what, "childs_sandbox")) {
		for (int i = 0; i < 20; i++) {
			forbids();
			read_some(7);
			by_vfork();
		}
	} else if (!strcmp(what, "crowded")) {
		handle(SIGALRM, leave);
		leave_some(12);
	} else if (!strcmp(what, "deep")) {
		descend(20);
	} else if (!strcmp(what, "grandchildren")) {
		for (int i = 0; i < 20; i++) {
			grandchild();
			read_some(7);
		}
	} else if (!strcmp(what, "handlers")) {
		for (int i = 0; i < 20; i++) {
			killed(i % 2 ? SIGKILL : SIGCONT);
			read_some(7);
		}
	} else if (!strcmp(what, "jumps")) {
		static volatile int i;
		jump_at = 1;
		for (; i < 20; i++) {
			if (sigsetjmp(out, 1) == 0)
				killed(SIGKILL);
			mine()->children++;
			while (waitpid(-1, 0, 0) < 0)
				;
			read_some(7);
		}
	} else if (!strcmp(what, "steps")) {
		stepping(by_vfork);
		stepping(by_clone);
		stepping(grandchild);
		stepping(fails);
		stepping(executes);
	} else if (!strcmp(what, "interrupted")) {
		interrupted(by_vfork);
		interrupted(by_clone);
		interrupted(cut_off);
	} else if (!strcmp(what, "leaves")) {
		leaving(by_vfork, 1, 1);
		leaving(by_clone, 1, 1);
	}
	jump_at = 0;
	read_some(100);
	for (int at = 0; at < MOST; at++)
		if (counts[at].pid)
			printf("%d %d %d\n", counts[at].pid, counts[at].reads, counts[at].children);
	return 0;
}
