//! Metadata of a file of raw records.

use crate::plans::Plans;
use iodock_journal::{JournalMeta, JournalReader};

const EPOCH: &str = "epoch_ns";
/// The table of calls that is needed to read the records.
pub const TABLE: &str = "table";
/// Whether the page cache was recorded.
pub const PAGE_CACHE: &str = "page_cache";

/// `epoch`: added to monotonic ns to get ns since the epoch.
pub fn meta(epoch: i64, plans: &Plans, shows_pages: bool) -> JournalMeta {
    let state = if shows_pages { "recorded" } else { "not-shown" };
    let extra =
        [(EPOCH, epoch.to_string()), (TABLE, format!("{:x}", plans.sum())), (PAGE_CACHE, state.to_owned())];
    let extra = extra.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
    JournalMeta { how: "bpf".into(), extra, ..JournalMeta::default() }
}

/// Added to monotonic ns to get ns since the epoch.
pub fn epoch_of(reader: &JournalReader) -> Option<i64> {
    reader.meta().extra.get(EPOCH).and_then(|text| text.parse().ok())
}
