//! Tests tables of strace 6.1, and tables as versions 4.5 to 7 print them.

use super::*;
use iodock_event::{Batch, CallTotal, LossKind, RecordSource};

fn read_as(text: &str, wall_clock: bool) -> Result<Batch, SourceError> {
    let bytes = std::io::Cursor::new(text.as_bytes().to_vec());
    let input = Input::from_reader(Box::new(bytes), "run.table", None)?;
    let mut source = TableSource::read("strace-c", wall_clock, input)?;
    Ok(source.next_batch()?.unwrap_or_default())
}

fn read(text: &str) -> Batch {
    read_as(text, false).unwrap()
}

fn total<'a>(batch: &'a Batch, name: &str) -> &'a CallTotal {
    batch.totals.iter().find(|total| total.call.name() == name).unwrap_or_else(|| panic!("no {name}"))
}

fn fixture(name: &str) -> String {
    let path = format!("{}/../../fixtures/strace-c/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(path).unwrap()
}

const HEADER: &str = "\
% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
";
const RULE: &str = "------ ----------- ----------- --------- --------- ----------------\n";

#[test]
fn the_default_table_is_read() {
    let batch = read(&fixture("default.table"));
    let openat = total(&batch, "openat");
    assert_eq!((openat.calls, openat.errors, openat.sys_cpu), (Some(71), Some(30), Some(73_000)));
    assert_eq!((openat.time, openat.shortest, openat.most_sys_cpu), (None, None, None));
    let close = total(&batch, "close");
    assert_eq!((close.calls, close.errors), (Some(47), Some(0)));
    let sum = |value: fn(&CallTotal) -> Option<i64>| batch.totals.iter().filter_map(value).sum::<i64>();
    assert_eq!((sum(|total| total.calls), sum(|total| total.errors)), (354, 60));
    assert_eq!(batch.losses.count(LossKind::UnreadableLines), 1);
    assert_eq!((batch.losses.counts.len(), batch.counts.lines), (1, 41));
    assert_eq!(batch.losses.first[&LossKind::UnreadableLines].line, 1);
}

#[test]
fn wall_clock_seconds_are_read() {
    let batch = read_as(&fixture("default.table"), true).unwrap();
    assert_eq!((total(&batch, "openat").time, total(&batch, "openat").sys_cpu), (Some(73_000), None));
}

#[test]
fn columns_may_be_chosen_and_ordered_freely() {
    let batch = read(&fixture("columns.table"));
    let vfork = total(&batch, "vfork");
    assert_eq!((vfork.calls, vfork.errors), (Some(2), Some(0)));
    assert_eq!((vfork.sys_cpu, vfork.least_sys_cpu, vfork.most_sys_cpu), (None, Some(18_000), Some(24_000)));
    assert!(batch.losses.counts.is_empty(), "{:?}", batch.losses);
    let batch = read("    calls syscall\n--------- ----------------\n       11 read\n--------- ----------------\n       11 total\n");
    let only_calls = CallTotal { calls: Some(11), ..CallTotal::new(batch.totals[0].call) };
    assert_eq!(batch.totals, [only_calls]);
    let batch = read("syscall\n----------------\nread\n----------------\ntotal\n");
    assert_eq!((batch.totals[0].calls, batch.losses.counts.len()), (None, 0));
    let text = "\
    calls  wall-total wall-min wall-max    wall-avg syscall
--------- ----------- -------- -------- ----------- ----------------
        2    1.000003 0.000001 1.000002      500001 read
--------- ----------- -------- -------- ----------- ----------------
        2    1.000003 0.000001 1.000002      500001 total
";
    let read = read(text).totals[0];
    assert_eq!(
        (read.time, read.shortest, read.longest),
        (Some(1_000_003_000), Some(1000), Some(1_000_002_000))
    );
}

/// strace 4.5 prints no average in the last line and `nan` where no time passed, and shifts columns for large
/// numbers.
#[test]
fn tables_of_old_strace_versions_are_read() {
    let text = format!("{HEADER}   nan    0.000000           0        14         4 open\n  -nan    0.000000           0         3           brk\n{RULE}100.00    0.000000                    17         4 total\n");
    let batch = read(&text);
    assert_eq!((total(&batch, "open").calls, total(&batch, "open").errors), (Some(14), Some(4)));
    assert!(batch.losses.counts.is_empty(), "{:?}", batch.losses);
    let wide = read(&format!("{HEADER}  1.00    0.000000           0 1234567890123           open\n{RULE}"));
    assert_eq!((total(&wide, "open").calls, total(&wide, "open").errors), (Some(1_234_567_890_123), Some(0)));
}

#[test]
fn decimal_commas_of_other_locales_are_read() {
    let batch = read(&format!("{HEADER}100,00    0,000014          14         1           read\n{RULE}100,00    0,000014          14         1           total\n"));
    assert_eq!(total(&batch, "read").sys_cpu, Some(14_000));
    assert!(batch.losses.counts.is_empty());
}

#[test]
fn sums_that_differ_from_their_rows_are_losses() {
    let table = |row: &str, sums: &str| read(&format!("{HEADER}{row}\n{RULE}{sums}\n")).losses;
    let row = "100.00    0.000014          14         1         1 read";
    for (sums, lost) in [
        ("100.00    0.000014          14         1         1 total", 0),
        ("100.00    0.000015          14         1         1 total", 0),
        ("100.00    0.000014          14         2         1 total", 1),
        ("100.00    0.000014          14         1           total", 1),
        ("100.00    0.000017          14         1         1 total", 1),
        ("100.00    0.000017          14         2           total", 3),
    ] {
        assert_eq!(table(row, sums).count(LossKind::DifferingTotals), lost, "{sums}");
    }
    let cut = read(&format!("{HEADER}{row}\n"));
    assert_eq!((cut.losses.count(LossKind::CutLines), cut.totals.len()), (1, 1));
}

#[test]
fn tables_of_several_abis_form_one_run() {
    let one = |calls| {
        format!("{HEADER}100.00    0.000014          14         {calls}           read\n{RULE}100.00    0.000014          14         {calls}           total\n")
    };
    let title = "System call usage summary for 32 bit mode:\n";
    let batch = read(&format!("{}{title}{}", one(1), one(2)));
    let calls: Vec<_> = batch.totals.iter().map(|total| total.calls).collect();
    assert_eq!((calls, batch.losses.counts.len()), (vec![Some(1), Some(2)], 0));
    let error = read_as(&format!("{}{}", one(1), one(2)), false).unwrap_err();
    assert!(error.message.contains("2 runs") && error.line == Some(6), "{error}");
    assert!(error.hint.contains("--lines 1-5, or --lines 6-"), "{}", error.hint);
    // A run has one table for each kind of program.
    let again = format!("{title}{}", one(1));
    for (text, line) in [(again.repeat(2), 8), (format!("{}{again}{again}", one(1)), 13)] {
        let error = read_as(&text, false).unwrap_err();
        assert!(error.message.contains("2 runs") && error.line == Some(line), "{error} {:?}", error.line);
    }
}

#[test]
fn impossible_numbers_are_unknown() {
    let table = |row: &str| read(&format!("{HEADER}{row}\n{RULE}"));
    // The number of errors in this table is larger than the number of calls.
    let batch = table("100.00    0.000014          14        10        12 read\n  0.00    0.000000           0         1           write");
    assert_eq!((batch.totals.len(), batch.losses.count(LossKind::UnreadableLines)), (1, 1));
    let huge = "100.00    0.000014          14 9223372036854775807           read\n";
    let batch = table(&format!("{huge}{}", huge.replace("read", "write")));
    assert_eq!(batch.losses.count(LossKind::IncredibleNumbers), 2);
    assert!(batch.totals.iter().all(|total| total.calls.is_none()));
    let long = table("100.00 9000000000.000014          14         1           read\n");
    assert_eq!((long.totals[0].calls, long.totals[0].sys_cpu), (Some(1), None));
    assert_eq!(long.losses.count(LossKind::IncredibleNumbers), 1);
}

#[test]
fn impossible_call_names_are_counted() {
    let row = |name: &str| format!("  0.00    0.000000           0         1           {name}\n");
    for (names, calls) in [
        (["reaf", "write"], vec!["write"]),
        (["close", "close"], vec!["close"]),
        (["syscall_0x1ff", "n64_read"], vec!["syscall_0x1ff", "n64_read"]),
    ] {
        let sums = "  0.00    0.000000           0         2           total\n";
        let batch = read(&format!("{HEADER}{}{}{RULE}{sums}", row(names[0]), row(names[1])));
        let found: Vec<_> = batch.totals.iter().map(|total| total.call.name()).collect();
        assert_eq!(found.len(), calls.len(), "{found:?}");
        assert_eq!(batch.losses.count(LossKind::UnreadableLines) as usize, 2 - calls.len(), "{names:?}");
    }
}

#[test]
fn a_truncated_row_is_left_out() {
    let row = "100.00    0.000014          14         1           read\n";
    let batch = read(&format!("{HEADER}{row}  0.00    0.000000           0         1           re"));
    let names: Vec<_> = batch.totals.iter().map(|total| total.call.name()).collect();
    assert_eq!((names, batch.losses.count(LossKind::CutLines)), (vec!["read".to_string()], 1));
    assert_eq!(batch.losses.first[&LossKind::CutLines].line, 4);
    let whole = format!("{HEADER}{row}{RULE}100.00    0.000014          14         1           total");
    assert_eq!(read(&whole).losses.counts.len(), 0);
}

#[test]
fn the_process_of_a_table_is_known() {
    let confidence = |text: &str| {
        let head = Head { bytes: text.as_bytes(), file: "x" };
        crate::FORMATS
            .iter()
            .map(|one| (one.name(), one.confidence(&head)))
            .filter(|&(_, found)| found >= 30)
            .collect::<Vec<_>>()
    };
    for name in ["default.table", "columns.table"] {
        assert_eq!(confidence(&fixture(name)), [("strace-c", 95)], "{name}");
    }
    let log = format!("1 close(3) = 0\n1 close(4) = 0\n{}", fixture("default.table"));
    assert_eq!(confidence(&log).iter().map(|&(name, _)| name).collect::<Vec<_>>(), ["strace"]);
    let freebsd = "syscall                     seconds   calls  errors\nread                0.000012345       3       0\n                      ------------- ------- -------\n                    0.000012345       3       0\n";
    assert!(!confidence(freebsd).iter().any(|&(name, _)| name == "strace-c"), "{:?}", confidence(freebsd));
}

/// With `-C` the table follows the log. None of its lines may count as damaged, whatever its columns are.
#[test]
fn a_table_after_a_log_does_not_count_as_junk() {
    for text in [fixture("columns.table"), fixture("default.table").replacen("ls: junk\n", "", 1)] {
        for line in text.lines() {
            assert!(
                crate::strace_table::is_header(line.as_bytes())
                    || is_rule(line.as_bytes())
                    || is_row(line.as_bytes()),
                "{line}"
            );
        }
    }
    for line in ["hello world 3", "3 4 5 6", "- 3 4 5", "", "write it 3"] {
        assert!(!is_row(line.as_bytes()), "{line}");
    }
}
