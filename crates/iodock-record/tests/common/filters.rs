//! Makes calls fail as on other kernels.

/// Makes a call fail with `error` on this thread, and in its later threads and programs. With an argument
/// (index and value), only calls with this value fail. Returns false if filters are not available.
pub fn refuse(call: libc::c_long, argument: Option<(u32, u32)>, error: libc::c_int) -> bool {
    let number = std::mem::offset_of!(libc::seccomp_data, nr) as u32;
    let arguments = std::mem::offset_of!(libc::seccomp_data, args) as u32;
    let statement = |code: u32, to: u8, k: u32| libc::sock_filter { code: code as u16, jt: 0, jf: to, k };
    let load = |at: u32| statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, at);
    let is_equal = |to: u8, k: u32| statement(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, to, k);
    let give = |k: u32| statement(libc::BPF_RET | libc::BPF_K, 0, k);
    // Without an argument the filter compares the call's number twice.
    let (second, value) =
        argument.map_or((number, call as u32), |(which, value)| (arguments + 8 * which, value));
    let mut filter = [
        load(number),
        is_equal(3, call as u32),
        load(second),
        is_equal(1, value),
        give(libc::SECCOMP_RET_ERRNO | error as u32),
        give(libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: the filter lives until the call returns, and affects only this thread.
    unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &program) == 0
    }
}
