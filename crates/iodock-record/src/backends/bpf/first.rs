//! Gives the reader priority: a buffer that is not emptied before it is full loses records.

/// Undoes the effect of [`go_first`] on the whole process.
pub struct First(());

/// Raises this thread's priority and locks the memory of this process: the thread does little work. If this
/// is not allowed, nothing changes.
pub fn go_first() -> First {
    // SAFETY: a plain structure; 0 is the calling thread. Its children don't inherit any of it.
    unsafe {
        let lowest = libc::sched_param { sched_priority: libc::sched_get_priority_min(libc::SCHED_RR) };
        if libc::sched_setscheduler(0, libc::SCHED_RR | libc::SCHED_RESET_ON_FORK, &lowest) != 0 {
            // Not every cgroup allows real-time scheduling; on Linux each thread has its own niceness.
            libc::setpriority(libc::PRIO_PROCESS, libc::gettid() as libc::id_t, -20);
        }
        libc::mlockall(libc::MCL_CURRENT | libc::MCL_ONFAULT);
    }
    First(())
}

impl Drop for First {
    fn drop(&mut self) {
        // SAFETY: a plain call.
        unsafe { libc::munlockall() };
    }
}
