//! Adapts the compiled programs to the running kernel: field offsets, maps, constants.

use crate::error::{failed, LoadError};
use crate::kernel::{self, MapShape, TracepointProgram};
use aya_obj::btf::{Btf, BtfFeatures};
use aya_obj::{EbpfSectionKind, Map, Object};
use std::collections::{HashMap, HashSet};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// Wrapper that aligns bytes as the parser requires.
#[repr(C, align(8))]
struct Aligned<T: ?Sized>(T);

static OBJECT: &Aligned<[u8]> = &Aligned(*include_bytes!("../recorder.bpf.o"));

/// Kinds of BTF types that every supported kernel knows. Other kinds are replaced.
const KNOWN_TYPES: BtfFeatures = BtfFeatures::new(true, true, true, false, false, false, false, false);

pub struct Programs {
    object: Object,
    types: OwnedFd,
    maps: HashMap<String, OwnedFd>,
}

const UNPREPARED: &str = "the programs can't be prepared";

impl Programs {
    /// Prepares the programs for loading. `constants` are names and bytes. `sizes` are the names and bytes of
    /// the memory that is shared with the programs.
    pub fn prepare(
        structures: &Btf,
        constants: &[(&str, &[u8])],
        sizes: &[(&str, usize)],
    ) -> Result<Programs, LoadError> {
        let mut object = Object::parse(&OBJECT.0).map_err(|error| failed(UNPREPARED, &error))?;
        let constants = constants.iter().map(|&(name, bytes)| (name, (bytes, true))).collect();
        object.patch_map_data(constants).map_err(|error| failed(UNPREPARED, &error))?;
        let own = object.fixup_and_sanitize_btf(&KNOWN_TYPES).map_err(|error| failed(UNPREPARED, &error))?;
        let own = own.map(Btf::to_bytes).unwrap_or_default();
        let types = kernel::load_types(&own).map_err(|error| failed(UNPREPARED, &error))?;
        object.relocate_btf(structures).map_err(|error| failed(UNPREPARED, &error))?;
        let maps = create_maps(&object, sizes)
            .map_err(|error| failed("there is no room for the buffers", &error))?;
        let sections: HashSet<usize> = object.functions.keys().map(|&(section, _)| section).collect();
        let of_object = std::mem::take(&mut object.maps);
        let with_maps = of_object.iter().map(|(name, map)| {
            (name.as_str(), maps[name.strip_prefix(WHOLE).unwrap_or(name)].as_raw_fd(), map)
        });
        object.relocate_maps(with_maps, &sections).map_err(|error| failed(UNPREPARED, &error))?;
        object.relocate_calls(&sections).map_err(|error| failed(UNPREPARED, &error))?;
        Ok(Programs { object, types, maps })
    }

    /// Returns the shared memory with this name.
    pub fn shared(&self, name: &str) -> Option<BorrowedFd<'_>> {
        self.maps.get(name).map(AsFd::as_fd)
    }

    /// Loads a program into the kernel, for a tracepoint of this type.
    pub fn load(&self, name: &str, tracepoint: u32) -> Result<OwnedFd, LoadError> {
        let program = self.object.programs.get(name);
        let function = program.and_then(|program| self.object.functions.get(&program.function_key()));
        let (Some(program), Some(function)) = (program, function) else {
            return Err(LoadError { what: "the programs are not complete", why: name.into(), errno: None });
        };
        let loaded = kernel::load_program(&TracepointProgram {
            name,
            instructions: function.instructions.as_ptr().cast(),
            count: function.instructions.len(),
            license: &program.license,
            types: self.types.as_fd(),
            functions: &function.func_info.func_info_bytes(),
            function_size: function.func_info_rec_size,
            tracepoint,
        });
        loaded.map_err(|refused| {
            let failed = failed("the kernel does not take the programs", &refused.error);
            // Some failures leave a message of the verifier although it did not finish, such as a lack of
            // descriptors.
            let is_out_of_files = matches!(failed.errno, Some(libc::EMFILE | libc::ENFILE));
            match refused.verdict.is_empty() || is_out_of_files {
                true => failed,
                false => LoadError { why: format!("{name}: {} ({})", refused.verdict, failed.why), ..failed }
                    .by_verifier(),
            }
        })
    }
}

/// Prefix of the names of shared memory that is created as a single element.
const WHOLE: &str = ".bss.";

fn create_maps(object: &Object, sizes: &[(&str, usize)]) -> io::Result<HashMap<String, OwnedFd>> {
    let maps = object.maps.iter().map(|(name, map)| {
        let own = name.strip_prefix(WHOLE).unwrap_or(name);
        let size = sizes.iter().find(|(wanted, _)| *wanted == own).map(|&(_, size)| size);
        Ok((own.to_owned(), create_map(name, map, size)?))
    });
    maps.collect()
}

/// Creates a map. `size` is the number of bytes of shared memory, which is one element or as many elements as
/// fit.
fn create_map(name: &str, map: &Map, size: Option<usize>) -> io::Result<OwnedFd> {
    let is_constant = map.section_kind() == EbpfSectionKind::Rodata;
    let is_whole = name.starts_with(WHOLE);
    let element = map.value_size() as usize;
    let (value_size, entries) = match size {
        Some(size) if is_whole => (size, 1),
        Some(size) => (element, size / element),
        None => (element, map.max_entries() as usize),
    };
    let number = |count: usize| u32::try_from(count).map_err(|_| io::Error::from_raw_os_error(libc::E2BIG));
    let constant = if is_constant { kernel::F_RDONLY_PROG } else { 0 };
    let shape = MapShape {
        kind: map.map_type(),
        key_size: map.key_size(),
        value_size: number(value_size)?,
        entries: number(entries)?,
        flags: map.map_flags() | constant | if is_whole { kernel::F_MMAPABLE } else { 0 },
    };
    // The kernel allows no dots in names of maps.
    let created = kernel::create_map(name.rsplit('.').next().unwrap_or(name), shape)?;
    if is_constant {
        kernel::fill_map(created.as_fd(), map.data())?;
    }
    Ok(created)
}
