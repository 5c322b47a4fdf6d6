//! Finds the job of a process by its cgroup, which the scheduler created, or by its environment, which users
//! can change. The paths are those of Slurm (cgroup/v1 and v2 plugins), OpenPBS and PBS Professional
//! (pbs_cgroups hook), and Torque. The paths of PJM are guessed from the others, because no document
//! describes them.

use iodock_samples::batch::LONGEST_JOB_NAME;

/// Longest id in bytes. Ids are displayed and passed to other tools.
const LONGEST_ID: usize = 128;

fn is_id(text: &[u8]) -> bool {
    (1..=LONGEST_ID).contains(&text.len())
        && text[0].is_ascii_digit()
        && text.iter().all(|byte| byte.is_ascii_alphanumeric() || b"._-[]@+".contains(byte))
}

/// The job and step of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Job {
    pub id: Vec<u8>,
    /// Step in Slurm: `step_0`, `step_batch`, `step_extern`. Empty for other schedulers.
    pub step: Vec<u8>,
}

/// Returns the job in a /proc/PID/cgroup. Any of its lines (`0::/path`, `5:memory:/path`) may contain it.
pub fn of_cgroups(text: &[u8]) -> Option<Job> {
    text.split(|&byte| byte == b'\n').find_map(|line| {
        let path = line.splitn(3, |&byte| byte == b':').nth(2)?;
        of_path(path).map(|id| Job { id, step: step_of_path(path) })
    })
}

/// Returns the step in a path, such as `step_0` in `/slurm/uid_1000/job_123/step_0/task_0`.
fn step_of_path(path: &[u8]) -> Vec<u8> {
    let mut parts = path.split(|&byte| byte == b'/').skip_while(|part| !part.starts_with(b"job_"));
    let step = parts.nth(1).and_then(|part| part.strip_prefix(b"step_"));
    step.and_then(step_named).unwrap_or_default()
}

/// Returns iodock's name of a step. `None` if the text is not a step's name. slurm.h defines the numbers.
pub fn step_named(name: &[u8]) -> Option<Vec<u8>> {
    let name: &[u8] = match name {
        b"4294967290" => b"interactive",
        b"4294967291" => b"batch",
        b"4294967292" => b"extern",
        other => other,
    };
    let is_number = (1..=10).contains(&name.len()) && name.iter().all(u8::is_ascii_digit);
    (is_number || [&b"batch"[..], b"extern", b"interactive"].contains(&name))
        .then(|| [b"step_", name].concat())
}

/// Parses the job and step in the command line of a slurmstepd, such as `slurmstepd: [123.batch]`.
pub fn of_title(title: &[u8]) -> Option<Job> {
    let rest = title.strip_prefix(b"slurmstepd: [")?;
    let name = &rest[..rest.iter().position(|&byte| byte == b']')?];
    let dot = name.iter().position(|&byte| byte == b'.')?;
    // In a heterogeneous job the number of the part follows, as in `123.0+1`.
    let step = name[dot + 1..].split(|&byte| byte == b'+').next().and_then(step_named)?;
    is_id(&name[..dot]).then(|| Job { id: name[..dot].to_vec(), step })
}

/// Returns the job in the path of a cgroup.
pub fn of_path(path: &[u8]) -> Option<Vec<u8>> {
    let parts: Vec<&[u8]> = path.split(|&byte| byte == b'/').collect();
    let is_slurm = |at: usize| parts[..at].iter().any(|part| contains(part, b"slurm"));
    (0..parts.len()).find_map(|at| {
        let part = parts[at];
        let next = parts.get(at + 1).copied();
        let id = if let Some(id) = part.strip_prefix(b"job_").filter(|_| is_slurm(at)) {
            Some(id.to_vec())
        } else if part == b"pbs_jobs.service" {
            parts.get(at + 2).map(|id| id.to_vec())
        } else if part == b"pbspro" || part == b"pbs" || part == b"torque" {
            next.map(<[u8]>::to_vec)
        } else if let Some(id) = part.strip_prefix(b"pbspro-").and_then(|id| id.strip_suffix(b".slice")) {
            Some(unescaped(id))
        } else {
            of_pjm(part, next)
        };
        id.filter(|id| is_id(id))
    })
}

/// Returns the job for which a mount point was made: the last folder of the form `job_ID` or `job-ID`. The
/// user who mounts chooses this name.
pub fn of_mount_point(path: &[u8]) -> Option<Vec<u8>> {
    let of_part = |part: &[u8]| {
        let id = part.strip_prefix(b"job_").or_else(|| part.strip_prefix(b"job-"))?;
        is_id(id).then(|| id.to_vec())
    };
    path.rsplit(|&byte| byte == b'/').find_map(of_part)
}

/// Parses folder names of PJM: `pjm/ID`, `PJM_ID`, `pjm-ID`, with or without `job` before the id.
fn of_pjm(part: &[u8], next: Option<&[u8]>) -> Option<Vec<u8>> {
    let rest = part.get(..3).filter(|begin| begin.eq_ignore_ascii_case(b"pjm")).map(|_| &part[3..])?;
    let id = match rest {
        [] => next?,
        [b'_' | b'-', rest @ ..] => rest,
        _ => return None,
    };
    let digits = id.iter().position(u8::is_ascii_digit)?;
    let is_word =
        id[..digits].eq_ignore_ascii_case(b"job") || matches!(&id[..digits], b"" | b"job_" | b"job-");
    is_word.then(|| id[digits..].to_vec())
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

/// Replaces `\x2d`, which systemd writes in place of `-` in the name of a unit.
fn unescaped(text: &[u8]) -> Vec<u8> {
    String::from_utf8_lossy(text).replace("\\x2d", "-").into_bytes()
}

/// Variables that contain a job's id, and those that contain its name.
const VARIABLES: [(&[u8], &[u8]); 4] = [
    (b"SLURM_JOB_ID=", b"SLURM_JOB_NAME="),
    (b"PBS_JOBID=", b"PBS_JOBNAME="),
    (b"PJM_JOBID=", b"PJM_JOBNAME="),
    (b"SLURM_JOBID=", b"SLURM_JOB_NAME="),
];
/// Largest number of parts of a heterogeneous job whose names are read.
const MOST_PARTS: usize = 128;
/// Text at the end of a name that was cut.
const CUT: &[u8] = "…".as_bytes();

fn value<'a>(text: &'a [u8], variable: &[u8]) -> Option<&'a [u8]> {
    let mut entries = text.split(|&byte| byte == 0);
    entries.find_map(|entry| entry.strip_prefix(variable))
}

/// Returns jobs and their names in a /proc/PID/environ, one for each scheduler whose variables are present.
pub fn names_of_environment(text: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let named = |(id, name): &(&[u8], &[u8])| {
        let id = value(text, id).filter(|id| is_id(id))?;
        let name = value(text, name).filter(|name| !name.is_empty())?;
        Some((id.to_vec(), cut(name)))
    };
    let mut names: Vec<_> = VARIABLES.iter().filter_map(named).collect();
    names.extend(names_of_parts(text));
    names
}

/// Returns the ids and names of the parts of a heterogeneous job. Slurm before 20.02 calls the parts `PACK`.
fn names_of_parts(text: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let whole = value(text, b"SLURM_JOB_NAME=").filter(|name| !name.is_empty());
    let named = |entry: &[u8]| {
        let rest = entry.strip_prefix(b"SLURM_JOB_ID")?;
        let equals = rest.iter().position(|&byte| byte == b'=')?;
        let (part, id) = (&rest[..equals], &rest[equals + 1..]);
        let is_part = part.starts_with(b"_HET_GROUP_") || part.starts_with(b"_PACK_GROUP_");
        let own = value(text, &[b"SLURM_JOB_NAME", part, b"="].concat()).filter(|name| !name.is_empty());
        let name = own.or(whole).filter(|_| is_part && is_id(id))?;
        Some((id.to_vec(), cut(name)))
    };
    text.split(|&byte| byte == 0).filter_map(named).take(MOST_PARTS).collect()
}

/// Cuts a long name. Names contain arbitrary text, and a character of several bytes is not cut in two.
fn cut(name: &[u8]) -> Vec<u8> {
    if name.len() <= LONGEST_JOB_NAME {
        return name.to_vec();
    }
    let begins = |at: &usize| name[*at] & 0xc0 != 0x80;
    let most = LONGEST_JOB_NAME - CUT.len();
    let end = (most - 3..=most).rev().find(begins).unwrap_or(most);
    [&name[..end], CUT].concat()
}

/// Returns the job in a /proc/PID/environ. A process with a Slurm job but no step belongs to the batch
/// script.
pub fn of_environment(text: &[u8]) -> Option<Job> {
    let value = |variable: &[u8]| value(text, variable);
    VARIABLES.iter().find_map(|(variable, _)| {
        let id = value(variable).filter(|id| is_id(id))?.to_vec();
        let is_slurm = variable.starts_with(b"SLURM");
        let step = is_slurm.then(|| step_named(value(b"SLURM_STEP_ID=").unwrap_or(b"batch")));
        Some(Job { id, step: step.flatten().unwrap_or_default() })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(path: &str) -> Option<String> {
        of_path(path.as_bytes()).map(|id| String::from_utf8(id).expect("text"))
    }

    #[test]
    fn the_job_is_found_in_cgroups_of_all_schedulers() {
        let known = [
            ("/slurm/uid_1000/job_123/step_0/task_0", "123"),
            ("/slurm_node7/uid_1000/job_123", "123"),
            ("/system.slice/slurmstepd.scope/job_4711/step_batch/user/task_0", "4711"),
            ("/system.slice/n1_slurmstepd.scope/job_4711/step_extern", "4711"),
            ("/pbs_jobs.service/jobid/2404743.opbs", "2404743.opbs"),
            ("/pbs_jobs.service/jobs/17[3].server/sub", "17[3].server"),
            ("/pbspro.slice/pbspro-12\\x2d1.server.slice", "12-1.server"),
            ("/pbspro/12.server", "12.server"),
            ("/torque/9.host", "9.host"),
            ("/pjm/job_30005/rank0", "30005"),
            ("/PJM_30005", "30005"),
        ];
        for (path, id) in known {
            assert_eq!(of(path).as_deref(), Some(id), "{path}");
        }
    }

    #[test]
    fn other_cgroups_have_no_job() {
        for path in [
            "/",
            "/user.slice/user-1000.slice/session-5.scope",
            "/system.slice/slurmd.service",
            "/system.slice/pbs_jobs.service",
            "/user.slice/job_12",
            "/slurm/uid_1000/job_../../etc",
            "/pjmxyz/12",
        ] {
            assert_eq!(of(path), None, "{path}");
        }
    }

    #[test]
    fn the_job_is_found_in_names_of_mount_points() {
        let of = |path: &[u8]| of_mount_point(path).map(|id| String::from_utf8(id).expect("text"));
        assert_eq!(of(b"/scratch/job_4711").as_deref(), Some("4711"));
        assert_eq!(of(b"/mnt/job_1/job-12.server/data").as_deref(), Some("12.server"));
        for path in
            [&b"/mnt/job_"[..], b"/mnt/4711", b"/mnt/myjob_5", b"/mnt/job_../x", b"/mnt/job_5\n6", b""]
        {
            assert_eq!(of(path), None, "{}", path.escape_ascii());
        }
    }

    #[test]
    fn job_ids_from_the_environment_are_validated() {
        let id = |text: &[u8]| of_environment(text).map(|job| String::from_utf8(job.id).expect("text"));
        assert_eq!(id(b"HOME=/root\0PJM_JOBID=30005\0").as_deref(), Some("30005"));
        assert_eq!(id(b"PBS_JOBID=12.server\0SLURM_JOB_ID=7\0").as_deref(), Some("7"));
        assert_eq!(id(b"SLURM_JOB_ID=7\"} 1\n\0"), None);
        assert_eq!(id(b"MY_SLURM_JOB_ID=7\0"), None);
    }

    #[test]
    fn the_job_name_comes_from_the_scheduler_that_gave_the_id() {
        let names = |text: &[u8]| names_of_environment(text);
        let slurm = b"SLURM_JOB_NAME=ocean <b>\n'\0SLURM_JOB_ID=7\0PBS_JOBNAME=stale\0";
        assert_eq!(names(slurm), [(b"7".to_vec(), b"ocean <b>\n'".to_vec())]);
        let both = b"PBS_JOBID=12.server\0PBS_JOBNAME=a\0PJM_JOBID=3\0PJM_JOBNAME=b\0";
        assert_eq!(names(both), [(b"12.server".to_vec(), b"a".to_vec()), (b"3".to_vec(), b"b".to_vec())]);
        assert!(names(b"SLURM_JOB_NAME=x\0").is_empty() && names(b"PJM_JOBID=3\0PJM_JOBNAME=\0").is_empty());
        assert!(names(b"SLURM_JOB_ID=7;x\0SLURM_JOB_NAME=x\0").is_empty());
    }

    #[test]
    fn parts_of_a_heterogeneous_job_have_their_own_names() {
        let text =
            b"SLURM_JOB_ID=4\0SLURM_JOB_NAME=het\0SLURM_JOB_ID_HET_GROUP_0=4\0SLURM_JOB_ID_HET_GROUP_1=5\0\
            SLURM_JOB_NAME_HET_GROUP_1=second\0SLURM_JOB_ID_PACK_GROUP_2=6\0SLURM_JOB_ID_HET_GROUP_3=7;x\0\
            SLURM_JOB_IDX=9\0";
        let names = names_of_environment(text);
        let named = |id: &str, name: &str| (id.as_bytes().to_vec(), name.as_bytes().to_vec());
        assert_eq!(names, [named("4", "het"), named("4", "het"), named("5", "second"), named("6", "het")]);
    }

    #[test]
    fn long_names_are_cut_between_characters() {
        let whole = "x".repeat(LONGEST_JOB_NAME);
        assert_eq!(cut(whole.as_bytes()), whole.as_bytes());
        for begin in ["", "x", "xx", "xxx"] {
            let name = cut((begin.to_owned() + &"日本🦀".repeat(400)).as_bytes());
            let text = String::from_utf8(name).expect("whole letters");
            assert!(text.ends_with('…') && (LONGEST_JOB_NAME - 3..=LONGEST_JOB_NAME).contains(&text.len()));
        }
        // Names of bytes that are not UTF-8 are cut, too.
        assert_eq!(cut(&[0x80; 4096]).len(), LONGEST_JOB_NAME);
    }

    #[test]
    fn a_step_has_the_same_name_from_every_source() {
        let step = |job: Option<Job>| String::from_utf8(job.expect("a job").step).expect("text");
        let of = |path: &str| step(of_cgroups(format!("0::{path}\n").as_bytes()));
        assert_eq!(of("/system.slice/slurmstepd.scope/job_4711/step_batch/user/task_0"), "step_batch");
        assert_eq!(of("/slurm_n1/uid_0/job_4711/step_17/task_0"), "step_17");
        assert_eq!(of("/slurm_n1/uid_0/job_4711"), "");
        assert_eq!(of("/slurm_n1/uid_0/job_4711/step_../x"), "");
        assert_eq!(step(of_environment(b"SLURM_JOB_ID=7\0SLURM_STEP_ID=3\0")), "step_3");
        assert_eq!(step(of_environment(b"SLURM_JOB_ID=7\0SLURM_STEP_ID=4294967290\0")), "step_interactive");
        assert_eq!(step(of_environment(b"SLURM_JOB_ID=7\0SLURM_STEP_ID=3;x\0")), "");
        assert_eq!(step(of_environment(b"SLURM_JOB_ID=7\0")), "step_batch");
        assert_eq!(step(of_environment(b"PBS_JOBID=7\0SLURM_STEP_ID=3\0")), "");
        assert_eq!(step(of_title(b"slurmstepd: [4711.batch]\0\0")), "step_batch");
        assert_eq!(step(of_title(b"slurmstepd: [4711.0+1]")), "step_0");
        for title in [&b"slurmstepd infinity"[..], b"slurmstepd: [x.0]", b"slurmstepd: [7.0", b"sh: [7.0]"] {
            assert_eq!(of_title(title), None);
        }
    }
}
