//! Information about the job and the log in the comments of a text of darshan-parser.

use crate::loss::add;
use crate::{Job, Log, LossKind, Module, Mount, Region, Time};
use std::collections::BTreeMap;

/// The information in the head of the text about a module.
#[derive(Default)]
pub struct Said {
    /// Compressed size of the module in the log, bytes.
    pub bytes: u64,
    pub version: u32,
    pub is_partial: bool,
}

#[derive(Default)]
pub struct Head {
    format: String,
    command: Option<String>,
    uid: Option<i64>,
    id: Option<i64>,
    start: Option<i64>,
    end: Option<i64>,
    processes: Option<i64>,
    run_time_s: Option<f64>,
    metadata: Vec<(String, String)>,
    mounts: Vec<Mount>,
    pub modules: BTreeMap<Module, Said>,
    /// Whether the text says that the log has no modules. A text without records is then not cut off.
    has_none: bool,
}

impl Head {
    /// Parses a comment without its `#`. Unknown comments are ignored.
    pub fn read(&mut self, comment: &str) -> bool {
        let comment = comment.trim_start();
        if let Some(text) = comment.strip_prefix("mount entry:\t") {
            if let Some((path, kind)) = text.split_once('\t') {
                self.mounts.push(Mount { path: path.into(), file_system: kind.into() });
            }
            return true;
        }
        self.has_none |= comment.starts_with("no module data available");
        if let Some(warning) =
            comment.strip_prefix("*WARNING*: The ").or(comment.strip_prefix("*ERROR*: The "))
        {
            self.partial(warning);
        } else if let Some((key, value)) = comment.split_once(": ") {
            self.say(key, value);
        }
        true
    }

    /// Parses a warning of the form `NAME module contains incomplete data!`.
    fn partial(&mut self, warning: &str) {
        let name = warning.split_once(" module contains incomplete data").map(|(name, _)| name);
        if let Some(module) = name.and_then(Module::named) {
            self.modules.entry(module).or_default().is_partial = true;
        }
    }

    fn say(&mut self, key: &str, value: &str) {
        let number = value.trim().parse().ok();
        match key {
            "darshan log version" => self.format = value.into(),
            "exe" => self.command = Some(value.into()),
            "uid" => self.uid = number,
            "jobid" => self.id = number,
            "start_time" => self.start = number,
            "end_time" => self.end = number,
            "nprocs" => self.processes = number,
            "run time" => self.run_time_s = value.trim().parse().ok(),
            "metadata" => {
                let (name, value) = value.split_once(" = ").unwrap_or((value, ""));
                self.metadata.push((name.into(), value.into()));
            }
            _ => self.module(key, value),
        }
    }

    /// Parses a comment of the form `NAME module: 207 bytes (compressed), ver=4`.
    fn module(&mut self, key: &str, value: &str) {
        let said = || {
            let module = Module::named(key.strip_suffix(" module")?)?;
            let (bytes, version) = value.split_once(" bytes (compressed), ver=")?;
            Some((module, bytes.parse().ok()?, version.trim().parse().ok()?))
        };
        if let Some((module, bytes, version)) = said() {
            let entry = self.modules.entry(module).or_default();
            (entry.bytes, entry.version) = (bytes, version);
        }
    }

    fn job(&mut self) -> Option<Job> {
        Some(Job {
            uid: self.uid?,
            start: Time { s: self.start?, ns: None },
            end: Time { s: self.end?, ns: None },
            processes: self.processes?,
            id: self.id?,
            metadata: std::mem::take(&mut self.metadata),
            command: self.command.take(),
            mounts: std::mem::take(&mut self.mounts),
            said_run_time_s: self.run_time_s,
        })
    }

    /// Adds the job to the log. Counts data that the log has but the text lacks as losses.
    pub fn finish(mut self, log: &mut Log) {
        log.job = self.job();
        if log.job.is_none() {
            add(&mut log.losses, LossKind::CutRegion, Region::Job, 1);
        }
        let is_ended = self.has_none || !self.modules.is_empty() || log.records() > 0;
        add(&mut log.losses, LossKind::CutRegion, Region::Header, u64::from(!is_ended));
        log.format = self.format;
        for (module, said) in self.modules {
            let place = Region::Module(module);
            add(&mut log.losses, LossKind::PartialModule, place, u64::from(said.is_partial));
            let is_there = match module {
                Module::LUSTRE => !log.lustre.is_empty(),
                Module::HEATMAP => !log.heatmaps.is_empty(),
                _ => log.module(module).is_some(),
            };
            if !is_there {
                let is_read = module.newest_version().is_some();
                let kind = if is_read { LossKind::MissingModule } else { LossKind::UnreadModule };
                add(&mut log.losses, kind, place, said.bytes);
            }
        }
    }
}
