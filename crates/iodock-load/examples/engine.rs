//! Executes the plan (JSON) in the first line of standard input; events go to standard output. Ends when
//! standard input does: `(cat plan.json; sleep 9999) | engine`.

use iodock_load::{run, Plan};
use std::io::{stdin, stdout, Read, Write};

fn main() {
    let mut line = Vec::new();
    let mut byte = [0u8];
    // Byte by byte, since the rest of the input is not ours to read.
    while matches!(stdin().lock().read(&mut byte), Ok(1)) && byte[0] != b'\n' {
        line.push(byte[0]);
    }
    let plan: Plan = serde_json::from_slice(&line).expect("a plan");
    run(&plan, &mut |event| {
        let _ = writeln!(stdout().lock(), "{}", serde_json::to_string(event).expect("plain data"));
    });
}
