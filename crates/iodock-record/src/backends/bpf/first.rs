//! Being there in time: a buffer that is not emptied before it is full loses records.

/// Takes back what [`go_first`] did to the whole process.
pub struct First(());

/// Lets this thread run before others when it has something to do, and keeps the memory of this process
/// from being taken away: what it does is little. Where that is not allowed it stays as it is.
pub fn go_first() -> First {
    // SAFETY: a plain structure; 0 is the calling thread. Its children don't inherit any of it.
    unsafe {
        let lowest = libc::sched_param { sched_priority: libc::sched_get_priority_min(libc::SCHED_RR) };
        if libc::sched_setscheduler(0, libc::SCHED_RR | libc::SCHED_RESET_ON_FORK, &lowest) != 0 {
            // Real time is not for every cgroup; on Linux a thread has a niceness of its own.
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
