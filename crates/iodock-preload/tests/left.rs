//! Calls that a signal handler leaves by longjmp, wherever it came: none is lost.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod common;

use common::{compiled, entries, run, session, Folder};
use iodock_preload::format::header;
use iodock_preload::reader::{Entry, Part};

#[test]
fn a_call_is_in_flight_or_recorded_at_any_instruction() {
    let folder = Folder::new();
    let session = session(&folder);
    let output = run(&session, &compiled("left", &folder), &["20000"]);
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8_lossy(&output.stdout);
    let told: Vec<usize> = text.split_whitespace().map(|word| word.parse().expect("a number")).collect();
    let [made, left] = told[..] else { panic!("{text}") };
    let reads = entries(&session)
        .into_iter()
        .filter_map(|entry| match entry {
            Entry::Call(call) if call.call.name() == "pread64" => Some(call.part),
            _ => None,
        })
        .collect::<Vec<Part>>();
    let of = |part| reads.iter().filter(|&&one| one == part).count();
    let (whole, no_return) = (of(Part::Whole), of(Part::NoReturn));
    assert!(whole <= made && made <= whole + no_return, "{made} made; {whole}, {no_return}");
    assert!(no_return <= left, "{no_return} did not return, {left} were left");
    assert_eq!(session.counter(header::LOST_CALLS).expect("counter"), 0);
}
