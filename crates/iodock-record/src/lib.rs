//! Records running programs. It starts a program, or attaches to running ones, follows all descendants, and
//! appends their operations to a journal in the store at least once a second. Afterwards `iodock_import`
//! makes the store's tables from the journal, in the same way as from a log.
//!
//! One separate thread forks, traces, waits and writes. A second thread wakes it once a second. Neither
//! affects the threads, children or signals of the calling process after the recording.

pub mod backends;
mod begin;
mod clock;
pub mod control;
mod doctor;
mod error;
pub mod faults;
mod job;
mod launch;
mod locks;
mod naming;
mod options;
mod parts;
mod places;
mod process;
mod program;
pub mod sampler;
mod standing;
pub use iodock_event::signals;

pub use backends::ProgramExit;
pub use begin::{begin_counting, Begun};
pub use clock::Clock;
pub use doctor::{doctor, Fact};
pub use error::{RecordError, Refusal};
pub use iodock_event::ranks::RankSet;
pub use iodock_preload::light::{Light, Whole};
use iodock_preload::session::Layers;
pub use iodock_preload::session::Stacks;
pub use naming::Way;
pub use options::{AttachOptions, Interfaces, RecordOptions, RecordOutcome};
pub use parts::rank_of_this_process;

use backends::choice::{self, Choice};
use backends::reason::Reason;
use backends::{Ended, Target};
use control::{Control, SignalGuard};
use iodock_journal::{Closing, JournalMeta};
use parts::Part;
use program::Program;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread;

/// Runs a command and records it until all its descendants have ended.
///
/// During this time the recorder handles signals that request the end (SIGINT, SIGTERM, SIGHUP, SIGQUIT).
/// Keys of the terminal reach the program as usual. The recorder passes a signal sent to this process on to
/// the program, and a second signal kills the program. Setting `cancel` also kills it. The store is valid in
/// every case.
///
/// # Errors
/// Fails if nothing was recorded. The program has then not run, unless the store could not be created.
pub fn record(options: &RecordOptions, cancel: Arc<AtomicBool>) -> Result<RecordOutcome, RecordError> {
    let mut program = Program::find(&options.command)?;
    let (light, whole) = (options.light, &options.whole);
    (program.complete, program.light) = (options.complete, light);
    program.whole = whole.clone();
    let choice = choice::for_program(&options.backend, &program)?;
    if light.is_some() {
        choice.allow_light()?;
    }
    let has_stacks = |stacks: Option<Stacks>| stacks.is_some_and(|which| which != Stacks::Off);
    if has_stacks(options.stacks) {
        choice.allow_stacks()?;
    }
    program.stacks = options.stacks.unwrap_or(match light {
        Some(_) if whole.is_none() => Stacks::Off,
        _ => Stacks::Sites,
    });
    // A tracer would record how this library is loaded, so it is not loaded with `complete`. Counters do not
    // distinguish interfaces.
    let has_calls = light.is_none() || whole.is_some();
    if choice.backend.name() == "rewrite" && !options.complete && has_calls {
        program.interfaces = backends::interfaces::wanted(options.interfaces, &program);
    }
    let command: Vec<Vec<u8>> = options.command.iter().map(|argument| bytes(argument)).collect();
    let meta_of = |choice: Choice| {
        let mut meta = meta(choice, command.clone());
        if program.stacks != Stacks::Off && choice.backend.name() == "rewrite" {
            meta.extra.insert("stacks".into(), program.stacks.name().into());
        }
        if program.interfaces != Layers::None {
            meta.extra.insert("interfaces".into(), "recorded".into());
        }
        meta.extra.extend(light.map(|light| ("light".into(), light.memory.to_string())));
        if let Some(whole) = whole {
            meta.extra.insert("whole_ranks".into(), whole.ranks.to_string());
            meta.extra.insert("counts_unranked".into(), whole.counts_unranked.to_string());
        }
        meta
    };
    let part = Part::claim(&options.store, options.force, &meta_of(choice))?;
    let run_by = |choice: Choice| {
        let target = Target::Launch(Box::new(program.clone()));
        if choice.backend.name() == "rewrite" && light.is_none() {
            options.begun.iter().for_each(|begun| begun(&part.store));
        }
        let settings = (
            &options.sampling,
            if light.is_some() && whole.is_none() { faults::Mode::Never } else { options.page_faults },
        );
        run(choice, target, &part, meta_of(choice), settings, cancel.clone())
    };
    let recorded = match (run_by(choice), choice.reason) {
        (Err(RecordError::Refused(refusal)), Reason::Cheapest)
            if light.is_none() && !has_stacks(options.stacks) =>
        {
            part.clear();
            choice::without_buffers().and_then(run_by).map(|outcome| outcome.warned_of(refusal))
        }
        (recorded, _) => recorded,
    };
    end(part, recorded)
}

/// Records running processes until they end, or until a signal or `cancel` stops the recording. The processes
/// continue unaffected.
///
/// # Errors
/// Fails if a process does not exist or may not be traced. None of the processes is then changed.
pub fn attach(options: &AttachOptions, cancel: Arc<AtomicBool>) -> Result<RecordOutcome, RecordError> {
    let choice = choice::for_running(&options.backend, options.group.is_some())?;
    let command = options.pids.first().map_or_else(Vec::new, |&pid| {
        process::command(pid).split(|&byte| byte == 0).map(<[u8]>::to_vec).collect()
    });
    let meta = meta(choice, command);
    let part = Part::claim(&options.store, options.force, &meta)?;
    let target = match &options.group {
        Some(path) => Target::Group(path.clone()),
        None => Target::Attach(options.pids.clone()),
    };
    let recorded = run(choice, target, &part, meta, (&options.sampling, options.page_faults), cancel);
    end(part, recorded)
}

/// Removes all files of a recording that did not start, and closes the part of one that did.
fn end(part: Part, recorded: Result<RecordOutcome, RecordError>) -> Result<RecordOutcome, RecordError> {
    let mut outcome = recorded.inspect_err(|_| part.abandon())?;
    outcome.must_finish = part.close()?;
    outcome.folder = part.folder;
    Ok(outcome)
}

fn bytes(text: &std::ffi::OsStr) -> Vec<u8> {
    std::os::unix::ffi::OsStrExt::as_bytes(text).to_vec()
}

fn meta(choice: Choice, command: Vec<Vec<u8>>) -> JournalMeta {
    let (rank, ranks) = parts::rank_of_this_process();
    let mut extra = job::described(|name| std::env::var(name).ok());
    extra.extend(parts::launch().map(|launch| ("launch".into(), launch)));
    extra.insert("why".into(), choice.reason.name().into());
    JournalMeta {
        how: choice.backend.name().into(),
        host: places::host_name(),
        kernel: places::kernel(),
        cpus: thread::available_parallelism().ok().map(|count| count.get() as u32),
        command,
        working_directory: std::env::current_dir().map(|path| bytes(path.as_os_str())).unwrap_or_default(),
        pid: Some(std::process::id()),
        rank,
        ranks,
        start: Some(Clock::start().now()),
        extra,
        ..JournalMeta::default()
    }
}

/// Runs a back end, and writes the journal.
///
/// # Errors
/// Fails if the program was not run. The files that were written so far remain.
fn run(
    Choice { backend, reason }: Choice,
    target: Target,
    part: &Part,
    meta: JournalMeta,
    (sampling, page_faults): (&sampler::Settings, faults::Mode),
    cancel: Arc<AtomicBool>,
) -> Result<RecordOutcome, RecordError> {
    let clock = Clock::start();
    // If several ranks share a store, only the rank that created it prints the warnings.
    let mut warnings = if part.created { places::warnings(&part.store) } else { Vec::new() };
    let mut journal = part.open_journal(&meta)?;
    let mounts = sampler::mounts(&sampling.root, &mut warnings);
    let mounted = journal.mounts(&mounts);
    mounted.map_err(|error| RecordError::Store(Refusal::new(error.to_string(), error.hint())))?;
    let control = Control::new(cancel, page_faults);
    let guard = SignalGuard::install();
    let faults_path = journal.path().with_extension(faults::ENDING);
    let (result, faults, silent) = thread::scope(|scope| {
        let faults = scope.spawn(|| faults::follow(&control.faults, &faults_path, &meta, clock.epoch()));
        let ticker = scope.spawn(|| sampler::tick(&clock, &control, sampling));
        let recorder = scope.spawn(|| {
            control::adopt_thread();
            backend.run(target, &mut journal, &clock, &control)
        });
        let result = recorder.join();
        control.finished.store(true, Ordering::SeqCst);
        ticker.thread().unpark();
        control.faults.finish();
        (result, faults.join(), ticker.join())
    });
    drop(guard);
    let ended = result.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    let Ended { exit, mut failure, mut losses, killed, warnings: more } = ended?;
    let faults = faults.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    faults.losses.counts.iter().for_each(|(&kind, &count)| journal.lose(kind, count));
    losses.merge(&faults.losses);
    warnings.extend(more);
    warnings.extend(silent.unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
    warnings.extend(faults.failure);
    if killed > 0 {
        warnings.push(format!("{killed} processes were killed: a recording ends when all that its program has started has ended"));
    }
    let mut closing = closing(exit, clock.now(), places::on_measured_file_system(&part.store));
    closing.extra.insert("page_faults".into(), faults.state.into());
    let written_bytes = journal.written_bytes() + faults.written_bytes;
    if let Err(error) = journal.close(&closing) {
        failure.get_or_insert(format!("{error}; {}", error.hint()));
    }
    Ok(RecordOutcome {
        store: part.store.clone(),
        way: part.way.clone(),
        backend: backend.name(),
        reason,
        exit,
        must_finish: false,
        losses,
        warnings,
        failure,
        written_bytes,
        killed,
        folder: None,
    })
}

fn closing(exit: ProgramExit, end: i64, shares_file_system: bool) -> Closing {
    let mut closing = Closing { end: Some(end), ..Closing::default() };
    match exit {
        ProgramExit::Code(code) => closing.exit_code = Some(code),
        ProgramExit::Signal(signal) => closing.exit_signal = Some(signals::name(signal)),
        ProgramExit::Running => {}
    }
    closing.extra.insert("on_measured_file_system".into(), shares_file_system.to_string());
    closing
}
