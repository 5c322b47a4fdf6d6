/* Cases that are hard to record: hostile WHAT. Each case must print the same with and without recording. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char buffer[4096];
static int zero;
static volatile long handled;
static sigjmp_buf way_out;
static volatile int may_jump;

static void on_alarm(int signal)
{
	char mine[64];
	int saved = errno;
	(void)signal;
	if (pread(zero, mine, 64, 0) != 64)
		_exit(77);
	handled++;
	errno = saved;
}

static void on_alarm_jump(int signal)
{
	on_alarm(signal);
	if (may_jump)
		siglongjmp(way_out, 1);
}

static void every(int microseconds, void (*handler)(int), int flags)
{
	struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
	struct itimerval interval = {{0, microseconds}, {0, microseconds}};
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &interval, NULL);
}

static void no_more(void)
{
	struct itimerval none = {{0, 0}, {0, 0}};
	setitimer(ITIMER_REAL, &none, NULL);
}

/* Signal handlers do I/O at any moment while other calls are recorded. Prints the number of calls to
 * stderr. */
static int handlers(int flags)
{
	char *other = malloc(65536);
	stack_t stack = {.ss_sp = other, .ss_size = 65536};
	if (flags & SA_ONSTACK)
		sigaltstack(&stack, NULL);
	every(50, on_alarm, SA_RESTART | flags);
	long i = 0;
	while (handled < 2000)
		if (i++, pread(zero, buffer, 100 + (i & 255), i * 7) != 100 + (i & 255))
			return 1;
	no_more();
	fprintf(stderr, "%ld\n", i + handled);
	puts("handled");
	return 0;
}

static int jumps(void)
{
	every(50, on_alarm_jump, SA_RESTART);
	volatile long i = 0;
	while (handled < 1000) {
		sigsetjmp(way_out, 1);
		may_jump = 1;
		while (handled < 1000)
			if (i++, pread(zero, buffer, 100, i) != 100)
				return 1;
		may_jump = 0;
	}
	no_more();
	puts("jumped");
	return 0;
}

static void cleanup(void *what)
{
	*(int *)what += 1;
}

static int ends[2];

static void *blocked(void *what)
{
	pthread_cleanup_push(cleanup, what);
	read(ends[0], buffer, 1);
	pthread_cleanup_pop(0);
	return NULL;
}

static int cancellation(void)
{
	int cleaned = 0;
	if (pipe(ends))
		return 1;
	for (int i = 0; i < 50; i++) {
		pthread_t thread;
		void *result;
		pthread_create(&thread, NULL, blocked, &cleaned);
		if (i & 1)
			usleep(1000);
		pthread_cancel(thread);
		pthread_join(thread, &result);
		if (result != PTHREAD_CANCELED)
			return 2;
	}
	/* Threads that were cancelled before pthread_cleanup_push run no cleanup handler. */
	printf("cancelled, cleaned up %s\n", cleaned >= 25 ? "yes" : "no");
	return 0;
}

static int close_all(void)
{
	printf("%d\n", close_range(3, ~0u, 0));
	for (int i = 3; i < 1024; i++)
		close(i);
	int fd = open("/dev/zero", O_RDONLY);
	printf("%d %zd\n", fd, read(fd, buffer, 10));
	pid_t child = fork();
	if (child == 0)
		_exit(read(fd, buffer, 10) == 10 ? 4 : 5);
	int status;
	waitpid(child, &status, 0);
	printf("%d\n", WEXITSTATUS(status));
	return 0;
}

static void on_fault(int signal, siginfo_t *info, void *context)
{
	(void)signal, (void)context;
	char text[64];
	int count = snprintf(text, sizeof text, "fault at %p\n", info->si_addr);
	if (write(1, text, count) != count)
		_exit(2);
	siglongjmp(way_out, 1);
}

static int faults(void)
{
	struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
	sigaction(SIGSEGV, &action, NULL);
	for (volatile long i = 0; i < 3; i++)
		if (sigsetjmp(way_out, 1) == 0)
			*(volatile char *)(8 * i) = 1;
	/* The kernel refuses these invalid pointers with EFAULT. */
	printf("%d", open((char *)1, O_RDONLY)), printf(" %d\n", errno);
	printf("%d", rename("/nonexistent", (char *)1)), printf(" %d\n", errno);
	printf("%d", execve((char *)1, NULL, NULL)), printf(" %d\n", errno);
	printf("%ld", syscall(SYS_openat2, AT_FDCWD, "/", (void *)1, 24)), printf(" %d\n", errno);
	printf("%ld", syscall(SYS_clone3, (void *)1, 88)), printf(" %d\n", errno);
	/* The kernel refuses clone3 because of its flags, wherever on the stack its argument lies. */
	char stack[2 * 4096];
	int refused = 0;
	for (int at = 0; at + 88 <= (int)sizeof stack; at += 4) {
		memset(stack, 0, sizeof stack);
		*(unsigned *)(stack + at) = CLONE_SIGHAND;
		refused += syscall(SYS_clone3, stack + at, at % 3 ? 88 : 64) == -1;
	}
	printf("%d %d\n", refused, errno);
	printf("%zd", readv(zero, (void *)1, 2)), printf(" %d\n", errno);
	/* In the first call clone3's flags reach into an inaccessible page. In the second call only the flags are
	 * readable; recording stops there, because the new thread's storage is not known. */
	char *pages = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	mprotect(pages + 2 * 4096, 4096, PROT_NONE);
	*(unsigned long *)(pages + 2 * 4096 - 8) = CLONE_VM | CLONE_THREAD | CLONE_SIGHAND | CLONE_SETTLS;
	printf("%ld", syscall(SYS_clone3, pages + 2 * 4096 - 4, 88)), printf(" %d\n", errno);
	printf("%ld", syscall(SYS_clone3, pages + 2 * 4096 - 8, 88)), printf(" %d\n", errno);
	return 0;
}

static void told(long result)
{
	printf("%ld %d\n", result, errno);
}

/* Makes calls with an invalid path that fail before the kernel reads that path. */
static int bad_paths(void)
{
	char *bad = (char *)8;
	told(syscall(SYS_mknod, bad, S_IFDIR | 0755, 0));
	told(syscall(SYS_setxattr, bad, "", "v", 1, 0));
	told(syscall(SYS_rename, "", bad));
	told(syscall(SYS_rename, bad, "/nonexistent/x"));
	told(syscall(SYS_renameat2, -1, bad, -1, bad, 1 << 30));
	told(syscall(SYS_linkat, -1, bad, -1, "x", 1 << 30));
	told(syscall(SYS_symlink, bad, "/nonexistent/x"));
	told(syscall(SYS_mount, NULL, bad, bad, 0, NULL));
	told(syscall(SYS_readlink, bad, buffer, -1));
	return 0;
}

static int little_memory(void)
{
	struct rlimit limit = {256 << 20, 256 << 20};
	setrlimit(RLIMIT_AS, &limit);
	long blocks = 0;
	while (mmap(NULL, 1 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED)
		blocks++;
	for (int i = 0; i < 100000; i++)
		pread(zero, buffer, 16, i);
	/* The number depends on the loaded libraries and their addresses, so it is rounded. */
	char text[] = "  0 MiB\n";
	blocks = (blocks + 15) / 32 * 32;
	for (int i = 2; i >= 0 && blocks; i--, blocks /= 10)
		text[i] = '0' + blocks % 10;
	return write(1, text, 8) != 8;
}

/* Locks all memory. With `limit` it first limits locked memory to 64 MiB, and gives up root's rights. */
static int locked(const char *limit)
{
	struct rlimit most;
	getrlimit(RLIMIT_MEMLOCK, &most);
	most.rlim_cur = most.rlim_max = most.rlim_max < 64 << 20 ? most.rlim_max : 64 << 20;
	if (*limit && (setrlimit(RLIMIT_MEMLOCK, &most) || setresuid(65534, 65534, 65534)))
		return 1;
	printf("%d\n", mlockall(MCL_CURRENT | (*limit ? MCL_ONFAULT : MCL_FUTURE)));
	for (int i = 0; i < 50000; i++)
		pread(zero, buffer, 16, i);
	return 0;
}

/* Behaves like a daemon: gives up its rights, changes the root, and uses up all descriptors. */
static int given_up(void)
{
	struct rlimit few = {20, 20};
	setrlimit(RLIMIT_NOFILE, &few);
	if (chroot("/var/empty") && chroot("/usr/lib") || chdir("/"))
		return 1;
	printf("%d\n", setresuid(65534, 65534, 65534));
	while (dup(0) >= 0)
		;
	for (int i = 0; i < 50000; i++)
		pread(zero, buffer, 16, i);
	return 0;
}

static int killed(void)
{
	for (long i = 0;; i++) {
		pread(zero, buffer, 16, i);
		if (i == 50000)
			kill(getpid(), SIGKILL);
	}
}

static int libraries(void)
{
	for (int i = 0; i < 100; i++) {
		void *library = dlopen("libm.so.6", RTLD_NOW);
		if (!library || !dlsym(library, "cos"))
			return 1;
		dlclose(library);
	}
	puts("loaded");
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	zero = open("/dev/zero", O_RDONLY);
	if (!strcmp(what, "handlers"))
		return handlers(0);
	if (!strcmp(what, "handlers-elsewhere"))
		return handlers(SA_ONSTACK);
	if (!strcmp(what, "jumps"))
		return jumps();
	if (!strcmp(what, "cancellation"))
		return cancellation();
	if (!strcmp(what, "close-all"))
		return close_all();
	if (!strcmp(what, "faults"))
		return faults();
	if (!strcmp(what, "bad-paths"))
		return bad_paths();
	if (!strcmp(what, "locked"))
		return locked("");
	if (!strcmp(what, "locked-within"))
		return locked("64 MiB");
	if (!strcmp(what, "given-up"))
		return given_up();
	if (!strcmp(what, "little-memory"))
		return little_memory();
	if (!strcmp(what, "killed"))
		return killed();
	if (!strcmp(what, "libraries"))
		return libraries();
	return 64;
}
