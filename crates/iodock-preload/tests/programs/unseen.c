/* unseen HOW COUNT: makes calls that are recorded, and COUNT reads without the recorded libc. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/wait.h>
#include <unistd.h>

static int zero;
static long count;

static inline long call(long number, long a, long b, long c)
{
	long result;
	__asm__ volatile("syscall" : "=a"(result) : "0"(number), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
	return result;
}

static void own_calls(void)
{
	char byte;
	for (long i = 0; i < count; i++)
		call(0, zero, (long)&byte, 1);
}

/* Creates a thread without libc. It has no thread-local storage of its own, and makes only calls without
 * libc. */
static void unknown_thread(void)
{
	static volatile int over;
	static char stack[1 << 16] __attribute__((aligned(16)));
	long flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM, child;
	__asm__ volatile("xorl %%edx, %%edx; xorl %%r10d, %%r10d; xorl %%r8d, %%r8d; syscall"
			 : "=a"(child) : "0"(56l), "D"(flags), "S"(stack + sizeof(stack) - 64) : "rcx", "rdx", "r8", "r10", "r11", "memory");
	if (!child) {
		own_calls();
		over = 1;
		call(60, 0, 0, 0);
		__builtin_unreachable();
	}
	while (!over)
		usleep(1000);
}

static void another_libc(void)
{
	void *libc = dlmopen(LM_ID_NEWLM, "libc.so.6", RTLD_NOW);
	ssize_t (*its_read)(int, void *, size_t) = libc ? dlsym(libc, "read") : 0;
	char byte;
	for (long i = 0; its_read && i < count; i++)
		its_read(zero, &byte, 1);
}

/* Makes calls by machine code that it writes to memory: xor %eax,%eax; syscall; ret. */
static void written_code(void)
{
	static const unsigned char code[] = {0x31, 0xc0, 0x0f, 0x05, 0xc3};
	void *page = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char byte;
	memcpy(page, code, sizeof(code));
	mprotect(page, 4096, PROT_READ | PROT_EXEC);
	for (long i = 0; i < count; i++)
		((long (*)(long, char *, long))page)(zero, &byte, 1);
}

static void *reads(void *how)
{
	char bytes[64];
	for (int i = 0; i < 500; i++)
		read(zero, bytes, sizeof(bytes));
	if (how)
		own_calls();
	return 0;
}

static void recorded_calls(const char *name)
{
	char bytes[4096] = {0};
	pthread_t threads[4];
	int file = open(name, O_RDWR | O_CREAT, 0600), copy = open("copy", O_RDWR | O_CREAT, 0600);
	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], 0, reads, 0);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], 0);
	for (int i = 0; i < 100; i++) {
		write(file, bytes, sizeof(bytes));
		lseek(file, 0, SEEK_SET);
		sendfile(copy, file, 0, 100);
		copy_file_range(file, 0, copy, 0, 100, 0);
		read(copy, bytes, 0);
		read(-1, bytes, 1);
	}
	close(file);
	close(copy);
}

int main(int argc, char **argv)
{
	const char *how = argv[1];
	pthread_t thread;
	count = atol(argv[2]);
	zero = open("/dev/zero", O_RDONLY);
	recorded_calls("file");
	if (!strcmp(how, "thread"))
		unknown_thread();
	if (!strcmp(how, "libc"))
		another_libc();
	if (!strcmp(how, "code"))
		written_code();
	if (!strcmp(how, "calls"))
		own_calls();
	if (!strcmp(how, "threads")) {
		pthread_create(&thread, 0, reads, "past libc");
		pthread_join(thread, 0);
	}
	/* Once the process has waited for a child, the kernel adds the child's calls to the process's count. One
	 * child is killed. */
	if (!strcmp(how, "children"))
		for (int i = 0; i < 3; i++) {
			if (!fork()) {
				recorded_calls("other");
				if (i == 0)
					own_calls();
				if (i == 1)
					abort();
				_exit(0);
			}
			wait(0);
		}
	/* The kernel's count of the process's own calls continues across an exec. */
	if (!strcmp(how, "exec")) {
		own_calls();
		execl("/proc/self/exe", argv[0], "calls", argv[2], (char *)0);
	}
	return 0;
}
