//! Determines which `syscall` instructions of a library can be replaced by a jump to our stub, and how.
//!
//! The jump has five bytes, `syscall` has two. So the instructions before it (usually `mov $number,%eax`), or
//! after it if those are unsuitable, are moved to the site's trampoline. That is safe only if they have the
//! same effect there, and if no code jumps between them. Doubtful sites are not patched, but counted.

use crate::elf::{self, Code};
use crate::format::{Kind, Shape, SITE_CODE};
use iced_x86::{Code as Op, Decoder, DecoderOptions, FlowControl, Instruction, OpKind, Register};
use std::collections::HashSet;

const JUMP_BYTES: u64 = 5;
/// Number of instructions that are searched backwards for the call's number, and forwards for uses of the
/// flags.
const REACH: usize = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum SiteKind {
    /// The stub makes the call.
    Plain = 0,
    /// The trampoline makes the call, and calls the stub before and after it.
    Around = 1,
    /// The call may unmap our memory, so the stub checks it first.
    Guarded = 2,
}

#[derive(Clone, Debug)]
pub struct Site {
    pub patch: u32,
    pub after: u32,
    pub patch_bytes: u8,
    pub before: Vec<u8>,
    pub behind: Vec<u8>,
    pub kind: SiteKind,
    /// The call's number; `None` if it is known only at run time.
    pub number: Option<u32>,
}

/// The reason why a site is not patched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Left {
    /// Some code jumps to an address inside the bytes that the jump to the stub would replace.
    JumpInside,
    /// The instructions would have another effect at another address.
    NotMovable,
    /// Instructions after the call use the processor's flags, which the stub changes.
    FlagsUsed,
}

#[derive(Debug, Default)]
pub struct Module {
    pub build_id: Vec<u8>,
    pub sites: Vec<Site>,
    pub left: Vec<(u64, Left)>,
    /// Number of `syscall` instructions whose calls are not recorded.
    pub ignored: usize,
}

/// Finds the sites of the library in `file`; `None` if it is not a library, has no build id, or no sites.
pub fn find(file: &[u8], shapes: &[Shape]) -> Option<Module> {
    let elf = elf::parse(file)?;
    let mut module = Module { build_id: elf.build_id.to_vec(), ..Module::default() };
    for code in &elf.code {
        // Most code contains no `syscall`, and a search for its two bytes is faster than decoding.
        if code.bytes.windows(2).any(|pair| pair == [0x0f, 0x05]) {
            search(code, shapes, &mut module);
        }
    }
    let found = !module.build_id.is_empty() && module.build_id.len() <= 32;
    (found && module.sites.len() + module.left.len() > 0).then_some(module)
}

struct Text<'a> {
    code: &'a Code<'a>,
    instructions: Vec<Instruction>,
    targets: HashSet<u64>,
}

fn search(code: &Code, shapes: &[Shape], module: &mut Module) {
    let mut decoder = Decoder::with_ip(64, code.bytes, code.address, DecoderOptions::NONE);
    let mut text = Text { code, instructions: Vec::new(), targets: HashSet::new() };
    let mut calls = Vec::new();
    for instruction in &mut decoder {
        if matches!(
            instruction.op0_kind(),
            OpKind::NearBranch16 | OpKind::NearBranch32 | OpKind::NearBranch64
        ) {
            text.targets.insert(instruction.near_branch_target());
        }
        // An address that some instruction computes may be the target of a jump. Jump tables are not read:
        // their targets begin a statement, while moved instructions are in the middle of one. None of the 112
        // jump tables in Debian 12's libc leads to a moved instruction.
        if instruction.is_ip_rel_memory_operand() {
            text.targets.insert(instruction.ip_rel_memory_address());
        }
        if instruction.code() == Op::Syscall {
            calls.push(text.instructions.len());
        }
        text.instructions.push(instruction);
    }
    for index in calls {
        let number = text.number(index);
        let shape = number.and_then(|number| shapes.get(number as usize));
        if number.is_some() && shape.is_none_or(|shape| shape.kind == Kind::Ignored) {
            module.ignored += 1;
            continue;
        }
        let kind = match shape.map(|shape| shape.kind) {
            None | Some(Kind::Fork | Kind::Exec | Kind::Exit | Kind::Confine) => SiteKind::Around,
            Some(Kind::Map | Kind::Guard) => SiteKind::Guarded,
            _ => SiteKind::Plain,
        };
        match text.site(index, kind, number) {
            Ok(site) => module.sites.push(site),
            Err(why) => module.left.push((text.instructions[index].ip(), why)),
        }
    }
}

impl Text<'_> {
    /// Returns the number of the call at `index` if a constant sets it and no jump leads between the two.
    fn number(&self, index: usize) -> Option<u32> {
        for at in (index.saturating_sub(REACH)..index).rev() {
            if self.targets.contains(&self.instructions[at + 1].ip()) {
                return None;
            }
            let instruction = &self.instructions[at];
            if instruction.flow_control() != FlowControl::Next
                && instruction.flow_control() != FlowControl::ConditionalBranch
            {
                return None;
            }
            if instruction.op_count() > 0 && full(instruction.op0_register()) == Register::RAX {
                return constant(instruction);
            }
        }
        None
    }

    fn site(&self, index: usize, kind: SiteKind, number: Option<u32>) -> Result<Site, Left> {
        let call = &self.instructions[index];
        if self.flags_used(index + 1) {
            return Err(Left::FlagsUsed);
        }
        let mut why = Left::NotMovable;
        for before in 0..=3usize.min(index) {
            let first = index - before;
            if before > 0 && !is_movable(&self.instructions[first]) {
                break;
            }
            match self.range(first, index) {
                Ok(last) => {
                    let start = self.instructions[first].ip();
                    let end = self.instructions[last].next_ip();
                    let before = self.bytes(start, call.ip());
                    let behind = self.bytes(call.next_ip(), end);
                    if before.len() + behind.len() > SITE_CODE {
                        return Err(Left::NotMovable);
                    }
                    return Ok(Site {
                        patch: start as u32,
                        after: call.next_ip() as u32,
                        patch_bytes: (end - start) as u8,
                        before,
                        behind,
                        kind,
                        number,
                    });
                }
                Err(reason) => why = reason,
            }
        }
        Err(why)
    }

    /// Returns the index of the last instruction to replace if the jump begins at instruction `first`; at
    /// least `call`.
    fn range(&self, first: usize, call: usize) -> Result<usize, Left> {
        let start = self.instructions[first].ip();
        let mut last = call;
        // Instructions after the call are moved only if there are no suitable ones before it.
        if self.instructions[call].next_ip() - start < JUMP_BYTES {
            let in_front = call > 0 && is_movable(&self.instructions[call - 1]);
            if in_front
                && call - first < 3
                && !self.targets.contains(&self.instructions[first].ip())
                && first > 0
                && is_movable(&self.instructions[first - 1])
            {
                return Err(Left::NotMovable);
            }
        }
        while self.instructions[last].next_ip() - start < JUMP_BYTES {
            last += 1;
            if last >= self.instructions.len() || !is_movable(&self.instructions[last]) {
                return Err(Left::NotMovable);
            }
        }
        let inside = (start + 1..start + JUMP_BYTES).any(|address| self.targets.contains(&address));
        if inside {
            Err(Left::JumpInside)
        } else {
            Ok(last)
        }
    }

    fn bytes(&self, from: u64, to: u64) -> Vec<u8> {
        self.code.bytes[(from - self.code.address) as usize..(to - self.code.address) as usize].to_vec()
    }

    /// Whether the code from `index` on may read an arithmetic flag before it is written again.
    fn flags_used(&self, index: usize) -> bool {
        const ARITHMETIC: u32 = 0x3f;
        let mut live = ARITHMETIC;
        for instruction in self.instructions.iter().skip(index).take(REACH) {
            if instruction.rflags_read() & live != 0 {
                return true;
            }
            live &= !instruction.rflags_modified();
            let ends =
                !matches!(instruction.flow_control(), FlowControl::Next | FlowControl::ConditionalBranch);
            if live == 0 || (ends && instruction.flow_control() != FlowControl::UnconditionalBranch) {
                return false;
            }
            if instruction.flow_control() == FlowControl::UnconditionalBranch {
                // Compilers do not keep flags across the asm statement of a call. A use of the flags would be
                // in the same block, before this jump.
                return false;
            }
        }
        false
    }
}

fn full(register: Register) -> Register {
    register.full_register()
}

pub(crate) fn constant(instruction: &Instruction) -> Option<u32> {
    match instruction.code() {
        Op::Mov_r32_imm32 | Op::Mov_rm32_imm32 | Op::Mov_rm64_imm32 => Some(instruction.immediate32()),
        Op::Xor_r32_rm32 | Op::Xor_rm32_r32 if instruction.op0_register() == instruction.op1_register() => {
            Some(0)
        }
        _ => None,
    }
}

/// Whether the instruction has the same effect at another address, and does not change the stack pointer.
fn is_movable(instruction: &Instruction) -> bool {
    instruction.flow_control() == FlowControl::Next
        && !instruction.is_ip_rel_memory_operand()
        && !instruction.is_stack_instruction()
        && (instruction.op_count() == 0 || full(instruction.op0_register()) != Register::RSP)
        && instruction.code() != Op::Syscall
        && instruction.code() != Op::Endbr64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shapes::Shapes;

    const COMPARE_AND_RETURN: [u8; 7] = [0x48, 0x3d, 0x00, 0xf0, 0xff, 0xff, 0xc3];

    fn found(parts: &[&[u8]]) -> Module {
        let bytes = parts.concat();
        let mut module = Module::default();
        search(&Code { address: 0x1000, bytes: &bytes }, &Shapes::of_this_machine().by_number, &mut module);
        module
    }

    #[test]
    fn the_instruction_with_the_call_number_makes_room_for_the_jump() {
        // mov $1,%eax; syscall
        let module = found(&[&[0xb8, 1, 0, 0, 0, 0x0f, 0x05], &COMPARE_AND_RETURN]);
        let site = &module.sites[0];
        assert_eq!((site.patch, site.after, site.patch_bytes), (0x1000, 0x1007, 7));
        assert_eq!((site.number, site.kind), (Some(1), SiteKind::Plain));
        assert_eq!((site.before.as_slice(), site.behind.len()), (&[0xb8, 1, 0, 0, 0][..], 0));
    }

    #[test]
    fn a_short_site_also_replaces_the_following_instructions() {
        // ret; xor %eax,%eax; syscall; cmp
        let module = found(&[&[0xc3, 0x31, 0xc0, 0x0f, 0x05], &COMPARE_AND_RETURN]);
        let site = &module.sites[0];
        let moved = site.before.len() + site.behind.len() + 2;
        assert_eq!(site.number, Some(0));
        assert_eq!(moved, site.patch_bytes as usize);
        assert!(site.patch_bytes >= 5 && site.behind.starts_with(&[0x48, 0x3d]));
    }

    #[test]
    fn a_site_with_a_jump_target_inside_is_not_patched() {
        // xor %eax,%eax; syscall; cmp; jmp to the cmp
        let compare = &COMPARE_AND_RETURN[..6];
        let module = found(&[&[0xc3, 0x31, 0xc0, 0x0f, 0x05], compare, &[0xeb, 0xf8]]);
        assert!(module.sites.is_empty());
        assert_eq!(module.left, [(0x1003, Left::JumpInside)]);
    }

    #[test]
    fn position_dependent_instructions_are_not_moved() {
        // lea 0(%rip),%rdi; syscall; jmp
        let module = found(&[&[0xc3, 0x48, 0x8d, 0x3d, 0, 0, 0, 0, 0x0f, 0x05, 0xeb, 0x00, 0xc3]]);
        assert!(module.sites.is_empty() && module.left.len() == 1);
        // mov $0,%eax; syscall; jb: the flags are used.
        let module = found(&[&[0xb8, 0, 0, 0, 0, 0x0f, 0x05, 0x72, 0x00, 0xc3]]);
        assert_eq!(module.left, [(0x1005, Left::FlagsUsed)]);
    }

    #[test]
    fn only_sites_of_recorded_and_unknown_calls_are_patched() {
        // mov $202,%eax (futex); syscall
        let module = found(&[&[0xb8, 202, 0, 0, 0, 0x0f, 0x05], &COMPARE_AND_RETURN]);
        assert_eq!((module.sites.len(), module.left.len(), module.ignored), (0, 0, 1));
        // mov %rdi,%rax; mov 8(%rsp),%r9; syscall: as in syscall(3)
        let module =
            found(&[&[0x48, 0x89, 0xf8, 0x4c, 0x8b, 0x4c, 0x24, 8, 0x0f, 0x05], &COMPARE_AND_RETURN]);
        assert_eq!((module.sites[0].number, module.sites[0].kind), (None, SiteKind::Around));
    }
}
