//! Tests a signal handler that interrupts a program at any instruction, and leaves half of the interrupted
//! calls by siglongjmp. Each call is checked individually.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod common;

use common::{compiled, entries, run, session, Folder};
use iodock_preload::format::header;
use iodock_preload::reader::{Entry, Part};
use std::collections::BTreeMap;

/// The descriptor of the first read that tests/programs/stepped.c makes itself.
const FIRST: i32 = 100;
const EVENTS: &str = "300";

/// Numbers of records of a call, with and without a result.
#[derive(Default)]
struct Records {
    whole: usize,
    no_return: usize,
}

impl Records {
    fn add(&mut self, part: Part) {
        match part {
            Part::NoReturn => self.no_return += 1,
            _ => self.whole += 1,
        }
    }

    fn all(&self) -> usize {
        self.whole + self.no_return
    }
}

/// Checks that each read that the kernel has made is recorded once, with or without a result. A read that the
/// kernel has not made may be recorded without a result.
fn each_read_is_recorded_once(what: &str, child: &str, seed: usize) {
    let folder = Folder::new();
    let session = session(&folder);
    let output = run(&session, &compiled("stepped", &folder), &[EVENTS, &seed.to_string(), what]);
    let case = format!("{what}, seed {seed}");
    assert!(output.status.success(), "{case}: {output:?}");
    let text = String::from_utf8_lossy(&output.stdout);
    let told: Vec<usize> = text.split_whitespace().map(|word| word.parse().expect("a number")).collect();
    let (is_made, [handlers, children]) = told.split_last_chunk().expect("the last line");

    let (mut own, mut of_handlers, mut of_children) =
        (BTreeMap::<i32, Records>::new(), Records::default(), Records::default());
    for entry in entries(&session) {
        let Entry::Call(one) = entry else { continue };
        match one.call.name() {
            name if name == "pread64" && one.fd >= FIRST => {
                own.entry(one.fd - FIRST).or_default().add(one.part)
            }
            name if name == "pread64" => of_handlers.add(one.part),
            name if name == child => of_children.add(one.part),
            _ => {}
        }
    }
    for (at, &made) in (0..).zip(is_made) {
        let Records { whole, no_return } = own.remove(&at).unwrap_or_default();
        assert!(
            whole + no_return <= 1 && whole <= made && made <= whole + no_return,
            "{case}, read {at} of {}: made {made}, {whole} whole, {no_return} did not return",
            is_made.len()
        );
    }
    let lost = session.counter(header::LOST_CALLS).expect("counter") as usize;
    assert_eq!(session.counter(header::STOPPED_PROCESSES).expect("counter"), 0, "{case}");
    assert_eq!(of_handlers.all(), *handlers, "{case}");
    assert!(
        *children <= of_children.all() + lost,
        "{case}: {children} children, {} and {lost}",
        of_children.all()
    );
    assert!(lost == 0 || what != "reads", "{case}: {lost}");
}

#[test]
fn reads_may_be_abandoned_at_any_instruction() {
    (0..4).for_each(|seed| each_read_is_recorded_once("reads", "", seed));
}

#[test]
#[ignore = "part of `make test-all`: takes each instruction"]
fn reads_between_vforks_may_be_abandoned_at_any_instruction() {
    (0..4).for_each(|seed| each_read_is_recorded_once("vforks", "vfork", seed));
}

#[test]
fn reads_between_forks_may_be_abandoned_at_any_instruction() {
    (0..4).for_each(|seed| each_read_is_recorded_once("forks", "clone", seed));
}

/// Limit of instructions without unwind information: 4 to 8 at the beginning and the end of a trampoline. A
/// thread that is cancelled there ends without its cleanups.
const OF_TRAMPOLINE: usize = 12;

#[test]
#[ignore = "part of `make test-all`: takes each instruction"]
fn a_thread_may_be_cancelled_at_any_instruction() {
    for what in ["openat", "syscall", "close"] {
        let folder = Folder::new();
        let output = run(&session(&folder), &compiled("unwound", &folder), &[what]);
        assert!(output.status.success(), "{what}: {output:?}");
        let text = String::from_utf8_lossy(&output.stdout);
        let told: Vec<usize> = text.split_whitespace().map(|word| word.parse().expect("a number")).collect();
        let [instructions, without_cleanup] = told[..] else { panic!("{text}") };
        assert!(instructions > 100, "{what}: {instructions}");
        assert!(without_cleanup <= OF_TRAMPOLINE, "{what}: {without_cleanup} of {instructions}");
    }
}
