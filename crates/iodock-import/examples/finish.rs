//! Makes the tables of a recording: `finish STORE`. `iodock record` does the same when the program has ended.

use std::sync::atomic::AtomicBool;

fn main() {
    let Some(store) = std::env::args_os().nth(1) else { std::process::exit(2) };
    match iodock_import::finish_recording(store.as_ref(), &mut |_| {}, &AtomicBool::new(false)) {
        Ok(summary) => eprintln!("{} calls", summary.calls),
        Err(error) => {
            eprintln!("error: {error}");
            std::process::exit(1);
        }
    }
}
