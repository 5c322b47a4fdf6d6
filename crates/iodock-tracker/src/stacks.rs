//! Call stacks. The tracker keeps each distinct stack once, and rows refer to it by number.

use iodock_event::stacks::{frames, Frame, Site, Stacks};
use iodock_event::NONE;
use rustc_hash::FxHashMap;

/// The stacks seen so far.
#[derive(Debug, Default)]
pub struct StackIds {
    table: Stacks,
    /// Number of each stack, and the site in it that a user would change.
    by_bytes: FxHashMap<Box<[u8]>, (u32, u32)>,
    by_site: FxHashMap<Site, u32>,
}

impl StackIds {
    /// Returns the number of a stack, and the site in it that a user would change; [`NONE`] for a stack
    /// without frames.
    pub fn of(&mut self, bytes: &[u8]) -> (u32, u32) {
        if let Some(&known) = self.by_bytes.get(bytes) {
            return known;
        }
        let sites: Box<[u32]> = frames(bytes).map(|frame| self.site(&frame)).collect();
        if sites.is_empty() {
            return (NONE, NONE);
        }
        let ids = (self.table.stacks.len() as u32, self.table.to_change(&sites));
        self.table.stacks.push(sites);
        self.by_bytes.insert(bytes.into(), ids);
        ids
    }

    fn site(&mut self, frame: &Frame<'_>) -> u32 {
        let site = Site::of(frame);
        if let Some(&known) = self.by_site.get(&site) {
            return known;
        }
        let id = self.table.sites.len() as u32;
        self.table.sites.push(site.clone());
        self.by_site.insert(site, id);
        id
    }

    pub fn into_table(self) -> Stacks {
        self.table
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iodock_event::stacks::push_frame;

    fn bytes(frames: &[(&str, u64)]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for &(module, offset) in frames {
            let frame = Frame { module: module.as_bytes(), offset: Some(offset), ..Frame::default() };
            push_frame(&mut bytes, &frame);
        }
        bytes
    }

    const LIBC: (&str, u64) = ("/usr/lib/libc.so.6", 1);

    #[test]
    fn equal_stacks_are_stored_once_and_share_sites() {
        let mut ids = StackIds::default();
        let (own, main) = (("/home/u/a.out", 2), ("/home/u/a.out", 3));
        assert_eq!(ids.of(&bytes(&[LIBC, own, main])), (0, 1));
        assert_eq!(ids.of(&bytes(&[LIBC, main])), (1, 2));
        assert_eq!(ids.of(&bytes(&[LIBC, own, main])), (0, 1));
        assert_eq!(ids.of(b""), (NONE, NONE));
        let table = ids.into_table();
        assert_eq!((table.sites.len(), table.stacks.len()), (3, 2));
    }

    #[test]
    fn the_site_of_a_call_in_installed_code_is_in_the_program() {
        let mut ids = StackIds::default();
        assert_eq!(ids.of(&bytes(&[LIBC, ("/usr/bin/cat", 2), LIBC])).1, 1);
        assert_eq!(ids.of(&bytes(&[LIBC])).1, 0);
    }
}
