//! Communicates with a running recording: signals, a cancel flag, and a tick once a second.
//!
//! The recorder sleeps in `waitpid`, which only a signal interrupts. So a signal handler or the ticker thread
//! stores a message in an atomic variable and then wakes the recorder's thread with a dedicated signal. If
//! this signal arrives just before the recorder waits, it has no effect, and the ticker repeats it.

use crate::faults::{Mode, PageFaults};
use crate::locks::lock;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard};

/// These variables are static, because a signal handler gets no other data. [`SignalGuard`] lets only one
/// recording at a time use them.
static RECORDER_THREAD: AtomicI32 = AtomicI32::new(0);
static SENT_COUNT: AtomicU32 = AtomicU32::new(0);
static LAST_SENT: AtomicI32 = AtomicI32::new(0);
static TERMINAL_COUNT: AtomicU32 = AtomicU32::new(0);
static TOLD_COUNT: AtomicU32 = AtomicU32::new(0);
/// Has one bit for each signal to be passed on.
static TO_PASS_ON: AtomicU64 = AtomicU64::new(0);
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Signals that request the end of a program.
const ENDING: [libc::c_int; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];
/// Signals that inform a program. A batch system, for example, sends them before the time limit.
const TELLING: [libc::c_int; 2] = [libc::SIGUSR1, libc::SIGUSR2];
/// Other signals that would kill the recorder. A program may send them to its whole process group, which
/// includes the recorder.
const OTHERS: [libc::c_int; 7] = [
    libc::SIGALRM,
    libc::SIGVTALRM,
    libc::SIGPROF,
    libc::SIGIO,
    libc::SIGPWR,
    libc::SIGSTKFLT,
    libc::SIGXCPU,
];

/// State that the recorder, the ticker and the sampler share.
#[derive(Default)]
pub struct Control {
    pub cancelled: Arc<AtomicBool>,
    /// Samples of the counters. Reader threads share this list and may outlive the recording: see
    /// `sampler::readers`.
    samples: Arc<Mutex<Vec<iodock_event::Sample>>>,
    /// Recorded processes. The sampler sums their /proc/PID/io.
    pub processes: Mutex<Vec<u32>>,
    pub finished: AtomicBool,
    /// Watches page faults. It is notified before a process maps a file.
    pub faults: PageFaults,
}

/// Numbers of signals that were received, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// Number of signals that a process sent to request the end (kill, mpirun, a batch system), and the last
    /// of them.
    pub sent: u32,
    pub last_sent: i32,
    /// Number of signals from keys of the terminal.
    pub terminal: u32,
    /// Number of signals that only inform the program.
    pub told: u32,
}

impl Control {
    pub fn new(cancelled: Arc<AtomicBool>, page_faults: Mode) -> Self {
        Control { cancelled, faults: PageFaults::new(page_faults), ..Control::default() }
    }

    pub fn received(&self) -> Received {
        Received {
            sent: SENT_COUNT.load(SeqCst),
            last_sent: LAST_SENT.load(SeqCst),
            terminal: TERMINAL_COUNT.load(SeqCst),
            told: TOLD_COUNT.load(SeqCst),
        }
    }

    /// Returns the signals for the program that arrived since the last call.
    pub fn take_to_pass_on(&self) -> impl Iterator<Item = libc::c_int> {
        let came = TO_PASS_ON.swap(0, SeqCst);
        TELLING.into_iter().filter(move |signal| came & (1 << signal) != 0)
    }

    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(SeqCst)
    }

    pub fn give_samples(&self, samples: &mut Vec<iodock_event::Sample>) {
        lock(&self.samples).append(samples);
    }

    /// Returns the list in which readers of counters store their samples.
    pub fn sample_box(&self) -> Arc<Mutex<Vec<iodock_event::Sample>>> {
        self.samples.clone()
    }

    pub fn take_samples(&self) -> Vec<iodock_event::Sample> {
        std::mem::take(&mut *lock(&self.samples))
    }
}

/// Returns the signal that interrupts the recorder's wait.
pub fn wake_signal() -> libc::c_int {
    libc::SIGRTMIN() + 5
}

/// Interrupts the recorder's wait, if it waits.
pub fn wake() {
    let thread = RECORDER_THREAD.load(SeqCst);
    if thread != 0 {
        // SAFETY: tgkill only sends a signal, which has a handler while the id is set.
        unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), thread, wake_signal()) };
    }
}

/// Makes the calling thread the recorder's. Only the wake signal may reach this thread, so that no other
/// signal interrupts a system call of the recorder.
pub fn adopt_thread() {
    hear_wake_only();
    // SAFETY: gettid has no arguments and can't fail.
    RECORDER_THREAD.store(unsafe { libc::gettid() }, SeqCst);
}

/// Blocks all signals except the wake signal in the calling thread.
pub fn hear_wake_only() {
    // SAFETY: the functions access only a local signal set.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&mut set);
        libc::sigdelset(&mut set, wake_signal());
        libc::pthread_sigmask(libc::SIG_SETMASK, &set, ptr::null_mut());
    }
}

extern "C" fn on_signal(signal: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: errno is restored, because the signal may arrive between a call and the reading of errno; the
    // kernel passes a valid `info`.
    unsafe {
        let errno = *libc::__errno_location();
        if (*info).si_code == libc::SI_KERNEL {
            TERMINAL_COUNT.fetch_add(1, SeqCst);
        } else {
            LAST_SENT.store(signal, SeqCst);
            SENT_COUNT.fetch_add(1, SeqCst);
        }
        wake();
        *libc::__errno_location() = errno;
    }
}

extern "C" fn on_telling(signal: libc::c_int, _: *mut libc::siginfo_t, _: *mut libc::c_void) {
    TO_PASS_ON.fetch_or(1 << signal, SeqCst);
    TOLD_COUNT.fetch_add(1, SeqCst);
    // SAFETY: errno is restored, because the signal may arrive between a call and the reading of errno.
    unsafe {
        let errno = *libc::__errno_location();
        wake();
        *libc::__errno_location() = errno;
    }
}

/// Does nothing. It is also the handler of signals that are only for the program: they can't be ignored,
/// because an ignored signal would also be ignored in the program.
extern "C" fn on_wake(_: libc::c_int) {}

/// Installs the recorder's signal handlers during a recording. Signals that were ignored stay ignored
/// (nohup).
pub struct SignalGuard {
    previous: Vec<(libc::c_int, libc::sigaction)>,
    _one: MutexGuard<'static, ()>,
}

impl SignalGuard {
    pub fn install() -> Self {
        let one = lock(&ONE_AT_A_TIME);
        SENT_COUNT.store(0, SeqCst);
        TERMINAL_COUNT.store(0, SeqCst);
        TO_PASS_ON.store(0, SeqCst);
        let mut guard = SignalGuard { previous: Vec::new(), _one: one };
        let told = libc::SA_SIGINFO | libc::SA_RESTART;
        for signal in OTHERS.into_iter().chain(libc::SIGRTMIN()..=libc::SIGRTMAX()) {
            // The wake signal must interrupt the wait, so its handler is installed without SA_RESTART.
            let flags = if signal == wake_signal() { 0 } else { libc::SA_RESTART };
            guard.replace(signal, on_wake as *const () as usize, flags);
        }
        for signal in ENDING {
            guard.replace(signal, on_signal as *const () as usize, told);
        }
        for signal in TELLING {
            guard.replace(signal, on_telling as *const () as usize, told);
        }
        guard.silence_stops();
        guard
    }

    /// Suppresses SIGCHLD for stops. Otherwise the kernel sends it to this process at every stop of a traced
    /// thread and wakes another thread of the recorder. Measurements show that this adds half of the cost of
    /// the stop itself. If the caller ignored SIGCHLD, the program's exit status would be lost, so it is not
    /// ignored.
    fn silence_stops(&mut self) {
        // SAFETY: both structures are valid, and the previous handler stays.
        unsafe {
            let mut old: libc::sigaction = std::mem::zeroed();
            libc::sigaction(libc::SIGCHLD, ptr::null(), &mut old);
            let mut new = old;
            new.sa_flags = (old.sa_flags | libc::SA_NOCLDSTOP) & !libc::SA_NOCLDWAIT;
            if old.sa_sigaction == libc::SIG_IGN {
                new.sa_sigaction = libc::SIG_DFL;
            }
            if libc::sigaction(libc::SIGCHLD, &new, ptr::null_mut()) == 0 {
                self.previous.push((libc::SIGCHLD, old));
            }
        }
    }

    fn replace(&mut self, signal: libc::c_int, handler: usize, flags: libc::c_int) {
        // SAFETY: both structures are valid. The handlers use only atomic variables and async-signal-safe
        // calls.
        unsafe {
            let mut old: libc::sigaction = std::mem::zeroed();
            libc::sigaction(signal, ptr::null(), &mut old);
            if old.sa_sigaction == libc::SIG_IGN {
                return;
            }
            let mut new: libc::sigaction = std::mem::zeroed();
            new.sa_sigaction = handler;
            new.sa_flags = flags;
            libc::sigfillset(&mut new.sa_mask);
            if libc::sigaction(signal, &new, ptr::null_mut()) == 0 {
                self.previous.push((signal, old));
            }
        }
    }
}

impl Drop for SignalGuard {
    fn drop(&mut self) {
        RECORDER_THREAD.store(0, SeqCst);
        for (signal, old) in &self.previous {
            // SAFETY: the structure is one that sigaction returned before.
            unsafe { libc::sigaction(*signal, old, ptr::null_mut()) };
        }
    }
}
