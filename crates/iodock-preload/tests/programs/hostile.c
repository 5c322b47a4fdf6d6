/* Programs that are hard to record: hostile WHAT. Each prints what it found; with and without recording it
 * must print the same. */
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

/* Handlers that do I/O, at any moment of the recording of other calls. stderr: how many calls there were. */
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
	/* Those that were cancelled before they got there have nothing to clean up. */
	printf("cancelled, cleaned up %s\n", cleaned >= 25 ? "yes" : "no");
	return 0;
}

static void *many(void *what)
{
	(void)what;
	for (int i = 0; i < 10; i++)
		pread(zero, (char[16]){0}, 16, i);
	return NULL;
}

static pthread_barrier_t all_are_there;

static void *many_at_once(void *what)
{
	many(what);
	pthread_barrier_wait(&all_are_there);
	return many(what);
}

static int threads(int count, void *(*each)(void *))
{
	pthread_t *all = calloc(count, sizeof *all);
	pthread_attr_t small;
	pthread_barrier_init(&all_are_there, NULL, count);
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 16384);
	for (int i = 0; i < count; i++)
		if (pthread_create(&all[i], &small, each, NULL))
			return 1;
	for (int i = 0; i < count; i++)
		pthread_join(all[i], NULL);
	printf("%d threads\n", count);
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

static void *exec_here(void *what)
{
	char *arguments[] = {"echo", "from a thread", NULL};
	(void)what;
	execv("/bin/echo", arguments);
	return NULL;
}

static int exec_in_thread(void)
{
	pthread_t thread;
	pthread_create(&thread, NULL, exec_here, NULL);
	pause();
	return 1;
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
	/* Pointers that the kernel refuses. */
	printf("%d", open((char *)1, O_RDONLY)), printf(" %d\n", errno);
	printf("%d", rename("/nonexistent", (char *)1)), printf(" %d\n", errno);
	printf("%d", execve((char *)1, NULL, NULL)), printf(" %d\n", errno);
	printf("%ld", syscall(SYS_openat2, AT_FDCWD, "/", (void *)1, 24)), printf(" %d\n", errno);
	printf("%ld", syscall(SYS_clone3, (void *)1, 88)), printf(" %d\n", errno);
	/* One that is refused for its flags, wherever on the stack it lies. */
	char stack[2 * 4096];
	int refused = 0;
	for (int at = 0; at + 88 <= (int)sizeof stack; at += 4) {
		memset(stack, 0, sizeof stack);
		*(unsigned *)(stack + at) = CLONE_SIGHAND;
		refused += syscall(SYS_clone3, stack + at, at % 3 ? 88 : 64) == -1;
	}
	printf("%d %d\n", refused, errno);
	printf("%zd", readv(zero, (void *)1, 2)), printf(" %d\n", errno);
	/* One of which the flags can be read and not all that follows. Two threads that share their storage can't be recorded: the last. */
	char *pages = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	mprotect(pages + 2 * 4096, 4096, PROT_NONE);
	*(unsigned long *)(pages + 2 * 4096 - 8) = CLONE_VM | CLONE_THREAD | CLONE_SIGHAND | CLONE_SETTLS;
	printf("%ld", syscall(SYS_clone3, pages + 2 * 4096 - 4, 88)), printf(" %d\n", errno);
	printf("%ld", syscall(SYS_clone3, pages + 2 * 4096 - 8, 88)), printf(" %d\n", errno);
	return 0;
}

static int sandbox(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pread64, 3, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {6, code};
	setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
	printf("in the sandbox\n");
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		return 1;
	char mine[16];
	for (int i = 0; i < 100000; i++)
		pread(zero, mine, 16, i);
	fflush(stdout);
	_exit(0);
}

static int strict(void)
{
	prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT, 0, 0, 0);
	for (int i = 0; i < 50000; i++)
		read(zero, buffer, 16);
	if (write(1, "strict\n", 7) != 7)
		syscall(SYS_exit, 1);
	syscall(SYS_exit, 0);
	return 0;
}

static void *reads(void *what)
{
	for (int i = 0; i < 100; i++)
		pread(zero, (char[16]){0}, 16, i);
	return what;
}

/* What libraries ask to learn what the kernel can: nothing is forbidden by it. Then threads and children go on. */
static int probes(void)
{
	unsigned action = SECCOMP_RET_ALLOW;
	printf("%ld ", syscall(SYS_seccomp, SECCOMP_SET_MODE_STRICT, 1, NULL)), printf("%d\n", errno);
	printf("%ld ", syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, NULL)), printf("%d\n", errno);
	printf("%ld\n", syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action));
	printf("%d ", prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL)), printf("%d\n", errno);
	/* These might have worked. */
	printf("%d ", prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, (void *)8)), printf("%d\n", errno);
	printf("%d\n", prctl(PR_SET_TSC, PR_TSC_ENABLE));
	fflush(stdout);
	pthread_t thread;
	int status;
	reads(NULL);
	pthread_create(&thread, NULL, reads, NULL);
	pthread_join(thread, NULL);
	pid_t child = fork();
	if (child == 0)
		reads(NULL), _exit(0);
	waitpid(child, &status, 0);
	return WEXITSTATUS(status);
}

static void told(long result)
{
	printf("%ld %d\n", result, errno);
}

/* Errors that come before the kernel has read a path, which is none. */
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
	/* How many there are depends on what is loaded, and where: a round number does not. */
	char text[] = "  0 MiB\n";
	blocks = (blocks + 15) / 32 * 32;
	for (int i = 2; i >= 0 && blocks; i--, blocks /= 10)
		text[i] = '0' + blocks % 10;
	return write(1, text, 8) != 8;
}

/* Locks all memory, as much as there may be; `limit` and root's rights given up, or none. */
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

/* As a daemon: without rights, another root, and all descriptors taken. */
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

static int spawns(void)
{
	char *arguments[] = {"sh", "-c", "exit 7", NULL};
	char *none[] = {NULL};
	for (int i = 0; i < 5; i++) {
		pid_t child;
		int status;
		if (posix_spawn(&child, "/bin/sh", NULL, NULL, arguments, none))
			return 1;
		waitpid(child, &status, 0);
		printf("%d\n", WEXITSTATUS(status));
	}
	return 0;
}

/* With another library to preload, ours out of reach, or no rights to it: cat, and what the dynamic linker has to say. */
static int executes(const char *how)
{
	char *arguments[] = {"cat", "/proc/version", NULL};
	char *session = getenv("IODOCK_SESSION");
	char *environment[] = {"A=1", "LD_PRELOAD=libm.so.6", "B=2", session ? session - 15 : "S=", "C=3", NULL};
	int status;
	for (int i = 0; i < 3; i++) {
		pid_t child = fork();
		if (child == 0) {
			dup2(1, 2);
			if (!strcmp(how, "others"))
				execve("/bin/cat", arguments, i ? environment : environment + 1);
			if (setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534))
				_exit(1);
			execv("/bin/cat", arguments);
		}
		waitpid(child, &status, 0);
		printf("%d\n", WEXITSTATUS(status));
		fflush(stdout);
	}
	return 0;
}

/* Executes a program under a filter that kills for what only a preloaded library would ask. */
static int sandboxed_exec(void)
{
	int forbidden[] = {SYS_prctl, SYS_madvise, SYS_getcwd, SYS_getppid, SYS_gettid, SYS_mremap, SYS_process_vm_readv};
	struct sock_filter code[20] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0)};
	int count = 1;
	for (int i = 0; i < 7; i++) {
		code[count++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, forbidden[i], 0, 1);
		code[count++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
	}
	code[count++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog program = {count, code};
	char *arguments[] = {"cat", "/proc/version", NULL};
	int status;
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		return 1;
	pid_t child = fork();
	if (child == 0)
		execv("/bin/cat", arguments), _exit(9);
	waitpid(child, &status, 0);
	execv("/bin/cat", arguments);
	return 1;
}

static int child_of_clone(void *what)
{
	(void)what;
	pread(zero, buffer, 16, 0);
	return 9;
}

static int clones(void)
{
	char *stack = malloc(65536);
	int kinds[] = {0, CLONE_VM | CLONE_VFORK, CLONE_VM, CLONE_VM | CLONE_FILES | CLONE_FS};
	for (int i = 0; i < 4; i++) {
		int status;
		pid_t child = clone(child_of_clone, stack + 65536, kinds[i] | SIGCHLD, NULL);
		waitpid(child, &status, 0);
		printf("%d\n", WEXITSTATUS(status));
	}
	pid_t child = syscall(SYS_fork);
	if (child == 0)
		_exit(3);
	int status;
	waitpid(child, &status, 0);
	printf("%d\n", WEXITSTATUS(status));
	child = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	if (child == 0)
		_exit(4);
	waitpid(child, &status, 0);
	printf("%d\n", WEXITSTATUS(status));
	return 0;
}

static volatile int finished;

static int raw_thread(void *what)
{
	pread(zero, (char[16]){0}, 16, 0);
	__sync_fetch_and_add(&finished, 1);
	syscall(SYS_exit, 0);
	return 0;
}

/* Threads made by hand: without thread-local storage, or with one that nothing is below of. */
static int raw_threads(int has_storage)
{
	int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM;
	for (int i = 0; i < 4; i++) {
		char *stack = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		char *storage = mmap(NULL, 12288, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		munmap(storage, 4096);
		*(void **)(storage + 4096) = storage + 4096;
		clone(raw_thread, stack + 65536, flags | (has_storage ? CLONE_SETTLS : 0), NULL, NULL, storage + 4096, NULL);
	}
	while (finished < 4)
		usleep(1000);
	printf("%d\n", finished);
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

static int bomb(int count)
{
	int wrong = 0;
	for (int i = 0; i < count; i++) {
		pid_t child = fork();
		if (child == 0)
			_exit(i & 127);
		int status;
		waitpid(child, &status, 0);
		wrong += WEXITSTATUS(status) != (i & 127);
	}
	printf("%d wrong\n", wrong);
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
	if (!strcmp(what, "threads"))
		return threads(1000, many);
	if (!strcmp(what, "threads-at-once"))
		return threads(1000, many_at_once);
	if (!strcmp(what, "close-all"))
		return close_all();
	if (!strcmp(what, "exec-in-thread"))
		return exec_in_thread();
	if (!strcmp(what, "faults"))
		return faults();
	if (!strcmp(what, "sandbox"))
		return sandbox();
	if (!strcmp(what, "strict"))
		return strict();
	if (!strcmp(what, "probes"))
		return probes();
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
	if (!strcmp(what, "spawns"))
		return spawns();
	if (!strcmp(what, "others") || !strcmp(what, "out-of-reach"))
		return executes(what);
	if (!strcmp(what, "sandboxed-exec"))
		return sandboxed_exec();
	if (!strcmp(what, "raw-threads"))
		return raw_threads(0);
	if (!strcmp(what, "raw-threads-with-storage"))
		return raw_threads(1);
	if (!strcmp(what, "clones"))
		return clones();
	if (!strcmp(what, "killed"))
		return killed();
	if (!strcmp(what, "libraries"))
		return libraries();
	if (!strcmp(what, "bomb"))
		return bomb(500);
	return 64;
}
