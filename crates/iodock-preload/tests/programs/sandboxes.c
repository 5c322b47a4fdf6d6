/* Runs in a sandbox that the program sets for itself, or like a container that sets it for a recorded
 * program. sandboxes WHAT sandboxes refused CALL ERRNO LIBRARY SESSION PROGRAM...: refuses call number CALL
 * with ERRNO, and executes a recorded program */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static char buffer[4096];
static int zero;

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

/* Tests the kernel's features as libraries do, by calls that forbid nothing. Afterwards a thread and a child
 * read. */
static int probes(void)
{
	unsigned action = SECCOMP_RET_ALLOW;
	printf("%ld ", syscall(SYS_seccomp, SECCOMP_SET_MODE_STRICT, 1, NULL)), printf("%d\n", errno);
	printf("%ld ", syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, NULL)), printf("%d\n", errno);
	printf("%ld\n", syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action));
	printf("%d ", prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL)), printf("%d\n", errno);
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

/* Makes a call that could have set a filter, but fails because of its pointer. */
static int refused(void)
{
	printf("%d ", prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, (void *)8)), printf("%d\n", errno);
	return probes();
}

static void forbid_clock(void)
{
	prctl(PR_SET_TSC, PR_TSC_SIGSEGV);
}

/* Forbids all calls except those that goes_on() makes. */
static void forbid_others(void)
{
	static const int allowed[] = {
		SYS_pread64, SYS_munmap, SYS_rename, SYS_clone, SYS_set_robust_list, SYS_wait4, SYS_exit_group,
	};
	struct sock_filter code[20] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0)};
	int count = 1, all = sizeof allowed / sizeof *allowed;
	for (int i = 0; i < all; i++, count++)
		code[count] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, allowed[i], all - i, 0);
	code[count++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
	code[count++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog program = {count, code};
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		_exit(2);
}

/* Calls forbid(), which forbids the clock or calls, then reads, unmaps memory and forks. */
static int goes_on(void (*forbid)(void))
{
	void *memory = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int status = 1;
	forbid();
	reads(NULL);
	if (munmap(memory, 1 << 20) || rename("/nowhere/a", "/nowhere/b") == 0)
		return 1;
	if (fork() == 0)
		reads(NULL), _exit(7);
	wait(&status);
	return WEXITSTATUS(status);
}

/* Executes a program under a filter that kills the process for calls that only a preloaded library would
 * make. */
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

static int in_container(unsigned refused, unsigned error, char **recorded)
{
	struct sock_filter rules[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, refused, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = {4, rules};
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
	setenv("LD_PRELOAD", recorded[0], 1), setenv("IODOCK_SESSION", recorded[1], 1);
	execv(recorded[2], recorded + 2);
	return 3;
}

int main(int count, char **arguments)
{
	const char *what = count > 1 ? arguments[1] : "";
	zero = open("/dev/zero", O_RDONLY);
	if (!strcmp(what, "sandbox"))
		return sandbox();
	if (!strcmp(what, "strict"))
		return strict();
	if (!strcmp(what, "probes"))
		return probes();
	if (!strcmp(what, "might-work"))
		return refused();
	if (!strcmp(what, "without-clock"))
		return goes_on(forbid_clock);
	if (!strcmp(what, "without-others"))
		return goes_on(forbid_others);
	if (!strcmp(what, "sandboxed-exec"))
		return sandboxed_exec();
	if (!strcmp(what, "refused") && count > 6)
		return in_container(atoi(arguments[2]), atoi(arguments[3]), arguments + 4);
	return 64;
}
