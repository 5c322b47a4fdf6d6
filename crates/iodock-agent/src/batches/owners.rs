//! Encodes owners in few bytes, because tens of thousands are kept in memory.

use crate::sample::{Evidence, Owner};

const EVIDENCES: [Evidence; 6] = [
    Evidence::Nobody,
    Evidence::Server,
    Evidence::Cgroup,
    Evidence::Environment,
    Evidence::Session,
    Evidence::Scheduler,
];

/// Encodes an owner. Different owners have different bytes.
pub fn write_owner(owner: &Owner, bytes: &mut Vec<u8>) {
    bytes.clear();
    bytes.push(owner.evidence as u8);
    for id in [&owner.job, &owner.user, &owner.session, &owner.command] {
        // Lengths are encoded as in LEB128, so those above 127 take several bytes.
        let mut length = id.len();
        while length > 127 {
            bytes.push(length as u8 | 0x80);
            length >>= 7;
        }
        bytes.push(length as u8);
        bytes.extend_from_slice(id);
    }
}

/// Decodes the bytes of [`write_owner`].
pub fn read_owner(bytes: &[u8]) -> Owner {
    let (evidence, mut rest) = bytes.split_first().unwrap_or((&0, &[]));
    let mut id = || {
        let (mut length, mut shift) = (0, 0);
        while let Some((&byte, after)) = rest.split_first() {
            rest = after;
            length |= usize::from(byte & 0x7f) << shift;
            shift += 7;
            if byte < 0x80 {
                break;
            }
        }
        let (id, after) = rest.split_at(length.min(rest.len()));
        rest = after;
        id.to_vec()
    };
    let evidence = EVIDENCES.get(usize::from(*evidence)).copied().unwrap_or_default();
    Owner { evidence, job: id(), user: id(), session: id(), command: id() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_owners_are_read_back_unchanged() {
        let mut bytes = Vec::new();
        for evidence in EVIDENCES {
            let command = vec![0xff; 100_000];
            let owner = Owner { evidence, job: b"7".into(), user: vec![b'x'; 128], session: vec![], command };
            write_owner(&owner, &mut bytes);
            assert_eq!(read_owner(&bytes), owner);
        }
    }
}
