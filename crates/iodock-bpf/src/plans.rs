//! Computes how each system call of this machine is recorded, from the table of calls
//! (`iodock_event::calls`).

use crate::format::{plan, Piece, CALL_NUMBERS, VERSION};
use iodock_event::numbers_x86_64::NUMBERS;
use iodock_event::{Action, CallId, CallSpec, Role};

/// Plan and call id of each call number. A call whose plan is 0 is not recorded.
pub struct Plans {
    pub plans: Vec<u64>,
    pub calls: Vec<Option<CallId>>,
}

impl Plans {
    pub fn of_this_machine() -> Plans {
        let mut all = Plans { plans: vec![0; CALL_NUMBERS], calls: vec![None; CALL_NUMBERS] };
        for &(number, name) in NUMBERS {
            let id = CallId::intern(name.as_bytes()).filter(|id| id.spec().is_recorded());
            if let Some(id) = id {
                all.plans[number as usize] = plan_of(id.spec());
                all.calls[number as usize] = Some(id);
            }
        }
        all
    }
}

impl Plans {
    /// Returns a checksum of the table of calls and the version of the record format. Raw records can only be
    /// read with the table and version with which they were written.
    pub fn sum(&self) -> u64 {
        let names = self.calls.iter().map(|call| call.map_or("", |call| call.spec().name));
        let plans = self.plans.iter().flat_map(|plan| plan.to_le_bytes());
        let bytes = plans.chain(names.flat_map(|name| name.bytes().chain([0]))).chain([VERSION]);
        // The checksum is FNV-1a.
        bytes.fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
    }
}

fn plan_of(spec: &CallSpec) -> u64 {
    let mut bits = plan::RECORDED;
    if is_small(spec.registers()) {
        bits |= plan::SMALL;
        bits |= if spec.registers().get(3) == Some(&Role::Offset) { plan::POSITIONED } else { 0 };
    }
    bits |= if spec.action == Action::Exit { plan::EXITS } else { 0 };
    bits |= if spec.action == Action::Map { plan::MAPS } else { 0 };
    bits |= if spec.opens() { plan::OPENS } else { 0 };
    bits |= writing(spec);
    // The arguments of exec are in the record of the exec itself if it succeeds.
    let pieces = spec.registers().iter().enumerate().map(|(at, &role)| (piece(role, spec), at as u64));
    for (index, (piece, argument)) in pieces.filter(|(piece, _)| *piece != Piece::None).enumerate() {
        assert!(index < plan::MOST_PIECES, "{}: too many pieces", spec.name);
        bits |= (piece as u64 | argument << 5) << (plan::PIECES + 8 * index as u32);
    }
    bits
}

/// Returns the plan's bits for the descriptor through which a call may write pages.
fn writing(spec: &CallSpec) -> u64 {
    match spec.action {
        Action::Write | Action::PositionedWrite => plan::WRITES,
        // sendfile has its output descriptor first, the other calls have it last.
        Action::Transfer if spec.registers().first() == Some(&Role::Fd2) => plan::WRITES | plan::TWO_ENDED,
        Action::Transfer => plan::TWO_ENDED,
        Action::AsyncSubmit | Action::RingEnter => plan::SUBMITS,
        _ => 0,
    }
}

/// Returns whether the call has only a descriptor, a size and an offset, in the same positions as read and
/// pwrite.
fn is_small(roles: &[Role]) -> bool {
    let wanted = [Role::Fd, Role::Skip, Role::Size, Role::Offset];
    let fits = |(at, role): (usize, &Role)| wanted.get(at) == Some(role) || (*role == Role::Skip && at > 0);
    roles.first() == Some(&Role::Fd) && roles.iter().enumerate().all(fits)
}

/// Returns the kind of piece that is copied for an argument with this role.
pub fn piece(role: Role, spec: &CallSpec) -> Piece {
    match role {
        Role::Path | Role::Path2 => Piece::String,
        Role::OffsetPointer | Role::OffsetPointer2 | Role::SeekPointer | Role::HowFlags => Piece::Word,
        Role::CloneFlags if spec.name == "clone3" => Piece::Word,
        Role::Vector => Piece::Vector,
        Role::Message => Piece::Message,
        Role::NewPair => Piece::Pair,
        Role::StatBuffer => Piece::Stat,
        Role::ControlBlocks => Piece::Blocks,
        Role::Completions => Piece::Events,
        Role::Messages => Piece::Messages,
        _ => Piece::None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(name: &str) -> u64 {
        let (number, _) = NUMBERS.iter().find(|(_, other)| *other == name).expect("a call of this machine");
        Plans::of_this_machine().plans[*number as usize]
    }

    #[test]
    fn records_of_data_calls_are_small_and_file_names_are_copied() {
        assert_eq!(plan("read"), plan::RECORDED | plan::SMALL);
        assert_eq!(plan("close"), plan::RECORDED | plan::SMALL);
        assert_eq!(plan("pread64"), plan::RECORDED | plan::SMALL | plan::POSITIONED);
        assert_eq!(
            plan("openat"),
            plan::RECORDED | plan::OPENS | (Piece::String as u64 | 1 << 5) << plan::PIECES
        );
        assert_eq!(plan("exit_group"), plan::RECORDED | plan::EXITS);
        assert_eq!(plan("lseek") & plan::SMALL, 0, "its offset is the second argument");
        assert_eq!(plan("futex"), 0);
        let ends = plan::WRITES | plan::TWO_ENDED | plan::SUBMITS;
        let wanted = [
            ("write", plan::WRITES),
            ("pwritev2", plan::WRITES),
            ("sendfile", plan::WRITES | plan::TWO_ENDED),
            ("copy_file_range", plan::TWO_ENDED),
            ("io_submit", plan::SUBMITS),
            ("read", 0),
        ];
        wanted.iter().for_each(|&(name, bits)| assert_eq!(plan(name) & ends, bits, "{name}"));
    }
}
