//! Checks that logs with prefixed lines or replaced characters give the same records as the originals.

mod support;

use iodock_event::LossKind;
use iodock_formats::ReadOptions;
use support::strace_logs::{long, read, read_with, with_leads, BARE, LOGS, THREADS};
use support::{small_chunks, Random, Tally};

type Lead = fn(usize) -> String;

/// Prefixes of journals, containers, job systems, loggers, mails and editors. Prefixes that would precede a
/// time of day are left out.
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
#[ignore = "part of `make test-all`: every log behind every lead"]
fn any_leading_text_before_any_log_is_removed() {
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

/// An indentation must not be read as a column of `strace -r`.
#[test]
fn indented_logs_are_read() {
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

/// Times that strace could have written are read as its own. In this test `ts` printed them for a log without
/// times.
#[test]
fn times_of_the_tool_ts_are_removed() {
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

/// Numbers after a date are thread ids if they alternate.
#[test]
fn thread_numbers_after_times_are_read() {
    let plain = read(THREADS);
    for lead in ["Mar 01 10:00:0{} ", "2026-03-01T10:00:0{}Z ", "10:00:0{} "] {
        let tally = read(&with_leads(THREADS, |i| lead.replace("{}", &i.to_string())));
        assert_eq!(tally.shown, plain.shown, "{lead}");
    }
}

#[test]
fn lines_without_the_leading_text_are_counted() {
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
fn lines_of_several_logs_are_distinguished() {
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
fn irregular_leading_text_is_named() {
    let leads = ["a.b: ", "[x] ", "{d-e} ", "f/g/h "];
    let said = refused(&with_leads(BARE, |i| leads[i % 4].into()));
    assert!(said.contains("differs from line to line") && said.contains("\"[x]\""), "{said}");
}

/// Strings in JSON have their own escapes, so such lines must be refused and not read partially.
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

/// Each replacement of characters, and the part of a log that it affects.
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
fn replaced_characters_are_restored() {
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

/// Data may contain any text, so the reader must not change it.
#[test]
fn characters_in_strings_and_names_are_not_changed() {
    let log = "openat(AT_FDCWD, \"/a&lt;b&quot;\", O_RDONLY) = 3</a&lt;b>\n\
               read(3</tmp/“x”…>, \"12: openat(AT_FDCWD, “\", 9) = 9\n\
               write(1, \"> Mar 01 10:00:00 read(3, 4) = 4\", 9) = 9\n";
    let tally = read(log);
    assert!(tally.shown[0].contains("[/a&lt;b&quot;]"), "{}", tally.shown[0]);
    assert!(tally.shown[1].contains("[/tmp/“x”…]"), "{}", tally.shown[1]);
    assert_eq!(tally.calls["write"].bytes_written, 9);
}

/// The reader examines only the beginning of a log, so it counts later replacements as losses.
#[test]
fn replaced_characters_late_in_a_log_are_counted() {
    let late = "openat(AT_FDCWD, “/data/z”, O_RDONLY) = 3\nunlink(&quot;/data/z&quot;) = 0\n\
                access(\"/z\", F_OK) = –1 ENOENT (No such file or directory)\nread(0,  &lt;unfinished ...&gt;\n";
    let tally = read(&(long(500) + late));
    assert_eq!(tally.losses.count(LossKind::GarbledNames), 2);
    assert_eq!(tally.losses.count(LossKind::UnreadableLines), 2);
}

#[test]
fn colours_are_removed_wherever_they_occur() {
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
fn lines_longer_than_a_block_are_read() {
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

#[test]
fn pieces_of_a_broken_line_are_joined() {
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
fn logs_in_json_and_utf16_are_named() {
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
