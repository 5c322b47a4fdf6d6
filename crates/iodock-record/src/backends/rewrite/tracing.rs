//! Traces what the library does not see: programs that it does not reach, and with `--complete` calls of the
//! dynamic linker before it is loaded. Stored in a separate journal, next to the first one.

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

/// Tracing in addition to the library.
pub struct Tracing<'a> {
    pub session: &'a Session,
    /// The journal's path.
    pub journal: &'a Path,
    pub root: u32,
    pub clock: &'a Clock,
    pub control: &'a Control,
    /// Includes calls before the library is loaded.
    pub complete: bool,
    pub requests: &'a Requests,
}

impl Tracing<'_> {
    /// Runs `work`, and in the meantime traces threads that request it. `work` gets whether the first process
    /// is traced already.
    pub fn around<T>(&self, work: impl FnOnce(bool) -> T) -> (T, Option<Ended>) {
        if doctor::ptrace_refusal().is_some() {
            return (work(false), None);
        }
        let unseen = trace::UNSEEN | if self.complete { trace::ALL } else { 0 };
        // An unprivileged tracer would remove the program's privileges.
        let what = unseen | if program::is_root() { trace::PRIVILEGED } else { 0 };
        // If the header can't be mapped, no thread requests tracing.
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

    /// A signal just before the tracer waits is lost, so it is repeated.
    fn ended(&self, tracer: ScopedJoinHandle<'_, Ended>) -> Ended {
        while !tracer.is_finished() {
            self.requests.wake();
            thread::sleep(AGAIN);
        }
        tracer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    /// All requests are refused.
    fn refuse(&self, failure: String) -> Ended {
        self.requests.refuse();
        Ended { failure: Some(failure), ..Ended::default() }
    }
}

/// Ends the answering in every case.
struct End<'a>(&'a Asking, &'a Requests);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.1.close();
        self.0.stop();
    }
}
