//! Lists the processes of a cgroup and its descendants.

use crate::error::Refusal;
use std::fs;
use std::path::{Path, PathBuf};

const ROOT: &str = "/sys/fs/cgroup";
const MEMBERS: &str = "cgroup.procs";
/// Number of levels of subfolders that are searched. A job has subfolders for its steps and tasks.
const DEPTH: usize = 8;
/// Number of listings of members after which new subfolders are searched.
const LOOKS: u32 = 50;

pub struct Group {
    path: PathBuf,
    folders: Vec<PathBuf>,
    looks: u32,
}

impl Group {
    /// Finds a cgroup by its folder, by its name below the root of all cgroups, or as `slurm:JOBID`.
    pub fn find(given: &Path) -> Result<Group, Refusal> {
        let text = given.to_string_lossy();
        let path = match text.strip_prefix("slurm:") {
            Some(job) => {
                below(Path::new(ROOT), DEPTH).into_iter().find(|path| path.ends_with(format!("job_{job}")))
            }
            None => places(given).into_iter().find(|path| path.join(MEMBERS).is_file()),
        };
        let path = path.ok_or_else(|| {
            Refusal::new(
                format!("{text}: no such cgroup on this machine"),
                format!("give a folder below {ROOT}, or slurm:JOBID of a job that runs here"),
            )
        })?;
        Ok(Group { folders: Vec::new(), path, looks: 0 })
    }

    /// Returns the processes that are in the cgroup now, except this one.
    pub fn members(&mut self) -> Vec<u32> {
        if self.looks.is_multiple_of(LOOKS) {
            self.folders = below(&self.path, DEPTH);
        }
        self.looks = self.looks.wrapping_add(1);
        let lists = self.folders.iter().filter_map(|folder| fs::read_to_string(folder.join(MEMBERS)).ok());
        let pids: Vec<u32> = lists
            .flat_map(|list| list.lines().filter_map(|line| line.parse().ok()).collect::<Vec<u32>>())
            .collect();
        pids.into_iter().filter(|&pid| pid != std::process::id()).collect()
    }
}

/// Returns possible folders of a cgroup with this name. In cgroup v1 each controller has its own tree.
fn places(given: &Path) -> Vec<PathBuf> {
    let name = given.strip_prefix("/").unwrap_or(given);
    let trees = fs::read_dir(ROOT).into_iter().flatten().flatten().map(|entry| entry.path().join(name));
    [given.to_path_buf(), Path::new(ROOT).join(name)].into_iter().chain(trees).collect()
}

/// Returns `path` and the folders below it.
fn below(path: &Path, depth: usize) -> Vec<PathBuf> {
    let mut found = vec![path.to_path_buf()];
    if depth > 0 {
        for entry in fs::read_dir(path).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                found.extend(below(&entry.path(), depth - 1));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::Group;
    use std::path::Path;

    #[test]
    fn a_missing_cgroup_is_refused() {
        for name in ["/no/such/group", "slurm:no-such-job"] {
            let refusal = Group::find(Path::new(name)).err().expect("refused");
            assert!(refusal.message.starts_with(name), "{}", refusal.message);
        }
    }
}
