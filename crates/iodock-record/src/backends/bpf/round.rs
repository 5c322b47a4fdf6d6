//! Collects the records that are taken out of the buffers at one time, and the facts in them that the
//! recorder needs while the program runs.

use crate::control::Control;
use crate::faults::Mapped;
use crate::locks::lock;
use iodock_bpf::format::{Kind, PAGES_OF_DEVICE};
use iodock_bpf::lives::Lives;
use iodock_bpf::plans::Plans;
use iodock_bpf::record::Record;
use iodock_event::{Action, FileIdentity, Losses, TaskUsage, UNKNOWN};
use std::collections::HashSet;

const PAGE_BYTES: i64 = 4096;
/// Number of words of a general record before its pieces.
const GENERAL_WORDS: usize = 10;
const EXIT_WORDS: usize = 7;

/// Records that were taken, and work that they cause for the writer.
#[derive(Default)]
pub struct Round {
    pub words: Vec<u64>,
    /// Processes that executed a program, and the time in monotonic ns. The writer determines their MPI
    /// ranks.
    pub executed: Vec<(u32, u64)>,
    /// Files that processes mapped.
    pub mapped: Vec<Mapped>,
    pub usages: Vec<TaskUsage>,
    /// Files whose pages were loaded and whose names no record contains, each with the process and the thread
    /// that loaded them.
    pub unnamed: Vec<Unnamed>,
    /// Losses in the kernel since the last round that contained losses.
    pub losses: Losses,
}

impl Round {
    /// Returns whether the writer must read facts about processes that may end soon.
    pub fn is_urgent(&self) -> bool {
        !(self.executed.is_empty() && self.mapped.is_empty() && self.unnamed.is_empty())
    }
}

/// A file in the page cache whose name is unknown.
pub struct Unnamed {
    pub pid: u32,
    pub tid: u32,
    pub time: u64,
    pub file: FileIdentity,
    /// Whether the pages belong to a block device itself and not to a file on it.
    pub of_device: bool,
}

/// Properties of a call, by call number.
#[derive(Clone, Copy, Default)]
struct Meaning {
    /// Whether the call closes descriptors, which other threads' calls in flight may use.
    cuts: bool,
    maps: bool,
    executes: bool,
}

enum Life {
    Born { tid: u32, tgid: u32 },
    Executed { old_tid: u32, pid: u32 },
    Ended { tid: u32, status: i32 },
}

/// Examines the records of each CPU, in the order of each CPU.
pub struct Watch<'a> {
    control: &'a Control,
    meanings: Vec<Meaning>,
    epoch: i64,
    pub lives: Lives,
    /// Beginnings and ends of tasks, not yet sorted by time across CPUs.
    pending: Vec<(u64, Life)>,
    /// Whether any process has had several threads.
    threaded: bool,
    /// Whether a call has closed a descriptor that another thread may be using.
    pub cuts: bool,
    /// Process that will execute the program, and whether it has done this.
    root: u32,
    pub launched: bool,
    pub exec_errno: i32,
    /// Files in the page cache whose names are known or were requested.
    told: HashSet<FileIdentity>,
}

impl<'a> Watch<'a> {
    /// Creates a watch. `epoch`, added to monotonic ns, gives ns since the epoch.
    pub fn new(control: &'a Control, plans: &Plans, epoch: i64) -> Self {
        let meaning = |call: &Option<iodock_event::CallId>| {
            call.map_or(Meaning::default(), |call| {
                let action = call.spec().action;
                Meaning {
                    cuts: matches!(action, Action::Close | Action::Dup2 | Action::CloseRange),
                    maps: action == Action::Map,
                    executes: action == Action::Exec,
                }
            })
        };
        Watch {
            control,
            meanings: plans.calls.iter().map(meaning).collect(),
            epoch,
            lives: Lives::default(),
            pending: Vec::new(),
            threaded: false,
            cuts: false,
            root: 0,
            launched: true,
            exec_errno: 0,
            told: HashSet::new(),
        }
    }

    /// Adds the process that will execute the program, before it does.
    pub fn root(&mut self, pid: u32) {
        (self.root, self.launched) = (pid, false);
        self.begins(pid, pid);
    }

    /// Adds a thread that is followed from now on.
    pub fn begins(&mut self, tid: u32, tgid: u32) {
        self.threaded |= tid != tgid;
        self.lives.begins(tid, tgid);
        if tid == tgid {
            lock(&self.control.processes).push(tgid);
        }
    }

    #[inline]
    pub fn look(&mut self, record: Record, round: &mut Round) {
        match record.kind() {
            Kind::Small
            | Kind::Positioned
            | Kind::General
            | Kind::Short
            | Kind::ShortPositioned
            | Kind::ShortSized => {
                let meaning = self.meanings.get(record.number()).copied().unwrap_or_default();
                if meaning.cuts {
                    self.cuts |= self.threaded && self.is_shared(record.tid());
                } else if meaning.maps | meaning.executes {
                    self.look_closer(record, meaning, round);
                }
            }
            Kind::Fork => {
                let (tid, (_, tgid)) = (record.tid(), record.halves(2));
                self.threaded |= tid != tgid;
                self.pending.push((record.time(), Life::Born { tid, tgid }));
            }
            Kind::Exec => {
                let ((old_tid, _), pid) = (record.halves(3), record.tid());
                self.launched |= pid == self.root;
                round.executed.push((pid, record.time()));
                self.pending.push((record.time(), Life::Executed { old_tid, pid }));
            }
            Kind::Exit => self.look_at_end(record, round),
            Kind::Identity => {
                self.told.insert(FileIdentity { device: record.halves(2).0, inode: record.words[3] });
            }
            Kind::Pages => self.look_at_pages(record, round),
            // These are calls that only moved bytes (Kind::Again), and the recorder's own notes.
            _ => {}
        }
    }

    /// Returns whether the task's process has several threads, or may have because of unprocessed beginnings.
    fn is_shared(&self, tid: u32) -> bool {
        !self.lives.has(tid) || self.lives.shared_process(tid).is_some() || !self.pending.is_empty()
    }

    fn look_closer(&mut self, record: Record, meaning: Meaning, round: &mut Round) {
        let Some(words) = record.words.get(..GENERAL_WORDS) else { return };
        let (tid, result) = (record.tid(), words[3] as i64);
        let failed = (-4095..0).contains(&result);
        if meaning.maps && !failed {
            let pid = self.lives.process_of(tid).unwrap_or(tid);
            round.mapped.push(Mapped { pid, address: words[3], length: words[5], flags: words[7] });
        }
        // Before its exec, the child runs the recorder's own code. Of its calls only an exec that fails
        // matters.
        if meaning.executes && failed && !self.launched && tid == self.root {
            self.exec_errno = -result as i32;
        }
    }

    fn look_at_pages(&mut self, record: Record, round: &mut Round) {
        let &[_, time, _, _, _, inode, ..] = record.words else { return };
        let ((device, cause), tid) = (record.halves(4), record.tid());
        let file = FileIdentity { device, inode };
        if self.told.insert(file) {
            let (pid, of_device) = (self.lives.process_of(tid).unwrap_or(tid), cause & PAGES_OF_DEVICE != 0);
            round.unnamed.push(Unnamed { pid, tid, time, file, of_device });
        }
    }

    fn look_at_end(&mut self, record: Record, round: &mut Round) {
        let Some(&[_, _, user, system, total, peak, _]) = record.words.get(..EXIT_WORDS) else { return };
        let (_, status) = record.halves(6);
        let mut usage = TaskUsage::new(record.tid(), (record.time() as i64).wrapping_add(self.epoch));
        (usage.cpu_user_ns, usage.cpu_system_ns) = shared_out(total as i64, user as i64, system as i64);
        if peak > 0 {
            usage.peak_memory_bytes = peak as i64 * PAGE_BYTES;
        }
        round.usages.push(usage);
        self.pending.push((record.time(), Life::Ended { tid: record.tid(), status: status as i32 }));
    }

    /// Processes the beginnings and ends of tasks up to `until`, in monotonic ns.
    pub fn settle(&mut self, until: u64) {
        self.pending.sort_by_key(|&(time, _)| time);
        let count = self.pending.partition_point(|&(time, _)| time <= until);
        let due: Vec<(u64, Life)> = self.pending.drain(..count).collect();
        for (_, life) in due {
            match life {
                Life::Born { tid, tgid } => self.begins(tid, tgid),
                Life::Executed { old_tid, pid } if old_tid != pid => self.lives.taken_over(old_tid, pid),
                Life::Executed { .. } => {}
                Life::Ended { tid, status } => self.ends(tid, status),
            }
        }
    }

    pub fn ends(&mut self, tid: u32, status: i32) {
        for (tid, _) in self.lives.ends(tid, status) {
            lock(&self.control.processes).retain(|&pid| pid != tid);
        }
    }

    /// Returns the threads of processes with several threads, including those whose creation is not processed
    /// yet.
    pub fn shared(&self) -> impl Iterator<Item = u32> + '_ {
        let born = self.pending.iter().filter_map(|(_, life)| match life {
            Life::Born { tid, tgid } if tid != tgid => Some([*tid, *tgid]),
            _ => None,
        });
        self.lives.shared().map(|(tid, _)| tid).chain(born.flatten())
    }
}

/// Divides the scheduler's exact processor time in ns into user and system time, in the proportion of their
/// clock ticks.
fn shared_out(total: i64, user: i64, system: i64) -> (i64, i64) {
    if total <= 0 {
        return (UNKNOWN, UNKNOWN);
    }
    if user + system == 0 {
        return (total, 0);
    }
    let user = (i128::from(total) * i128::from(user) / i128::from(user + system)) as i64;
    (user, total - user)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: Kind, number: usize, tid: u32, rest: &[u64]) -> Vec<u64> {
        let first =
            (rest.len() as u64 + 1) | (kind as u64) << 16 | (number as u64) << 20 | u64::from(tid) << 32;
        [&[first], rest].concat()
    }

    #[test]
    fn starts_and_ends_of_processes_from_several_cpus_are_sorted() {
        let control = Control::default();
        let mut watch = Watch::new(&control, &Plans::of_this_machine(), 0);
        let mut round = Round::default();
        watch.begins(10, 10);
        // The end of thread 11 is in the buffer of the first CPU, and its creation in that of the second.
        let end = record(Kind::Exit, 0, 11, &[300, 5, 5, 20, 3, 11]);
        let birth = record(Kind::Fork, 56, 11, &[200, 10 | 11 << 32, 0, 0]);
        watch.look(Record { words: &end }, &mut round);
        watch.look(Record { words: &birth }, &mut round);
        watch.settle(250);
        assert!(watch.lives.has(11));
        assert_eq!(*lock(&control.processes), [10, 11]);
        watch.settle(350);
        assert!(!watch.lives.has(11));
        let usage = &round.usages[0];
        assert_eq!((usage.cpu_user_ns, usage.cpu_system_ns, usage.peak_memory_bytes), (10, 10, 3 * 4096));
    }

    #[test]
    fn descriptors_closed_by_another_thread_keep_their_file() {
        let control = Control::default();
        let plans = Plans::of_this_machine();
        let close = plans.calls.iter().position(|call| call.is_some_and(|call| call.spec().name == "close"));
        let mut watch = Watch::new(&control, &plans, 0);
        let mut round = Round::default();
        watch.begins(10, 10);
        let close = record(Kind::Small, close.expect("a call of this machine"), 10, &[100, 1, 3]);
        watch.look(Record { words: &close }, &mut round);
        assert!(!watch.cuts);
        watch.begins(11, 10);
        watch.look(Record { words: &close }, &mut round);
        assert!(watch.cuts);
        assert_eq!(watch.shared().count(), 2);
    }
}
