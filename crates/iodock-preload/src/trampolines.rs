//! Creates trampolines. The jump at a patched site leads to a trampoline, which executes the overwritten
//! instructions and calls the stub.
//!
//! A module's trampolines are at a fixed distance from the module. So the trampolines, and the module's text
//! with its jumps, consist of the same bytes in every process: they are created here once, and each process
//! maps them. If the address is already used in a process, the trampolines are mapped elsewhere, and their
//! references to the module are corrected ([`Table::moved`]).

use crate::elf::Elf;
use crate::format::{DISTANCE, SITE_CODE};
use crate::sites::{Module, Site, SiteKind};
use crate::table::{Patch, Table};

const PAGE: u64 = 4096;
/// Offsets of the addresses of the stub's entries (`iodock_plain`, `iodock_before`, `iodock_after`,
/// `iodock_guarded`), which precede the trampolines.
const PLAIN: usize = 0;
const BEFORE: usize = 8;
const AFTER: usize = 16;
const GUARDED: usize = 24;
const ENTRIES: usize = 32;
const JUMP_BYTES: u64 = 5;

/// The position of a module's code segment, in whole pages.
pub struct Text {
    /// Offset from the load address.
    pub from: u32,
    pub bytes: u32,
    /// Offset in the module's file.
    pub offset: u64,
}

#[derive(Default)]
struct Assembler {
    code: Vec<u8>,
    moved: Vec<u32>,
}

impl Assembler {
    /// Appends a relative reference (four bytes) to an address in the module.
    fn reach(&mut self, target: u32) {
        let at = self.code.len();
        let distance = i64::from(target) + DISTANCE as i64 - (at as i64 + 4);
        self.moved.push(at as u32);
        self.code.extend((distance as i32).to_le_bytes());
    }

    /// Appends a call of the stub: lea RETURN(%rip),%rcx; lea AFTER(%rip),%r11; jmp *ENTRY(%rip). RETURN is
    /// the address after these instructions, AFTER the address after the original `syscall`.
    fn visit(&mut self, site: &Site, entry: usize) {
        self.code.extend([0x48, 0x8d, 0x0d, 13, 0, 0, 0]);
        self.code.extend([0x4c, 0x8d, 0x1d]);
        self.reach(site.after);
        self.code.extend([0xff, 0x25]);
        let behind = self.code.len() as i32 + 4;
        self.code.extend((entry as i32 - behind).to_le_bytes());
    }

    fn trampoline(&mut self, site: &Site) {
        debug_assert!(site.before.len() + site.behind.len() <= SITE_CODE);
        self.code.extend(&site.before);
        match site.kind {
            SiteKind::Plain => self.visit(site, PLAIN),
            SiteKind::Guarded => self.visit(site, GUARDED),
            SiteKind::Around => {
                self.visit(site, BEFORE);
                self.code.extend([0x0f, 0x05]);
                self.visit(site, AFTER);
            }
        }
        self.code.extend(&site.behind);
        self.code.push(0xe9);
        self.reach(site.patch + u32::from(site.patch_bytes));
    }
}

/// Creates the trampolines of all sites.
pub fn assemble(module: &Module) -> Table {
    let mut sites: Vec<&Site> = module.sites.iter().collect();
    sites.sort_by_key(|site| site.patch);
    let mut assembler = Assembler { code: vec![0; ENTRIES], moved: Vec::new() };
    let patch = |site: &Site| {
        let trampoline = assembler.code.len() as u32;
        assembler.trampoline(site);
        Patch { at: site.patch, trampoline }
    };
    let sites = sites.into_iter().map(patch).collect();
    Table {
        build_id: module.build_id.clone(),
        left: module.left.len() as u32,
        sites,
        moved: assembler.moved,
        trampolines: assembler.code,
    }
}

/// Returns the position of the segment that contains all sites; `None` if they are not in one segment. The
/// whole segment is replaced, because replacing a part of a mapping takes longer.
pub fn text(elf: &Elf, table: &Table) -> Option<Text> {
    let (first, last) = (u64::from(table.sites.first()?.at), u64::from(table.sites.last()?.at));
    let segment = elf
        .segments
        .iter()
        .find(|segment| segment.address <= first && last + JUMP_BYTES <= segment.address + segment.bytes)?;
    let from = segment.address & !(PAGE - 1);
    let end = (segment.address + segment.bytes).next_multiple_of(PAGE);
    // Each page of the segment is mapped from a page of the file, even if the segment does not fill it.
    let offset = (segment.offset + from).checked_sub(segment.address)?;
    (offset % PAGE == 0).then_some(Text { from: from as u32, bytes: (end - from) as u32, offset })
}

impl Text {
    /// Returns the content of the whole segment from `file`, with jumps to the trampolines.
    pub fn image(&self, file: &[u8], table: &Table) -> Vec<u8> {
        let from = (self.offset as usize).min(file.len());
        let mut image = file[from..file.len().min(from + self.bytes as usize)].to_vec();
        image.resize(self.bytes as usize, 0);
        for site in &table.sites {
            let behind = i64::from(site.at) + JUMP_BYTES as i64;
            let distance = i64::from(site.trampoline) - DISTANCE as i64 - behind;
            let at = (site.at - self.from) as usize;
            image[at] = 0xe9;
            image[at + 1..at + JUMP_BYTES as usize].copy_from_slice(&(distance as i32).to_le_bytes());
        }
        image
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Code, Decoder, DecoderOptions, Instruction};

    fn site(kind: SiteKind) -> Site {
        // mov $1,%eax; syscall; cmp $-4096,%rax
        let before = vec![0xb8, 1, 0, 0, 0];
        let behind = vec![0x48, 0x3d, 0, 0xf0, 0xff, 0xff];
        Site { patch: 0x2010, after: 0x2017, patch_bytes: 13, before, behind, kind, number: Some(1) }
    }

    fn decoded(table: &Table) -> Vec<Instruction> {
        let from = 0u64.wrapping_sub(DISTANCE) + ENTRIES as u64;
        Decoder::with_ip(64, &table.trampolines[ENTRIES..], from, DecoderOptions::NONE).iter().collect()
    }

    #[test]
    fn a_trampoline_runs_the_replaced_instructions_and_returns() {
        let module = Module { sites: vec![site(SiteKind::Plain)], ..Module::default() };
        let table = assemble(&module);
        let code = decoded(&table);
        let ops: Vec<Code> = code.iter().map(Instruction::code).collect();
        assert_eq!(ops[0], Code::Mov_r32_imm32);
        assert_eq!(code[1].ip_rel_memory_address(), code[3].next_ip(), "it comes back behind the visit");
        assert_eq!(code[2].ip_rel_memory_address(), 0x2017, "the address behind the call");
        let entry = code[3].ip_rel_memory_address().wrapping_add(DISTANCE);
        assert_eq!((ops[3], entry), (Code::Jmp_rm64, PLAIN as u64));
        assert_eq!(ops[4], Code::Cmp_RAX_imm32);
        assert_eq!(code[5].near_branch_target(), 0x2010 + 13);
        assert_eq!(code.len(), 6);
    }

    #[test]
    fn a_call_that_may_not_return_is_made_in_the_trampoline() {
        let module = Module { sites: vec![site(SiteKind::Around)], ..Module::default() };
        let table = assemble(&module);
        let code = decoded(&table);
        assert_eq!(code[4].code(), Code::Syscall);
        assert_eq!(code[1].ip_rel_memory_address(), code[4].ip());
        assert_eq!(table.moved.len(), 3, "two visits say where the call is, and there is the jump back");
    }

    #[test]
    fn the_patched_code_jumps_to_the_trampolines() {
        let module = Module { sites: vec![site(SiteKind::Plain)], ..Module::default() };
        let table = assemble(&module);
        let file: Vec<u8> = (0..0x4000u32).map(|at| (at >> 4) as u8).collect();
        let segment = crate::elf::Segment { offset: 0x1800, address: 0x1800, bytes: 0x900 };
        let elf = Elf { segments: vec![segment], ..Elf::default() };
        let text = text(&elf, &table).expect("one segment");
        assert_eq!((text.from, text.bytes, text.offset), (0x1000, 0x2000, 0x1000));
        let image = text.image(&file, &table);
        let jump = Decoder::with_ip(64, &image[0x1010..], 0x2010, DecoderOptions::NONE).decode();
        let target = jump.near_branch_target().wrapping_add(DISTANCE);
        assert_eq!(target, u64::from(table.sites[0].trampoline));
        assert_eq!((&image[..0x1010], &image[0x1015..]), (&file[0x1000..0x2010], &file[0x2015..0x3000]));
    }

    #[test]
    fn the_last_page_is_filled_with_zeros() {
        let table = assemble(&Module { sites: vec![site(SiteKind::Plain)], ..Module::default() });
        let file = vec![0x90; 0x2800];
        let segment = crate::elf::Segment { offset: 0x1000, address: 0x1000, bytes: 0x1800 };
        let elf = Elf { segments: vec![segment], ..Elf::default() };
        let image = text(&elf, &table).expect("one segment").image(&file, &table);
        assert_eq!((image.len(), image[0x17ff]), (0x2000, 0x90));
        assert_eq!(image[0x1800..], [0; 0x800]);
    }
}
