//! Finds the process that wrote the first lines of a log from a terminal. strace shows no process until there
//! are two.

use super::line::Kind;
use super::prefix::Prefix;
use super::untagged::{message, Owner};
use iodock_event::{lwp, Action, Outcome, RawCall};
use memchr::memmem;
use rustc_hash::FxHashSet;

/// Largest plausible distance between the ids of a process and its child. Ids are assigned in ascending order
/// and start again at 32,768 or 4,194,304, so only then is the distance larger.
const ONE_ROUND: u32 = 1 << 14;

/// Information in the first lines about their process.
#[derive(Debug, Default)]
pub struct First {
    /// Processes to which strace attached before any other line (`strace -p`).
    attached: Vec<u32>,
    /// Processes that tags show.
    tags: FxHashSet<u32>,
    /// Processes that another process in the log created.
    children: FxHashSet<u32>,
    /// Those of the tagged and the created processes that have not ended.
    live: FxHashSet<u32>,
    /// Processes that are inside a call.
    inside: FxHashSet<u32>,
    /// Name of the unfinished call at the end of the untagged lines, if there is one.
    begun: Option<Vec<u8>>,
    /// The process id that a call of the first process returned.
    told: Option<u32>,
    proven: Option<u32>,
    bare: bool,
    /// At the first untagged line after tagged ones: whether all tagged processes had ended.
    outlived: Option<bool>,
}

impl First {
    pub fn is_tagged(&self) -> bool {
        !self.tags.is_empty()
    }

    pub fn is_attached(&self) -> bool {
        self.attached.len() == 1
    }

    /// Returns the process that strace was attached to, if it was a single one.
    pub fn attached(&self) -> Option<u32> {
        self.attached.first().copied().filter(|_| self.is_attached())
    }

    /// Returns the process that wrote the first lines.
    pub fn owner(&self) -> Owner {
        let known = |tid| Owner { tid, ambiguous: false };
        let told = self.told.filter(|tid| self.tags.contains(tid));
        if let Some(tid) = self.attached().or(self.proven).or(told) {
            return known(tid);
        }
        let mut others: Vec<u32> = self.tags.difference(&self.children).copied().collect();
        others.sort_unstable();
        let unknown = Owner { tid: lwp::UNNUMBERED + 1, ambiguous: true };
        match others[..] {
            // All tags belong to descendants of the first process.
            [] => known(0),
            _ if self.outlived == Some(true) => unknown,
            // The first process has the lowest number.
            [first, .., last] if last - first > ONE_ROUND => unknown,
            [first, ..] => known(first),
        }
    }

    pub fn look(&mut self, prefix: &Prefix, kind: &Kind<'_>, line: &[u8]) {
        let tag = prefix.tid.filter(|_| prefix.bracketed);
        if !matches!(kind, Kind::Noise | Kind::Row | Kind::Unknown) {
            match tag {
                Some(tid) => self.tagged(tid, kind),
                None if prefix.tid.is_none() => self.untagged(kind),
                None => {}
            }
        }
        if matches!(kind, Kind::Signal { name: b"SIGCHLD" }) && memmem::find(line, b"si_code=CLD_").is_some()
        {
            self.child(memmem::find(line, b"si_pid=").and_then(|at| number(&line[at + 7..])), false);
        }
        if let Kind::Resumed { name, text } = kind {
            if name.starts_with(b"clone") || name.ends_with(b"fork") {
                let result = memmem::rfind(text, b"= ").and_then(|at| number(&text[at + 2..]));
                self.child(result.filter(|&child| child > 0), true);
            }
        }
        match message(line) {
            Some((tid, true)) if !self.bare && self.tags.is_empty() => self.attached.push(tid),
            Some((tid, true)) => self.child(Some(tid), true),
            Some((tid, false)) => {
                self.live.remove(&tid);
            }
            None => {}
        }
    }

    fn tagged(&mut self, tid: u32, kind: &Kind<'_>) {
        self.tags.insert(tid);
        self.live.insert(tid);
        match kind {
            Kind::Begun { .. } => {
                self.inside.insert(tid);
            }
            // No tagged line shows the beginning of this call. The process may have begun it on the last
            // untagged line.
            Kind::Resumed { name, .. } if !self.inside.remove(&tid) => {
                let its_own = self.begun.take_if(|begun| begun == name);
                self.proven = its_own.map(|_| tid).or(self.proven);
            }
            Kind::End { text } if !text.starts_with(b"superseded") => {
                self.live.remove(&tid);
            }
            _ => {}
        }
    }

    fn untagged(&mut self, kind: &Kind<'_>) {
        self.bare = true;
        if !self.tags.is_empty() {
            self.outlived.get_or_insert(self.live.is_empty());
        } else {
            self.begun = match kind {
                Kind::Begun { name, .. } => Some(name.to_vec()),
                _ => None,
            };
        }
    }

    fn child(&mut self, child: Option<u32>, lives: bool) {
        let Some(child) = child else { return };
        self.children.insert(child);
        if lives {
            self.live.insert(child);
        }
    }

    /// Handles the result of a call, which may be the id of the first process.
    pub fn returned(&mut self, prefix: &Prefix, raw: &RawCall) {
        let Some(number) = u32::try_from(raw.result).ok().filter(|&number| number > 0) else { return };
        if raw.outcome != Outcome::Succeeded {
            return;
        }
        match raw.call.spec().name {
            "set_tid_address" | "gettid" if prefix.tid.is_none() && self.tags.is_empty() => {
                self.told = Some(number);
            }
            "wait4" | "waitpid" => self.child(Some(number), false),
            _ if matches!(raw.call.spec().action, Action::Fork | Action::Vfork | Action::Clone) => {
                self.child(Some(number), true);
            }
            _ => {}
        }
    }
}

fn number(text: &[u8]) -> Option<u32> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    std::str::from_utf8(&text[..digits]).ok()?.parse().ok()
}
