//! Table of all kinds of events, one line each. docs/reference/events.md is generated from it.

use iodock_samples::event::Severity::{self, Error, Note, Warning};

/// Name, severity and meaning of a kind of event.
pub struct Kind {
    pub name: &'static str,
    pub severity: Severity,
    pub meaning: &'static str,
}

const fn kind(name: &'static str, severity: Severity, meaning: &'static str) -> Kind {
    Kind { name, severity, meaning }
}

pub const KINDS: &[Kind] = &[
    kind("array-degraded", Error, "a RAID array of the kernel (md) works without all its members"),
    kind("array-whole", Note, "all members of the array are in use"),
    kind("array-inactive", Error, "the array is not running: its data can't be read"),
    kind(
        "rebuild-begun",
        Warning,
        "the array is resynchronised, rebuilt, reshaped or checked, which makes it slower",
    ),
    kind("rebuild-ended", Note, "the array is not resynchronised any more"),
    kind("path-lost", Warning, "one of several paths to a device does not work any more"),
    kind("path-back", Note, "a path to a device works again"),
    kind("all-paths-lost", Error, "no path to the device works: requests wait or fail"),
    kind("link-down", Warning, "a network link or InfiniBand port is down"),
    kind("link-up", Note, "the link is up again"),
    kind("link-off", Note, "somebody switched the interface off"),
    kind("link-slower", Warning, "the link runs at a lower speed than before"),
    kind("link-faster", Note, "the link runs at a higher speed than before"),
    kind(
        "link-flapped",
        Warning,
        "the link went down and came up again between two readings, or several times",
    ),
    kind("link-errors", Warning, "the link's counters of errors grow: cable, connector or port"),
    kind("symbol-errors", Warning, "InfiniBand symbol errors grow: cable, connector or port"),
    kind("target-gone", Warning, "an array, a device or an interface is not there any more"),
    kind("lustre-bug", Error, "Lustre stopped a thread or the machine, as it found a mistake in itself"),
    kind(
        "lustre-evicted",
        Error,
        "a server evicted this client: programs that had files open there get errors",
    ),
    kind("lustre-evicts", Warning, "this server evicted a client that did not answer"),
    kind("lustre-timeout", Warning, "a request was not answered in time"),
    kind("lustre-connection-lost", Warning, "the connection to a server or target is lost: requests wait"),
    kind("lustre-connection-back", Note, "the connection is restored"),
    kind("lustre-recovery", Warning, "a target waits for its clients after a restart: requests wait"),
    kind("lustre-recovery-ended", Note, "the target serves again"),
    kind("lustre-slow", Warning, "the server took very long for a request, or a thread of it seems to hang"),
    kind("lustre-network", Warning, "LNet can't reach a node, or loses messages"),
    kind("gpfs-unmounted", Error, "GPFS unmounted a file system by force"),
    kind("gpfs-disk-failed", Error, "a disk of GPFS failed"),
    kind("gpfs-slow", Warning, "GPFS waits long for a disk or another node (long waiters)"),
    kind("gpfs-expelled", Error, "a node is expelled, or its lease is overdue"),
    kind("gpfs-down", Error, "the GPFS daemon ended abnormally"),
    kind(
        "nfs-not-responding",
        Warning,
        "an NFS server does not respond: programs wait, or get errors on soft mounts",
    ),
    kind("nfs-responding", Note, "the NFS server responds again"),
    kind("gluster-disconnected", Warning, "a brick of GlusterFS is disconnected"),
    kind("gluster-down", Error, "a GlusterFS volume has too few bricks to work"),
    kind("medium-error", Error, "a disk can't read or write a place on its medium"),
    kind("io-error", Error, "a request to a disk failed"),
    kind("disk-offline", Error, "the kernel gave a disk up"),
    kind("disk-reset", Warning, "a disk or its controller did not answer in time and was reset"),
    kind("disk-failed", Error, "a RAID array took a disk out"),
    kind(
        "hung-task",
        Warning,
        "a process waits in the kernel for minutes, mostly for a disk or a file system",
    ),
    kind("file-system-read-only", Error, "a local file system shut itself down, or can only be read"),
    kind("file-system-damaged", Error, "a local file system found damage in its structures"),
    kind("no-space", Warning, "a file system is full, or out of inodes"),
    kind("out-of-memory", Warning, "the kernel killed a process for lack of memory"),
    kind("log-skipped", Note, "a log grew faster than it is read: what was skipped is not looked at"),
    kind("probe-failed", Error, "an operation of `iodock probe` failed"),
    kind("probe-no-answer", Error, "an operation of `iodock probe` was not answered within its limit"),
    kind("probe-slow", Warning, "a round of `iodock probe` took longer than the limit"),
    kind("probe-well", Note, "the probe's rounds are well again"),
    kind("more-events", Warning, "more events in one round than are told one by one"),
];

impl Kind {
    pub fn named(name: &str) -> Option<&'static Kind> {
        KINDS.iter().find(|kind| kind.name == name)
    }
}

/// Returns the severity of a kind. A kind that is not in the table comes from a site's own rule and is a
/// warning.
pub fn severity(name: &str) -> Severity {
    Kind::named(name).map_or(Warning, |kind| kind.severity)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_is_listed_once_and_has_a_meaning() {
        for (at, one) in KINDS.iter().enumerate() {
            assert!(!one.meaning.is_empty() && KINDS[..at].iter().all(|other| other.name != one.name));
            assert!(one.name.bytes().all(|byte| byte == b'-' || byte.is_ascii_lowercase()));
        }
    }
}
