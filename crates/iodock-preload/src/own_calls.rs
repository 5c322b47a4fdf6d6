//! Finds the system calls that a program or library makes without libc.
//!
//! Only the neighbourhood of each pair of bytes that may be a `syscall` is decoded, because all of a
//! browser's code would take seconds. Decoding that starts inside an instruction meets the real instructions
//! after a few steps, so most of several starting points lead to the same result.

use crate::elf::{self, Elf};
use crate::shapes::Shapes;
use iced_x86::{
    Code as Op, Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic,
    OpAccess, OpKind, Register,
};
use iodock_event::{Action, CallClass};

const SYSCALL: [u8; 2] = [0x0f, 0x05];
/// Distance in bytes from the first starting point to the call, and number of starting points.
const BEFORE: usize = 96;
const BEGINNINGS: usize = 24;
/// Number of bytes before a call in which a register's constant is searched, and number of bytes after a call
/// that must be code.
const FAR: usize = 1024;
const FEW: usize = 48;

/// The number of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Number {
    Constant(u32),
    /// The function's caller passes the number, as in `call(number, ...)`.
    Copied,
    /// The number is computed, or set far away.
    Unknown,
}

/// The kinds of system calls that a file makes without libc.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OwnCalls {
    /// Whether some are, or may be, calls that iodock records.
    pub recorded: bool,
    /// Whether some read, write or name files, or may do so.
    pub io: bool,
    /// Whether some submit requests to an io_uring.
    pub rings: bool,
}

impl OwnCalls {
    /// Analyses the code in `file`. A call with an unknown number counts as one that may be recorded.
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

/// Returns the numbers of all calls that the code in a file makes.
pub fn numbers_of<'a>(file: &'a [u8], elf: &'a Elf<'a>) -> impl Iterator<Item = Number> + 'a {
    // Without a table of sections, the code in the segments is searched.
    let segments = elf.segments.iter().filter(|_| elf.code.is_empty()).filter_map(|segment| {
        let (from, bytes) = (usize::try_from(segment.offset).ok()?, usize::try_from(segment.bytes).ok()?);
        file.get(from..from.checked_add(bytes)?)
    });
    elf.code.iter().map(|code| code.bytes).chain(segments).flat_map(numbers)
}

/// Returns the numbers of the calls in `code`.
pub fn numbers(code: &[u8]) -> impl Iterator<Item = Number> + '_ {
    memchr::memmem::find_iter(code, &SYSCALL).filter_map(|at| number_at(code, at))
}

/// Returns the number of the call at `at`; `None` if the bytes there are not an instruction.
fn number_at(code: &[u8], at: usize) -> Option<Number> {
    let instructions = instructions_before(code, at, BEFORE)?;
    let number = match setter(&instructions, Register::RAX) {
        Some(instruction) => number_of(code, at, instruction),
        None => Number::Unknown,
    };
    // Data tables between code may contain the same bytes. The bytes around these are no valid code.
    let is_code = number != Number::Unknown || (is_sound(&instructions) && is_sound_behind(&code[at..]));
    is_code.then_some(number)
}

/// Decodes the instructions before the call. Returns `None` if decoding from most starting points misses the
/// call.
fn instructions_before(code: &[u8], at: usize, bytes: usize) -> Option<Vec<Instruction>> {
    let from = at.saturating_sub(bytes);
    let beginnings = from..from + BEGINNINGS.min(at - from + 1);
    let of = beginnings.len();
    let mut ways: Vec<Vec<Instruction>> =
        beginnings.filter_map(|start| way(&code[start..at + 2], start)).collect();
    (ways.len() * 2 > of).then(|| ways.swap_remove(0))
}

/// Decodes the instructions from `start` to the call at the end of `code`; `None` if they miss the call.
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

/// Returns the last instruction of the block that changes the register.
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

/// Searches for the constant in a register. If several calls use a number, compilers keep it in a register
/// that is set somewhere before them; but not in a register for the first arguments of functions.
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

/// Whether compilers generate such instructions. Bytes before a jump are not checked, because they may be a
/// table.
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
        // The last instruction may be incomplete.
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
