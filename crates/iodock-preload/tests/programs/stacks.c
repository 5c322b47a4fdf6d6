/* Makes calls on stacks that are hard to walk. `stacks WHAT` makes ROUNDS calls of pread64 in each way, and
 * prints the number of bytes that they read. base: with any value in %rbp, although the unwind information
 * says that %rbp leads to the frame context: on the stack of a coroutine handler: in a signal handler on its
 * own stack long: in a deep recursion that is left by longjmp mapped: in threads on stacks with unmapped
 * memory above them plain: on an ordinary stack */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#define ROUNDS 300
#define STACK_BYTES (1 << 17)

static int file;
static long bytes;

__attribute__((noinline)) void read_some(void) {
	char buffer[4];
	for (int i = 0; i < ROUNDS; i++)
		bytes += pread(file, buffer, 4, i);
}

/* with_base(base, function) calls the function with `base` in %rbp, although its unwind information says that
 * %rbp leads to its own frame. */
void with_base(unsigned long base, void (*function)(void));
__asm__(".text\n.globl with_base\n.type with_base, @function\nwith_base:\n.cfi_startproc\n"
	"push %rbp\n.cfi_def_cfa_offset 16\n.cfi_offset %rbp, -16\nmov %rsp, %rbp\n.cfi_def_cfa_register %rbp\n"
	"mov %rdi, %rbp\ncall *%rsi\npop %rbp\n.cfi_def_cfa %rsp, 8\nret\n.cfi_endproc\n.size with_base, .-with_base\n");

static void any_base(void) {
	unsigned long here = (unsigned long)__builtin_frame_address(0);
	unsigned long bases[] = {0, 1, 8, ~0ul, ~7ul, 1ul << 47, here, here + 1, here + 8, here - 64, here + (1 << 20), here + (1ul << 30),
				 here - (1 << 20), (unsigned long)&bytes, (unsigned long)environ, (unsigned long)environ - 8,
				 (unsigned long)environ - 16, (unsigned long)environ - 24, (unsigned long)environ + 4096};
	for (unsigned long i = 0; i < sizeof(bases) / sizeof(*bases); i++)
		with_base(bases[i], read_some);
	srand(7);
	for (int i = 0; i < 200; i++)
		with_base(here + ((unsigned long)rand() % 4096) * 8, read_some);
}

static ucontext_t outside, inside;
static void contexts(void) {
	for (int i = 0; i < 20; i++) {
		char *stack = mmap(0, STACK_BYTES + 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		/* There is no accessible memory on either side of the stack. */
		mprotect(stack, 4096, PROT_NONE);
		munmap(stack + 4096 + STACK_BYTES, 4096);
		getcontext(&inside);
		inside.uc_stack.ss_sp = stack + 4096;
		inside.uc_stack.ss_size = STACK_BYTES;
		inside.uc_link = &outside;
		makecontext(&inside, read_some, 0);
		swapcontext(&outside, &inside);
		munmap(stack, 4096 + STACK_BYTES);
	}
}

static void on_signal(int number) { (void)number, read_some(); }
static void handlers(void) {
	static char stack[1 << 16];
	stack_t other = {.ss_sp = stack, .ss_size = sizeof(stack)};
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
	sigaltstack(&other, 0);
	sigaction(SIGUSR1, &action, 0);
	raise(SIGUSR1);
	action.sa_flags = 0;
	sigaction(SIGUSR1, &action, 0);
	raise(SIGUSR1);
}

static jmp_buf back;
__attribute__((noinline)) static void deeper(int depth) {
	volatile char room[3000];
	memset((void *)room, depth, sizeof(room));
	if (!depth) {
		read_some();
		longjmp(back, 1);
	}
	deeper(depth - 1);
	room[0]++;
}
static void jumps(void) {
	for (volatile int depth = 1; depth < 1500; depth = depth * 2 + 1)
		if (!setjmp(back))
			deeper(depth);
}

static void *in_context(void *unused) {
	contexts();
	read_some();
	return unused;
}
static void threads(void) {
	for (int i = 0; i < 5; i++) {
		char *stack = mmap(0, STACK_BYTES * 4, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		pthread_attr_t attributes;
		pthread_t thread;
		mprotect(stack + STACK_BYTES, STACK_BYTES, PROT_READ | PROT_WRITE);
		pthread_attr_init(&attributes);
		pthread_attr_setstack(&attributes, stack + STACK_BYTES, STACK_BYTES);
		pthread_create(&thread, &attributes, in_context, 0);
		pthread_join(thread, 0);
		munmap(stack, STACK_BYTES * 4);
	}
}

int main(int count, char **arguments) {
	const char *what = count > 1 ? arguments[1] : "";
	file = open("/proc/self/exe", O_RDONLY);
	if (!strcmp(what, "base"))
		any_base();
	else if (!strcmp(what, "context"))
		contexts();
	else if (!strcmp(what, "handler"))
		handlers();
	else if (!strcmp(what, "long"))
		jumps();
	else if (!strcmp(what, "mapped"))
		threads();
	else
		read_some();
	printf("%ld\n", bytes);
	return 0;
}
