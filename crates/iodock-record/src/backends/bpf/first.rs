//! Gives the reader of the buffers priority, because a buffer that is full before it is read loses records.

/// Unlocks the memory of this process, which [`go_first`] locked, when it is dropped.
pub struct First(());

/// Raises this thread's priority and locks the memory of this process. The other programs lose little,
/// because the thread does little work. If the system does not allow it, nothing changes.
pub fn go_first() -> First {
    // SAFETY: the structure contains plain numbers, and 0 means the calling thread. Its children do not
    // inherit the priority.
    unsafe {
        let lowest = libc::sched_param { sched_priority: libc::sched_get_priority_min(libc::SCHED_RR) };
        if libc::sched_setscheduler(0, libc::SCHED_RR | libc::SCHED_RESET_ON_FORK, &lowest) != 0 {
            // Not every cgroup allows real-time scheduling. On Linux each thread has its own nice value.
            libc::setpriority(libc::PRIO_PROCESS, libc::gettid() as libc::id_t, -20);
        }
        libc::mlockall(libc::MCL_CURRENT | libc::MCL_ONFAULT);
    }
    First(())
}

impl Drop for First {
    fn drop(&mut self) {
        // SAFETY: munlockall accesses no memory of the caller.
        unsafe { libc::munlockall() };
    }
}
