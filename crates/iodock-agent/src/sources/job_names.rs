//! Finds the names that users give their jobs, in the environments of the jobs' processes. The agent reads
//! each name once per job and node, and sends it to the collector. It sends the name again with each full
//! reading, because an earlier batch may have been lost.
//!
//! A name belongs to a job and to the user of the process. So a user who puts the id of another user's job
//! into an environment cannot name that job.

use crate::batches::Round;
use crate::sample::Owner;
use iodock_samples::batch::JobName;
use std::collections::BTreeMap;

/// Number of processes of a job whose environments are read in one round.
const ASKED: u32 = 2;
/// Number of rounds in which the agent tries to find a name. A job without a name by then has none.
const ROUNDS: u32 = 6;
/// Number of rounds without a process after which a job is forgotten.
const FORGOTTEN: u64 = 60;

/// Job and user.
type Key = (Vec<u8>, Vec<u8>);

#[derive(Debug, Default)]
pub struct Naming {
    jobs: BTreeMap<Key, Known>,
}

#[derive(Debug, Default)]
struct Known {
    name: Option<Vec<u8>>,
    /// Number of rounds in which the agent tried to find the name, and number of tries in the last of them.
    rounds: u32,
    asked: u32,
    /// Numbers of the last round with a try, and of the last round with a process of the job.
    last_asked: u64,
    seen: u64,
    /// Value of [`Round::full`] when the name was last sent.
    told: Option<u64>,
}

impl Naming {
    /// Records a process of this owner. Returns whether its environment should be read.
    pub fn wants(&mut self, owner: &Owner, round: u64) -> bool {
        if !owner.has_job() || owner.user.is_empty() {
            return false;
        }
        let known = self.jobs.entry((owner.job.clone(), owner.user.clone())).or_default();
        known.seen = round;
        if known.name.is_some() {
            return false;
        }
        if known.last_asked != round {
            if known.rounds == ROUNDS {
                return false;
            }
            (known.rounds, known.asked, known.last_asked) = (known.rounds + 1, 0, round);
        }
        known.asked += 1;
        known.asked <= ASKED
    }

    /// Keeps the first name of a job, because its programs may change their environments later.
    pub fn learn(&mut self, owner: &Owner, said: &[(Vec<u8>, Vec<u8>)], round: u64) {
        let Some((_, name)) = said.iter().find(|(job, _)| *job == owner.job) else { return };
        if !owner.has_job() || owner.user.is_empty() {
            return;
        }
        let known = self.jobs.entry((owner.job.clone(), owner.user.clone())).or_default();
        known.seen = round;
        known.name.get_or_insert_with(|| name.clone());
    }

    /// Sends names that were not sent since the last full reading was requested. `number` is the number of
    /// the round.
    pub fn tell(&mut self, number: u64, round: Option<&Round>) {
        self.jobs.retain(|_, known| known.seen + FORGOTTEN > number);
        let Some(round) = round else { return };
        for ((job, user), known) in &mut self.jobs {
            let Some(name) = known.name.as_ref().filter(|_| known.told != Some(round.full())) else {
                continue;
            };
            let told = JobName { job: job.clone(), user: user.clone(), name: name.clone() };
            if !round.name(told) {
                // The round is full or over, so a later round sends the remaining names.
                return;
            }
            known.told = Some(round.full());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Evidence;

    fn owner(job: &str, user: &str) -> Owner {
        Owner { evidence: Evidence::Cgroup, job: job.into(), user: user.into(), ..Owner::default() }
    }

    fn said(job: &str, name: &str) -> Vec<(Vec<u8>, Vec<u8>)> {
        vec![(job.into(), name.into())]
    }

    #[test]
    fn a_job_name_is_looked_up_a_few_times_at_most() {
        let (mut naming, seven) = (Naming::default(), owner("7", "sato"));
        let asked: usize = (1..100).map(|round| (0..9).filter(|_| naming.wants(&seven, round)).count()).sum();
        assert_eq!(asked, (ASKED * ROUNDS) as usize);
        assert!(!naming.wants(&owner("7", ""), 1) && !naming.wants(&Owner::default(), 1));
    }

    #[test]
    fn the_first_name_found_for_a_job_and_user_is_kept() {
        let (mut naming, seven) = (Naming::default(), owner("7", "sato"));
        naming.learn(&seven, &said("8", "other"), 1);
        assert!(naming.wants(&seven, 1));
        naming.learn(&seven, &said("7", "ocean"), 1);
        naming.learn(&seven, &said("7", "later"), 2);
        assert!(!naming.wants(&seven, 2) && naming.wants(&owner("7", "suzuki"), 2));
        let name = naming.jobs.get(&(b"7".to_vec(), b"sato".to_vec())).and_then(|known| known.name.clone());
        assert_eq!(name.as_deref(), Some(&b"ocean"[..]));
        naming.tell(2 + FORGOTTEN, None);
        assert!(naming.jobs.is_empty());
    }
}
