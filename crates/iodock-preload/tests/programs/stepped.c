/* Single-steps itself. At random instructions a handler reads, and leaves half of the interrupted calls by
 * siglongjmp. `stepped EVENTS SEED reads|vforks|forks`: each of the program's own reads uses another
 * descriptor, from FIRST on. At the end the program prints a line for each of them that says whether the
 * kernel has made it; the last line has the number of reads by the handler, and of children. */
#define _GNU_SOURCE
#include <alloca.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#define FIRST 100
#define MOST 800 /* less than the usual limit of descriptors */
#define TRAP_FLAG 0x100ul

static sigjmp_buf out;
static volatile unsigned events, wanted, steps_left, at;
static volatile long own_reads, handlers_reads, seen_reads, reads_before;
static volatile long *children;
static unsigned long long random_state;
static int file, status, parent;
static unsigned char is_made[MOST];

/* Makes a system call without libc, which is not recorded. */
static long bare(long number, long a, long b, long c, long d)
{
	long result;
	register long fourth __asm__("r10") = d;
	__asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c), "r"(fourth) : "rcx", "r11", "memory");
	return result;
}

static unsigned any(unsigned below)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (unsigned)(random_state >> 20) % below;
}

/* Chooses the random number of instructions until the next event. */
static void plan(void)
{
	static const unsigned most[] = {1, 60, 60, 400, 400, 400, 2500, 2500};
	steps_left = 1 + any(most[any(8)]);
}

/* Returns the number of reads of all kinds that the kernel has counted for this thread. */
static long reads_of_kernel(void)
{
	char text[256];
	long count = bare(SYS_pread64, status, (long)text, sizeof(text) - 1, 0);
	text[count > 0 ? count : 0] = 0;
	own_reads++;
	return atol(strstr(text, "syscr: ") + strlen("syscr: "));
}

/* Returns the number of the program's own reads since the last call of this function. */
static long new_reads(void)
{
	long all = reads_of_kernel() - reads_before - own_reads - handlers_reads, new = all - seen_reads;
	seen_reads = all;
	return new;
}

static __attribute__((noinline)) void read_deeper(unsigned bytes)
{
	char byte, *volatile room = alloca(bytes + 1);
	room[0] = 0;
	pread(file, &byte, 1, 0);
	handlers_reads++;
}

static void step(int on)
{
	if (on)
		__asm__ volatile("pushfq; orq $0x100, (%%rsp); popfq" ::: "memory", "cc");
	else
		__asm__ volatile("pushfq; andq $~0x100, (%%rsp); popfq" ::: "memory", "cc");
}

static void on_step(int number, siginfo_t *info, void *context)
{
	greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
	const unsigned char *next = (const unsigned char *)registers[REG_RIP];
	static int is_call;
	if (bare(SYS_getpid, 0, 0, 0, 0) != parent) {
		registers[REG_EFL] &= ~TRAP_FLAG;
		return;
	}
	/* In practice most signals arrive when a system call returns. The trap comes one instruction later, so it
	 * is noted whether the next instruction is a `syscall`. */
	int is_behind_call = is_call;
	is_call = next[0] == 0x0f && next[1] == 0x05;
	if (--steps_left && !(is_behind_call && !any(4)))
		return;
	plan();
	events++;
	read_deeper(any(3) ? 0 : any(3000));
	if (!any(8))
		read_deeper(any(3000));
	if (any(2))
		return;
	is_made[at++] = (unsigned char)new_reads();
	siglongjmp(out, 1);
}

__attribute__((noinline)) static void make_child(int is_lent)
{
	int child = is_lent ? vfork() : fork();
	if (child == 0) {
		++*children;
		_exit(0);
	}
	waitpid(child, 0, 0);
}

int main(int count, char **arguments)
{
	struct sigaction action = {.sa_sigaction = on_step, .sa_flags = SA_SIGINFO};
	int vforks = !strcmp(arguments[3], "vforks"), forks = !strcmp(arguments[3], "forks");
	char byte;
	wanted = (unsigned)atoi(arguments[1]);
	random_state = 88172645463325252ull ^ strtoull(arguments[2], 0, 10) * 0x9e3779b97f4a7c15ull;
	parent = (int)bare(SYS_getpid, 0, 0, 0, 0);
	children = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	file = open("/etc/passwd", O_RDONLY);
	status = open("/proc/thread-self/io", O_RDONLY);
	for (int i = 0; i < MOST; i++)
		bare(SYS_dup2, file, FIRST + i, 0, 0);
	sigaction(SIGTRAP, &action, 0);
	plan();
	reads_before = reads_of_kernel();
	own_reads = 0;
	sigsetjmp(out, 1);
	while (events < wanted && at < MOST) {
		step(1);
		pread(FIRST + (int)at, &byte, 1, 0);
		step(0);
		is_made[at++] = (unsigned char)new_reads();
		if (at < MOST && (vforks || forks)) {
			step(1);
			make_child(vforks);
			step(0);
		}
	}
	for (unsigned i = 0; i < at; i++)
		printf("%d\n", is_made[i]);
	printf("%ld %ld\n", handlers_reads, *children);
	return 0;
}
