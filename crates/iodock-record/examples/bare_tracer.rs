//! A minimal tracer that stops at the beginning and the end of every call. It reads arguments and results of
//! the calls that iodock records, but stores nothing. It shows which part of the cost of recording is that of
//! the stops.

fn main() {
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    std::process::exit(bare::run());
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod bare {
    use iodock_record::backends::ptrace::recorded::recorded_calls;
    use iodock_record::backends::ptrace::request;
    use std::ffi::CString;
    use std::os::unix::ffi::OsStringExt;
    use std::ptr;

    pub fn run() -> i32 {
        let arguments: Vec<CString> = std::env::args_os()
            .skip(1)
            .filter_map(|argument| CString::new(argument.into_vec()).ok())
            .collect();
        let mut pointers: Vec<*const libc::c_char> = arguments.iter().map(|text| text.as_ptr()).collect();
        if pointers.is_empty() {
            return 2;
        }
        pointers.push(ptr::null());
        // SAFETY: the child makes only system calls, with memory that was allocated before the fork.
        unsafe {
            let child = libc::fork();
            if child == 0 {
                start(&pointers);
            }
            let mut status = 0;
            libc::waitpid(child, &mut status, libc::WUNTRACED);
            if request::seize(child as u32, request::OPTIONS).is_err() {
                return 1;
            }
            libc::kill(child, libc::SIGCONT);
            follow(child)
        }
    }

    unsafe fn start(pointers: &[*const libc::c_char]) -> ! {
        libc::raise(libc::SIGSTOP);
        libc::execvp(pointers[0], pointers.as_ptr());
        libc::_exit(127)
    }

    unsafe fn follow(root: libc::pid_t) -> i32 {
        let (mut status, mut code) = (0, 0);
        let calls = recorded_calls();
        let mut in_call = vec![false; 4 << 20];
        loop {
            let tid = libc::waitpid(-1, &mut status, libc::__WALL);
            if tid < 0 {
                return code;
            }
            if !libc::WIFSTOPPED(status) {
                in_call[tid as usize] = false;
                if tid == root {
                    code = if libc::WIFEXITED(status) {
                        libc::WEXITSTATUS(status)
                    } else {
                        128 + libc::WTERMSIG(status)
                    };
                }
                continue;
            }
            let (signal, event) = (libc::WSTOPSIG(status), status >> 16);
            let mut pass = 0;
            if event == 0 && signal == libc::SIGTRAP | 0x80 && in_call[tid as usize] {
                let _ = request::result(tid as u32);
                in_call[tid as usize] = false;
            } else if event == 0 && signal == libc::SIGTRAP | 0x80 {
                in_call[tid as usize] = request::call_info(tid as u32).is_ok_and(|info| {
                    let recorded = calls.get(info.number as usize).is_some_and(Option::is_some);
                    info.op == request::OP_ENTRY && recorded
                });
            } else if event == 0 {
                pass = signal;
            } else if event == request::EVENT_STOP && signal != libc::SIGTRAP {
                let _ = request::listen(tid as u32);
                continue;
            }
            let _ = request::resume_to_call(tid as u32, pass);
        }
    }
}
