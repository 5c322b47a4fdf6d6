//! Runs a program whose calls are counted, and prints the counters, a line for each process and file: `count
//! PROGRAM ARGUMENT...`. The variable MEMORY sets the size of a process's table in bytes; with QUIET the
//! counters are not printed.

use iodock_preload::light::{words, Light, Table};
use iodock_preload::session::{self, Session, Wanted};
use std::os::unix::process::CommandExt;
use std::process::Command;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let program = arguments.next().expect("usage: count PROGRAM ARGUMENT...");
    let folder = std::path::PathBuf::from(format!("/dev/shm/iodock-count-{}", std::process::id()));
    let memory = std::env::var("MEMORY").ok().and_then(|bytes| bytes.parse().ok());
    let light = Light { memory: memory.unwrap_or(Light::default().memory), ..Light::default() };
    let session = Session::create_for(
        &folder,
        &session::libraries(),
        Wanted { light: Some(light), ..Wanted::default() },
    )
    .expect("session");
    let status = Command::new(&program)
        .arg0(&program)
        .args(arguments)
        .env("LD_PRELOAD", session.library())
        .env("IODOCK_SESSION", session.path())
        .status()
        .expect("program");
    if std::env::var_os("QUIET").is_none() {
        show(&session);
    }
    eprintln!("{status}");
    std::fs::remove_dir_all(&folder).expect("remove");
}

fn show(session: &Session) {
    println!("pid kind files opens reads read_bytes writes written_bytes seeks stats syncs others failed untimed name");
    for number in 0..session.tables().expect("tables") {
        let bytes = session.table(number).expect("table").expect("begun");
        let table = Table::parse(&bytes).expect("whole");
        for row in &table.rows {
            use words::{BYTES, CALLS, FAILED, FILES, OPENS, OTHERS, SEEKS, STATS, SYNCS, UNTIMED};
            let told = [
                FILES,
                OPENS,
                CALLS,
                BYTES,
                CALLS + 1,
                BYTES + 1,
                SEEKS,
                STATS,
                SYNCS,
                OTHERS,
                FAILED,
                UNTIMED,
            ];
            let told: Vec<String> = told.iter().map(|&word| row.words[word].to_string()).collect();
            let name = String::from_utf8_lossy(&row.name);
            println!("{} {:?} {} {name}", table.pid, row.kind, told.join(" "));
        }
        println!("{} accesses, {} folded, {} bytes", table.accesses.len(), table.folded, bytes.len());
    }
}
