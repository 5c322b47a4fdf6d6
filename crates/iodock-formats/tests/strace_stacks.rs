//! Checks that stacks are assigned to their calls, however the log is divided into chunks.

mod support;

use support::{read_strace, small_chunks};

const LOG: &str = "\
7 1.000000 write(4, \"abc\", 3) = 3 <0.000010>
 > /usr/lib/libc.so.6(__write+0x4f) [0xf838f]
 > /home/u/a.out(step+0x39) [0x1259]
8 1.000100 read(5,  <unfinished ...>
7 1.000200 write(4, \"abc\", 3) = 3 <0.000010>
 > /usr/lib/libc.so.6(__write+0x4f) [0xf838f]
 > /home/u/a.out(step+0x39) [0x1259]
8 1.000300 <... read resumed>\"\", 9) = 0 <0.000200>
 > /home/u/a.out(work+0x3) [0x1300]
7 1.000400 close(4) = 0 <0.000010>
~~ no line of strace
 > /home/u/a.out(nobody+0x3) [0x9999]
7 1.000500 exit_group(0) = ?
8 1.000550 +++ exited with 0 +++
7 1.000600 +++ exited with 0 +++
 > /usr/lib/libc.so.6(_exit+0x29) [0xd4409]
";

/// Returns the name of each call that has ended, and the offsets of its stack.
fn stacks(chunk_size: usize) -> Vec<(String, Vec<u64>)> {
    let tally = read_strace(LOG.as_bytes(), &small_chunks(chunk_size)).unwrap();
    let calls = tally.shown.iter().filter(|line| line.contains("Whole") || line.contains("Exit"));
    let name = |line: &str| line.split(' ').nth(1).unwrap_or_default().to_string();
    let offsets = |line: &str| line.split('\0').filter_map(|field| field.parse().ok()).collect();
    calls.map(|line| (name(line), offsets(line))).collect()
}

#[test]
fn a_stack_belongs_to_the_call_before_it() {
    let write = ("write".to_string(), vec![0xf838f, 0x4f, 0x1259, 0x39]);
    let (read, close) = (("read".to_string(), vec![0x1300, 3]), ("close".to_string(), vec![]));
    let exit = ("exit_group".to_string(), vec![]);
    for chunk_size in [1, 7, 40, 100, 250, 1 << 16] {
        let expected = [write.clone(), write.clone(), read.clone(), close.clone(), exit.clone()];
        assert_eq!(stacks(chunk_size), expected, "chunks of {chunk_size}");
    }
}
