//! The program `iodock-agent`. It reads all sources once and prints them, or reads them repeatedly. Only this
//! file and [`arguments`] read the command line and end the process.

mod arguments;

use arguments::{arguments, Arguments, Format, Sending, Verb, HINT};
use iodock_agent::batches::Batches;
use iodock_agent::collection::{collect, Options, Outcome, SourceRound};
use iodock_agent::events::memory::Memory;
use iodock_agent::host::Question;
use iodock_agent::notes::{notes, Changes};
use iodock_agent::push::{Sender, Wrong};
use iodock_agent::rounds::Pace;
use iodock_agent::sample::printable;
use iodock_agent::serving::{raise_open_files, serve, Guard, Metrics, Pulled, Served, Spooling};
use iodock_agent::spool::Spool;
use iodock_agent::{exposition, json, sources};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::fd::FromRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::exit;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

fn main() {
    let arguments = arguments(std::env::args_os().skip(1)).unwrap_or_else(|message| wrong(&message, HINT));
    match arguments.verb {
        Some(Verb::Once) => once(&arguments),
        Some(Verb::Run) => run(&arguments),
        None => wrong("nothing to do", "iodock-agent once reads every source once"),
    }
}

fn once(arguments: &Arguments) -> ! {
    let options = arguments.options();
    let host = Asked::now(&options);
    let rounds = collect(&options, sources::ALL);
    let written = show(&rounds, &host.answer(&options), arguments.format);
    // Notes are written last, because stderr may be blocked, and the samples must not wait for it.
    notes(&rounds).iter().for_each(|note| tell(note));
    if let Err(error) = &written {
        tell(&format!("error: the output could not be written: {error}"));
    }
    let is_failed = |round: &SourceRound| round.outcome == Outcome::Failed;
    exit(i32::from(written.is_err() || rounds.iter().any(is_failed)));
}

fn run(arguments: &Arguments) -> ! {
    raise_open_files();
    let guard = Guard::new(&arguments.keys).and_then(|guard| guard.check(arguments.listen).map(|()| guard));
    let guard = guard.unwrap_or_else(|Wrong { what, hint }| wrong(&what, &hint));
    if guard.is_open() && arguments.sending().is_some_and(|sending| sending.is_pulled) {
        tell("note: --serve-spool: whoever is on this machine can have samples deleted that no collector has; --listen-token-file FILE keeps others out");
    }
    let options = arguments.options();
    let host = Asked::now(&options).answer(&options);
    let spooling = arguments.sending().map(|sending| spooling(sending, &host));
    let changes = Mutex::new(Changes::default());
    let said = move |rounds: &[SourceRound]| {
        let mut changes = changes.lock().unwrap_or_else(PoisonError::into_inner);
        changes.of(notes(rounds)).iter().for_each(|note| tell(note));
    };
    let pace = arguments.sending().map(|sending| Pace::new(sending.interval, &host));
    let memory = arguments.sending().map(|sending| memory(&sending.spool));
    if arguments.ends_with_input {
        in_thread("input", || {
            // The input ends when the parent process ends. Its content has no meaning, and an error also
            // means the end.
            let _ = io::copy(&mut io::stdin(), &mut io::sink());
            exit(0);
        });
    }
    let pulled = spooling.as_ref().filter(|_| arguments.sending().is_some_and(|sending| sending.is_pulled));
    let pulled = pulled.map(|spooling| Pulled::new(host.clone(), Arc::clone(&spooling.spool)));
    let metrics = Arc::new(Metrics::new(options, host, Box::new(said), spooling, memory));
    if let Some(pace) = pace {
        make_rounds(Arc::clone(&metrics), pace);
    }
    let ready = |address| tell(&format!("note: {address}"));
    if let Err(Wrong { what, hint }) = serve(Served { metrics, pulled, guard }, arguments.listen, ready) {
        wrong(&what, &hint);
    }
    exit(1);
}

fn spooling(sending: &Sending, host: &str) -> Spooling {
    let sender = sending.push.url.as_ref().map(|_| {
        let sender = Sender::new(sending.push.clone(), Box::new(tell));
        sender.unwrap_or_else(|Wrong { what, hint }| wrong(&what, &hint))
    });
    // SAFETY: no handler is installed. Ignoring SIGXFSZ makes a write beyond the file size limit return an
    // error instead of ending the process.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
    let spool = Spool::open(&sending.spool, sending.limit, Box::new(tell)).unwrap_or_else(|error| {
        let folder = printable(sending.spool.as_os_str().as_bytes());
        wrong(
            &format!("--spool {folder}: {error}"),
            "a folder of its own that only the agent's user may write to",
        );
    });
    if let Some(sender) = sender {
        let spool = Arc::clone(&spool);
        in_thread("push", move || sender.run(&spool));
    }
    Spooling { batches: Arc::new(Batches::new(host.into(), Arc::clone(&spool))), spool }
}

/// Reads the memory of events from the spool's folder, which this agent has locked before.
fn memory(folder: &Path) -> Memory {
    Memory::open(folder).unwrap_or_else(|error| {
        let folder = printable(folder.as_os_str().as_bytes());
        wrong(&format!("--spool {folder}: seen.json: {error}"), "a file that the agent's user may read")
    })
}

/// Starts the thread that reads all sources immediately and then once per interval.
fn make_rounds(metrics: Arc<Metrics>, pace: Pace) {
    let rounds = move || loop {
        metrics.round();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        thread::sleep(pace.pause(now));
    };
    in_thread("rounds", rounds);
}

fn in_thread(name: &str, work: impl FnOnce() + Send + 'static) {
    if let Err(error) = thread::Builder::new().name(name.into()).spawn(work) {
        wrong(&format!("no thread can be started: {error}"), "a higher limit of processes");
    }
}

/// Time and state of the request for the host's name.
struct Asked(Instant, Question);

impl Asked {
    fn now(options: &Options) -> Self {
        Asked(Instant::now(), Question::ask(options.root.clone()))
    }

    fn answer(self, options: &Options) -> String {
        self.1.answer(self.0, options.deadline).unwrap_or_else(|error| {
            let root = printable(options.root.as_os_str().as_bytes());
            wrong(&format!("--root {root}: {error}"), "give the folder that holds proc and sys");
        })
    }
}

/// Writes a round to standard output. Fails if it cannot be written.
fn show(rounds: &[SourceRound], host: &str, format: Format) -> io::Result<()> {
    // SAFETY: nothing else in this program uses descriptor 1. The file takes ownership, so that it is closed at
    // the end of this function: a thread that hangs in the kernel can keep the process alive, but readers of the
    // output must see its end.
    let mut out = BufWriter::new(unsafe { File::from_raw_fd(1) });
    let written = match format {
        Format::OpenMetrics => exposition::write(rounds, host, None, &mut out),
        Format::Json => json::write(rounds, host, &mut out),
    };
    let written = written.and_then(|()| out.flush());
    // Dropping a BufWriter would try to write its buffer again, so its parts are separated first.
    drop(out.into_parts().0);
    written
}

/// Writes a line to stderr. An error of stderr is ignored.
fn tell(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

fn wrong(message: &str, hint: &str) -> ! {
    tell(&format!("error: {message}\nhint: {hint}"));
    exit(2);
}
