//! The rank that an MPI launcher assigns to a process.

use std::fmt;

/// Environment variables in which MPI launchers pass the rank and the number of ranks.
pub const RANK_NAMES: [(&str, &str); 6] = [
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMIX_RANK", "PMIX_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"),
    ("MPI_LOCALRANKID", "MPI_LOCALNRANKS"),
    ("SLURM_PROCID", "SLURM_NTASKS"),
];

/// Environment variable that Slurm sets in the tasks of a step. Without it `SLURM_PROCID` is no rank: a batch
/// script has `SLURM_PROCID=0` but is not a task of a step.
pub const SLURM_STEP: &str = "SLURM_STEP_ID";

/// Returns the rank from an environment's `NAME=VALUE` pairs. The earliest entry of [`RANK_NAMES`] that is
/// present decides.
pub fn rank_among<'a>(pairs: impl Iterator<Item = &'a [u8]>) -> Option<i32> {
    let (mut first, mut is_step) = (None, false);
    for pair in pairs {
        is_step |= pair.strip_prefix(SLURM_STEP.as_bytes()).is_some_and(|rest| rest.starts_with(b"="));
        if let Some(found) = rank_of_pair(pair) {
            first = first.filter(|&(index, _)| index <= found.0).or(Some(found));
        }
    }
    first.filter(|&(index, _)| counts(RANK_NAMES[index].0, is_step)).map(|(_, rank)| rank)
}

/// Returns whether a variable of that name holds a rank. `is_step`: whether the environment contains
/// [`SLURM_STEP`].
pub fn counts(name: &str, is_step: bool) -> bool {
    is_step || name != "SLURM_PROCID"
}

fn rank_of_pair(pair: &[u8]) -> Option<(usize, i32)> {
    // Most variables begin with another letter, so this test excludes them quickly.
    if !matches!(pair.first(), Some(b'O' | b'P' | b'M' | b'S')) {
        return None;
    }
    RANK_NAMES.iter().enumerate().find_map(|(index, (name, _))| {
        let value = pair.strip_prefix(name.as_bytes())?.strip_prefix(b"=")?;
        Some((index, std::str::from_utf8(value).ok()?.parse().ok()?))
    })
}

/// A set of ranks that a user chose, written as `0,7,96-103`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RankSet {
    /// Inclusive ranges in ascending order. There is at least one rank between two ranges.
    ranges: Vec<(i32, i32)>,
}

impl RankSet {
    /// Parses a list such as `0,7,96-103`. Returns `None` if the text is not such a list.
    pub fn parse(text: &str) -> Option<RankSet> {
        let mut found = RankSet::default();
        for part in text.split(',').map(str::trim) {
            let (from, to) = part.split_once('-').unwrap_or((part, part));
            let (from, to) = (number(from)?, number(to)?);
            if from > to {
                return None;
            }
            found.ranges.push((from, to));
        }
        found.join();
        Some(found)
    }

    fn join(&mut self) {
        self.ranges.sort_unstable();
        let mut joined: Vec<(i32, i32)> = Vec::new();
        for &(from, to) in &self.ranges {
            match joined.last_mut() {
                Some(last) if from <= last.1.saturating_add(1) => last.1 = last.1.max(to),
                _ => joined.push((from, to)),
            }
        }
        self.ranges = joined;
    }

    pub fn holds(&self, rank: i32) -> bool {
        self.ranges.iter().any(|&(from, to)| (from..=to).contains(&rank))
    }

    pub fn ranges(&self) -> &[(i32, i32)] {
        &self.ranges
    }

    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Returns the number of ranks in the set.
    pub fn count(&self) -> u64 {
        self.ranges.iter().map(|&(from, to)| to.abs_diff(from) as u64 + 1).sum()
    }

    pub fn extend(&mut self, more: &RankSet) {
        self.ranges.extend_from_slice(&more.ranges);
        self.join();
    }
}

impl FromIterator<i32> for RankSet {
    fn from_iter<T: IntoIterator<Item = i32>>(ranks: T) -> Self {
        let mut found = RankSet { ranges: ranks.into_iter().map(|rank| (rank, rank)).collect() };
        found.join();
        found
    }
}

impl fmt::Display for RankSet {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, &(from, until)) in self.ranges.iter().enumerate() {
            to.write_str(if number > 0 { "," } else { "" })?;
            match from == until {
                true => write!(to, "{from}")?,
                false => write!(to, "{from}-{until}")?,
            }
        }
        Ok(())
    }
}

fn number(text: &str) -> Option<i32> {
    let is_plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_plain)
}

#[cfg(test)]
mod tests {
    use super::RankSet;

    fn rank(pairs: &[&str]) -> Option<i32> {
        super::rank_among(pairs.iter().map(|pair| pair.as_bytes()))
    }

    #[test]
    fn the_launchers_own_name_for_the_rank_comes_first() {
        assert_eq!(rank(&["PATH=/bin", "SLURM_PROCID=7", "OMPI_COMM_WORLD_RANK=3", "HOME=/"]), Some(3));
        assert_eq!(rank(&["PMI_RANK=x", "SLURM_PROCID=7", "SLURM_STEP_ID=0"]), Some(7));
        assert_eq!(rank(&["PMI_RANKS=1", "OMPI=2", "", "S"]), None);
    }

    #[test]
    fn a_batch_script_of_slurm_has_no_rank() {
        assert_eq!(rank(&["SLURM_PROCID=0", "SLURM_NTASKS=4"]), None);
        assert_eq!(rank(&["SLURM_STEP_ID=2", "SLURM_PROCID=3"]), Some(3));
        assert_eq!(rank(&["SLURM_PROCID=3", "SLURM_STEP_IDS=2"]), None);
        assert_eq!(rank(&["SLURM_PROCID=0", "PMI_RANK=5"]), Some(5));
    }

    #[test]
    fn a_list_of_ranks_contains_the_named_ranks() {
        let chosen = RankSet::parse("96-103, 0,7,98-110,8").expect("a list");
        assert_eq!(chosen.to_string(), "0,7-8,96-110");
        assert_eq!(
            [0, 1, 7, 8, 95, 96, 110, 111, -1].map(|rank| chosen.holds(rank)).map(u8::from),
            [1, 0, 1, 1, 0, 1, 1, 0, 0]
        );
        assert_eq!(chosen.count(), 18);
        for wrong in ["", "a", "3-1", "-1", "1,,2", "1-2-3", "+1", "99999999999"] {
            assert_eq!(RankSet::parse(wrong), None, "{wrong}");
        }
        assert_eq!([3, 1, 2, 9].into_iter().collect::<RankSet>().to_string(), "1-3,9");
    }
}
