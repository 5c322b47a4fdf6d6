//! Tests signal handlers that interrupt a call at any instruction and abandon it, by longjmp or by switching
//! to another coroutine.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod common;

use common::{compiled, entries, run, session, Folder};
use iodock_preload::format::header;
use iodock_preload::reader::{Entry, Part};

struct Reads {
    /// Number of reads that the kernel has counted.
    made: usize,
    /// Number of calls that the handler abandoned.
    left: usize,
    whole: usize,
    no_return: usize,
    /// Number of calls of all kinds that are counted as lost.
    lost: usize,
}

fn reads(call: &str, what: &str, signals: &str) -> Reads {
    let folder = Folder::new();
    let session = session(&folder);
    let output = run(&session, &compiled("left", &folder), &[signals, what]);
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8_lossy(&output.stdout);
    let told: Vec<usize> = text.split_whitespace().map(|word| word.parse().expect("a number")).collect();
    let [made, left] = told[..] else { panic!("{text}") };
    let reads = entries(&session)
        .into_iter()
        .filter_map(|entry| match entry {
            Entry::Call(one) if one.call.name() == call => Some(one.part),
            _ => None,
        })
        .collect::<Vec<Part>>();
    let of = |part| reads.iter().filter(|&&one| one == part).count();
    let lost = session.counter(header::LOST_CALLS).expect("counter") as usize;
    Reads { made, left, whole: of(Part::Whole), no_return: of(Part::NoReturn), lost }
}

#[test]
fn a_call_is_in_flight_or_recorded_at_any_instruction() {
    let Reads { made, left, whole, no_return, lost } = reads("pread64", "reads", "20000");
    assert!(whole <= made && made <= whole + no_return, "{made} made; {whole}, {no_return}");
    assert!(no_return <= left, "{no_return} did not return, {left} were left");
    assert_eq!(lost, 0);
}

/// The chunk's header has no room to note calls that create processes. Records of such calls may be lost, and
/// are counted as lost.
#[test]
fn calls_that_create_children_may_be_abandoned() {
    let Reads { made, whole, no_return, lost, .. } = reads("pread64", "vforks", "6000");
    assert!(whole <= made && made <= whole + no_return + lost, "{made} made; {whole}, {no_return}, {lost}");
}

/// A call that is deeper in the stack than the call in flight could belong to a signal handler. Only when the
/// frame of the call in flight is overwritten can the recorder find that it was abandoned.
#[test]
fn a_call_left_by_longjmp_is_noticed_by_a_later_call_deeper_in_the_stack() {
    let Reads { made, left, no_return, lost, .. } = reads("read", "deeper", "11");
    assert_eq!((made, left, no_return, lost), (11, 11, 11, 0));
}

/// Runs a recorded program and returns its output.
fn said(program: &str, argument: &str) -> String {
    let folder = Folder::new();
    let output = run(&session(&folder), &compiled(program, &folder), &[argument]);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The records of these calls may be damaged; the damage is counted. The calls themselves behave as without a
/// recorder.
#[test]
fn coroutines_switched_by_a_signal_handler_continue() {
    assert_eq!(said("coroutines", "300000"), "900000\n");
}

/// If the first thread blocks a signal of the process, another thread gets it, and its handler may leave by
/// longjmp.
#[test]
fn no_signal_is_blocked_or_delayed() {
    assert_eq!(said("mask", "4000"), "0\n");
}
