//! Builds a tree of files for the agent, and checks the agent's output.

// Each test program uses only a part of this module.
#![allow(dead_code)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A folder that is removed when this value is dropped.
pub struct Tree(pub PathBuf);

impl Tree {
    pub fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("iodock-agent-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        let tree = Tree(path);
        tree.write("proc/sys/kernel/hostname", "node7\n");
        tree
    }

    pub fn write(&self, path: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
        fs::write(&path, text).expect("a file");
        path
    }

    pub fn fixture(&self, path: &str, name: &str) {
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name);
        self.write(path, fs::read(from).expect("a fixture"));
    }

    pub fn agent(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_iodock-agent"));
        command.arg("once").arg("--root").arg(&self.0).args(arguments).output().expect("the agent runs")
    }

    pub fn samples(&self, arguments: &[&str]) -> String {
        let output = self.agent(arguments);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).expect("text");
        check_form(&text);
        text
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Checks the rules of OpenMetrics: there is an end mark, each family appears once and without a gap, each
/// series appears once, and each line has one sample.
pub fn check_form(text: &str) {
    assert!(text.ends_with("# EOF\n"));
    let (mut families, mut series, mut family) = (BTreeSet::new(), BTreeSet::new(), String::new());
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            family = rest.split(' ').next().expect("a name").into();
            assert!(families.insert(family.clone()), "{family} twice");
        }
        if !line.starts_with('#') {
            let (name, value) = line.rsplit_once(' ').expect("a value");
            assert!(value.parse::<f64>().is_ok(), "{line}");
            assert!(line.starts_with(&family), "{line} in {family}");
            assert!(series.insert(name), "{name} twice");
        }
    }
}

pub fn has(text: &str, line: &str) {
    assert!(text.lines().any(|found| found == line), "no {line}\nin\n{text}");
}

/// Returns the sum of a family's samples.
pub fn sum(text: &str, family: &str) -> u64 {
    let values = text.lines().filter(|line| line.starts_with(family));
    values.map(|line| line.rsplit_once(' ').expect("a value").1.parse::<u64>().expect("a number")).sum()
}

pub fn fifo(tree: &Tree, path: &str) {
    let path = tree.write(path, "");
    fs::remove_file(&path).expect("removed");
    assert!(Command::new("mkfifo").arg(&path).status().expect("mkfifo runs").success());
}
