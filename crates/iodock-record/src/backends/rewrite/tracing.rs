//! Traces calls that the library does not record: programs that it can't reach, and with `--complete` calls
//! of the dynamic linker before it is loaded. They are stored in a separate journal, next to the first one.

use crate::backends::ptrace::{self, Requests};
use crate::backends::Ended;
use crate::clock::Clock;
use crate::control::Control;
use crate::{doctor, program};
use iodock_journal::{Closing, JournalMeta, JournalWriter};
use iodock_preload::asking::{Asking, TRACE};
use iodock_preload::calls;
use iodock_preload::format::trace;
use iodock_preload::session::Session;
use std::path::Path;
use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;

const AGAIN: Duration = Duration::from_millis(1);

/// Starts tracing in addition to the library, when threads request it.
pub struct Tracing<'a> {
    pub session: &'a Session,
    /// Path of the journal, next to which the trace is stored.
    pub journal: &'a Path,
    pub root: u32,
    pub clock: &'a Clock,
    pub control: &'a Control,
    /// Whether calls before the library is loaded are recorded, too.
    pub complete: bool,
    pub requests: &'a Requests,
}

impl Tracing<'_> {
    /// Runs `work`, and traces threads that request it during that time. `work` gets whether the first
    /// process is traced already.
    pub fn around<T>(&self, work: impl FnOnce(bool) -> T) -> (T, Option<Ended>) {
        if doctor::ptrace_refusal().is_some() {
            return (work(false), None);
        }
        let unseen = trace::UNSEEN | if self.complete { trace::ALL } else { 0 };
        // Only a privileged tracer may trace programs that gain privileges: another one would remove the
        // privileges.
        let what = unseen | if program::is_root() { trace::PRIVILEGED } else { 0 };
        // If the session's header can't be mapped, no thread requests tracing.
        let Ok(asking) = Asking::begin(self.session, TRACE, what) else { return (work(false), None) };
        thread::scope(|scope| {
            let end = End(&asking, self.requests);
            let start = || scope.spawn(|| self.trace());
            let mut tracer = self.complete.then(start);
            let root_is_taken = self.complete && self.requests.ask(self.root);
            let asking = &asking;
            let answering = scope.spawn(move || {
                let serve = |tid| {
                    tracer.get_or_insert_with(start);
                    self.requests.ask(tid)
                };
                asking.answer(serve, |tid| self.requests.withdraw(tid));
                tracer
            });
            let done = work(root_is_taken);
            drop(end);
            let tracer = answering.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            (done, tracer.map(|tracer| self.ended(tracer)))
        })
    }

    fn trace(&self) -> Ended {
        let path = self.journal.with_extension(calls::TRACED_ENDING);
        let meta = JournalMeta { how: "ptrace".into(), ..JournalMeta::default() };
        let mut journal = match JournalWriter::create(path, &meta) {
            Ok(journal) => journal,
            Err(error) => return self.refuse(format!("{error}; {}", error.hint())),
        };
        let mut ended = ptrace::serve(self.requests, self.root, &mut journal, self.clock, self.control);
        if let Err(error) = journal.close(&Closing::default()) {
            ended.failure.get_or_insert(format!("{error}; {}", error.hint()));
        }
        ended
    }

    /// Waits for the tracer's end, and wakes it repeatedly, because a signal just before the tracer waits has
    /// no effect.
    fn ended(&self, tracer: ScopedJoinHandle<'_, Ended>) -> Ended {
        while !tracer.is_finished() {
            self.requests.wake();
            thread::sleep(AGAIN);
        }
        tracer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    /// Refuses all requests after a failure.
    fn refuse(&self, failure: String) -> Ended {
        self.requests.refuse();
        Ended { failure: Some(failure), ..Ended::default() }
    }
}

/// When dropped, it stops answering requests.
struct End<'a>(&'a Asking, &'a Requests);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.1.close();
        self.0.stop();
    }
}
