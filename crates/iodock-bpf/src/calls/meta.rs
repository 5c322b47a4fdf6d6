//! Builds and reads the metadata of a file of raw records.

use crate::plans::Plans;
use iodock_journal::{JournalMeta, JournalReader};

const EPOCH: &str = "epoch_ns";
/// Key of the checksum of the table of calls ([`Plans::sum`]), which must be the same when the records are
/// read.
pub const TABLE: &str = "table";
/// Key that says whether the page cache was recorded.
pub const PAGE_CACHE: &str = "page_cache";

/// Builds the metadata. `epoch`, added to monotonic ns, gives ns since the epoch.
pub fn meta(epoch: i64, plans: &Plans, shows_pages: bool) -> JournalMeta {
    let state = if shows_pages { "recorded" } else { "not-shown" };
    let extra =
        [(EPOCH, epoch.to_string()), (TABLE, format!("{:x}", plans.sum())), (PAGE_CACHE, state.to_owned())];
    let extra = extra.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
    JournalMeta { how: "bpf".into(), extra, ..JournalMeta::default() }
}

/// Returns the number that, added to monotonic ns, gives ns since the epoch.
pub fn epoch_of(reader: &JournalReader) -> Option<i64> {
    reader.meta().extra.get(EPOCH).and_then(|text| text.parse().ok())
}
