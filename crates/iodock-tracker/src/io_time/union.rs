//! How long at least one of many intervals lasted: their union, added to as they come.

/// Time that was covered: all of it, or, where several stretches were put together, `covered` ns of it.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    from: i64,
    to: i64,
    covered: i64,
}

impl Stretch {
    fn whole(from: i64, to: i64) -> Stretch {
        Stretch { from, to, covered: to - from }
    }
    fn is_whole(&self) -> bool {
        self.covered == self.to - self.from
    }
}

/// Stretches at the end that stay apart: stamps of different threads may be some µs out of order.
const RECENT: usize = 4096;
/// Stretches beyond which it is worth putting the older ones together.
const MANY: usize = 1 << 16;
/// How far out of order intervals may come in all: stretches moved beyond what each interval allows.
const PATIENCE: i64 = 1 << 20;
const ALLOWED: i64 = 8;

/// Takes intervals, best in the order of their ends: each then costs O(1). Exact, or it gives none.
#[derive(Clone, Debug)]
pub struct Union {
    /// In order, apart from each other.
    stretches: Vec<Stretch>,
    /// Those moved aside while one before them is added.
    later: Vec<Stretch>,
    patience: i64,
    is_exact: bool,
    many: usize,
}

impl Default for Union {
    fn default() -> Self {
        Union { stretches: Vec::new(), later: Vec::new(), patience: PATIENCE, is_exact: true, many: MANY }
    }
}

impl Union {
    /// Adds `from` to `to`, ns.
    #[inline]
    pub fn add(&mut self, from: i64, to: i64) {
        if to <= from || !self.is_exact {
            return;
        }
        let Some(last) = self.stretches.last_mut() else {
            return self.stretches.push(Stretch::whole(from, to));
        };
        if from < last.from || !last.is_whole() {
            return self.add_behind(from, to);
        }
        if from > last.to {
            return self.stretches.push(Stretch::whole(from, to));
        }
        // Number by number: read together again, what was just written in parts makes the processor wait.
        last.to = to.max(last.to);
        last.covered = last.to - last.from;
    }

    #[inline(never)]
    fn add_behind(&mut self, from: i64, to: i64) {
        match self.stretches.last() {
            Some(last) if from <= last.to => self.add_before(from, to),
            _ => self.stretches.push(Stretch::whole(from, to)),
        }
    }

    /// Adds what begins before the last stretch does.
    fn add_before(&mut self, mut from: i64, mut to: i64) {
        self.patience += ALLOWED;
        while let Some(last) = self.stretches.pop_if(|last| last.from >= to) {
            self.patience -= 1;
            self.later.push(last);
        }
        while let Some(&last) = self.stretches.last().filter(|last| last.to > from) {
            let is_within = from <= last.from && last.to <= to;
            if !is_within && !last.is_whole() {
                // Which part of it is new can't be told any more.
                self.is_exact = false;
            }
            (from, to) = (from.min(last.from), to.max(last.to));
            self.stretches.pop();
        }
        self.stretches.push(Stretch::whole(from, to));
        while let Some(next) = self.later.pop() {
            self.stretches.push(next);
        }
        self.is_exact &= self.patience >= 0;
        if !self.is_exact {
            self.stretches = Vec::new();
        }
    }

    /// Is it time for [`Union::shrink`]?
    pub fn is_large(&self) -> bool {
        self.stretches.len() > self.many
    }

    /// Puts older stretches together, so that memory stays small. `begun`: the moments, rising, at which
    /// intervals began that are still to come; between two of them one number is enough.
    pub fn shrink(&mut self, begun: &[i64]) {
        let older = self.stretches.len().saturating_sub(RECENT);
        let mut begun = begun.iter().copied().peekable();
        let mut kept: Vec<Stretch> = Vec::new();
        for &next in &self.stretches[..older] {
            let Some(last) = kept.last_mut() else {
                kept.push(next);
                continue;
            };
            while begun.next_if(|&moment| moment <= last.from).is_some() {}
            if begun.peek().is_some_and(|&moment| moment < next.to) {
                kept.push(next);
            } else {
                *last = Stretch { from: last.from, to: next.to, covered: last.covered + next.covered };
            }
        }
        kept.extend_from_slice(&self.stretches[older..]);
        self.many = MANY.max(kept.len() * 2);
        self.stretches = kept;
    }

    /// ns; `None` where intervals came so late that it can't be told.
    pub fn total(&self) -> Option<i64> {
        self.is_exact.then(|| self.stretches.iter().map(|stretch| stretch.covered).sum())
    }
}
