//! Records a command: `record STORE COMMAND...`. The environment variable BACKEND names the back end,
//! COMPLETE requests all calls, and QUIET hides the outcome.

use iodock_record::{record, ProgramExit, RecordOptions};

fn main() {
    let mut arguments = std::env::args_os().skip(1);
    let Some(store) = arguments.next() else { std::process::exit(2) };
    let mut options = RecordOptions::new(arguments.collect(), store.into());
    options.force = true;
    if let Some(backend) = std::env::var_os("BACKEND") {
        options.backend = backend.to_string_lossy().into_owned();
    }
    options.complete = std::env::var_os("COMPLETE").is_some();
    options.light = std::env::var_os("LIGHT").map(|_| Default::default());
    match record(&options, Default::default()) {
        Ok(outcome) => {
            if std::env::var_os("QUIET").is_none() {
                eprintln!("{outcome:?}");
            }
            std::process::exit(match outcome.exit {
                ProgramExit::Code(code) => code,
                ProgramExit::Signal(signal) => 128 + signal,
                ProgramExit::Running => 0,
            });
        }
        Err(error) => {
            eprintln!("error: {error}\nhint: {}", error.hint());
            std::process::exit(error.exit_status());
        }
    }
}
