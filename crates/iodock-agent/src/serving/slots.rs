//! Limits the number of connections. When all slots are taken, a new connection replaces the one that has
//! waited longest for its client, so slow clients harm only themselves. A connection that is being answered
//! is never replaced.

use std::cell::RefCell;
use std::future::Future;
use std::net::IpAddr;
use std::rc::Rc;
use tokio::task::AbortHandle;

/// Largest number of connections in total, and from one address. The usual clients are a Prometheus and a
/// collector, or a few of them.
const MOST: usize = 256;
const MOST_OF_ONE: usize = 128;

#[derive(Default)]
pub struct ConnectionSlots {
    taken: Rc<RefCell<Taken>>,
}

#[derive(Default)]
struct Taken {
    next: u64,
    /// Connections, of which the one that has waited longest for its client comes first.
    places: Vec<Entry>,
}

struct Entry {
    number: u64,
    address: IpAddr,
    /// Whether the agent is preparing an answer, so that the client waits.
    is_answering: bool,
    end: Option<AbortHandle>,
}

/// Slot of one connection. Dropping it releases the slot.
pub struct ConnectionSlot {
    number: u64,
    taken: Rc<RefCell<Taken>>,
}

impl ConnectionSlots {
    /// Takes a slot. Returns `None` if all other connections are being answered.
    pub fn enter(&self, address: IpAddr) -> Option<ConnectionSlot> {
        let mut taken = self.taken.borrow_mut();
        let of_one = taken.places.iter().filter(|one| one.address == address).count();
        if of_one >= MOST_OF_ONE && !taken.make_room(Some(address)) {
            return None;
        }
        if taken.places.len() >= MOST && !taken.make_room(None) {
            return None;
        }
        let number = taken.next;
        taken.next += 1;
        taken.places.push(Entry { number, address, is_answering: false, end: None });
        Some(ConnectionSlot { number, taken: Rc::clone(&self.taken) })
    }
}

impl Taken {
    fn make_room(&mut self, of: Option<IpAddr>) -> bool {
        let may_end = |one: &Entry| !one.is_answering && of.is_none_or(|address| one.address == address);
        let Some(oldest) = self.places.iter().position(may_end) else { return false };
        if let Some(end) = self.places.remove(oldest).end {
            end.abort();
        }
        true
    }
}

impl ConnectionSlot {
    /// Stores the handle that aborts the connection.
    pub fn ended_by(&self, end: AbortHandle) {
        if let Some(entry) = self.taken.borrow_mut().places.iter_mut().find(|one| one.number == self.number) {
            entry.end = Some(end);
        }
    }

    /// Awaits the answer to a request. During this time the client waits for the agent, and afterwards the
    /// agent waits for the client.
    pub async fn answering<T>(&self, answer: impl Future<Output = T>) -> T {
        self.mark(true);
        let answered = answer.await;
        self.mark(false);
        answered
    }

    fn mark(&self, is_answering: bool) {
        let mut taken = self.taken.borrow_mut();
        if let Some(place) = taken.places.iter().position(|one| one.number == self.number) {
            let entry = taken.places.remove(place);
            taken.places.push(Entry { is_answering, ..entry });
        }
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.taken.borrow_mut().places.retain(|one| one.number != self.number);
    }
}

/// Raises the soft limit of open files to the hard limit.
pub fn raise_open_files() {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: both calls access only this struct, which lives until they return.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) == 0 {
            limit.rlim_cur = limit.rlim_max;
            libc::setrlimit(libc::RLIMIT_NOFILE, &limit);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> IpAddr {
        [192, 0, 2, last].into()
    }

    #[test]
    fn the_oldest_connection_of_an_address_at_its_limit_is_closed() {
        let places = ConnectionSlots::default();
        let all: Vec<ConnectionSlot> =
            (0..MOST_OF_ONE + 5).filter_map(|_| places.enter(address(1))).collect();
        assert_eq!(all.len(), MOST_OF_ONE + 5, "each was taken");
        let numbers: Vec<u64> = places.taken.borrow().places.iter().map(|one| one.number).collect();
        assert_eq!(numbers, (5..MOST_OF_ONE as u64 + 5).collect::<Vec<_>>());
        assert!(places.enter(address(2)).is_some());
        drop(all);
        assert!(places.taken.borrow().places.is_empty());
    }

    #[test]
    fn a_connection_being_answered_is_not_closed() {
        let places = ConnectionSlots::default();
        let all: Vec<ConnectionSlot> =
            (0..MOST).filter_map(|n| places.enter(address((n / 64) as u8))).collect();
        all.iter().for_each(|place| place.mark(true));
        assert!(places.enter(address(9)).is_none());
        all[7].mark(false);
        assert!(places.enter(address(9)).is_some());
        assert!(places.taken.borrow().places.iter().all(|one| one.number != all[7].number));
    }
}
