/* Makes 32-bit calls in a 64-bit program: foreign FILE. One call creates a child that shares the descriptors,
 * and a filter refuses 70 calls. Also makes 50 calls without a valid number. Ends with status 77 if the kernel
 * has no 32-bit calls. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define CLONE_32 120
#define CLONE_FILES 0x400
#define READ_32 3
#define NO_SUCH_CALL 1000

static long call(long number, long first)
{
	long result;
	__asm__ volatile("int $0x80" : "=a"(result) : "0"(number), "b"(first), "c"(0L), "d"(0L), "S"(0L), "D"(0L)
			 : "memory", "r8", "r9", "r10", "r11");
	return result;
}

static int refuse_foreign_calls(void)
{
	struct sock_filter steps[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_I386, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = {4, steps};
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

int main(int count, char **arguments)
{
	if (count < 2)
		return 1;
	lseek(-1, 0, SEEK_SET);
	long child = call(CLONE_32, CLONE_FILES | SIGCHLD);
	if (child == 0)
		_exit(open(arguments[1], O_RDWR | O_CREAT, 0600));
	int status;
	if (child < 0 || waitpid((pid_t)child, &status, 0) < 0)
		return 77;
	if (write(WEXITSTATUS(status), "of both", 7) != 7 || !refuse_foreign_calls())
		return 2;
	for (int i = 0; i < 70; i++)
		if (call(READ_32, -1) != -1)
			return 3;
	for (int i = 0; i < 50; i++)
		syscall(NO_SUCH_CALL);
	return 0;
}
