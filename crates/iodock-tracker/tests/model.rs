//! Compares the tracker with a simple model of the kernel. For any order of open, dup, fork, chdir, exec and
//! close, the tracker must find the file and the offset that the model has for each call.

use iodock_event::constants::*;
use iodock_event::{
    Batch, CallId, ErrnoId, EventColumns, Fork, Outcome, Phase, RawCall, Record, AT_FDCWD, UNKNOWN,
};
use iodock_tracker::{SpaceOptions, Tracker, TrackerOptions};
use proptest::prelude::*;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

#[derive(Debug)]
struct Open {
    name: String,
    position: i64,
    append: bool,
}

type Table = Rc<RefCell<BTreeMap<i32, (Rc<RefCell<Open>>, bool)>>>;
type Directory = Rc<RefCell<String>>;

struct Process {
    table: Table,
    directory: Directory,
}

/// A step of a process. The numbers select among the existing objects.
#[derive(Clone, Debug)]
enum Step {
    Open { name: usize, append: bool, close_on_exec: bool, below: Option<usize> },
    Close(usize),
    Dup(usize),
    Dup2(usize, i32),
    Dup3(usize, i32),
    DupFd(usize, i32, bool),
    SetFd(usize, bool),
    SetAppend(usize, bool),
    Read(usize, i64),
    Write(usize, i64),
    PositionedRead(usize, i64, i64),
    Seek(usize, i64),
    Copy(usize, usize, i64),
    ChangeDirectory(usize),
    Fork { files: bool, directory: bool, child_first: bool },
    Exec,
    CloseRange(i32, i32, u64),
    Unshare(bool),
    Exit,
}

fn steps() -> impl Strategy<Value = Vec<(usize, Step)>> {
    let fd = 0..8usize;
    let step = prop_oneof![
        6 => (0..6usize, any::<bool>(), any::<bool>(), prop::option::of(0..8usize))
            .prop_map(|(name, append, close_on_exec, below)| Step::Open { name, append, close_on_exec, below }),
        3 => fd.clone().prop_map(Step::Close),
        2 => fd.clone().prop_map(Step::Dup),
        2 => (fd.clone(), 3..12i32).prop_map(|(fd, to)| Step::Dup2(fd, to)),
        1 => (fd.clone(), 3..12i32).prop_map(|(fd, to)| Step::Dup3(fd, to)),
        1 => (fd.clone(), 3..12i32, any::<bool>()).prop_map(|(fd, least, close)| Step::DupFd(fd, least, close)),
        1 => (fd.clone(), any::<bool>()).prop_map(|(fd, on)| Step::SetFd(fd, on)),
        1 => (fd.clone(), any::<bool>()).prop_map(|(fd, on)| Step::SetAppend(fd, on)),
        5 => (fd.clone(), 0..100i64).prop_map(|(fd, bytes)| Step::Read(fd, bytes)),
        5 => (fd.clone(), 0..100i64).prop_map(|(fd, bytes)| Step::Write(fd, bytes)),
        2 => (fd.clone(), 0..100i64, -1..50i64).prop_map(|(fd, bytes, at)| Step::PositionedRead(fd, bytes, at)),
        2 => (fd.clone(), 0..100i64).prop_map(|(fd, to)| Step::Seek(fd, to)),
        2 => (fd.clone(), fd.clone(), 0..100i64).prop_map(|(from, to, bytes)| Step::Copy(from, to, bytes)),
        2 => (0..6usize).prop_map(Step::ChangeDirectory),
        3 => (any::<bool>(), any::<bool>(), any::<bool>())
            .prop_map(|(files, directory, child_first)| Step::Fork { files, directory, child_first }),
        1 => Just(Step::Exec),
        1 => (3..12i32, 3..12i32, 0..8u64).prop_map(|(first, last, flags)| Step::CloseRange(first, last, flags & 6)),
        1 => any::<bool>().prop_map(Step::Unshare),
        1 => Just(Step::Exit),
    ];
    prop::collection::vec((0..6usize, step), 1..120)
}

const NAMES: [&str; 6] = ["a", "../b", "/c/./d", "./e//f", "/..", "g/../h"];

fn absolute(directory: &str, path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    let whole = if path.starts_with('/') { path.to_string() } else { format!("{directory}/{path}") };
    for part in whole.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

/// The expected rows: the file's name and the offset of each.
type Expected = Vec<(Option<String>, i64)>;

struct Kernel {
    processes: BTreeMap<u32, Process>,
    next_pid: u32,
    batch: Batch,
    expected: Expected,
    time: i64,
}

impl Kernel {
    fn new() -> Self {
        let root = Process { table: Table::default(), directory: Rc::new(RefCell::new("/w/x".into())) };
        Kernel {
            processes: BTreeMap::from([(100, root)]),
            next_pid: 101,
            batch: Batch::default(),
            expected: Vec::new(),
            time: 0,
        }
    }

    fn raw(&mut self, pid: u32, name: &str, result: i64) -> RawCall {
        self.time += 10;
        let mut raw = RawCall::new(CallId::intern(name.as_bytes()).unwrap(), pid);
        raw.start = self.time;
        raw.duration = 5;
        raw.result = result;
        raw.outcome = Outcome::Succeeded;
        raw
    }

    fn emit(&mut self, raw: RawCall, expected: &[(Option<String>, i64)]) {
        self.batch.records.push(Record::Call(raw));
        self.expected.extend_from_slice(expected);
    }

    fn table(&self, pid: u32) -> Table {
        Rc::clone(&self.processes[&pid].table)
    }

    fn pick(&self, pid: u32, choice: usize) -> Option<(i32, Rc<RefCell<Open>>)> {
        let table = self.table(pid);
        let table = table.borrow();
        let count = table.len();
        (count > 0).then(|| table.iter().nth(choice % count).map(|(&fd, (open, _))| (fd, Rc::clone(open))))?
    }

    fn free(&self, pid: u32, least: i32) -> i32 {
        let table = self.table(pid);
        let table = table.borrow();
        (least..).find(|fd| !table.contains_key(fd)).unwrap()
    }

    fn set(&self, pid: u32, fd: i32, open: Rc<RefCell<Open>>, close_on_exec: bool) {
        self.table(pid).borrow_mut().insert(fd, (open, close_on_exec));
    }

    fn step(&mut self, choice: usize, step: &Step) {
        let Some(&pid) = self.processes.keys().nth(choice % self.processes.len().max(1)) else { return };
        match *step {
            Step::Open { name, append, close_on_exec, below } => {
                self.open(pid, name, append, close_on_exec, below)
            }
            Step::ChangeDirectory(name) => self.change_directory(pid, name),
            Step::Fork { files, directory, child_first } => self.fork(pid, files, directory, child_first),
            Step::Exec => self.exec(pid),
            Step::CloseRange(first, last, flags) => self.close_range(pid, first, last, flags),
            Step::Unshare(files) => self.unshare(pid, files),
            Step::Exit => {
                let mut raw = self.raw(pid, "exit_group", UNKNOWN);
                raw.outcome = Outcome::NoResult;
                self.emit(raw, &[(None, UNKNOWN)]);
                self.processes.remove(&pid);
            }
            Step::Copy(from, to, bytes) => self.copy(pid, from, to, bytes),
            Step::Close(fd) | Step::Dup(fd) | Step::Dup2(fd, _) | Step::Dup3(fd, _) | Step::DupFd(fd, ..) => {
                self.descriptor_step(pid, fd, step)
            }
            Step::SetFd(fd, _) | Step::SetAppend(fd, _) => self.descriptor_step(pid, fd, step),
            Step::Read(fd, _) | Step::Write(fd, _) | Step::PositionedRead(fd, ..) | Step::Seek(fd, _) => {
                self.access_step(pid, fd, step)
            }
        }
    }

    fn open(&mut self, pid: u32, name: usize, append: bool, close_on_exec: bool, below: Option<usize>) {
        let below = below.and_then(|choice| self.pick(pid, choice));
        let directory = match &below {
            Some((_, open)) => open.borrow().name.clone(),
            None => self.processes[&pid].directory.borrow().clone(),
        };
        let name = NAMES[name];
        let fd = self.free(pid, 3);
        let mut raw = self.raw(pid, "openat", i64::from(fd));
        raw.fd = below.map_or(AT_FDCWD, |(fd, _)| fd);
        raw.path = self.batch.push_text(name.as_bytes());
        raw.flags = if append { O_APPEND } else { 0 } | if close_on_exec { O_CLOEXEC } else { 0 };
        let name = absolute(&directory, name);
        self.emit(raw, &[(Some(name.clone()), UNKNOWN)]);
        self.set(pid, fd, Rc::new(RefCell::new(Open { name, position: 0, append })), close_on_exec);
    }

    fn change_directory(&mut self, pid: u32, name: usize) {
        let name = NAMES[name];
        let mut raw = self.raw(pid, "chdir", 0);
        raw.path = self.batch.push_text(name.as_bytes());
        let directory = Rc::clone(&self.processes[&pid].directory);
        let name = absolute(&directory.borrow(), name);
        self.emit(raw, &[(Some(name.clone()), UNKNOWN)]);
        *directory.borrow_mut() = name;
    }

    fn fork(&mut self, pid: u32, files: bool, directory: bool, child_first: bool) {
        let child = self.next_pid;
        self.next_pid += 1;
        let parent = &self.processes[&pid];
        let table = match files {
            true => Rc::clone(&parent.table),
            false => Rc::new(RefCell::new(parent.table.borrow().clone())),
        };
        let working = match directory {
            true => Rc::clone(&parent.directory),
            false => Rc::new(RefCell::new(parent.directory.borrow().clone())),
        };
        self.processes.insert(child, Process { table, directory: working });
        let mut raw = self.raw(pid, "clone", i64::from(child));
        raw.flags = if files { CLONE_FILES } else { 0 } | if directory { CLONE_FS } else { 0 };
        let fork = Fork { parent_tid: pid, child_tid: child, flags: raw.flags, call: raw.call };
        self.batch.forks.push(fork);
        if child_first {
            self.batch.records.push(Record::Call(RawCall { phase: Phase::Enter, ..raw }));
            let own = self.raw(child, "getpid", i64::from(child));
            self.emit(own, &[(None, UNKNOWN)]);
            raw.phase = Phase::Exit;
        }
        self.emit(raw, &[(None, UNKNOWN)]);
    }

    fn exec(&mut self, pid: u32) {
        let mut raw = self.raw(pid, "execve", 0);
        raw.path = self.batch.push_text(b"/bin/x");
        self.emit(raw, &[(Some("/bin/x".into()), UNKNOWN)]);
        let kept = self
            .table(pid)
            .borrow()
            .iter()
            .filter(|(_, (_, close))| !close)
            .map(|(&fd, open)| (fd, open.clone()))
            .collect();
        self.processes.get_mut(&pid).unwrap().table = Rc::new(RefCell::new(kept));
    }

    fn close_range(&mut self, pid: u32, first: i32, last: i32, flags: u64) {
        let mut raw = self.raw(pid, "close_range", 0);
        raw.fd = first;
        raw.argument = i64::from(last);
        raw.flags = flags;
        self.emit(raw, &[(None, UNKNOWN)]);
        if flags & CLOSE_RANGE_UNSHARE != 0 {
            let own = Rc::new(RefCell::new(self.table(pid).borrow().clone()));
            self.processes.get_mut(&pid).unwrap().table = own;
        }
        let table = self.table(pid);
        let inside = |fd: &i32| (first..=last).contains(fd);
        if flags & CLOSE_RANGE_CLOEXEC != 0 {
            table
                .borrow_mut()
                .iter_mut()
                .filter(|(fd, _)| inside(fd))
                .for_each(|(_, (_, close))| *close = true);
        } else {
            table.borrow_mut().retain(|fd, _| !inside(fd));
        }
    }

    fn unshare(&mut self, pid: u32, files: bool) {
        let mut raw = self.raw(pid, "unshare", 0);
        raw.flags = if files { CLONE_FILES } else { CLONE_FS };
        self.emit(raw, &[(None, UNKNOWN)]);
        let process = self.processes.get_mut(&pid).unwrap();
        if files {
            let own = process.table.borrow().clone();
            process.table = Rc::new(RefCell::new(own));
        } else {
            let own = process.directory.borrow().clone();
            process.directory = Rc::new(RefCell::new(own));
        }
    }

    fn descriptor_step(&mut self, pid: u32, choice: usize, step: &Step) {
        let Some((fd, open)) = self.pick(pid, choice) else { return };
        let name = (Some(open.borrow().name.clone()), UNKNOWN);
        let mut raw = match *step {
            Step::Close(_) => {
                self.table(pid).borrow_mut().remove(&fd);
                self.raw(pid, "close", 0)
            }
            Step::Dup(_) => {
                let to = self.free(pid, 0);
                self.set(pid, to, Rc::clone(&open), false);
                self.raw(pid, "dup", i64::from(to))
            }
            Step::Dup2(_, to) => {
                if to != fd {
                    self.set(pid, to, Rc::clone(&open), false);
                }
                RawCall { fd2: to, ..self.raw(pid, "dup2", i64::from(to)) }
            }
            Step::Dup3(_, to) if to == fd => {
                let (outcome, errno) = (Outcome::Failed, ErrnoId::from_linux(22));
                RawCall { fd2: to, outcome, errno, ..self.raw(pid, "dup3", -1) }
            }
            Step::Dup3(_, to) => {
                self.set(pid, to, Rc::clone(&open), true);
                RawCall { fd2: to, flags: O_CLOEXEC, ..self.raw(pid, "dup3", i64::from(to)) }
            }
            Step::DupFd(_, least, close) => {
                let to = self.free(pid, least);
                self.set(pid, to, Rc::clone(&open), close);
                let flags = if close { F_DUPFD_CLOEXEC } else { F_DUPFD };
                RawCall { flags, argument: i64::from(least), ..self.raw(pid, "fcntl", i64::from(to)) }
            }
            Step::SetFd(_, on) => {
                self.set(pid, fd, Rc::clone(&open), on);
                RawCall { flags: F_SETFD, argument: i64::from(on), ..self.raw(pid, "fcntl", 0) }
            }
            Step::SetAppend(_, on) => {
                open.borrow_mut().append = on;
                let argument = if on { O_APPEND as i64 } else { 0 };
                RawCall { flags: F_SETFL, argument, ..self.raw(pid, "fcntl", 0) }
            }
            _ => return,
        };
        raw.fd = fd;
        self.emit(raw, &[name]);
    }

    fn access_step(&mut self, pid: u32, choice: usize, step: &Step) {
        let Some((fd, open)) = self.pick(pid, choice) else { return };
        let mut open = open.borrow_mut();
        let (mut raw, offset) = match *step {
            Step::Read(_, bytes) => (self.raw(pid, "read", bytes), take(&mut open, bytes)),
            Step::Write(_, bytes) => (self.raw(pid, "write", bytes), put(&mut open, bytes)),
            Step::PositionedRead(_, bytes, at) => {
                let offset = if at < 0 { take(&mut open, bytes) } else { at };
                (RawCall { offset: at, ..self.raw(pid, "preadv2", bytes) }, offset)
            }
            Step::Seek(_, to) => {
                open.position = to;
                (self.raw(pid, "lseek", to), to)
            }
            _ => return,
        };
        raw.fd = fd;
        self.emit(raw, &[(Some(open.name.clone()), offset)]);
    }

    fn copy(&mut self, pid: u32, from: usize, to: usize, bytes: i64) {
        let (Some((fd, input)), Some((fd2, output))) = (self.pick(pid, from), self.pick(pid, to)) else {
            return;
        };
        let raw = RawCall { fd, fd2, ..self.raw(pid, "copy_file_range", bytes) };
        let read_at = take(&mut input.borrow_mut(), bytes);
        let written_at = put(&mut output.borrow_mut(), bytes);
        let names = (input.borrow().name.clone(), output.borrow().name.clone());
        self.emit(raw, &[(Some(names.0), read_at), (Some(names.1), written_at)]);
    }
}

fn take(open: &mut Open, bytes: i64) -> i64 {
    let at = open.position;
    if at != UNKNOWN {
        open.position += bytes;
    }
    at
}

fn put(open: &mut Open, bytes: i64) -> i64 {
    if open.append {
        open.position = UNKNOWN;
        return UNKNOWN;
    }
    take(open, bytes)
}

fn check(steps: &[(usize, Step)], interrupted: bool) {
    let mut kernel = Kernel::new();
    for (choice, step) in steps {
        kernel.step(*choice, step);
        if kernel.processes.is_empty() {
            break;
        }
    }
    if interrupted {
        split(&mut kernel.batch);
    }
    let space = SpaceOptions { working_directory: Some(b"/w/x".to_vec()), ..SpaceOptions::default() };
    let mut tracker = Tracker::new(TrackerOptions { spaces: vec![space] });
    let mut events = EventColumns::default();
    tracker.add_hints(0, &kernel.batch.forks);
    tracker.track(0, &kernel.batch, &mut events);
    let tables = tracker.finish().tables;
    assert_eq!(events.len(), kernel.expected.len());
    for (row, (name, offset)) in kernel.expected.iter().enumerate() {
        let file = events.file[row];
        let got = (file != u32::MAX).then(|| tables.files.row(file).name.to_string());
        assert_eq!((&got, events.offset[row]), (name, *offset), "row {row} of {steps:?}");
    }
}

/// Splits each whole call into a record of its beginning and an adjacent record of its end.
fn split(batch: &mut Batch) {
    let records = std::mem::take(&mut batch.records);
    for record in records {
        match record {
            Record::Call(raw) if raw.phase == Phase::Whole => {
                batch.records.push(Record::Call(RawCall { phase: Phase::Enter, ..raw }));
                batch.records.push(Record::Call(RawCall { phase: Phase::Exit, ..raw }));
            }
            other => batch.records.push(other),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn files_and_offsets_equal_those_of_the_kernel(steps in steps()) {
        check(&steps, false);
        check(&steps, true);
    }
}

/// Makes a call of process 100.
fn call(name: &str, fd: i32, result: i64, start: i64) -> RawCall {
    let mut raw = RawCall::new(CallId::intern(name.as_bytes()).unwrap(), 100);
    (raw.fd, raw.result, raw.start, raw.duration) = (fd, result, start, 5);
    raw.outcome = Outcome::Succeeded;
    raw
}

#[test]
fn an_open_without_a_name_gets_a_file_and_a_handle() {
    let mut batch = Batch::default();
    // The log prints an address instead of the file's name.
    let unnamed = call("openat", AT_FDCWD, 3, 10);
    let noted = RawCall { result_text: batch.push_text(b"/a"), ..call("openat", AT_FDCWD, 4, 20) };
    let failed = RawCall { outcome: Outcome::Failed, ..call("openat", AT_FDCWD, -1, 30) };
    let calls =
        [unnamed, noted, failed, call("read", 3, 100, 40), call("read", 3, 7, 50), call("read", 4, 5, 60)];
    batch.records.extend(calls.map(Record::Call));
    let mut tracker = Tracker::new(TrackerOptions { spaces: vec![SpaceOptions::default()] });
    let mut events = EventColumns::default();
    tracker.track(0, &batch, &mut events);
    let tables = tracker.finish().tables;
    let (file, handle) = (&events.file, &events.handle);
    let name = |row: usize| tables.files.row(file[row]).name.to_string();
    assert_eq!((name(0), name(1)), ("fd:3".into(), "/a".into()));
    assert_eq!(file[2], u32::MAX);
    assert_ne!(handle[0], u32::MAX);
    assert_eq!((file[3], handle[3], file[4], handle[4]), (file[0], handle[0], file[0], handle[0]));
    assert_eq!((file[5], handle[5]), (file[1], handle[1]));
    assert_ne!(handle[0], handle[1]);
    assert_eq!(events.offset[3..6], [0, 100, 0]);
}
