"""Names of the kinds of events. `crates/iodock-agent/src/events/kinds.rs` has the same names with their
severity, and docs/reference/events.md explains their meaning."""

from __future__ import annotations

from iodock.shared.language import N_

TITLES = {
    "array-degraded": N_("array degraded"),
    "array-whole": N_("array restored"),
    "array-inactive": N_("array not running"),
    "rebuild-begun": N_("rebuild in progress"),
    "rebuild-ended": N_("rebuild ended"),
    "path-lost": N_("path lost"),
    "path-back": N_("path restored"),
    "all-paths-lost": N_("all paths lost"),
    "link-down": N_("link down"),
    "link-up": N_("link up"),
    "link-off": N_("interface disabled"),
    "link-slower": N_("link slower"),
    "link-faster": N_("link faster"),
    "link-flapped": N_("link interrupted"),
    "link-errors": N_("link errors"),
    "symbol-errors": N_("symbol errors"),
    "more-events": N_("more events"),
    "target-gone": N_("device gone"),
    "lustre-bug": N_("Lustre: bug"),
    "lustre-evicted": N_("Lustre: client evicted"),
    "lustre-evicts": N_("Lustre: server evicts a client"),
    "lustre-timeout": N_("Lustre: request timed out"),
    "lustre-connection-lost": N_("Lustre: connection lost"),
    "lustre-connection-back": N_("Lustre: connection restored"),
    "lustre-recovery": N_("Lustre: recovery"),
    "lustre-recovery-ended": N_("Lustre: recovery ended"),
    "lustre-slow": N_("Lustre: slow"),
    "lustre-network": N_("Lustre: network error"),
    "gpfs-unmounted": N_("GPFS: unmounted"),
    "gpfs-disk-failed": N_("GPFS: disk failed"),
    "gpfs-slow": N_("GPFS: long waiters"),
    "gpfs-expelled": N_("GPFS: node expelled"),
    "gpfs-down": N_("GPFS: daemon ended"),
    "nfs-not-responding": N_("NFS server does not respond"),
    "nfs-responding": N_("NFS server responds again"),
    "gluster-disconnected": N_("GlusterFS: brick disconnected"),
    "gluster-down": N_("GlusterFS: volume down"),
    "medium-error": N_("disk: medium error"),
    "io-error": N_("disk: I/O error"),
    "disk-offline": N_("disk offline"),
    "disk-reset": N_("disk: reset or timeout"),
    "disk-failed": N_("array: disk failed"),
    "hung-task": N_("process hangs in the kernel"),
    "file-system-read-only": N_("file system shut down or read-only"),
    "file-system-damaged": N_("file system damaged"),
    "no-space": N_("no space left"),
    "out-of-memory": N_("out of memory"),
    "log-skipped": N_("log lines skipped"),
    "probe-failed": N_("probe failed"),
    "probe-no-answer": N_("probe without an answer"),
    "probe-slow": N_("probe slow"),
    "probe-well": N_("probe normal again"),
}
SEVERITY_TITLES = {"note": N_("note"), "warning": N_("warning"), "error": N_("error")}
OVER = {
    "array-degraded": "array-whole", "array-inactive": "array-whole", "rebuild-begun": "rebuild-ended",
    "path-lost": "path-back", "all-paths-lost": "path-back",
    "probe-failed": "probe-well", "probe-no-answer": "probe-well", "probe-slow": "probe-well",
}  # fmt: skip
"""Maps a kind of event that begins a condition to the kind that ends it. The condition lasts until an event
of the second kind arrives from the same source and target."""
