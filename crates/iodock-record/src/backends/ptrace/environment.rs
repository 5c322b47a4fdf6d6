//! Reads the environment of a program that has just started from its stack. This is faster than /proc, and
//! needed at every exec.

use super::{memory, request};
use crate::process;

/// Number of bytes of the stack that are read. Arguments and environment of most programs are shorter.
const STACK_BYTES: usize = 32 << 10;
const WORD: usize = 8;

/// Returns the MPI rank in the environment. Call it at the stop after an exec.
pub fn rank(tid: u32) -> Option<i32> {
    let mut stack = [0; STACK_BYTES];
    let found = request::stack_pointer(tid).ok().and_then(|address| {
        let read = memory::read_pages(tid, address, &mut stack);
        pairs(&stack[..read], address)
    });
    match found {
        Some(pairs) => process::rank_among(pairs),
        // The stack does not suffice if the environment is long, the program has 32 bits, or reading is not
        // allowed.
        None => process::rank(tid),
    }
}

/// Returns the `NAME=VALUE` pairs in a new program's stack, which begins at `address`. It contains the number
/// of arguments, their addresses, 0, the addresses of the pairs, and 0 (System V ABI). Returns `None` if a
/// part of it is missing.
fn pairs(stack: &[u8], address: u64) -> Option<impl Iterator<Item = &[u8]>> {
    let first = usize::try_from(word(stack, 0)?).ok()?.checked_add(2)?;
    let count = (first..).map_while(|index| word(stack, index)).position(|pointer| pointer == 0)?;
    let start = move |index: usize| usize::try_from(word(stack, first + index)?.wrapping_sub(address)).ok();
    // The kernel stores the pairs one after the other.
    let end = match count.checked_sub(1) {
        Some(last) => {
            let last = start(last)?;
            last + stack.get(last..)?.iter().position(|&byte| byte == 0)? + 1
        }
        None => 0,
    };
    let next = move |index: usize| if index + 1 < count { start(index + 1) } else { Some(end) };
    Some((0..count).filter_map(move |index| stack.get(start(index)?..next(index)?.checked_sub(1)?)))
}

fn word(stack: &[u8], index: usize) -> Option<u64> {
    let start = index.checked_mul(WORD)?;
    let bytes = stack.get(start..start.checked_add(WORD)?)?;
    Some(u64::from_ne_bytes(bytes.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADDRESS: u64 = 0x7ffd_0000_1230;

    /// Builds a stack as the kernel does.
    fn stack(arguments: &[&str], environment: &[&str]) -> Vec<u8> {
        let words = arguments.len() + environment.len() + 3;
        let (mut head, mut texts) = (Vec::new(), Vec::new());
        let put = |head: &mut Vec<u8>, word: u64| head.extend_from_slice(&word.to_ne_bytes());
        put(&mut head, arguments.len() as u64);
        for list in [arguments, environment] {
            for text in list {
                put(&mut head, ADDRESS + (words * WORD + texts.len()) as u64);
                texts.extend_from_slice(text.as_bytes());
                texts.push(0);
            }
            put(&mut head, 0);
        }
        head.extend(texts);
        head
    }

    fn found(stack: &[u8]) -> Option<Vec<String>> {
        let pairs = pairs(stack, ADDRESS)?;
        Some(pairs.map(|pair| String::from_utf8_lossy(pair).into_owned()).collect())
    }

    #[test]
    fn environment_variables_are_found_after_the_arguments() {
        let whole = stack(&["a.out", ""], &["PATH=/bin", "E=", "PMI_RANK=12"]);
        let expected = ["PATH=/bin", "E=", "PMI_RANK=12"].map(String::from);
        assert_eq!(found(&whole), Some(expected.to_vec()));
        assert_eq!(found(&stack(&[], &[])), Some(Vec::new()));
    }

    #[test]
    fn an_incomplete_environment_is_not_used() {
        let whole = stack(&["a.out"], &["PATH=/bin", "HOME=/root"]);
        for length in 0..whole.len() {
            assert_eq!(found(&whole[..length]), None, "{length} bytes");
        }
        // The stack of a 32-bit program has words of 4 bytes.
        assert_eq!(found(&[1, 0, 0, 0, 0x30, 0x12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]), None);
    }

    #[test]
    fn a_process_finds_its_own_environment() {
        let environment = std::fs::read("/proc/self/environ").expect("our environment");
        let stat = std::fs::read_to_string("/proc/self/stat").expect("our state");
        // Field 28 is the address at which the stack began (proc_pid_stat(5)).
        let address =
            stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(25)?.parse().ok());
        let address: u64 = address.expect("a number");
        let mut stack = vec![0; 4 << 20];
        let read = memory::read_pages(std::process::id(), address, &mut stack);
        let pairs: Vec<&[u8]> = pairs(&stack[..read], address).expect("all of it").collect();
        let expected: Vec<&[u8]> = environment.split(|&byte| byte == 0).filter(|p| !p.is_empty()).collect();
        assert!(!pairs.is_empty());
        assert_eq!(pairs, expected);
    }
}
