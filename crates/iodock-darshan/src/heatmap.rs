//! Bytes over time. There is one record for each process and interface.

use crate::ByteOrder;

#[derive(Clone, Debug, PartialEq)]
pub struct Heatmap {
    /// Number of the record, whose name is `heatmap:POSIX`, `heatmap:STDIO` or `heatmap:MPIIO`.
    pub id: u64,
    pub rank: i64,
    pub bin_s: f64,
    /// Bytes that were written in each bin, from the job's start.
    pub written: Vec<i64>,
    /// Bytes that were read in each bin.
    pub read: Vec<i64>,
}

/// Size of the fixed part of a record: number, rank, width of a bin, number of bins, and two memory addresses
/// that mean nothing in a file.
const FIXED_BYTES: usize = 8 * 6;

/// Returns the first record and its length in bytes; `None` if the record is not complete.
pub(crate) fn first(bytes: &[u8], order: ByteOrder) -> Option<(Heatmap, usize)> {
    let bins = usize::try_from(order.i64(bytes, 24)?).ok()?;
    let half = bins.checked_mul(8)?;
    let size = half.checked_mul(2)?.checked_add(FIXED_BYTES)?;
    let values = bytes.get(FIXED_BYTES..size)?;
    let bins = |half: &[u8]| half.chunks_exact(8).filter_map(|bin| order.i64(bin, 0)).collect();
    let heatmap = Heatmap {
        id: order.u64(bytes, 0)?,
        rank: order.i64(bytes, 8)?,
        bin_s: order.f64(bytes, 16)?,
        written: bins(&values[..half]),
        read: bins(&values[half..]),
    };
    Some((heatmap, size))
}
