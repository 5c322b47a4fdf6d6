//! Starts a program in such a way that a tracer can attach before the program's first call.

use crate::program::Program;
use std::ffi::CString;
use std::{fs, io, ptr};

const SHELL: &std::ffi::CStr = c"/bin/sh";

/// Checks whether this number of further files can be opened.
///
/// # Errors
/// Fails if `ulimit -n` or the machine's own limit does not allow it.
pub fn may_open(files: usize) -> io::Result<()> {
    let one = fs::File::open("/dev/null")?;
    (1..files).map(|_| one.try_clone()).collect::<io::Result<Vec<_>>>().map(drop)
}

/// A child process that waits until the recorder releases it.
pub struct Waiting {
    pub pid: libc::pid_t,
    gate: libc::c_int,
    report: libc::c_int,
}

impl Waiting {
    /// Makes the child continue to its exec.
    pub fn release(&mut self) {
        // SAFETY: the byte is valid memory, and this value owns the pipe.
        unsafe {
            libc::write(self.gate, b"g".as_ptr().cast(), 1);
            libc::close(self.gate);
        }
        self.gate = -1;
    }

    /// Returns the reason why the child ended before its exec. `None` if the exec succeeded.
    pub fn failure(&self) -> Option<io::Error> {
        let mut errno = [0u8; 4];
        let mut wanted = libc::pollfd { fd: self.report, events: libc::POLLIN, revents: 0 };
        // SAFETY: the buffer has this size, and this value owns the pipe. poll comes first, because a child
        // of another thread may keep the pipe's other end open.
        let count = unsafe {
            match libc::poll(&mut wanted, 1, 0) {
                1 => libc::read(self.report, errno.as_mut_ptr().cast(), 4),
                _ => 0,
            }
        };
        (count == 4).then(|| io::Error::from_raw_os_error(i32::from_ne_bytes(errno)))
    }

    /// Ends a child that never got a tracer.
    pub fn abandon(self) {
        // SAFETY: the calls access no memory of the caller, and the child was not waited for, so its id is
        // still valid.
        unsafe {
            libc::kill(self.pid, libc::SIGKILL);
            libc::waitpid(self.pid, ptr::null_mut(), libc::__WALL);
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        for descriptor in [self.gate, self.report] {
            if descriptor >= 0 {
                // SAFETY: this value owns the descriptor and closes it only once.
                unsafe { libc::close(descriptor) };
            }
        }
    }
}

/// Forks a child that waits until [`Waiting::release`] and then executes the program.
pub fn fork(program: &Program) -> io::Result<Waiting> {
    let pointers = |texts: &[CString]| -> Vec<*const libc::c_char> {
        texts.iter().map(|text| text.as_ptr()).chain([ptr::null()]).collect()
    };
    let arguments = pointers(&program.c_arguments);
    let environment = pointers(&program.c_environment);
    // A file that is not a binary is executed as a shell script, as in execvp.
    let mut shell = vec![SHELL.as_ptr(), program.c_path.as_ptr()];
    shell.extend(&arguments[1..]);
    let (gate, report) = (pipe()?, pipe()?);
    let plan = Plan {
        path: program.c_path.as_ptr(),
        arguments: arguments.as_ptr(),
        shell_arguments: shell.as_ptr(),
        environment: environment.as_ptr(),
        gate: gate[0],
        report: report[1],
        mask: program.mask,
        ignores_children: program.ignores_children,
    };
    // SAFETY: the child runs only `start`, which makes async-signal-safe calls with memory that was allocated
    // before.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        // The parent's ends are closed in the child, so that the child notices the parent's end while it
        // waits.
        // SAFETY: only the child's copies of the descriptors are closed.
        unsafe {
            libc::close(gate[1]);
            libc::close(report[0]);
            start(&plan)
        }
    }
    // SAFETY: the parent owns these descriptors, which are the child's ends.
    unsafe {
        libc::close(gate[0]);
        libc::close(report[1]);
    }
    let waiting = Waiting { pid, gate: gate[1], report: report[0] };
    if pid < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(waiting)
}

fn pipe() -> io::Result<[libc::c_int; 2]> {
    let mut ends = [-1; 2];
    // SAFETY: the array has room for two descriptors.
    match unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } {
        0 => Ok(ends),
        _ => Err(io::Error::last_os_error()),
    }
}

struct Plan {
    path: *const libc::c_char,
    arguments: *const *const libc::c_char,
    shell_arguments: *const *const libc::c_char,
    environment: *const *const libc::c_char,
    gate: libc::c_int,
    report: libc::c_int,
    mask: libc::sigset_t,
    ignores_children: bool,
}

/// Runs in the child, up to its exec.
///
/// # Safety
/// Call it only in a forked child. Every pointer in `plan` must be valid.
unsafe fn start(plan: &Plan) -> ! {
    // Python and Rust ignore these two signals, but a program expects the state that a shell sets.
    libc::signal(libc::SIGPIPE, libc::SIG_DFL);
    libc::signal(libc::SIGXFSZ, libc::SIG_DFL);
    if plan.ignores_children {
        libc::signal(libc::SIGCHLD, libc::SIG_IGN);
    }
    let mut byte = 0u8;
    loop {
        let count = libc::read(plan.gate, ptr::addr_of_mut!(byte).cast(), 1);
        if count == 1 {
            break;
        }
        if count == 0 || *libc::__errno_location() != libc::EINTR {
            libc::_exit(127);
        }
    }
    libc::pthread_sigmask(libc::SIG_SETMASK, &plan.mask, ptr::null_mut());
    libc::execve(plan.path, plan.arguments, plan.environment);
    if *libc::__errno_location() == libc::ENOEXEC {
        libc::execve(SHELL.as_ptr(), plan.shell_arguments, plan.environment);
    }
    report(plan.report)
}

/// Reports the error in errno to the recorder, and ends the child.
///
/// # Safety
/// Call it only in a forked child.
unsafe fn report(descriptor: libc::c_int) -> ! {
    let errno = *libc::__errno_location();
    libc::write(descriptor, errno.to_ne_bytes().as_ptr().cast(), 4);
    let missing = matches!(errno, libc::ENOENT | libc::ENOTDIR);
    libc::_exit(if missing { 127 } else { 126 })
}
