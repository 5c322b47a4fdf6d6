//! Tests calls whose arguments point to memory that is unmapped, overwritten or never read, and calls of
//! whose registers the kernel reads only half. The programs print the same and end in the same way with and
//! without the recorder.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod common;

use common::{counts, entries, same};
use iodock_event::UNKNOWN;
use iodock_preload::reader::{CallRecord, Entry};
use iodock_preload::session::Session;

/// Returns the record of the only call with that name.
fn only(session: &Session, name: &str) -> Box<CallRecord> {
    let calls = entries(session).into_iter().filter_map(|entry| match entry {
        Entry::Call(call) if call.call.name() == name => Some(call),
        _ => None,
    });
    let [call] = <[Box<CallRecord>; 1]>::try_from(calls.collect::<Vec<_>>()).expect("there is one");
    call
}

#[test]
fn the_count_of_a_vector_is_a_32_bit_value() {
    let (session, ..) = same("odd_pointers", &["vector-with-half"]);
    assert_eq!(counts(&session)["readv"], 1);
}

#[test]
fn paths_that_the_call_overwrites_are_not_read_afterwards() {
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
fn a_path_before_the_memory_that_a_call_writes_is_read() {
    let (session, ..) = same("odd_pointers", &["link-beside-path"]);
    assert_eq!(only(&session, "readlink").path, Some(b"beside".to_vec()));
}

#[test]
fn offsets_of_calls_without_transfer_are_not_read() {
    let (session, ..) = same("odd_pointers", &["splice-of-nothing"]);
    assert_eq!(counts(&session)["splice"], 1);
}

#[test]
fn paths_that_the_kernel_did_not_read_are_not_read() {
    let (session, ..) = same("odd_pointers", &["times-without-path"]);
    assert_eq!(counts(&session)["utimensat"], 1);
}

#[test]
fn messages_received_over_their_own_headers_are_not_followed() {
    let (session, ..) = same("odd_pointers", &["message-over-itself"]);
    assert_eq!(counts(&session)["recvmsg"], 1);
}

#[test]
fn the_operation_of_seccomp_is_a_32_bit_value() {
    let (session, ..) = same("odd_pointers", &["filter-with-half"]);
    assert_eq!(counts(&session).get("pread64"), None);
}

#[test]
fn a_call_of_pipe_has_no_flags() {
    let (session, ..) = same("odd_pointers", &["pipe-without-flags"]);
    assert_eq!(only(&session, "pipe").flags, 0);
}

#[test]
fn call_numbers_are_32_bit_values() {
    let (session, ..) = same("odd_pointers", &["number-with-half"]);
    assert_eq!(counts(&session)["pread64"], 1);
}

#[test]
fn a_file_with_the_number_of_a_ring_is_not_taken_for_it() {
    let (session, _folder, output) = same("odd_pointers", &["ring-without-descriptor"]);
    if output.stdout != b"1\n" {
        println!("rings can't be made or registered here");
        return;
    }
    let enter = only(&session, "io_uring_enter");
    assert_eq!((enter.fd, enter.argument), (-1, UNKNOWN));
    // The first size is the requested one, the second one is the size in the completion.
    assert_eq!(enter.items.iter().map(|item| item.bytes).collect::<Vec<_>>(), [50, 50]);
}
