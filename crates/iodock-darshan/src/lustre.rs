//! Layouts of files on a Lustre file system.

use crate::ByteOrder;

/// A component of a file's layout. Before version 2 of the module, a file has one component, with fewer known
/// values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Component {
    pub stripe_bytes: i64,
    pub stripe_count: i64,
    /// Number of the layout pattern in Lustre: 0 raid0, 2 mdt, 4 overstriped, 8 foreign.
    pub pattern: Option<i64>,
    /// Flags of the component in Lustre.
    pub flags: Option<i64>,
    pub start: Option<i64>,
    /// End of the component, bytes; `None` if it is not known or is the end of the file.
    pub end: Option<i64>,
    pub mirror: Option<i64>,
    /// Name of the OST pool; `None` if it is not known or there is no pool.
    pub pool: Option<String>,
    /// Numbers of the OSTs that contain the component.
    pub targets: Vec<i64>,
}

/// The layout of a file, as one rank or all ranks see it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LustreFile {
    pub id: u64,
    /// The rank; `None` for all ranks.
    pub rank: Option<i64>,
    /// Number of OSTs of the file system; known only in version 1 of the module.
    pub file_system_targets: Option<i64>,
    /// Number of MDTs of the file system; known only in version 1 of the module.
    pub file_system_metadata_targets: Option<i64>,
    /// The OST that was requested when the file was created (-1: any); known only in version 1 of the module.
    pub stripe_offset: Option<i64>,
    pub components: Vec<Component>,
}

const COUNTERS: usize = 7;
const POOL_BYTES: usize = 16;
const COMPONENT_BYTES: usize = 8 * COUNTERS + POOL_BYTES;
const FIRST_VERSION_BYTES: usize = 8 * 7;
const FIXED_BYTES: usize = 8 * 4;

/// Returns the first record and its length in bytes; `None` if the record is not complete.
pub(crate) fn first(bytes: &[u8], order: ByteOrder, version: u32) -> Option<(LustreFile, usize)> {
    if version == 1 {
        return first_of_version_1(bytes, order);
    }
    let components = usize::try_from(order.i64(bytes, 16)?).ok()?;
    let targets = usize::try_from(order.i64(bytes, 24)?).ok()?;
    let targets_at = components.checked_mul(COMPONENT_BYTES)?.checked_add(FIXED_BYTES)?;
    let size = targets.checked_mul(8)?.checked_add(targets_at)?;
    let record = bytes.get(..size)?;
    let mut file =
        LustreFile { id: order.u64(record, 0)?, rank: rank(order.i64(record, 8)?), ..Default::default() };
    let mut rest = &record[targets_at..];
    for bytes in record[FIXED_BYTES..targets_at].chunks_exact(COMPONENT_BYTES) {
        // Darshan marks allocated but unused components with -1. Nothing follows them.
        if order.i64(bytes, 0)? == -1 {
            break;
        }
        file.components.push(component(bytes, order, &mut rest)?);
    }
    Some((file, size))
}

fn rank(number: i64) -> Option<i64> {
    Some(number).filter(|&rank| rank >= 0)
}

fn component(bytes: &[u8], order: ByteOrder, targets: &mut &[u8]) -> Option<Component> {
    let counter = |at: usize| order.i64(bytes, 8 * at);
    let stripe_count = counter(1)?;
    let of_this = usize::try_from(stripe_count).ok()?.checked_mul(8)?;
    let (own, others) = targets.split_at_checked(of_this)?;
    *targets = others;
    let pool = &bytes[8 * COUNTERS..];
    let pool = &pool[..pool.iter().position(|&byte| byte == 0).unwrap_or(POOL_BYTES)];
    Some(Component {
        stripe_bytes: counter(0)?,
        stripe_count,
        pattern: counter(2),
        flags: counter(3),
        start: counter(4),
        end: counter(5).filter(|&end| end != -1),
        mirror: counter(6),
        pool: (!pool.is_empty()).then(|| String::from_utf8_lossy(pool).into_owned()),
        targets: numbers(own, order),
    })
}

fn numbers(bytes: &[u8], order: ByteOrder) -> Vec<i64> {
    (0..bytes.len() / 8).filter_map(|at| order.i64(bytes, 8 * at)).collect()
}

/// Parses a record of version 1: `LUSTRE_OSTS`, `_MDTS`, `_STRIPE_OFFSET`, `_STRIPE_SIZE`, `_STRIPE_WIDTH`,
/// then an OST for each stripe.
fn first_of_version_1(bytes: &[u8], order: ByteOrder) -> Option<(LustreFile, usize)> {
    let counter = |at: usize| order.i64(bytes, 8 * (2 + at));
    let stripe_count = counter(4)?;
    let targets = usize::try_from(stripe_count).ok()?.checked_mul(8)?;
    let size = FIRST_VERSION_BYTES.checked_add(targets)?;
    let targets = numbers(bytes.get(FIRST_VERSION_BYTES..size)?, order);
    let file = LustreFile {
        id: order.u64(bytes, 0)?,
        rank: rank(order.i64(bytes, 8)?),
        file_system_targets: counter(0),
        file_system_metadata_targets: counter(1),
        stripe_offset: counter(2),
        components: vec![Component {
            stripe_bytes: counter(3)?,
            stripe_count,
            targets,
            ..Default::default()
        }],
    };
    Some((file, size))
}
