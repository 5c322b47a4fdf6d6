/* Requests tracing before an exec. The recorder traces programs whose calls this library does not see, and
 * with --complete also the dynamic linker's calls before the library is loaded. A traced thread sends
 * messages to its tracer by a prctl that the kernel does not know; the tracer sets the call's result. */

#include "recorder.h"

#define PR_IODOCK 0x494f444b
#define PIDFD_GET_PID_NAMESPACE 0xff05
/* Interval between checks, and number of checks for the end of other requests and for an answer. */
#define LOOK_NS 10000000l
#define TURN_TRIES 1000
#define ANSWER_TRIES 300

long mark(enum mark what) {
	return kernel2(SYS_prctl, PR_IODOCK, what);
}

/* Sends a request to the recorder: writes `me` to a futex in the header, and waits until the recorder clears
 * it. There is only one request at a time, and only while *wanted is nonzero. The wait is limited, because
 * the recorder may have ended. */
enum answer ask_recorder(u32 *asking, u32 me, const u64 *wanted, u32 turn_tries, u32 answer_tries, long look_ns) {
	struct { long seconds, ns; } moment = {0, look_ns};
	u32 nobody = 0;
	for (u32 tries = 0; !__atomic_compare_exchange_n(asking, &nobody, me, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE); tries++) {
		if (tries == turn_tries || !*(const volatile u64 *)wanted)
			return NOT_ASKED;
		kernel(SYS_futex, (long)asking, FUTEX_WAIT, nobody, (long)&moment, 0, 0);
		nobody = 0;
	}
	kernel3(SYS_futex, asking, FUTEX_WAKE, 1);
	for (u32 tries = 0; __atomic_load_n(asking, __ATOMIC_ACQUIRE) == me; tries++) {
		u32 still = me;
		if (tries == answer_tries) {
			__atomic_compare_exchange_n(asking, &still, 0, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
			return NO_ANSWER;
		}
		kernel(SYS_futex, (long)asking, FUTEX_WAIT, me, (long)&moment, 0, 0);
	}
	return ANSWERED;
}

/* Returns the inode of this process's PID namespace, for processes without /proc (chroot); 0 before Linux
 * 6.11. */
static u64 id_space_by_descriptor(u64 *status) {
	u64 inode = 0;
	long process = kernel2(SYS_pidfd_open, kernel0(SYS_getpid), 0);
	long space = failed(process) ? -1 : kernel3(SYS_ioctl, process, PIDFD_GET_PID_NAMESPACE, 0);
	if (!failed(space)) {
		inode = failed(kernel2(SYS_fstat, space, status)) ? 0 : status[1];
		kernel1(SYS_close, space);
	}
	if (!failed(process))
		kernel1(SYS_close, process);
	return inode;
}

/* Whether this process is in the recorder's PID namespace, so that its ids have the same meaning there. */
static int has_name(void) {
	u64 status[STAT_WORDS];
	long found = kernel2(SYS_stat, "/proc/self/ns/pid", status);
	return (failed(found) ? id_space_by_descriptor(status) : status[1]) == session->id_space;
}

/* Called before an exec: requests tracing if the library will not see all calls of the program. */
void before_exec(struct state *state, enum sight sight) {
	u64 wanted = sight == SEEN ? TRACE_ALL : sight == PRIVILEGED ? TRACE_PRIVILEGED : TRACE_UNSEEN;
	if (session->closed || !state->taken || !(session->trace_what & wanted) || !has_name())
		return;
	/* Yama may allow only ancestors to trace, and this process may no longer be a descendant of the
	 * recorder. */
	kernel2(SYS_prctl, PR_SET_PTRACER, session->recorder);
	if (ask_recorder(&session->trace_asking, state->tid, &session->trace_what, TURN_TRIES, ANSWER_TRIES, LOOK_NS) == NO_ANSWER)
		session->trace_what = TRACE_NOTHING;
	if (mark(MARK_ASKED) == 0)
		record_control(state, CONTROL_TRACED, ticks() >> TIME_SHIFT);
}
