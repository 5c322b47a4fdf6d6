//! An agent that pushes, with its own tree and spool.

use super::collector::Collector;
use super::{wait_for, write_opens, Agent};
use crate::tree::Tree;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

pub struct Site {
    pub tree: Tree,
    pub spool: PathBuf,
    /// Arguments of the agent.
    arguments: Vec<String>,
}

impl Site {
    pub fn new(name: &str, url: &str) -> Self {
        Site::spooling(name).with("--push", url)
    }

    /// Creates a site whose collector pulls.
    pub fn pulled(name: &str) -> Self {
        let mut site = Site::spooling(name);
        site.arguments.push("--serve-spool".into());
        site
    }

    /// Creates a site without a collector.
    pub fn spooling(name: &str) -> Self {
        let tree = Tree::new(name);
        write_opens(&tree, 1);
        let spool = tree.0.join("spool");
        let path = spool.to_str().expect("text").to_owned();
        let arguments = ["--spool", &path, "--interval", "0.1"];
        Site { tree, spool, arguments: arguments.map(str::to_owned).into() }
    }

    pub fn with(mut self, option: &str, value: &str) -> Self {
        self.arguments.extend([option.to_owned(), value.to_owned()]);
        self
    }

    /// Creates a file with the given mode.
    pub fn file(&self, name: &str, text: impl AsRef<[u8]>, mode: u32) -> String {
        let path = self.tree.write(name, text);
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("set");
        path.to_str().expect("text").into()
    }

    pub fn start(&self) -> Agent {
        Agent::start(&self.tree, &self.arguments.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// Runs the agent with invalid arguments, and returns its messages.
    pub fn ends(&self) -> String {
        let mut agent = self.start();
        assert_eq!(wait_for("its end", || agent.process.try_wait().expect("it ran")).code(), Some(2));
        agent.says("hint: ");
        agent.said()
    }
}

pub fn has_kept(collector: &Collector, count: usize) {
    wait_for("a push", || (collector.kept().len() >= count).then_some(()));
}

/// Checks that the numbers are 1, 2, 3 ..., each once.
pub fn assert_all(kept: &[u64]) {
    assert!(kept.iter().copied().eq(1..=kept.len() as u64), "{kept:?}");
}

/// Returns the path of a fixture with a certificate or key.
pub fn fixture(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/tls").join(name);
    path.to_str().expect("text").into()
}
