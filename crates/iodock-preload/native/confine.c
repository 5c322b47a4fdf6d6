/* Recording ends before a program forbids itself calls or the clock. A part of record.c, kept apart for reading.
 *
 * A seccomp filter may kill for any call that it does not know, and strict mode and PR_SET_TSC for reading the clock. So from there on the
 * library makes no call of its own in this process and its children by fork, and the stub only passes calls through. */

/* Would it forbid something if it succeeded? Libraries ask what the kernel supports by calls that can't. */
static int forbids(const struct frame *frame)
{
	/* (The kernel reads 32 bits of the first argument, of flags and of the clock's value.) */
	u64 what = (u32)frame->arguments[0], value = frame->arguments[1], pointer = frame->arguments[2];
	if (frame->number == SYS_seccomp)
		return what == SECCOMP_SET_MODE_STRICT ? !(u32)value && !pointer : what == SECCOMP_SET_MODE_FILTER && pointer;
	if (what == PR_SET_TSC)
		return (u32)value == PR_TSC_SIGSEGV;
	return what == PR_SET_SECCOMP && (value == SECCOMP_MODE_STRICT || (value == SECCOMP_MODE_FILTER && pointer));
}

/* The call is about to be made. It may fail: then recording has ended for nothing, and is counted all the same. */
static __attribute__((noinline)) void stop_before(const struct frame *frame)
{
	stop();
	end_records();
	/* A filter for all threads must not meet one that is about to make a call of ours. */
	if (frame->number == SYS_seccomp && frame->arguments[1] & SECCOMP_FILTER_FLAG_TSYNC)
		wait_for_others(0, OTHERS_MOST);
}
