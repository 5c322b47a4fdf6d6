//! The seccomp filter that makes recorded calls stop and lets all others run at full speed.
//!
//! A classic BPF program: first the architecture, then a binary search over the ranges of call numbers.
//! (See seccomp(2). The kernel keeps a bitmap of calls that always pass, so those cost nothing.)

use iodock_event::numbers_x86_64::NUMBERS;
use iodock_event::{Action, CallId};

const LOAD_WORD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
const JUMP_EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
const JUMP_AT_LEAST: u16 = (libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K) as u16;
const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;

/// Offsets in `struct seccomp_data`.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;
/// The low half of the fifth argument, mmap's descriptor.
const FIFTH_ARGUMENT: u32 = 16 + 4 * 8;

/// x86-64 of linux/audit.h.
pub const AUDIT_ARCH: u32 = 0xC000_003E;
/// Numbers of the x32 interface have this bit.
const X32_BIT: u32 = 0x4000_0000;
/// One more than the highest number in use, for tables by number.
pub const TABLE_SIZE: usize = 512;

/// What happens to a range of numbers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Pass,
    Stop,
    /// mmap: stops only with a descriptor.
    StopWithDescriptor,
}

/// Call ids by number; `None` for calls that are not recorded.
pub fn recorded_calls() -> Vec<Option<CallId>> {
    let mut table = vec![None; TABLE_SIZE];
    for &(number, name) in NUMBERS {
        let id = CallId::intern(name.as_bytes()).filter(|id| id.spec().is_recorded());
        table[number as usize] = id;
    }
    table
}

/// The filter's program.
pub fn program() -> Vec<libc::sock_filter> {
    let ranges = ranges(&recorded_calls());
    let mut program = vec![
        statement(LOAD_WORD, ARCHITECTURE),
        jump(JUMP_EQUAL, AUDIT_ARCH, 1, 0),
        // A foreign call stops once, to be counted.
        statement(RETURN, libc::SECCOMP_RET_TRACE),
        statement(LOAD_WORD, NUMBER),
        jump(JUMP_AT_LEAST, X32_BIT, 0, 1),
        statement(RETURN, libc::SECCOMP_RET_TRACE),
    ];
    search(&ranges, &mut program);
    program
}

/// First number and fate of each range, ascending; each reaches to the next.
fn ranges(table: &[Option<CallId>]) -> Vec<(u32, Fate)> {
    let mut ranges: Vec<(u32, Fate)> = Vec::new();
    for number in 0..=table.len() {
        let fate = match table.get(number).copied().flatten() {
            None => Fate::Pass,
            Some(id) if id.spec().action == Action::Map => Fate::StopWithDescriptor,
            Some(_) => Fate::Stop,
        };
        if ranges.last().map(|&(_, last)| last) != Some(fate) {
            ranges.push((number as u32, fate));
        }
    }
    ranges
}

fn search(ranges: &[(u32, Fate)], program: &mut Vec<libc::sock_filter>) {
    if let [(_, fate)] = ranges {
        return leaf(*fate, program);
    }
    let (low, high) = ranges.split_at(ranges.len() / 2);
    let at = program.len();
    program.push(jump(JUMP_AT_LEAST, high[0].0, 0, 0));
    search(low, program);
    // Jumps are counted from the next instruction. A conditional one reaches 255; the whole program is
    // twice that at most, its halves fit.
    program[at].jt = (program.len() - at - 1) as u8;
    search(high, program);
}

fn leaf(fate: Fate, program: &mut Vec<libc::sock_filter>) {
    match fate {
        Fate::Pass => program.push(statement(RETURN, libc::SECCOMP_RET_ALLOW)),
        Fate::Stop => program.push(statement(RETURN, libc::SECCOMP_RET_TRACE)),
        Fate::StopWithDescriptor => program.extend([
            statement(LOAD_WORD, FIFTH_ARGUMENT),
            jump(JUMP_EQUAL, u32::MAX, 1, 0),
            statement(RETURN, libc::SECCOMP_RET_TRACE),
            statement(RETURN, libc::SECCOMP_RET_ALLOW),
        ]),
    }
}

fn statement(code: u16, k: u32) -> libc::sock_filter {
    libc::sock_filter { code, jt: 0, jf: 0, k }
}

fn jump(code: u16, k: u32, jt: u8, jf: u8) -> libc::sock_filter {
    libc::sock_filter { code, jt, jf, k }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs the program as the kernel would.
    fn run(program: &[libc::sock_filter], arch: u32, number: u32, fifth: u32) -> u32 {
        let (mut at, mut loaded) = (0, 0);
        loop {
            let step = program[at];
            at += 1;
            match step.code {
                LOAD_WORD => {
                    loaded = match step.k {
                        NUMBER => number,
                        ARCHITECTURE => arch,
                        _ => fifth,
                    }
                }
                RETURN => return step.k,
                JUMP_EQUAL => at += usize::from(if loaded == step.k { step.jt } else { step.jf }),
                _ => at += usize::from(if loaded >= step.k { step.jt } else { step.jf }),
            }
        }
    }

    #[test]
    fn stops_at_exactly_the_recorded_calls() {
        let (program, table) = (program(), recorded_calls());
        for number in 0..600u32 {
            let recorded = table.get(number as usize).copied().flatten().is_some();
            let expected = if recorded { libc::SECCOMP_RET_TRACE } else { libc::SECCOMP_RET_ALLOW };
            assert_eq!(run(&program, AUDIT_ARCH, number, 3), expected, "call {number}");
        }
        assert!(program.len() < 500);
    }

    #[test]
    fn anonymous_maps_pass_and_foreign_calls_stop() {
        let program = program();
        assert_eq!(run(&program, AUDIT_ARCH, 9, u32::MAX), libc::SECCOMP_RET_ALLOW);
        assert_eq!(run(&program, 0x4000_0003, 3, 0), libc::SECCOMP_RET_TRACE);
        assert_eq!(run(&program, AUDIT_ARCH, X32_BIT + 1, 0), libc::SECCOMP_RET_TRACE);
    }
}
