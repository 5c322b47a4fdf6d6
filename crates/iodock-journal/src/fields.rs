//! Constants of the encoding of records. A record begins with a mask of the fields that follow. Times and
//! thread ids are stored as differences from the previous record, texts and control blocks in full.

use iodock_event::{RawCall, Text};

// The lowest two bits of the mask are the kind of record.
pub const CALL: u64 = 0;
pub const END: u64 = 1;
pub const START: u64 = 2;
pub const DESCRIPTOR: u64 = 3;

// Bits of a call's mask. The most frequent fields come first, so that the mask usually takes two bytes.
pub const TID: u64 = 1 << 2;
pub const BEGIN: u64 = 1 << 3;
pub const DURATION: u64 = 1 << 4;
pub const RESULT: u64 = 1 << 5;
pub const FD: u64 = 1 << 6;
pub const OUTCOME_SHIFT: u32 = 7;
pub const ERRNO: u64 = 1 << 9;
pub const REQUESTED: u64 = 1 << 10;
pub const REQUESTED_IS_RESULT: u64 = 1 << 11;
pub const OFFSET: u64 = 1 << 12;
pub const PATH: u64 = 1 << 13;
pub const FLAGS: u64 = 1 << 14;
pub const PHASE_SHIFT: u32 = 15;
pub const ARGUMENT: u64 = 1 << 17;
pub const STAT_TYPE: u64 = 1 << 18;
pub const STAT_SIZE: u64 = 1 << 19;
pub const PATH2: u64 = 1 << 20;
pub const FINISH: u64 = 1 << 21;
pub const SYS_CPU: u64 = 1 << 22;
pub const OFFSET2: u64 = 1 << 23;
pub const FD2: u64 = 1 << 24;
pub const ARGV: u64 = 1 << 25;
pub const FD_TEXT: u64 = 1 << 26;
pub const FD2_TEXT: u64 = 1 << 27;
pub const RESULT_TEXT: u64 = 1 << 28;
pub const ITEMS: u64 = 1 << 29;
pub const PATH_CUT: u64 = 1 << 30;

// Kinds of the sections that follow the records in a frame.
pub const TAIL_FORKS: u64 = 1;
pub const TAIL_LOSSES: u64 = 2;
pub const TAIL_COUNTS: u64 = 3;

/// Kinds of names in a names frame. Each kind is followed by the name's text; its number is its position.
pub const CALL_NAME: u8 = 0;
pub const ERRNO_NAME: u8 = 1;

/// Returns the numeric fields of a call with their mask bits, in the order of writing.
pub fn numbers(call: &RawCall) -> [(u64, i64); 11] {
    [
        (DURATION, call.duration),
        (RESULT, call.result),
        (FD, i64::from(call.fd)),
        (REQUESTED, call.requested),
        (OFFSET, call.offset),
        (ARGUMENT, call.argument),
        (STAT_SIZE, call.stat_size),
        (FINISH, call.end),
        (SYS_CPU, call.sys_cpu),
        (OFFSET2, call.offset2),
        (FD2, i64::from(call.fd2)),
    ]
}

pub fn texts(call: &RawCall) -> [(u64, Text); 6] {
    [
        (PATH, call.path),
        (PATH2, call.path2),
        (ARGV, call.argv),
        (FD_TEXT, call.fd_text),
        (FD2_TEXT, call.fd2_text),
        (RESULT_TEXT, call.result_text),
    ]
}
