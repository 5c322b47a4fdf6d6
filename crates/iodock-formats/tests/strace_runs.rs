//! Reads several logs of strace in one file, and tables among their lines.

mod support;

use iodock_event::LossKind;
use iodock_formats::{LineRange, ReadOptions};
use support::small_chunks;
use support::strace_logs::{long, read, read_with, with_leads, BARE, TERMINAL, THREADS};

/// Returns the lines at which further logs begin, as the error names them.
fn beginnings(log: &str) -> Vec<u64> {
    match read_with(log.as_bytes(), &small_chunks(100)) {
        Ok(_) => Vec::new(),
        Err(error) => {
            let named = error.message.split(" at line").nth(1).unwrap_or_else(|| panic!("{error}"));
            named.trim_start_matches(['s', ' ']).split(", ").map(|line| line.parse().unwrap()).collect()
        }
    }
}

const TREE: &str = r#"7 execve("/bin/sh", ["sh"], 0x7ffc0a0 /* 9 vars */) = 0
7 clone(child_stack=NULL, flags=SIGCHLD) = 8
8 execve("/bin/ls", ["ls"], 0x7ffc0a0 /* 9 vars */) = 0
7 exit_group(0) = ?
7 +++ exited with 0 +++
8 exit_group(0) = ?
8 +++ exited with 0 +++
"#;

const TABLE: &str = "\
% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
100.00    0.000014          14         1         1 read
------ ----------- ----------- --------- --------- ----------------
100.00    0.000014          14         1         1 total
";

#[test]
fn a_table_needs_a_header_above_its_rows() {
    let lost = |log: &str| read(log).losses.count(LossKind::UnreadableLines);
    assert_eq!(lost(&format!("{BARE}{TABLE}")), 0);
    // One row of a table may be damaged.
    assert_eq!(lost(&format!("{BARE}{}{TABLE}", &TABLE.replace("total", "to tal"))), 1);
    let row = "  0.00    0.000000           0         1         1 access\n";
    assert_eq!(lost(&format!("{BARE}{row}")), 1);
    // These are damaged calls.
    for line in ["7 read 3 4096 3\n", "7 read 4096\n", "7 read 4096\n7 read 3 4096 3\n"] {
        let (first, rest) = TREE.split_at(TREE.find("7 clone").unwrap());
        assert_eq!(lost(&format!("{first}{line}{rest}")), line.lines().count() as u64, "{line}");
        assert_eq!(
            lost(&format!("{}{line}{TREE}", "7 close(3) = 0\n".repeat(9))),
            line.lines().count() as u64
        );
    }
}

#[test]
fn several_logs_in_a_file_are_not_mixed() {
    let text = "Then I tried:\n";
    let old = "execve(\"/bin/ls\", [\"ls\"], [/* 9 vars */]) = 0\nexit_group(0) = ?\n";
    for (log, expected) in [
        (BARE.repeat(3), vec![8, 15]),
        (old.repeat(2), vec![3]),
        (format!("{BARE}\n\n{text}{BARE}"), vec![8]),
        (format!("$ strace ls\n{BARE}$ strace ls\n{BARE}"), vec![9]),
        (format!("```\n{0}```\n{text}```\n{0}```\n", long(1)), vec![8]),
        (format!("[a@b ~]$ strace x\n{0}[a@b ~]$ strace -f y\n{0}[a@b ~]$ exit\n", long(1)), vec![8]),
        (format!("{{code:java}}\n{0}{{code}}\n{{code}}\n{0}{{code}}\n", long(1)), vec![8]),
        (format!("$ strace ls\n{BARE}$ strace -c ls\n{TABLE}"), vec![9]),
        (format!("$ strace -c ls\n{TABLE}$ strace ls\n{BARE}"), vec![7]),
        // With -C the table belongs to the same run.
        (format!("```\n{BARE}{TABLE}```\n"), vec![]),
        (TREE.to_string() + &TREE.replace("7 ", "17 ").replace("8 ", "18 "), vec![8]),
        (TREE.repeat(2), vec![8]),
        (TREE.to_string(), vec![]),
        (format!("```\n{BARE}```\n"), vec![]),
        (
            format!(
                "Script started on 2026-03-01\nu@h:~$ strace ls\n{BARE}u@h:~$ exit\nScript done on 2026\n"
            ),
            vec![],
        ),
        // A process may execute several programs.
        (BARE.lines().next().unwrap().to_string() + "\n" + BARE, vec![]),
        // If strace filters calls, the log shows no forks.
        (
            TREE.lines()
                .filter(|line| !line.contains("clone") && !line.contains("exit_group"))
                .collect::<Vec<_>>()
                .join("\n"),
            vec![],
        ),
        (TERMINAL.to_string(), vec![]),
        (THREADS.repeat(2), vec![]),
        // A program prints this output during its write call.
        (
            "write(1, \"```\\n$ strace ls\\n\", 16```\n```\n$ strace ls\n) = 16\nclose(1) = 0\n".to_string(),
            vec![],
        ),
    ] {
        assert_eq!(beginnings(&log), expected, "{log}");
        let led = with_leads(&log, |_| "> ".into());
        assert_eq!(beginnings(&led), expected, "{led}");
    }
}

#[test]
fn one_of_several_logs_can_be_chosen() {
    let log = format!("$ strace x\n{BARE}$ strace -f y\n{THREADS}");
    let of = |first, last| {
        let lines = Some(LineRange { first, last });
        read_with(log.as_bytes(), &ReadOptions { lines, ..small_chunks(50) })
    };
    assert_eq!(of(1, Some(8)).unwrap().shown, read(BARE).shown);
    let second = of(9, None).unwrap();
    assert_eq!((second.shown, second.counts.lines), (read(THREADS).shown, 9));
    assert_eq!(of(1, None).unwrap().total(), 11);
    let damaged = of(2, Some(7)).unwrap();
    assert_eq!(damaged.counts.lines, 6);
    assert!(of(18, None).unwrap_err().message.contains("does not have line 18"));
    let lacking = with_leads(&long(5), |i| if i == 4 { String::new() } else { "app | ".into() });
    let lines = Some(LineRange { first: 2, last: None });
    let tally = read_with(lacking.as_bytes(), &ReadOptions { lines, ..small_chunks(50) }).unwrap();
    assert_eq!(tally.losses.first[&LossKind::UnprefixedLines].line, 5);
}
