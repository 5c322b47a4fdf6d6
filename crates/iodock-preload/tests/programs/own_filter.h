/* Sets a seccomp filter that kills the process if it makes calls that only the recorder makes, and neither
 * these programs nor their C library. */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define COUNT(of) (sizeof(of) / sizeof(*of))

static const int ours[] = {SYS_mremap, SYS_remap_file_pages, SYS_munlock, SYS_process_vm_readv, SYS_getcwd, SYS_getppid};

static long set_filter(unsigned flags)
{
	struct sock_filter rules[2 * COUNT(ours) + 2] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0)};
	size_t count = 1;
	for (size_t i = 0; i < COUNT(ours); i++) {
		rules[count++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)ours[i], 0, 1);
		rules[count++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
	}
	rules[count++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog filter = {(unsigned short)count, rules};
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &filter);
}
