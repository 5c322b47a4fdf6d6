//! Memory that only the kernel knew to be there, and registers of which it reads half: what programs print and how they end is the same with
//! and without.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod common;

use common::{counts, entries, same};
use iodock_event::UNKNOWN;
use iodock_preload::reader::{CallRecord, Entry};
use iodock_preload::session::Session;

/// The one call of that name.
fn only(session: &Session, name: &str) -> Box<CallRecord> {
    let calls = entries(session).into_iter().filter_map(|entry| match entry {
        Entry::Call(call) if call.call.name() == name => Some(call),
        _ => None,
    });
    let [call] = <[Box<CallRecord>; 1]>::try_from(calls.collect::<Vec<_>>()).expect("there is one");
    call
}

#[test]
fn vectors_are_counted_by_half_a_register() {
    let (session, ..) = same("odd_pointers", &["vector-with-half"]);
    assert_eq!(counts(&session)["readv"], 1);
}

#[test]
fn paths_that_the_call_has_written_over_are_not_looked_at() {
    let (session, ..) = same("odd_pointers", &["link-over-path"]);
    assert_eq!(only(&session, "readlink").path, None);
    let (session, _folder, output) = same("odd_pointers", &["attribute-over-path"]);
    if output.stdout == b"-1\n" {
        println!("files have no attributes here");
        return;
    }
    assert_eq!(only(&session, "getxattr").path, None);
}

#[test]
fn a_path_that_lies_before_what_the_call_writes_is_there() {
    let (session, ..) = same("odd_pointers", &["link-beside-path"]);
    assert_eq!(only(&session, "readlink").path, Some(b"beside".to_vec()));
}

#[test]
fn offsets_of_what_moves_nothing_are_not_looked_at() {
    let (session, ..) = same("odd_pointers", &["splice-of-nothing"]);
    assert_eq!(counts(&session)["splice"], 1);
}

#[test]
fn paths_that_no_call_has_read_are_not_looked_at() {
    let (session, ..) = same("odd_pointers", &["times-without-path"]);
    assert_eq!(counts(&session)["utimensat"], 1);
}

#[test]
fn messages_that_are_received_over_themselves_are_not_followed() {
    let (session, ..) = same("odd_pointers", &["message-over-itself"]);
    assert_eq!(counts(&session)["recvmsg"], 1);
}

#[test]
fn filters_are_known_by_half_a_register() {
    let (session, ..) = same("odd_pointers", &["filter-with-half"]);
    assert_eq!(counts(&session).get("pread64"), None);
}

#[test]
fn a_pipe_has_no_flags() {
    let (session, ..) = same("odd_pointers", &["pipe-without-flags"]);
    assert_eq!(only(&session, "pipe").flags, 0);
}

#[test]
fn calls_are_known_by_half_a_register() {
    let (session, ..) = same("odd_pointers", &["number-with-half"]);
    assert_eq!(counts(&session)["pread64"], 1);
}

#[test]
fn a_ring_is_not_looked_for_in_a_file_with_its_number() {
    let (session, _folder, output) = same("odd_pointers", &["ring-without-descriptor"]);
    if output.stdout != b"1\n" {
        println!("rings can't be made or registered here");
        return;
    }
    let enter = only(&session, "io_uring_enter");
    assert_eq!((enter.fd, enter.argument), (-1, UNKNOWN));
    // As it was asked for, and as it is done.
    assert_eq!(enter.items.iter().map(|item| item.bytes).collect::<Vec<_>>(), [50, 50]);
}
