/* Programs that this library does not reach, and with --complete what the dynamic linker does before it is loaded, are traced by the
 * recorder, which is asked before the program is executed. A part of record.c, kept apart for reading.
 *
 * The tracer is spoken to by a call that means nothing to the kernel: it answers in the kernel's place. */

#define PR_IODOCK 0x494f444b
#define STAY_OFF 1
enum mark {
	MARK_ASKED = 1,  /* am I traced? */
	MARK_LOADING = 2, /* what follows is the library's own; STAY_OFF: it shall not begin */
	MARK_LOADED = 3, /* calls are recorded here from now on: the tracer lets go */
	MARK_FAILED = 4, /* they are not */
};

#define PR_SET_PTRACER 0x59616d61
/* How often to look, how long to wait for others that ask, and for an answer. */
#define LOOK_NS 10000000l
#define TURN_TRIES 1000
#define ANSWER_TRIES 300

static long mark(u32 what)
{
	return kernel2(SYS_prctl, PR_IODOCK, what);
}

/* Waits until the recorder has taken up this thread, or for three seconds, once: it may be gone. Who waits for a turn goes on when
 * somebody has found that. */
static void ask_to_be_traced(const struct state *state)
{
	u32 *asking = &session->trace_asking;
	struct { long seconds, ns; } moment = {0, LOOK_NS};
	u32 nobody = 0, me = state->tid;
	/* Where only ancestors may trace, and ours may have gone. */
	kernel2(SYS_prctl, PR_SET_PTRACER, session->recorder);
	for (u32 tries = 0; !__atomic_compare_exchange_n(asking, &nobody, me, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE); tries++) {
		if (tries == TURN_TRIES || !session->trace_what)
			return;
		kernel(SYS_futex, (long)asking, FUTEX_WAIT, nobody, (long)&moment, 0, 0);
		nobody = 0;
	}
	kernel3(SYS_futex, asking, FUTEX_WAKE, 1);
	for (u32 tries = 0; __atomic_load_n(asking, __ATOMIC_ACQUIRE) == me; tries++) {
		u32 still = me;
		if (tries == ANSWER_TRIES) {
			__atomic_compare_exchange_n(asking, &still, 0, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
			session->trace_what = TRACE_NOTHING;
			return;
		}
		kernel(SYS_futex, (long)asking, FUTEX_WAIT, me, (long)&moment, 0, 0);
	}
}

#define PIDFD_GET_PID_NAMESPACE 0xff05

/* The inode of this process's name space of process ids where no /proc tells it (behind chroot), 0 if the kernel does not say (before 6.11). */
static u64 id_space_by_descriptor(u64 *status)
{
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

/* Does the recorder know this thread by the number that it knows itself? */
static int has_name(u64 *status)
{
	long found = kernel2(SYS_stat, "/proc/self/ns/pid", status);
	return (failed(found) ? id_space_by_descriptor(status) : status[1]) == session->id_space;
}

/* An exec is about to be made: where this library will not see what comes, somebody else shall. */
static void before_exec(struct state *state, struct environment *environment)
{
	u64 what = session->trace_what;
	if (!what || session->closed || !environment || !state->taken)
		return;
	enum sight sight = environment->sight;
	u64 wanted = sight == SEEN ? TRACE_ALL : sight == PRIVILEGED ? TRACE_PRIVILEGED : TRACE_UNSEEN;
	if (!(what & wanted) || !has_name((u64 *)environment->head))
		return;
	ask_to_be_traced(state);
	if (mark(MARK_ASKED) != 0)
		return;
	struct place here;
	u32 level = enter(state, &here);
	write_control(state, level, CONTROL_TRACED, ticks() >> TIME_SHIFT);
	leave(state, level, &here);
}
