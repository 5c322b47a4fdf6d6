//! Finds the batch job of a recording in the variables of its scheduler.

use std::collections::BTreeMap;

/// Name of each scheduler, and its variables for id, name and number of nodes.
const SCHEDULERS: [(&str, &str, &str, &str); 6] = [
    ("slurm", "SLURM_JOB_ID", "SLURM_JOB_NAME", "SLURM_JOB_NUM_NODES"),
    ("pjm", "PJM_JOBID", "PJM_JOBNAME", "PJM_NODE"),
    ("pbs", "PBS_JOBID", "PBS_JOBNAME", "PBS_NUM_NODES"),
    ("lsf", "LSB_JOBID", "LSB_JOBNAME", ""),
    ("flux", "FLUX_JOB_ID", "", "FLUX_JOB_NNODES"),
    ("sge", "JOB_ID", "JOB_NAME", "NHOSTS"),
];

/// Returns `job.scheduler`, `job.id`, `job.name` and `job.nodes`, as far as `variable` has values for them.
/// Empty outside of a job.
pub fn described(variable: impl Fn(&str) -> Option<String>) -> BTreeMap<String, String> {
    let known = |name: &str| variable(name).filter(|value| !value.is_empty());
    for (scheduler, id, name, nodes) in SCHEDULERS {
        let Some(id) = known(id) else { continue };
        let mut job = BTreeMap::from([
            ("job.scheduler".to_string(), scheduler.to_string()),
            ("job.id".to_string(), id),
        ]);
        job.extend(known(name).map(|name| ("job.name".to_string(), name)));
        let nodes = known(nodes).filter(|nodes| nodes.parse::<u32>().is_ok_and(|nodes| nodes > 0));
        job.extend(nodes.map(|nodes| ("job.nodes".to_string(), nodes)));
        return job;
    }
    BTreeMap::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(variables: &[(&str, &str)]) -> Vec<(String, String)> {
        let value =
            |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| value.to_string());
        described(value).into_iter().collect()
    }

    fn pairs(wanted: &[(&str, &str)]) -> Vec<(String, String)> {
        wanted.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect()
    }

    #[test]
    fn jobs_of_all_schedulers_are_recognised() {
        assert_eq!(
            found(&[("SLURM_JOB_ID", "17"), ("SLURM_JOB_NAME", "cfd"), ("SLURM_JOB_NUM_NODES", "4")]),
            pairs(&[("job.id", "17"), ("job.name", "cfd"), ("job.nodes", "4"), ("job.scheduler", "slurm")])
        );
        assert_eq!(
            found(&[("PBS_JOBID", "9.server"), ("PBS_NUM_NODES", "many")]),
            pairs(&[("job.id", "9.server"), ("job.scheduler", "pbs")])
        );
        assert_eq!(found(&[("SLURM_JOB_ID", ""), ("HOME", "/root")]), pairs(&[]));
    }
}
