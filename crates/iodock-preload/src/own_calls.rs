//! Finds the system calls that a program or library makes without libc.
//!
//! Only the neighbourhood of each pair of bytes that may be a `syscall` is decoded: all of a browser's code
//! would take seconds. Decoding from a wrong byte synchronises within a few instructions, so most of several
//! starting points agree.

use crate::elf::{self, Elf};
use crate::shapes::Shapes;
use iced_x86::{
    Code as Op, Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic,
    OpAccess, OpKind, Register,
};
use iodock_event::{Action, CallClass};

const SYSCALL: [u8; 2] = [0x0f, 0x05];
/// Start of decoding in bytes before a call, and number of starting points.
const BEFORE: usize = 96;
const BEGINNINGS: usize = 24;
/// How far before a call a register's constant is searched, and how many bytes after a call must be code.
const FAR: usize = 1024;
const FEW: usize = 48;

/// The number of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Number {
    Constant(u32),
    /// Passed by the caller of the function, as in `call(number, ...)`.
    Copied,
    /// Computed, or set far away.
    Unknown,
}

/// The kinds of a file's direct calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OwnCalls {
    /// Some are, or may be, calls that recorders record.
    pub recorded: bool,
    /// Some read, write, or name files, or may do so.
    pub io: bool,
    /// Some submit requests to an io_uring.
    pub rings: bool,
}

impl OwnCalls {
    /// Analyses the code in `file`. An unknown call may be any call.
    pub fn of(file: &[u8]) -> OwnCalls {
        let mut own = OwnCalls::default();
        if let Some(elf) = elf::parse(file) {
            numbers_of(file, &elf).for_each(|number| own.add(number));
        }
        own
    }

    fn add(&mut self, number: Number) {
        let shapes = Shapes::of_this_machine();
        let Number::Constant(number) = number else {
            *self = OwnCalls { recorded: true, io: true, ..*self };
            return;
        };
        let Some(shape) = shapes.by_number.get(number as usize).filter(|shape| shape.code > 0) else {
            return;
        };
        let spec = shapes.by_code[usize::from(shape.code)].0.spec();
        self.recorded = true;
        self.io |= !matches!(spec.class, CallClass::Map | CallClass::Other);
        self.rings |= spec.action == Action::RingEnter;
    }

    pub fn byte(self) -> u8 {
        u8::from(self.recorded) | u8::from(self.io) << 1 | u8::from(self.rings) << 2
    }

    pub fn from_byte(byte: u8) -> OwnCalls {
        OwnCalls { recorded: byte & 1 != 0, io: byte & 2 != 0, rings: byte & 4 != 0 }
    }
}

/// Numbers of all calls that the code makes.
pub fn numbers_of<'a>(file: &'a [u8], elf: &'a Elf<'a>) -> impl Iterator<Item = Number> + 'a {
    // A file without a table of sections has only segments.
    let segments = elf.segments.iter().filter(|_| elf.code.is_empty()).filter_map(|segment| {
        let (from, bytes) = (usize::try_from(segment.offset).ok()?, usize::try_from(segment.bytes).ok()?);
        file.get(from..from.checked_add(bytes)?)
    });
    elf.code.iter().map(|code| code.bytes).chain(segments).flat_map(numbers)
}

/// Numbers of the calls in `code`.
pub fn numbers(code: &[u8]) -> impl Iterator<Item = Number> + '_ {
    memchr::memmem::find_iter(code, &SYSCALL).filter_map(|at| number_at(code, at))
}

/// The number of the call at `at`; `None` if no instruction begins there.
fn number_at(code: &[u8], at: usize) -> Option<Number> {
    let instructions = instructions_before(code, at, BEFORE)?;
    let number = match setter(&instructions, Register::RAX) {
        Some(instruction) => number_of(code, at, instruction),
        None => Number::Unknown,
    };
    // Data tables between code contain such bytes, too: there the surroundings are not valid code.
    let is_code = number != Number::Unknown || (is_sound(&instructions) && is_sound_behind(&code[at..]));
    is_code.then_some(number)
}

/// The instructions before the call, as decoded from most starting points; `None` if most miss it.
fn instructions_before(code: &[u8], at: usize, bytes: usize) -> Option<Vec<Instruction>> {
    let from = at.saturating_sub(bytes);
    let beginnings = from..from + BEGINNINGS.min(at - from + 1);
    let of = beginnings.len();
    let mut ways: Vec<Vec<Instruction>> =
        beginnings.filter_map(|start| way(&code[start..at + 2], start)).collect();
    (ways.len() * 2 > of).then(|| ways.swap_remove(0))
}

/// The instructions from `start` to the call that `code` ends with, without it; `None` if they miss it.
fn way(code: &[u8], start: usize) -> Option<Vec<Instruction>> {
    let mut instructions = Vec::with_capacity(32);
    for instruction in &mut Decoder::with_ip(64, code, start as u64, DecoderOptions::NONE) {
        if instruction.code() == Op::Syscall && instruction.next_ip() == (start + code.len()) as u64 {
            return Some(instructions);
        }
        instructions.push(instruction);
    }
    None
}

/// The last instruction of the block that changes the register.
fn setter(instructions: &[Instruction], register: Register) -> Option<&Instruction> {
    let goes_on = |instruction: &&Instruction| {
        matches!(instruction.flow_control(), FlowControl::Next | FlowControl::ConditionalBranch)
    };
    instructions.iter().rev().take_while(goes_on).find(|instruction| changes(instruction, register))
}

fn changes(instruction: &Instruction, register: Register) -> bool {
    InstructionInfoFactory::new().info(instruction).used_registers().iter().any(|used| {
        used.register().full_register() == register
            && !matches!(used.access(), OpAccess::Read | OpAccess::CondRead)
    })
}

fn number_of(code: &[u8], at: usize, instruction: &Instruction) -> Number {
    if let Some(number) = crate::sites::constant(instruction) {
        return Number::Constant(number);
    }
    if !matches!(instruction.mnemonic(), Mnemonic::Mov | Mnemonic::Movsxd) {
        return Number::Unknown;
    }
    let is_on_stack = matches!(instruction.memory_base(), Register::RSP | Register::RBP);
    match instruction.op1_kind() {
        OpKind::Register => kept_in(code, at, instruction.op1_register().full_register()),
        OpKind::Memory if is_on_stack => Number::Copied,
        _ => Number::Unknown,
    }
}

/// A compiler keeps a number that several calls use in a register, set somewhere before them. (Not in a
/// register for a function's first arguments.)
fn kept_in(code: &[u8], at: usize, register: Register) -> Number {
    let is_argument = matches!(register, Register::RDI | Register::RSI | Register::RDX | Register::RCX);
    let instructions = if is_argument { None } else { instructions_before(code, at, FAR) };
    let instructions = instructions.unwrap_or_default();
    let is_setter = |instruction: &&Instruction| {
        // A system call preserves the registers in which a compiler keeps values across a call.
        instruction.flow_control() == FlowControl::Next
            && changes(instruction, register)
            && instruction.mnemonic() != Mnemonic::Pop
    };
    let set = instructions.iter().rev().find(is_setter).and_then(crate::sites::constant);
    set.map_or(Number::Copied, Number::Constant)
}

/// Whether programs contain such instructions. The bytes in front of a jump may be a table.
fn is_sound(instructions: &[Instruction]) -> bool {
    let goes_on = |instruction: &&Instruction| {
        matches!(
            instruction.flow_control(),
            FlowControl::Next
                | FlowControl::ConditionalBranch
                | FlowControl::Exception
                | FlowControl::Interrupt
        )
    };
    instructions.iter().rev().take_while(goes_on).all(is_of_programs)
}

fn is_sound_behind(code: &[u8]) -> bool {
    let mut decoder = Decoder::new(64, &code[..code.len().min(FEW)], DecoderOptions::NONE);
    let _ = decoder.decode();
    for instruction in &mut decoder {
        // The last one may be cut.
        if instruction.next_ip() as usize + 15 > code.len().min(FEW) {
            break;
        }
        if !is_of_programs(&instruction) {
            return false;
        }
        if !matches!(instruction.flow_control(), FlowControl::Next | FlowControl::ConditionalBranch) {
            break;
        }
    }
    true
}

fn is_of_programs(instruction: &Instruction) -> bool {
    let is_odd = matches!(
        instruction.mnemonic(),
        Mnemonic::Int3
            | Mnemonic::Int
            | Mnemonic::Enter
            | Mnemonic::Xlatb
            | Mnemonic::Cmc
            | Mnemonic::Lahf
            | Mnemonic::Sahf
    );
    !instruction.is_invalid() && !instruction.is_privileged() && !is_odd
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn call_numbers_are_found_in_machine_code() {
        let found = |code: &[u8]| numbers(code).collect::<Vec<Number>>();
        // xor %eax,%eax; mov %rsi,%rdx; syscall
        assert_eq!(found(&[0x31, 0xc0, 0x48, 0x89, 0xf2, 0x0f, 0x05]), [Number::Constant(0)]);
        // mov $257,%eax; xor %ecx,%ecx; syscall
        assert_eq!(found(&[0xb8, 1, 1, 0, 0, 0x31, 0xc9, 0x0f, 0x05]), [Number::Constant(257)]);
        // mov $1,%rax; syscall
        assert_eq!(found(&[0x48, 0xc7, 0xc0, 1, 0, 0, 0, 0x0f, 0x05]), [Number::Constant(1)]);
        // mov $1,%rcx; syscall
        assert_eq!(found(&[0x48, 0xc7, 0xc1, 1, 0, 0, 0, 0x0f, 0x05]), [Number::Unknown]);
        // mov $0,%eax; mov %r9,%rax; syscall; mov 8(%rsp),%rax; mov %rsi,%rdx; syscall
        assert_eq!(found(&[0xb8, 0, 0, 0, 0, 0x4c, 0x89, 0xc8, 0x0f, 0x05]), [Number::Copied]);
        assert_eq!(found(&[0x48, 0x8b, 0x44, 0x24, 8, 0x48, 0x89, 0xf2, 0x0f, 0x05]), [Number::Copied]);
        // movslq %edi,%rax; mov %rsi,%rdi; syscall
        assert_eq!(found(&[0x48, 0x63, 0xc7, 0x48, 0x89, 0xf7, 0x0f, 0x05]), [Number::Copied]);
        // mov $0,%eax; mov %edi,%eax; syscall
        assert_eq!(found(&[0xb8, 0, 0, 0, 0, 0x89, 0xf8, 0x0f, 0x05]), [Number::Copied]);
    }

    #[test]
    fn a_call_number_that_is_set_far_away_is_unknown() {
        let found = |parts: &[&[u8]]| numbers(&parts.concat()).collect::<Vec<Number>>();
        let nops = [0x90; 40];
        // mov $0,%eax; forty instructions; syscall
        assert_eq!(found(&[&[0xb8, 0, 0, 0, 0], &nops, &SYSCALL]), [Number::Constant(0)]);
        // add $1,%eax; syscall. lea 1(%rdi),%eax; syscall. ret; syscall
        assert_eq!(found(&[&nops, &[0x83, 0xc0, 1], &SYSCALL]), [Number::Unknown]);
        assert_eq!(found(&[&nops, &[0x8d, 0x47, 1], &SYSCALL]), [Number::Unknown]);
        assert_eq!(found(&[&nops, &[0xc3], &SYSCALL]), [Number::Unknown]);
    }

    #[test]
    fn bytes_inside_an_instruction_are_not_taken_for_a_call() {
        // mov $0x50f,%eax; call 0x...050f...
        let nops = [0x90; 40];
        assert_eq!(numbers(&[&nops[..], &[0xb8, 0x0f, 0x05, 0, 0], &nops].concat()).count(), 0);
        assert_eq!(numbers(&[&nops[..], &[0xe8, 0, 0x0f, 0x05, 0], &nops].concat()).count(), 0);
    }
}
