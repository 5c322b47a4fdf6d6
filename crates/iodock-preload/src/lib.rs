//! Records calls inside the program. This crate contains the preloaded library, which makes the system-call
//! sites of libc and the dynamic linker jump to its stub; the session file, through which the library passes
//! records to the recorder; and the reader of these records.
//!
//! The library (native/, C and assembly) needs no other library and uses only integer registers. For a
//! frequent call it makes no system call of its own unless a chunk is full. It makes some around fork and
//! exec, in signal handlers, and to check whether memory is readable. Everything that can be decided in
//! advance is decided here: which instructions are safe to patch ([`sites`]), and what a call's arguments
//! mean ([`shapes`]).

pub mod asking;
pub mod cache;
pub mod calls;
mod counts;
mod cursor;
pub mod elf;
mod entries;
pub mod format;
mod items;
pub mod left;
pub mod light;
pub mod local_disk;
pub mod mapping;
mod own;
pub mod own_calls;
mod page;
pub mod reader;
pub mod session;
pub mod shapes;
pub mod sites;
pub mod table;
pub mod texts;
pub mod trampolines;
mod unused;

/// The content of the preloaded library's file; empty on machines other than x86-64.
pub static LIBRARY: &[u8] = include_bytes!(env!("IODOCK_PRELOAD_LIBRARY"));
/// The library for interfaces (interfaces/), which reports calls of MPI-IO, HDF5, NetCDF and PnetCDF to the
/// preloaded library.
pub static INTERFACES_LIBRARY: &[u8] = include_bytes!(env!("IODOCK_INTERFACES_LIBRARY"));
/// The library for interfaces that also reports calls of stdio (interfaces/stdio/).
pub static INTERFACES_STDIO_LIBRARY: &[u8] = include_bytes!(env!("IODOCK_INTERFACES_STDIO_LIBRARY"));

#[cfg(all(test, target_arch = "x86_64", target_os = "linux"))]
mod tests {
    use iced_x86::{Decoder, DecoderOptions, InstructionInfoFactory};
    use iodock_event::interfaces::INTERFACE_CALLS;
    use std::io::Write;
    use std::process::{Command, Stdio};

    /// The stub saves no vector registers, so the compiler must not use them in the library.
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

    /// A call's number in records is its index in the list in C and in the list in Rust.
    #[test]
    fn interface_calls_have_the_same_numbers_in_c_and_rust() {
        const ASKED: &str = "#define NAMED(name, ...) =name
            #include \"calls.h\"
            #include \"layers.h\"
            EACH_CALL(NAMED, NAMED, NAMED, NAMED, NAMED, NAMED, NAMED)
            EACH_OF_HDF5(NAMED, NAMED, NAMED, NAMED, NAMED, NAMED, NAMED, NAMED, NAMED, NAMED)
            EACH_OF_NETCDF(NAMED, NAMED, NAMED, NAMED, NAMED, NAMED, NAMED, NAMED)
            EACH_OF_PNETCDF(NAMED)
            #include \"stdio/calls.h\"
            EACH_OF_STDIO(NAMED, NAMED)";
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/interfaces");
        let mut compiler = Command::new("cc");
        let mut compiler = compiler
            .args(["-E", "-P", "-x", "c", "-I", folder, "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a C compiler");
        compiler.stdin.take().expect("piped").write_all(ASKED.as_bytes()).expect("it reads");
        let listed = compiler.wait_with_output().expect("it ends").stdout;
        let listed = String::from_utf8(listed).expect("names");
        let listed = listed
            .split_whitespace()
            .filter_map(|word| word.strip_prefix('='))
            .filter(|name| !name.is_empty());
        let known = INTERFACE_CALLS.map(|call| call.name);
        assert_eq!(listed.collect::<Vec<_>>(), known);
    }

    fn number(at: usize, bytes: usize) -> usize {
        super::LIBRARY[at..at + bytes].iter().rev().fold(0, |sum, &byte| sum << 8 | usize::from(byte))
    }

    /// Returns address, end and name of each variable in sections without file content (.bss).
    fn zeros() -> Vec<(usize, usize, String)> {
        const NO_BITS: usize = 8;
        const SYMBOLS: usize = 2;
        const SYMBOL_BYTES: usize = 24;
        let sections: Vec<usize> = (0..number(60, 2)).map(|index| number(40, 8) + index * 64).collect();
        let kind = |section: usize| number(section + 4, 4);
        let from = |section: usize| number(section + 24, 8);
        let table = *sections.iter().find(|&&section| kind(section) == SYMBOLS).expect("symbols");
        let names = from(sections[number(table + 40, 4)]);
        let all = (from(table)..from(table) + number(table + 32, 8)).step_by(SYMBOL_BYTES);
        let is_zeros = |at: &usize| {
            let (section, is_object) = (sections.get(number(at + 6, 2)), number(at + 4, 1) & 15 == 1);
            is_object && section.is_some_and(|&section| kind(section) == NO_BITS)
        };
        let told = |at: usize| {
            let start = names + number(at, 4);
            let name = super::LIBRARY[start..].iter().take_while(|&&byte| byte != 0);
            let address = number(at + 8, 8);
            (address, address + number(at + 16, 8), name.map(|&byte| char::from(byte)).collect())
        };
        all.filter(is_zeros).map(told).collect()
    }

    /// Each page that a process writes costs time, so rarely used variables must come after the others.
    #[test]
    fn data_that_every_process_writes_shares_pages() {
        let zeros = zeros();
        let (rare, others): (Vec<_>, Vec<_>) =
            zeros.iter().partition(|(_, _, name)| ["rings", "library_path"].contains(&name.as_str()));
        assert!(rare.len() == 2 && others.len() > 5);
        let from = rare.iter().map(|(start, _, _)| *start).min().expect("some");
        assert!(others.iter().all(|(_, end, _)| *end <= from), "{zeros:x?}");
        let first = others.iter().map(|(start, _, _)| *start).min().expect("some");
        assert!(from - first < 1024, "{zeros:x?}");
    }
}
