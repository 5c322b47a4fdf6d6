//! Runs a program with the preloaded library and prints the recorded calls: `dump [-c|-v|-q|-n] PROGRAM
//! ARGUMENT...`. -c prints for each call's name how often it was called, how often it failed, and how many
//! bytes its records take. -v prints each call, -q only totals, -n nothing.

use iodock_event::CallClass;
use iodock_preload::format::header;
use iodock_preload::reader::{ChunkReader, Entry, Part};
use iodock_preload::session::{self, Session};
use iodock_preload::shapes::Shapes;
use std::collections::BTreeMap;
use std::os::unix::process::CommandExt;
use std::process::Command;

fn main() {
    let mut arguments = std::env::args().skip(1).peekable();
    let mode = arguments.next_if(|first| first.starts_with('-')).unwrap_or("-c".into());
    let program = arguments.next().expect("usage: dump [-c|-v|-q|-n] PROGRAM ARGUMENT...");
    let tables = session::libraries();
    let folder = std::path::PathBuf::from(format!("/dev/shm/iodock-dump-{}", std::process::id()));
    let session = Session::create(&folder, &tables).expect("session");
    let status = Command::new(&program)
        .arg0(&program)
        .args(arguments)
        .env("LD_PRELOAD", session.library())
        .env("IODOCK_SESSION", session.path())
        .status()
        .expect("program");
    if mode != "-n" {
        show(&session, &mode);
    }
    eprintln!("{status}");
    std::fs::remove_dir_all(&folder).expect("remove");
}

fn show(session: &Session, mode: &str) {
    let shapes = Shapes::of_this_machine();
    let (mut bytes, mut total, mut calls) = (Vec::new(), 0, 0u64);
    let (mut data_calls, mut data_bytes) = (0u64, 0);
    let mut counts = BTreeMap::<String, (u64, u64, usize)>::new();
    let chunks = session.counter(header::NEXT_CHUNK).expect("counter");
    for index in 0..chunks {
        session.chunk(index, &mut bytes).expect("chunk");
        total += bytes.len();
        let Some(mut reader) = ChunkReader::new(bytes.clone()) else { continue };
        loop {
            let at = reader.at();
            match reader.next_entry(shapes) {
                Ok(None) => break,
                Err(damaged) => {
                    println!("chunk {index}: damaged at {}", damaged.at);
                    break;
                }
                Ok(Some(Entry::Call(call))) => {
                    calls += u64::from(call.part != Part::End);
                    if call.call.spec().class == CallClass::Data {
                        data_calls += u64::from(call.part != Part::End);
                        data_bytes += reader.at() - at;
                    }
                    let entry = counts.entry(call.call.name()).or_default();
                    entry.0 += u64::from(call.part != Part::End);
                    entry.1 +=
                        u64::from(call.result < 0 && call.part != Part::Beginning && call.result > -4096);
                    entry.2 += reader.at() - at;
                    if mode == "-v" {
                        println!(
                            "{index} {} {:?} {call:?}",
                            call.call.name(),
                            call.path.as_ref().map(|p| String::from_utf8_lossy(p).into_owned())
                        );
                    }
                }
                Ok(Some(other)) if mode == "-v" => println!("{index} {other:?}"),
                Ok(Some(_)) => {}
            }
        }
    }
    if mode == "-c" {
        for (name, (count, failed, bytes)) in &counts {
            println!("{count:>9} {failed:>9} {bytes:>9} {name}");
        }
    }
    eprintln!(
        "{calls} calls, {total} bytes, {:.2} bytes a call, {:.2} bytes a data call, {chunks} chunks, lost {} calls {} streams, patched {} left {}",
        total as f64 / calls.max(1) as f64,
        data_bytes as f64 / data_calls.max(1) as f64,
        session.counter(header::LOST_CALLS).expect("counter"),
        session.counter(header::LOST_STREAMS).expect("counter"),
        session.counter(header::SITES_PATCHED).expect("counter"),
        session.counter(header::SITES_LEFT).expect("counter"),
    );
}
