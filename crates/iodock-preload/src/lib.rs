//! Recording from inside the program: a preloaded library whose stub the system-call sites of libc and the
//! dynamic linker are made to jump to, the session file that it shares with the recorder, and the reader
//! of what it writes there.
//!
//! The library (native/, C and assembly) needs no other library, uses integer registers only and makes no
//! system call while it records. All that needs thought is done here, ahead of time: which instructions
//! are safe to patch ([`sites`]), what a call's arguments are ([`shapes`]).

pub mod asking;
pub mod cache;
pub mod calls;
mod cursor;
pub mod elf;
mod entries;
pub mod format;
mod items;
pub mod mapping;
mod own;
pub mod reader;
pub mod session;
pub mod shapes;
pub mod sites;
pub mod table;
pub mod texts;
pub mod trampolines;
mod unused;

/// The preloaded library, as a file's bytes; empty on machines it is not written for.
pub static LIBRARY: &[u8] = include_bytes!(env!("IODOCK_PRELOAD_LIBRARY"));

#[cfg(all(test, target_arch = "x86_64", target_os = "linux"))]
mod tests {
    use iced_x86::{Decoder, DecoderOptions, InstructionInfoFactory};

    /// The stub saves no others: whatever compiler it was, it must not have used one.
    #[test]
    fn the_library_uses_integer_registers_only() {
        let elf = crate::elf::parse(super::LIBRARY).expect("an ELF file");
        let mut factory = InstructionInfoFactory::new();
        let mut seen = 0;
        for code in &elf.code {
            for instruction in Decoder::with_ip(64, code.bytes, code.address, DecoderOptions::NONE).iter() {
                seen += 1;
                let info = factory.info(&instruction);
                let vector = info.used_registers().iter().any(|used| {
                    let register = used.register();
                    register.is_vector_register() || register.is_mm() || register.is_st()
                });
                assert!(!vector, "{:x}: {:?}", instruction.ip(), instruction.code());
            }
        }
        assert!(seen > 1000);
    }
}
