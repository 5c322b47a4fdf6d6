//! The names of records: files, data sets, variables.

use crate::ByteOrder;
use std::borrow::Cow;
use std::collections::HashMap;

/// The names, by number of the record.
#[derive(Clone, Debug, Default)]
pub struct Names {
    names: HashMap<u64, Box<[u8]>>,
}

impl Names {
    /// Returns the name of record `id`. Bytes that are not UTF-8 are replaced; [`Names::bytes`] returns them
    /// unchanged.
    pub fn name(&self, id: u64) -> Option<Cow<'_, str>> {
        self.bytes(id).map(String::from_utf8_lossy)
    }

    pub fn bytes(&self, id: u64) -> Option<&[u8]> {
        self.names.get(&id).map(AsRef::as_ref)
    }

    pub fn len(&self) -> usize {
        self.names.len()
    }

    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = (u64, &[u8])> {
        self.names.iter().map(|(&id, name)| (id, name.as_ref()))
    }

    /// Adds a name. Most names are repeated, because each process writes the names that it knows. As in
    /// Darshan, a name replaces an earlier empty one.
    pub(crate) fn add(&mut self, id: u64, name: &[u8]) {
        match self.names.get_mut(&id) {
            None => _ = self.names.insert(id, name.into()),
            Some(known) if known.is_empty() && !name.is_empty() => *known = name.into(),
            Some(_) => {}
        }
    }

    /// Adds the names of one stream. Returns the number of bytes at its end that do not form a complete name.
    pub(crate) fn read(&mut self, bytes: &[u8], order: ByteOrder, has_lengths: bool) -> usize {
        let mut rest = bytes;
        while let Some((id, name, used)) = first(rest, order, has_lengths) {
            self.add(id, name);
            rest = &rest[used..];
        }
        rest.len()
    }
}

/// Returns the number and the text of the first name, and its length in bytes. In format 3.00 a length
/// precedes the text; in later formats a NUL follows it.
fn first(bytes: &[u8], order: ByteOrder, has_length: bool) -> Option<(u64, &[u8], usize)> {
    let id = order.u64(bytes, 0)?;
    if has_length {
        let length = order.u32(bytes, 8)? as usize;
        let name = bytes.get(12..length.checked_add(12)?)?;
        return Some((id, name, 12 + length));
    }
    let rest = &bytes[8..];
    let length = rest.iter().position(|&byte| byte == 0)?;
    Some((id, &rest[..length], 8 + length + 1))
}
