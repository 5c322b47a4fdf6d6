//! Asynchronous I/O (libaio): the tracker keeps requests of io_submit until io_getevents reports their
//! completion.

use iodock_event::AsyncItem;
use rustc_hash::FxHashMap;

/// A request in flight.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    pub fd: i32,
    pub file: u32,
    pub handle: u32,
    pub write: bool,
    pub requested: i64,
    /// Offset in the file, bytes; UNKNOWN for appends.
    pub offset: i64,
    /// Whether several requests with the same key were in flight. The tracker cannot distinguish them.
    ambiguous: bool,
}

impl Request {
    pub fn new(item: &AsyncItem, file: u32, handle: u32) -> Self {
        let (fd, write, requested, offset) = (item.fd, item.write, item.bytes, item.offset);
        Request { fd, file, handle, write, requested, offset, ambiguous: false }
    }
}

/// The requests in flight of one process, by the key that their completions will show.
#[derive(Debug, Default)]
pub struct Submitted(FxHashMap<u64, Vec<Request>>);

impl Submitted {
    pub fn add(&mut self, key: u64, request: Request) {
        let same = self.0.entry(key).or_default();
        same.push(request);
        if same.len() > 1 {
            same.iter_mut().for_each(|request| request.ambiguous = true);
        }
    }

    /// Returns the request that this completion ends; `None` if no request has the key or several had it.
    pub fn complete(&mut self, key: u64) -> Option<Request> {
        let same = self.0.get_mut(&key)?;
        let request = same.pop()?;
        if same.is_empty() {
            self.0.remove(&key);
        }
        (!request.ambiguous).then_some(request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_with_the_same_key_are_not_guessed() {
        let item = AsyncItem::request(7, 3, true, 10, 0);
        let mut submitted = Submitted::default();
        submitted.add(7, Request::new(&item, 1, 1));
        assert!(submitted.complete(7).is_some());
        assert!(submitted.complete(7).is_none());
        submitted.add(7, Request::new(&item, 1, 1));
        submitted.add(7, Request::new(&item, 2, 2));
        assert!(submitted.complete(7).is_none());
        assert!(submitted.complete(7).is_none());
        submitted.add(7, Request::new(&item, 1, 1));
        assert!(submitted.complete(7).is_some());
    }
}
