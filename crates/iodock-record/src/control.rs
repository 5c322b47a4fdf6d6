//! Communication with a running recording: signals, a cancel flag, the tick once a second.
//!
//! The recorder sleeps in `waitpid`, which only a signal ends. So a signal handler or the ticker thread
//! stores its news in an atomic and wakes the recorder's thread with a dedicated signal. A wake that comes a
//! moment too early is lost; the ticker repeats it.

use crate::faults::{Mode, PageFaults};
use crate::locks::lock;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard};

/// Signal handlers have no arguments of ours, hence statics; [`SignalGuard`] lets one recording at a
/// time use them.
static RECORDER_THREAD: AtomicI32 = AtomicI32::new(0);
static SENT_COUNT: AtomicU32 = AtomicU32::new(0);
static LAST_SENT: AtomicI32 = AtomicI32::new(0);
static TERMINAL_COUNT: AtomicU32 = AtomicU32::new(0);
static TOLD_COUNT: AtomicU32 = AtomicU32::new(0);
/// A bit for each signal.
static TO_PASS_ON: AtomicU64 = AtomicU64::new(0);
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Signals that request the end of a program.
const ENDING: [libc::c_int; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];
/// Signals that inform a program: a batch system announces the end of the time limit.
const TELLING: [libc::c_int; 2] = [libc::SIGUSR1, libc::SIGUSR2];
/// Other signals that would kill the recorder, and that a program may have sent to its whole group.
const OTHERS: [libc::c_int; 7] = [
    libc::SIGALRM,
    libc::SIGVTALRM,
    libc::SIGPROF,
    libc::SIGIO,
    libc::SIGPWR,
    libc::SIGSTKFLT,
    libc::SIGXCPU,
];

/// State shared by recorder and ticker.
#[derive(Default)]
pub struct Control {
    pub cancelled: Arc<AtomicBool>,
    /// Shared with threads that may outlive the recording: see `sampler::readers`.
    samples: Arc<Mutex<Vec<iodock_event::Sample>>>,
    /// Recorded processes, whose /proc/PID/io the sampler sums.
    pub processes: Mutex<Vec<u32>>,
    pub finished: AtomicBool,
    /// To be notified before a process maps a file.
    pub faults: PageFaults,
}

/// Numbers of received signals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// Sent by a process (kill, mpirun, a batch system).
    pub sent: u32,
    pub last_sent: i32,
    /// From the terminal's keys.
    pub terminal: u32,
    /// Those that only inform the program.
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

    /// The signals for the program since the last call.
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

    /// Where readers of counters store their samples.
    pub fn sample_box(&self) -> Arc<Mutex<Vec<iodock_event::Sample>>> {
        self.samples.clone()
    }

    pub fn take_samples(&self) -> Vec<iodock_event::Sample> {
        std::mem::take(&mut *lock(&self.samples))
    }
}

/// The signal that ends the recorder's wait.
pub fn wake_signal() -> libc::c_int {
    libc::SIGRTMIN() + 5
}

/// Ends the recorder's wait, if it waits.
pub fn wake() {
    let thread = RECORDER_THREAD.load(SeqCst);
    if thread != 0 {
        // SAFETY: tgkill only sends a signal for which a handler is installed while the id is set.
        unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), thread, wake_signal()) };
    }
}

/// Called on the recorder's own thread: only the wake signal may reach it, so that a system call of the
/// recorder is never cut short by another.
pub fn adopt_thread() {
    hear_wake_only();
    // SAFETY: can't fail.
    RECORDER_THREAD.store(unsafe { libc::gettid() }, SeqCst);
}

/// Blocks all other signals in the calling thread.
pub fn hear_wake_only() {
    // SAFETY: plain calls on a local signal set.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&mut set);
        libc::sigdelset(&mut set, wake_signal());
        libc::pthread_sigmask(libc::SIG_SETMASK, &set, ptr::null_mut());
    }
}

extern "C" fn on_signal(signal: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: errno is restored, since the signal may come between a call and its reader; `info` is the
    // kernel's.
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
    // SAFETY: as above.
    unsafe {
        let errno = *libc::__errno_location();
        wake();
        *libc::__errno_location() = errno;
    }
}

/// Also handles signals that are not for us. (A handler is needed, because an ignored signal would stay
/// ignored in the program.)
extern "C" fn on_wake(_: libc::c_int) {}

/// Installs our signal handlers during a recording. Signals that were ignored stay ignored (nohup).
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
            // Our own signal must interrupt the wait.
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

    /// Without this the kernel sends SIGCHLD to this process at every stop of a traced thread and wakes
    /// another of our threads for it: measured, this adds half of the cost of the stop itself. And with
    /// SIGCHLD ignored the program's exit status would be lost.
    fn silence_stops(&mut self) {
        // SAFETY: as in `replace`; whatever handler there was stays.
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
        // SAFETY: both structures are valid; the handlers only touch atomics and make async-signal-safe
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
            // SAFETY: restores what sigaction returned.
            unsafe { libc::sigaction(*signal, old, ptr::null_mut()) };
        }
    }
}
