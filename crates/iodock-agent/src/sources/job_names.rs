//! What users call their jobs, as environments of the jobs' processes say. It is learnt once of each job and node, told
//! to the collector, and told again with each full reading, as nobody knows what became of it.
//!
//! A name belongs to a job and the user of the process that said it: who writes another job's id into an environment of
//! his own names nothing of anybody else.

use crate::batches::Round;
use crate::sample::Owner;
use iodock_samples::batch::JobName;
use std::collections::BTreeMap;

/// So many processes of a job are asked in a round.
const ASKED: u32 = 2;
/// In so many rounds; who has no name by then gets none.
const ROUNDS: u32 = 6;
/// A job of which no process was seen in so many rounds is forgotten.
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
    /// Rounds in which it was asked for, and how often in the last of them.
    rounds: u32,
    asked: u32,
    /// The round that asked last, and the one that saw the job last.
    last_asked: u64,
    seen: u64,
    /// The full reading that it was told with.
    told: Option<u64>,
}

impl Naming {
    /// Notes that a process of this owner is there, and says whether its environment is wanted.
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

    /// The first name of a job counts: what its own programs put into their environments comes later.
    pub fn learn(&mut self, owner: &Owner, said: &[(Vec<u8>, Vec<u8>)], round: u64) {
        let Some((_, name)) = said.iter().find(|(job, _)| *job == owner.job) else { return };
        if !owner.has_job() || owner.user.is_empty() {
            return;
        }
        let known = self.jobs.entry((owner.job.clone(), owner.user.clone())).or_default();
        known.seen = round;
        known.name.get_or_insert_with(|| name.clone());
    }

    /// Tells what was not told yet. `number`: of the round.
    pub fn tell(&mut self, number: u64, round: Option<&Round>) {
        self.jobs.retain(|_, known| known.seen + FORGOTTEN > number);
        let Some(round) = round else { return };
        for ((job, user), known) in &mut self.jobs {
            let Some(name) = known.name.as_ref().filter(|_| known.told != Some(round.full())) else {
                continue;
            };
            let told = JobName { job: job.clone(), user: user.clone(), name: name.clone() };
            if !round.name(told) {
                // No room in this round, or it is over: the next has these.
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
    fn a_job_is_asked_a_few_times_and_no_more() {
        let (mut naming, seven) = (Naming::default(), owner("7", "sato"));
        let asked: usize = (1..100).map(|round| (0..9).filter(|_| naming.wants(&seven, round)).count()).sum();
        assert_eq!(asked, (ASKED * ROUNDS) as usize);
        assert!(!naming.wants(&owner("7", ""), 1) && !naming.wants(&Owner::default(), 1));
    }

    #[test]
    fn a_name_is_the_first_one_of_that_job_and_user() {
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
