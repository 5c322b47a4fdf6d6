/* Makes calls that the program's own filter refuses: some with an error, some with SIGSYS, whose handler
 * answers them. With an argument the program is in strict mode instead, which allows read, write and exit. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#define REFUSE(call, how) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1), BPF_STMT(BPF_RET | BPF_K, how)

static volatile int trapped;

static void answer(int signal, siginfo_t *info, void *context)
{
	trapped += info->si_syscall == SYS_rmdir || info->si_syscall == SYS_pwrite64;
	((ucontext_t *)context)->uc_mcontext.gregs[REG_RAX] = -ENOSYS;
}

int main(int count, char **arguments)
{
	struct sigaction action = {.sa_sigaction = answer, .sa_flags = SA_SIGINFO};
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		REFUSE(SYS_mkdir, SECCOMP_RET_ERRNO | EACCES),
		REFUSE(SYS_fsync, SECCOMP_RET_ERRNO | EIO),
		REFUSE(SYS_openat, SECCOMP_RET_ERRNO | EPERM),
		REFUSE(SYS_rmdir, SECCOMP_RET_TRAP),
		REFUSE(SYS_pwrite64, SECCOMP_RET_TRAP),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof(filter) / sizeof(filter[0]), filter};
	int null = open("/dev/null", O_WRONLY);
	if (count > 1) {
		if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT))
			return 7;
		write(null, "yz", 2);
		syscall(SYS_exit, 0);
	}
	sigaction(SIGSYS, &action, 0);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		return 2;
	for (int i = 0; i < 3; i++)
		if (mkdir("/nowhere", 0700) == 0 || errno != EACCES)
			return 3;
	if (fsync(1) == 0 || errno != EIO || open("/etc/passwd", O_RDONLY) >= 0 || errno != EPERM)
		return 4;
	if (rmdir("/nowhere") == 0 || errno != ENOSYS || pwrite(null, "lost", 4, 0) >= 0 || trapped != 2)
		return 5;
	/* The result of this call equals its number, but the filter has not refused the call. */
	if (write(null, "x", 1) != 1)
		return 6;
	return 0;
}
