//! Derives how each system call of this machine is recorded from the table of calls (`iodock_event::calls`).

use crate::format::{Kind, Role, Shape, CALL_NUMBERS};
use iodock_event::numbers_x86_64::NUMBERS;
use iodock_event::{Action, CallId, Role as Argument};
use std::sync::LazyLock;

/// The calls with codes 1 to 4, in this order.
pub const DATA_CALLS: [&str; 4] = ["read", "write", "pread64", "pwrite64"];

/// Calls that change mappings and are not recorded.
const GUARDED_CALLS: [&str; 5] = ["munmap", "mprotect", "pkey_mprotect", "madvise", "mremap"];

/// Shapes by call number, and call ids by their codes.
pub struct Shapes {
    pub by_number: Vec<Shape>,
    /// Call and shape for each code; code 0 is not used.
    pub by_code: Vec<(CallId, Shape)>,
}

impl Shapes {
    pub fn of_this_machine() -> &'static Shapes {
        static SHAPES: LazyLock<Shapes> = LazyLock::new(Shapes::of_table);
        &SHAPES
    }

    fn of_table() -> Shapes {
        let mut shapes = Shapes {
            by_number: vec![Shape::default(); CALL_NUMBERS],
            by_code: vec![(CallId(0), Shape::default())],
        };
        // The codes of the four data calls are constants in the library, so they come first.
        let first = |name: &str| DATA_CALLS.iter().position(|&data| data == name).unwrap_or(DATA_CALLS.len());
        let mut numbers = NUMBERS.to_vec();
        numbers.sort_by_key(|&(_, name)| first(name));
        for (number, name) in numbers {
            if matches!(name, "prctl" | "seccomp") {
                shapes.by_number[number as usize].kind = Kind::Confine;
                continue;
            }
            if GUARDED_CALLS.contains(&name) {
                shapes.by_number[number as usize].kind = Kind::Guard;
                continue;
            }
            let Some(id) = CallId::intern(name.as_bytes()).filter(|id| id.spec().is_recorded()) else {
                continue;
            };
            let code = shapes.by_code.len() as u8;
            assert!(code < crate::format::HEADS[0], "more calls than codes");
            let shape = Shape { code, ..shape(id, name) };
            shapes.by_number[number as usize] = shape;
            shapes.by_code.push((id, shape));
        }
        shapes
    }
}

fn shape(id: CallId, name: &str) -> Shape {
    let spec = id.spec();
    let mut shape = Shape { kind: kind(spec.action, name), ..Shape::default() };
    for (role, &argument) in shape.roles.iter_mut().zip(spec.registers()) {
        *role = role_of(argument, name);
    }
    shape
}

fn kind(action: Action, name: &str) -> Kind {
    match (action, name) {
        (_, "read" | "write") => Kind::Data,
        (_, "pread64" | "pwrite64") => Kind::Positioned,
        (Action::Fork | Action::Vfork | Action::Clone, _) => Kind::Fork,
        (Action::Exec, _) => Kind::Exec,
        (Action::Exit, _) => Kind::Exit,
        (Action::Map, _) => Kind::Map,
        (Action::Open, _) => Kind::Open,
        _ => Kind::General,
    }
}

fn role_of(argument: Argument, name: &str) -> Role {
    match argument {
        Argument::Fd | Argument::DirFd => Role::Fd,
        Argument::Fd2 | Argument::DirFd2 => Role::Fd2,
        Argument::Path => Role::Path,
        Argument::Path2 => Role::Path2,
        Argument::Size => Role::Size,
        Argument::Vector => Role::Vector,
        Argument::Message => Role::Message,
        Argument::Offset => Role::Offset,
        Argument::OffsetPointer => Role::OffsetPointer,
        Argument::OffsetPointer2 => Role::OffsetPointer2,
        Argument::SeekPointer => Role::SeekPointer,
        Argument::Flags => Role::Flags,
        Argument::HowFlags => Role::PointedFlags,
        Argument::Argument => Role::Argument,
        Argument::NewPair => Role::Pair,
        Argument::StatBuffer if name == "statx" => Role::Statx,
        Argument::StatBuffer => Role::Stat,
        // The library stores the flags of forks itself (native/vfork.c), and the arguments of a program when
        // the program starts.
        Argument::CloneFlags if name == "unshare" => Role::Flags,
        Argument::CloneFlags | Argument::Arguments | Argument::RingFlags | Argument::Skip => Role::None,
        Argument::ControlBlocks => Role::Blocks,
        Argument::Completions => Role::Events,
        Argument::Messages => Role::Messages,
        Argument::Ring => Role::Ring,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_recorded_call_has_a_unique_code() {
        let shapes = Shapes::of_this_machine();
        for (number, shape) in shapes.by_number.iter().enumerate().filter(|(_, s)| s.code > 0) {
            let (id, same) = shapes.by_code[shape.code as usize];
            assert_eq!(same, *shape, "{number} {}", id.name());
        }
        assert_eq!(shapes.by_number[0].kind, Kind::Data);
        assert_eq!(shapes.by_number[17].kind, Kind::Positioned);
        assert_eq!(shapes.by_number[257].roles[..3], [Role::Fd, Role::Path, Role::Flags]);
        assert_eq!(shapes.by_number[202], Shape::default(), "futex is none of ours");
    }
}
