//! Logs with something put before each line or for some characters say what they said without it.

mod support;

use iodock_event::{LossKind, SourceError};
use iodock_formats::{open_input, Input, LineRange, ReadOptions};
use std::io::Cursor;
use support::{small_chunks, Random, Tally};

const BARE: &str = r#"execve("/opt/app", ["app", "in.nml"], 0x7ffc0a0 /* 9 vars */) = 0
openat(AT_FDCWD, "/data/a &amp; b", O_RDONLY|O_CLOEXEC) = 3
read(3, "Mar 01 10:00:00 n1 a[1]: read(3)"..., 4096) = 4096
read(3, "", 4096)                       = 0
close(3)                                = 0
access("/etc/x", F_OK)     = -1 ENOENT (No such file or directory)
+++ exited with 0 +++
"#;

const THREADS: &str = r#"4123  openat(AT_FDCWD, "/data/a", O_RDONLY) = 3
4124  openat(AT_FDCWD, "/data/b", O_RDONLY <unfinished ...>
4123  read(3, "abc"..., 4096) = 4096
4124  <... openat resumed>) = 4
4124  close(4) = 0
4123  close(3) = 0
4124  +++ exited with 0 +++
4123  +++ exited with 0 +++
"#;

const STAMPED: &str = r#"17 23:59:59.100000 openat(AT_FDCWD, "/data/a", O_RDONLY) = 3 <0.000031>
17 23:59:59.900000 read(3, "abc"..., 4096) = 4096 <0.000120>
18 00:00:00.100000 read(3, "abc"..., 4096) = 4096 <0.000120>
17 00:00:00.300000 close(3) = 0 <0.000010>
"#;

const EPOCH: &str = r#"1795229749.117596 openat(AT_FDCWD, "/data/a", O_RDONLY) = 3</data/a> <0.000031>
1795229749.127596 read(3</data/a>, "abc"..., 4096) = 4096 <0.000120>
1795229749.137596 close(3</data/a>) = 0 <0.000010>
"#;

const TERMINAL: &str = r#"clone(child_stack=NULL, flags=SIGCHLD) = 1501
strace: Process 1501 attached
[pid  1501] openat(AT_FDCWD, "/data/a", O_RDONLY) = 3
[pid  1500] --- SIGCHLD {si_signo=SIGCHLD, si_code=CLD_EXITED, si_pid=1501} ---
[pid  1501] close(3) = 0
[pid  1501] +++ exited with 0 +++
close(7) = 0
"#;

const LOGS: [&str; 5] = [BARE, THREADS, STAMPED, EPOCH, TERMINAL];

fn read_with(log: &[u8], options: &ReadOptions) -> Result<Tally, SourceError> {
    let input = Input::from_reader(Box::new(Cursor::new(log.to_vec())), "test.log", None)?;
    Tally::of(open_input(input, None, options)?.as_mut())
}

fn read(log: &str) -> Tally {
    read_with(log.as_bytes(), &small_chunks(64))
        .unwrap_or_else(|error| panic!("{error}: {}\n{log}", error.hint))
}

/// A log of many calls: an end would be that of the first of several logs.
fn long(times: usize) -> String {
    BARE.lines().take(6).map(|line| format!("{line}\n")).collect::<String>().repeat(times)
}

fn with_leads(log: &str, lead: impl Fn(usize) -> String) -> String {
    log.lines().enumerate().map(|(index, line)| format!("{}{line}\n", lead(index))).collect()
}

type Lead = fn(usize) -> String;

/// Of journals, containers, job systems, loggers, mails and editors. Those before times of a clock are not used.
const LEADS: &[Lead] = &[
    |i| format!("Maj {} 21:36:4{} node7 strace[1499]: ", 28 + i / 2, i % 10),
    |i| format!("Mar  1 21:36:4{} node-x.example.org strace[1499]: ", i % 10),
    |i| format!("2026-05-17T21:36:4{}+0200 node7 strace[1499]: ", i % 10),
    |i| format!("2026-05-17T21:36:42.{:06}+02:00 host strace[1]: ", i * 7919),
    |i| format!("<13>1 2026-03-01T10:00:00.{i:03}Z host strace 1499 - - "),
    |i| format!("2026-03-01T10:00:00.{:09}Z stderr F ", i * 1000),
    |_| "[pod/app-7d9f8c-x2z4/main] ".into(),
    |_| "app-1  | ".into(),
    |i| format!("app-1  | 2026-03-01T10:00:00.{}Z ", i * 11),
    |i| format!("2026-03-01T10:00:0{i}.1234567Z "),
    |i| format!("build\tRun tests\t2026-03-01T10:00:0{i}.1234567Z "),
    |i| format!("[2026-03-01 10:00:00.{i:03}] "),
    |i| format!("2026-03-01 10:00:00,{i:03} - INFO - strace - "),
    |i| format!("10:00:00.{i:03} [main] INFO  c.e.Main - "),
    |i| format!("2026-03-01T10:00:0{i}.123456+00:00 app[web.1]: "),
    |i| format!("[{:>5}.{i:06}] ", 12 + i),
    |i| format!("{i}.5s | "),
    |_| "node7: ".into(),
    |_| "[1,0]<stderr>:".into(),
    |_| "0: ".into(),
    |_| "> ".into(),
    |_| ">> ".into(),
    |_| "> > ".into(),
    |_| "| ".into(),
    |_| "+".into(),
    |_| "-".into(),
    |_| "# ".into(),
    |_| "// ".into(),
    |_| "* ".into(),
    |_| "<nick> ".into(),
    |_| "\t".into(),
    |i| format!("{}:", 12 + i * 7),
    |i| format!("run/strace.log:{}:", 12 + i * 7),
    |i| format!("{:>6}\t", i + 1),
    |i| format!("{:>6}  ", i + 1),
    |i| format!("{} ", i + 1),
    |i| format!("{:>4}: ", i + 97),
    |i| format!("{}. ", i + 1),
    |i| format!("{:>4} | ", i + 97),
    |i| format!("{}\tapp-1  | ", i + 1),
    |_| "überall: ".into(),
];

#[test]
fn any_lead_before_any_log() {
    for log in LOGS {
        let plain = read(log);
        for (number, lead) in LEADS.iter().enumerate() {
            let pasted = with_leads(log, lead);
            let tally = read(&pasted);
            assert_eq!(tally.shown, plain.shown, "lead {number}\n{pasted}");
            assert_eq!(tally.losses.counts, plain.losses.counts, "lead {number}\n{pasted}");
            assert_eq!(tally.counts.lines, plain.counts.lines);
        }
    }
}

/// An indentation is no column of `strace -r`.
#[test]
fn indented_logs() {
    for log in LOGS {
        let plain = read(log);
        for lead in ["    ", "  ", "\t\t"] {
            let pasted = with_leads(log, |_| lead.into());
            assert_eq!(read(&pasted).shown, plain.shown, "{pasted}");
        }
    }
    let relative = "     0.000000 openat(AT_FDCWD, \"/a\", O_RDONLY) = 3\n     0.000123 close(3) = 0\n     1.000001 close(4) = 0\n";
    assert_eq!(read(relative).last, Some(1_000_124_000));
    let seconds = "     0 openat(AT_FDCWD, \"/a\", O_RDONLY) = 3\n     1 close(3) = 0\n     0 close(4) = 0\n";
    assert_eq!(read(seconds).last, Some(1_000_000_000));
}

/// Times that strace could have written are read as such: by `ts`, where strace gave none.
#[test]
fn times_of_ts() {
    let plain = read(BARE);
    for lead in
        ["Mar 11 10:00:0{} ", "11 Mar 10:00:0{} ", "Sun Mar 11 2026 10:00:0{} ", "2026-03-01 10:00:0{} "]
    {
        let tally = read(&with_leads(BARE, |i| lead.replace("{}", &i.to_string())));
        let without = |text: &String| text.split(" start ").next().unwrap().to_string();
        let calls = |tally: &Tally| tally.shown[..6].iter().map(without).collect::<Vec<_>>();
        assert_eq!(calls(&tally), calls(&plain), "{lead}");
        assert_eq!((tally.first, tally.last), (Some(36_000_000_000_000), Some(36_006_000_000_000)), "{lead}");
    }
    let tally = read(&with_leads(BARE, |i| format!("Sun Mar  1 10:00:0{i} 2026 ")));
    assert_eq!((tally.shown, tally.first), (plain.shown, None));
}

/// Behind a date stands a thread where numbers take turns.
#[test]
fn threads_behind_times() {
    let plain = read(THREADS);
    for lead in ["Mar 01 10:00:0{} ", "2026-03-01T10:00:0{}Z ", "10:00:0{} "] {
        let tally = read(&with_leads(THREADS, |i| lead.replace("{}", &i.to_string())));
        assert_eq!(tally.shown, plain.shown, "{lead}");
    }
}

#[test]
fn lines_without_the_lead_are_counted() {
    let mut pasted = with_leads(&long(70), |_| "app-1  | ".into());
    pasted += "close(7) = 0\nelsewhere\n\nother-1  | close(8) = 0\napp-1  |\n";
    let tally = read(&pasted);
    assert_eq!(tally.losses.count(LossKind::UnprefixedLines), 2);
    assert_eq!(tally.losses.count(LossKind::OtherSources), 1);
    assert_eq!(tally.losses.first[&LossKind::UnprefixedLines].line, 421);
    assert_eq!(tally.losses.first[&LossKind::UnprefixedLines].sample, "close(7) = 0");
    assert_eq!(tally.losses.first[&LossKind::OtherSources].line, 424);
    assert_eq!(tally.calls["close"].count, 70);
}

fn refused(log: &str) -> String {
    let error = read_with(log.as_bytes(), &ReadOptions::default()).expect_err(log);
    format!("{} ({})", error.message, error.hint)
}

#[test]
fn lines_of_several_logs_are_told_apart() {
    let hosts = ["app-1", "worker-1"];
    for lead in ["{}  | ", "[pod/{}] ", "Mar 01 10:00:00 {} strace[17]: ", "{}: "] {
        let said = refused(&with_leads(BARE, |i| lead.replace("{}", hosts[i % 2])));
        assert!(
            said.contains("several logs") && said.contains("app-1") && said.contains("grep -F"),
            "{said}"
        );
    }
    let said = refused(&with_leads(&THREADS.repeat(2), |i| format!("[{}] | ", i / 2 % 2)));
    assert!(said.contains("several logs"), "{said}");
}

#[test]
fn leads_of_no_shape_are_named() {
    let leads = ["a.b: ", "[x] ", "{d-e} ", "f/g/h "];
    let said = refused(&with_leads(BARE, |i| leads[i % 4].into()));
    assert!(said.contains("differs from line to line") && said.contains("\"[x]\""), "{said}");
}

/// Strings in JSON have their own escapes: they are not to be half-read.
#[test]
fn lines_in_json_are_refused() {
    let quoted = |line: &str| line.replace('"', "\\\"");
    let log: String = BARE
        .lines()
        .map(|line| format!("{{\"log\":\"{}\\n\",\"stream\":\"stderr\"}}\n", quoted(line)))
        .collect();
    let said = refused(&log);
    assert!(said.contains("is JSON") && said.contains("jq"), "{said}");
}

/// Each replacement, and what of a log it is for.
const REWRITES: &[&[(&str, &str)]] = &[
    &[("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("\"", "&quot;")],
    &[("&", "&#38;"), ("<", "&#60;"), (">", "&#x3e;"), ("\"", "&#34;"), ("'", "&#39;")],
    &[("(\"", "(“"), (" \"", " “"), ("[\"", "[“"), ("\"", "”")],
    &[("(\"", "(„"), (" \"", " „"), ("[\"", "[„"), ("\"", "“"), ("...", "…")],
    &[("(\"", "(«\u{a0}"), (" \"", " «\u{a0}"), ("[\"", "[«\u{a0}"), ("\"", "\u{a0}»")],
    &[
        ("&", "&amp;"),
        ("(\"", "(&ldquo;"),
        (" \"", " &ldquo;"),
        ("[\"", "[&ldquo;"),
        ("\"", "&rdquo;"),
        ("...", "&hellip;"),
    ],
    &[("= -", "= –"), ("...", "…"), ("---", "—")],
    &[(" ", "\u{a0}")],
];

#[test]
fn characters_that_were_put_for_others() {
    for log in LOGS {
        let plain = read(log);
        for rewrites in REWRITES {
            let pasted = rewrites.iter().fold(log.to_string(), |text, (from, to)| text.replace(from, to));
            let tally = read(&pasted);
            assert_eq!(tally.shown, plain.shown, "{pasted}");
            assert_eq!(tally.losses.counts, plain.losses.counts, "{pasted}");
            let led = with_leads(&pasted, |i| format!("2026-05-17T21:36:4{i}+0200 node7 strace[1499]: "));
            assert_eq!(read(&led).shown, plain.shown, "{led}");
        }
    }
}

/// Data may hold anything.
#[test]
fn characters_in_strings_and_names_stay() {
    let log = "openat(AT_FDCWD, \"/a&lt;b&quot;\", O_RDONLY) = 3</a&lt;b>\n\
               read(3</tmp/“x”…>, \"12: openat(AT_FDCWD, “\", 9) = 9\n\
               write(1, \"> Mar 01 10:00:00 read(3, 4) = 4\", 9) = 9\n";
    let tally = read(log);
    assert!(tally.shown[0].contains("[/a&lt;b&quot;]"), "{}", tally.shown[0]);
    assert!(tally.shown[1].contains("[/tmp/“x”…]"), "{}", tally.shown[1]);
    assert_eq!(tally.calls["write"].bytes_written, 9);
}

/// Only the beginning of a log is looked at: what comes later is counted.
#[test]
fn characters_that_come_late_are_counted() {
    let late = "openat(AT_FDCWD, “/data/z”, O_RDONLY) = 3\nunlink(&quot;/data/z&quot;) = 0\n\
                access(\"/z\", F_OK) = –1 ENOENT (No such file or directory)\nread(0,  &lt;unfinished ...&gt;\n";
    let tally = read(&(long(500) + late));
    assert_eq!(tally.losses.count(LossKind::GarbledNames), 2);
    assert_eq!(tally.losses.count(LossKind::UnreadableLines), 2);
}

#[test]
fn colours_go_wherever_they_come() {
    let plain = read(&long(300));
    let coloured: String = long(300)
        .lines()
        .map(|line| match line.split_once('(') {
            Some((name, rest)) => format!("\u{1b}[01;31m\u{1b}[K{name}\u{1b}[m\u{1b}[K({rest}\u{1b}[0m\r\n"),
            None => format!("{line}\r\n"),
        })
        .collect();
    assert_eq!(read(&coloured).shown, plain.shown);
    let late = long(300) + "\u{1b}[01;31mclose(3)\u{1b}[m = 0\n";
    assert_eq!(read(&late).calls["close"].count, 301);
    let led = with_leads(&long(300), |_| "\u{1b}[36mapp-1  |\u{1b}[0m ".into());
    assert_eq!(read(&led).shown, plain.shown);
}

#[test]
fn lines_longer_than_a_block() {
    let line = format!("write(1, \"{}\", 9) = 9\n", "x“".repeat(400_000));
    let log = (long(1) + &line + &long(1)).replace('"', "&quot;");
    let options = ReadOptions { longest_line: 4 << 20, ..ReadOptions::default() };
    let tally = read_with(with_leads(&log, |_| "> ".into()).as_bytes(), &options).unwrap();
    assert_eq!((tally.calls["write"].count, tally.calls["close"].count), (1, 2));
    let lacking = with_leads(&long(20), |_| "> ".into()) + &line + "> close(3) = 0\n";
    let tally = read_with(lacking.as_bytes(), &options).unwrap();
    assert_eq!((tally.losses.count(LossKind::UnprefixedLines), tally.calls["close"].count), (1, 21));
}

#[test]
fn damaged_logs_are_read_or_refused() {
    let mut random = Random(11);
    for round in 0..150 {
        let log = LOGS[random.below(LOGS.len())].repeat(1 + random.below(3));
        let lead = LEADS[random.below(LEADS.len())];
        let rewrites = REWRITES[random.below(REWRITES.len())];
        let rewritten = rewrites.iter().fold(log, |text, (from, to)| text.replace(from, to));
        let mut bytes = with_leads(&rewritten, lead).into_bytes();
        for _ in 0..random.below(8) {
            let at = random.below(bytes.len());
            match random.below(4) {
                0 => bytes[at] = random.below(256) as u8,
                1 => bytes.truncate(at.max(1)),
                2 => bytes.insert(at, b"\n\x1b&\xe2\0"[random.below(5)]),
                _ => drop(bytes.drain(at..(at + random.below(40)).min(bytes.len() - 1).max(at))),
            }
        }
        let newlines = bytes.iter().filter(|&&byte| byte == b'\n').count();
        match read_with(&bytes, &small_chunks(1 + random.below(200))) {
            Ok(tally) => assert!(tally.counts.lines.abs_diff(newlines as u64) <= 1, "round {round}"),
            Err(error) => assert!(!error.message.contains("mistake"), "round {round}: {error}"),
        }
    }
}

/// Lines at which logs begin behind the first one, as the error names them.
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

#[test]
fn pieces_of_a_line_are_joined() {
    let time = |at: usize| format!("2026-01-01T00:00:00.{at:09}Z");
    let cri = |log: &str| {
        let mut out = String::new();
        for (at, line) in log.lines().enumerate() {
            let middle = line.len() / 2;
            match at % 2 {
                0 => out += &format!("{} stderr F {line}\n", time(at)),
                _ => {
                    out += &format!("{} stderr P {}\n", time(at), &line[..middle]);
                    out += &format!("{} stdout F word\n", time(at));
                    out += &format!("{} stderr F {}\n", time(at), &line[middle..]);
                }
            }
        }
        out
    };
    let log = long(5);
    let (tally, plain) = (read(&cri(&log)), read(&log));
    assert_eq!(tally.shown, plain.shown);
    assert_eq!(tally.losses.count(LossKind::UnreadableLines), 0);
    assert_eq!(tally.counts.lines as usize, cri(&log).lines().count());
    assert_eq!(tally.losses.first[&LossKind::OtherSources].line, 3);
}

#[test]
fn json_and_wide_characters_are_named() {
    let hint = |log: &[u8]| read_with(log, &small_chunks(64)).map(|_| ()).unwrap_err();
    let docker = "{\"log\":\"close(3) = 0\\n\",\"stream\":\"stderr\"}\n";
    for (log, word) in [
        (docker.to_string(), "select(.stream"),
        (format!("starting\n{docker}"), "select(.stream"),
        ("{\"MESSAGE\":\"close(3) = 0\"}\n".repeat(3), ".MESSAGE"),
        ("[{\"log\": \"close(3) = 0\\n\"}]\n".to_string(), ".log"),
        ("{\n \"log\": [\n  \"close(3) = 0\"\n ]\n}\n".to_string(), ".log"),
        (format!("2026-01-01T00:00:00.1Z stderr F {docker}"), "select(.stream"),
    ] {
        let error = hint(log.as_bytes());
        assert!(error.message.contains("JSON") && error.hint.contains(word), "{error} {}\n{log}", error.hint);
    }
    let wide: Vec<u8> = "\u{feff}close(3) = 0\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let error = hint(&wide);
    assert!(error.message.contains("UTF-16") && error.hint.contains("iconv"), "{error}");
}

const TABLE: &str = "\
% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
100.00    0.000014          14         1         1 read
------ ----------- ----------- --------- --------- ----------------
100.00    0.000014          14         1         1 total
";

#[test]
fn rows_stand_below_a_header() {
    let lost = |log: &str| read(log).losses.count(LossKind::UnreadableLines);
    assert_eq!(lost(&format!("{BARE}{TABLE}")), 0);
    // One row may be damaged.
    assert_eq!(lost(&format!("{BARE}{}{TABLE}", &TABLE.replace("total", "to tal"))), 1);
    let row = "  0.00    0.000000           0         1         1 access\n";
    assert_eq!(lost(&format!("{BARE}{row}")), 1);
    // Damaged calls.
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
        // With -C the table is of the same run.
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
        // A process may execute programs.
        (BARE.lines().next().unwrap().to_string() + "\n" + BARE, vec![]),
        // With a filter forks are not shown.
        (
            TREE.lines()
                .filter(|line| !line.contains("clone") && !line.contains("exit_group"))
                .collect::<Vec<_>>()
                .join("\n"),
            vec![],
        ),
        (TERMINAL.to_string(), vec![]),
        (THREADS.repeat(2), vec![]),
        // What a program prints while it writes.
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
fn one_of_several_logs() {
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
    assert!(of(18, None).unwrap_err().message.contains("has no line 18"));
    let lacking = with_leads(&long(5), |i| if i == 4 { String::new() } else { "app | ".into() });
    let lines = Some(LineRange { first: 2, last: None });
    let tally = read_with(lacking.as_bytes(), &ReadOptions { lines, ..small_chunks(50) }).unwrap();
    assert_eq!(tally.losses.first[&LossKind::UnprefixedLines].line, 5);
}
