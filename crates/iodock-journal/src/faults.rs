//! Encodes and decodes frames of page faults in mapped files. A fault takes 4 to 8 bytes, because its numbers
//! are encoded as differences from the previous fault.

use crate::wire::{put_bytes, put_quantity, put_signed, put_varint, Cursor};
use iodock_event::{FaultBatch, FaultKind, FileMap, PageFault};

/// Flags for a fault that belongs to another task, or to another mapping, than the previous fault.
const OTHER_TASK: u8 = 1 << 2;
const OTHER_MAP: u8 = 1 << 3;
const KIND: u8 = 3;
/// Bits of an offset within the smallest page. Offsets are multiples of it, so these bits are not stored.
const PAGE_SHIFT: u32 = 12;

pub fn encode_faults(batch: &FaultBatch) -> Vec<u8> {
    let mut out = Vec::with_capacity(batch.faults.len() * 8 + 64);
    put_varint(&mut out, batch.maps.len() as u64);
    for map in &batch.maps {
        put_varint(&mut out, u64::from(map.pid));
        put_quantity(&mut out, map.time);
        for number in [map.start, map.length, map.offset] {
            put_varint(&mut out, number);
        }
        put_bytes(&mut out, &map.path);
    }
    put_varint(&mut out, batch.faults.len() as u64);
    let mut before = (0i64, 0u32, 0u32, 0i64);
    for fault in &batch.faults {
        let (time, tid, map, page) = before;
        let other = |is_other, bit| if is_other { bit } else { 0 };
        out.push(fault.kind as u8 | other(fault.tid != tid, OTHER_TASK) | other(fault.map != map, OTHER_MAP));
        put_signed(&mut out, fault.ts.wrapping_sub(time));
        if fault.tid != tid {
            put_varint(&mut out, u64::from(fault.tid));
        }
        if fault.map != map {
            put_varint(&mut out, u64::from(fault.map));
        }
        let here = fault.offset >> PAGE_SHIFT;
        put_signed(&mut out, here.wrapping_sub(page));
        before = (fault.ts, fault.tid, fault.map, here);
    }
    out
}

pub fn decode_faults(payload: &[u8], batch: &mut FaultBatch) -> Option<()> {
    let mut cursor = Cursor::new(payload);
    for _ in 0..cursor.varint()? {
        let (pid, time) = (cursor.u32()?, cursor.quantity()?);
        let (start, length, offset) = (cursor.varint()?, cursor.varint()?, cursor.varint()?);
        batch.maps.push(FileMap { pid, time, start, length, offset, path: cursor.bytes()?.to_vec() });
    }
    let (mut ts, mut tid, mut map, mut page) = (0i64, 0, 0, 0i64);
    for _ in 0..cursor.varint()? {
        let head = cursor.byte()?;
        ts = ts.wrapping_add(cursor.signed()?);
        if head & OTHER_TASK != 0 {
            tid = cursor.u32()?;
        }
        if head & OTHER_MAP != 0 {
            map = cursor.u32()?;
        }
        page = page.wrapping_add(cursor.signed()?);
        let kind = FaultKind::from_number(head & KIND)?;
        batch.faults.push(PageFault { ts, tid, map, offset: page.wrapping_shl(PAGE_SHIFT), kind });
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use iodock_event::UNKNOWN;

    #[test]
    fn page_faults_are_decoded_as_encoded() {
        let map = |path: &[u8], time| FileMap {
            pid: 7,
            time,
            start: 0x7f12_3456_7000,
            length: 1 << 30,
            offset: 4096,
            path: path.to_vec(),
        };
        let fault = |ts, tid, map, page: i64, kind| PageFault { ts, tid, map, offset: page << 12, kind };
        let batch = FaultBatch {
            maps: vec![map(b"/data/\xff", UNKNOWN), map(b"/data/b", 1_700_000_000_000_000_000)],
            faults: vec![
                fault(1_700_000_000_000_000_000, 7, 0, 9, FaultKind::Present),
                fault(1_700_000_000_000_000_500, 7, 0, 3, FaultKind::Major),
                fault(1_700_000_000_000_000_400, 8, 1, 1 << 30, FaultKind::Minor),
                fault(1_700_000_000_000_000_900, 8, 0, 0, FaultKind::Minor),
            ],
        };
        let payload = encode_faults(&batch);
        let mut read = FaultBatch::default();
        assert_eq!(decode_faults(&payload, &mut read), Some(()));
        assert_eq!(read, batch);
        for cut in 0..payload.len() {
            assert_eq!(decode_faults(&payload[..cut], &mut FaultBatch::default()), None);
        }
    }

    #[test]
    fn a_repeated_page_fault_takes_at_most_five_bytes() {
        let faults = (0..1000).map(|page| PageFault {
            ts: page * 3000,
            tid: 4321,
            map: 0,
            offset: page << 16,
            kind: FaultKind::Minor,
        });
        let payload = encode_faults(&FaultBatch { maps: Vec::new(), faults: faults.collect() });
        assert!(payload.len() < 5 * 1000 + 16, "{}", payload.len());
    }
}
