//! The length of the union of many intervals, updated as intervals are added.

/// A stretch of time from `from` to `to`, in ns. If several stretches were merged, only `covered` ns of it
/// are covered.
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

/// Number of latest stretches that are not merged. Time stamps of different threads may be a few µs out of
/// order, so later intervals can still change these stretches.
const RECENT: usize = 4096;
/// Number of stretches from which merging the older ones is worthwhile.
const MANY: usize = 1 << 16;
/// Limit for intervals that arrive out of order: number of stretches that all of them together may move, in
/// addition to `ALLOWED` stretches per interval.
const PATIENCE: i64 = 1 << 20;
const ALLOWED: i64 = 8;

/// A union of intervals. Adding an interval costs O(1) if the intervals are added in the order of their ends.
/// The result is exact, or there is none.
#[derive(Clone, Debug)]
pub struct Union {
    /// Stretches that do not overlap, in ascending order.
    stretches: Vec<Stretch>,
    /// Stretches that are temporarily removed while an earlier one is added.
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
    /// Adds the interval from `from` to `to`, ns.
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
        // The fields are read one by one. Reading both at once after separate writes would stall the
        // processor.
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

    /// Adds an interval that begins before the last stretch.
    fn add_before(&mut self, mut from: i64, mut to: i64) {
        self.patience += ALLOWED;
        while let Some(last) = self.stretches.pop_if(|last| last.from >= to) {
            self.patience -= 1;
            self.later.push(last);
        }
        while let Some(&last) = self.stretches.last().filter(|last| last.to > from) {
            let is_within = from <= last.from && last.to <= to;
            if !is_within && !last.is_whole() {
                // The merged stretch no longer shows which part of the interval is new.
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

    /// Returns whether there are enough stretches that the caller should call [`Union::shrink`].
    pub fn is_large(&self) -> bool {
        self.stretches.len() > self.many
    }

    /// Merges older stretches to save memory. `begun` holds the start times of intervals that will be added
    /// later, in ascending order. Between two of these times, the covered sum suffices.
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

    /// Returns the length of the union in ns; `None` if intervals came too late for an exact result.
    pub fn total(&self) -> Option<i64> {
        self.is_exact.then(|| self.stretches.iter().map(|stretch| stretch.covered).sum())
    }
}
