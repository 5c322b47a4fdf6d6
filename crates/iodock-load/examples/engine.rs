//! Executes the plan (JSON) in the first line of standard input, and writes events to standard output. The
//! engine ends when standard input ends: `(cat plan.json; sleep 9999) | engine`.

use iodock_load::{run, Plan};
use std::io::{stdin, stdout, Read, Write};

fn main() {
    let mut line = Vec::new();
    let mut byte = [0u8];
    // The line is read byte by byte, because the engine itself reads the rest of the input.
    while matches!(stdin().lock().read(&mut byte), Ok(1)) && byte[0] != b'\n' {
        line.push(byte[0]);
    }
    let plan: Plan = serde_json::from_slice(&line).expect("a plan");
    run(&plan, &mut |event| {
        let _ = writeln!(stdout().lock(), "{}", serde_json::to_string(event).expect("plain data"));
    });
}
