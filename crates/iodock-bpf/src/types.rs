//! Extracts the part of the kernel's types that the programs need. The kernel describes some 150,000 types in
//! 5 MB (BTF, linux/btf.h); passing all of them to the loader takes longer than everything else. So this
//! module scans them once, builds a small description of the structures whose fields the programs read, and
//! finds the tracepoints' types.

use std::collections::HashMap;

const HEADER_BYTES: usize = 24;
const MAGIC: u16 = 0xEB9F;

/// Numbers of the kinds of BTF types.
mod kind {
    pub const INT: u32 = 1;
    pub const PTR: u32 = 2;
    pub const ARRAY: u32 = 3;
    pub const STRUCT: u32 = 4;
    pub const UNION: u32 = 5;
    pub const ENUM: u32 = 6;
    pub const TYPEDEF: u32 = 8;
    pub const VOLATILE: u32 = 9;
    pub const CONST: u32 = 10;
    pub const RESTRICT: u32 = 11;
    pub const FUNC_PROTO: u32 = 13;
    pub const VAR: u32 = 14;
    pub const DATASEC: u32 = 15;
    pub const FLOAT: u32 = 16;
    pub const DECL_TAG: u32 = 17;
    pub const TYPE_TAG: u32 = 18;
    pub const ENUM64: u32 = 19;
}

/// A type in the kernel's description.
#[derive(Clone, Copy)]
struct Type<'a> {
    name: u32,
    info: u32,
    /// Size in bytes, or the number of another type, depending on the kind.
    size: u32,
    more: &'a [u8],
}

impl Type<'_> {
    fn kind(&self) -> u32 {
        self.info >> 24 & 31
    }
}

/// All types of the kernel, which have consecutive numbers.
struct Types<'a> {
    bytes: &'a [u8],
    /// Offset of each type in `bytes`. Type 0 is void, which has no description.
    starts: Vec<u32>,
    /// Numbers of the types that are searched by name, about a seventh of all.
    sought: Vec<u32>,
    strings: &'a [u8],
}

fn half(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

/// Returns the length of a type's description after its first twelve bytes.
fn length(kind: u32, count: usize) -> Option<usize> {
    Some(match kind {
        kind::INT | kind::VAR | kind::DECL_TAG => 4,
        kind::ARRAY => 12,
        kind::STRUCT | kind::UNION | kind::DATASEC | kind::ENUM64 => 12 * count,
        kind::ENUM | kind::FUNC_PROTO => 8 * count,
        kind::PTR..=kind::FLOAT | kind::TYPE_TAG => 0,
        _ => return None,
    })
}

/// Returns the type whose description begins at `at`.
fn type_at(bytes: &[u8], at: usize) -> Option<Type<'_>> {
    let (name, info, size) = (half(bytes, at)?, half(bytes, at.checked_add(4)?)?, half(bytes, at + 8)?);
    let more = length(info >> 24 & 31, (info & 0xffff) as usize)?;
    Some(Type { name, info, size, more: bytes.get(at + 12..at + 12 + more)? })
}

impl<'a> Types<'a> {
    fn read(btf: &'a [u8]) -> Option<Types<'a>> {
        let header = half(btf, 4)? as usize;
        let part = |at: usize| {
            let start = header + half(btf, at)? as usize;
            btf.get(start..start + half(btf, at + 4)? as usize)
        };
        let (bytes, strings) = (part(8)?, part(16)?);
        if u16::from_le_bytes(btf.get(..2)?.try_into().ok()?) != MAGIC {
            return None;
        }
        let mut starts = Vec::with_capacity(bytes.len() / 16);
        starts.push(u32::MAX);
        let (mut sought, mut at) = (Vec::new(), 0);
        while at < bytes.len() {
            let of = type_at(bytes, at)?;
            if matches!(of.kind(), kind::STRUCT | kind::ENUM | kind::TYPEDEF) {
                sought.push(starts.len() as u32);
            }
            starts.push(at as u32);
            at += 12 + of.more.len();
        }
        Some(Types { bytes, starts, sought, strings })
    }

    fn get(&self, number: usize) -> Option<Type<'a>> {
        type_at(self.bytes, *self.starts.get(number)? as usize)
    }

    /// Returns whether the name at offset `at` in the strings is `name`.
    fn is_named(&self, at: u32, name: &str) -> bool {
        let rest = self.strings.get(at as usize..).unwrap_or(&[]);
        // The first comparison is fast, because most names differ in the first byte or in length.
        rest.first() == name.as_bytes().first()
            && rest.get(name.len()) == Some(&0)
            && rest.starts_with(name.as_bytes())
    }

    /// Finds structures, enumerations or typedefs by name.
    fn find(&self, kind: u32, names: &[&'static str]) -> Vec<(&'static str, usize)> {
        let numbers = self.sought.iter().map(|&number| number as usize);
        let all = numbers.filter_map(|number| Some((number, self.get(number)?)));
        let of_kind = all.filter(|(_, of)| of.kind() == kind);
        let named = of_kind.filter_map(|(number, of)| {
            names.iter().find(|name| self.is_named(of.name, name)).map(|name| (*name, number))
        });
        named.collect()
    }

    /// Returns the number of arguments of a function pointer type, not counting the first, which is private
    /// data of the tracepoint.
    fn arguments(&self, typedef: usize) -> Option<usize> {
        let pointer = self.get(self.get(typedef)?.size as usize)?;
        let function = self.get(pointer.size as usize)?;
        (function.kind() == kind::FUNC_PROTO).then(|| (function.info as usize & 0xffff).saturating_sub(1))
    }

    fn has(&self, number: usize, field: &str) -> bool {
        let Some(of) = self.get(number) else { return false };
        let size = if of.kind() == kind::ENUM { 8 } else { 12 };
        of.more.chunks_exact(size).any(|member| {
            let (name, inner) = (half(member, 0).unwrap_or(0), half(member, 4).unwrap_or(0) as usize);
            self.is_named(name, field) || (name == 0 && of.kind() != kind::ENUM && self.has(inner, field))
        })
    }

    /// Follows typedefs and qualifiers such as const to the type behind them.
    fn plain(&self, mut number: usize) -> usize {
        for _ in 0..32 {
            match self.get(number) {
                Some(of)
                    if matches!(
                        of.kind(),
                        kind::TYPEDEF | kind::VOLATILE | kind::CONST | kind::RESTRICT | kind::TYPE_TAG
                    ) =>
                {
                    number = of.size as usize;
                }
                _ => break,
            }
        }
        number
    }
}

/// A BTF description that is being built.
#[derive(Default)]
struct Draft {
    types: Vec<u8>,
    count: u32,
    strings: Vec<u8>,
}

impl Draft {
    fn new() -> Draft {
        Draft { strings: vec![0], ..Draft::default() }
    }

    fn text(&mut self, text: &str) -> u32 {
        let at = self.strings.len() as u32;
        self.strings.extend_from_slice(text.as_bytes());
        self.strings.push(0);
        at
    }

    fn add(&mut self, name: u32, info: u32, size: u32, more: &[u8]) -> u32 {
        for part in [name, info, size] {
            self.types.extend_from_slice(&part.to_le_bytes());
        }
        self.types.extend_from_slice(more);
        self.count += 1;
        self.count
    }

    fn finished(self) -> Vec<u8> {
        let (types, strings) = (self.types.len() as u32, self.strings.len() as u32);
        let mut out = Vec::with_capacity(HEADER_BYTES + self.types.len() + self.strings.len());
        out.extend_from_slice(&MAGIC.to_le_bytes());
        out.extend_from_slice(&[1, 0]);
        for part in [HEADER_BYTES as u32, 0, types, types, strings] {
            out.extend_from_slice(&part.to_le_bytes());
        }
        out.extend(self.types);
        out.extend(self.strings);
        out
    }
}

/// Type of a tracepoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tracepoint {
    /// Number of the type among the kernel's types.
    pub number: u32,
    pub arguments: usize,
}

/// Result of [`reduced`].
pub struct Reduced {
    /// Description of the structures, with new numbers of types.
    pub structures: Vec<u8>,
    /// The tracepoints that this kernel has.
    pub tracepoints: HashMap<&'static str, Tracepoint>,
}

impl Reduced {
    /// Returns whether a structure or enumeration with this name has this field, directly or in an anonymous
    /// member.
    pub fn has(&self, name: &'static str, field: &'static str) -> bool {
        let Some(types) = Types::read(&self.structures) else { return false };
        let found = [kind::STRUCT, kind::ENUM].into_iter().flat_map(|kind| types.find(kind, &[name]));
        found.into_iter().any(|(_, number)| types.has(number, field))
    }
}

/// Reduces the kernel's types `btf` to the fields `fields` of `structures` and the types of `tracepoints`.
/// Returns `None` if `btf` can't be parsed.
pub fn reduced(
    btf: &[u8],
    structures: &[&'static str],
    fields: &[&'static str],
    tracepoints: &[&'static str],
) -> Option<Reduced> {
    let types = Types::read(btf)?;
    let found = types.find(kind::STRUCT, structures);
    let mut choice = Choice { types: &types, structures, fields, draft: Draft::new(), made: HashMap::new() };
    for (_, number) in found {
        choice.structure(number)?;
    }
    for (name, number) in types.find(kind::ENUM, structures) {
        choice.enumeration(name, number)?;
    }
    let typedefs = types.find(kind::TYPEDEF, tracepoints).into_iter();
    let tracepoint = |at: usize| Some(Tracepoint { number: at as u32, arguments: types.arguments(at)? });
    Some(Reduced {
        structures: choice.draft.finished(),
        tracepoints: typedefs.filter_map(|(name, at)| Some((name, tracepoint(at)?))).collect(),
    })
}

struct Choice<'a> {
    types: &'a Types<'a>,
    structures: &'a [&'static str],
    fields: &'a [&'static str],
    draft: Draft,
    /// New numbers of the types that the draft contains already, by old number.
    made: HashMap<usize, u32>,
}

impl Choice<'_> {
    /// Adds a structure or union with its requested fields and the anonymous members that may contain such
    /// fields. Returns its new number.
    fn structure(&mut self, number: usize) -> Option<u32> {
        if let Some(&made) = self.made.get(&number) {
            return Some(made);
        }
        let of = self.types.get(number)?;
        let mut members = Vec::new();
        for member in of.more.chunks_exact(12) {
            let (name, member_type, offset) = (half(member, 0)?, half(member, 4)?, half(member, 8)?);
            let field = self.fields.iter().find(|field| self.types.is_named(name, field)).copied();
            let Some(made) = self.member(name, field, member_type as usize) else { continue };
            let name = field.map_or(0, |field| self.draft.text(field));
            for part in [name, made, offset] {
                members.extend_from_slice(&part.to_le_bytes());
            }
        }
        let name = self.structures.iter().find(|name| self.types.is_named(of.name, name));
        let name = name.map_or(0, |name| self.draft.text(name));
        // The bit that says how offsets of bit fields are encoded stays. The number of members is new.
        let info = of.info & 0x9f00_0000 | (members.len() / 12) as u32;
        let made = self.draft.add(name, info, of.size, &members);
        self.made.insert(number, made);
        Some(made)
    }

    /// Adds an enumeration with its requested values.
    fn enumeration(&mut self, name: &'static str, number: usize) -> Option<()> {
        let of = self.types.get(number)?;
        let mut numbers = Vec::new();
        for entry in of.more.chunks_exact(8) {
            let (entry_name, value) = (half(entry, 0)?, half(entry, 4)?);
            let field = self.fields.iter().find(|field| self.types.is_named(entry_name, field));
            for part in field.map(|field| [self.draft.text(field), value]).into_iter().flatten() {
                numbers.extend_from_slice(&part.to_le_bytes());
            }
        }
        let name = self.draft.text(name);
        let info = of.info & 0x9f00_0000 | (numbers.len() / 8) as u32;
        self.draft.add(name, info, of.size, &numbers);
        Some(())
    }

    fn member(&mut self, name: u32, field: Option<&'static str>, number: usize) -> Option<u32> {
        let number = self.types.plain(number);
        let of = self.types.get(number)?;
        match of.kind() {
            kind::STRUCT | kind::UNION if field.is_some() || name == 0 => self.structure(number),
            kind::INT if field.is_some() => self.copy(number, of),
            kind::PTR if field.is_some() => self.copy(number, Type { size: 0, ..of }),
            _ => None,
        }
    }

    fn copy(&mut self, number: usize, of: Type) -> Option<u32> {
        if let Some(&made) = self.made.get(&number) {
            return Some(made);
        }
        let name = if of.kind() == kind::INT { self.draft.text("number") } else { 0 };
        let made = self.draft.add(name, of.info, of.size, of.more);
        self.made.insert(number, made);
        Some(made)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a description of these types:
    /// `struct inner { int wanted, other; }; struct outer { struct inner in; struct inner; };`
    /// `typedef void (*trace)(void *, int, int);`
    fn kernel() -> Vec<u8> {
        let mut draft = Draft::new();
        let names = ["int", "inner", "wanted", "other", "outer", "in", "trace"].map(|name| draft.text(name));
        let [int, inner, wanted, other, outer, within, trace] = names;
        let members = |members: &[[u32; 3]]| -> Vec<u8> {
            members.iter().flatten().flat_map(|part| part.to_le_bytes()).collect()
        };
        draft.add(int, kind::INT << 24, 4, &32u32.to_le_bytes());
        draft.add(inner, kind::STRUCT << 24 | 2, 8, &members(&[[wanted, 1, 0], [other, 1, 32]]));
        draft.add(outer, kind::STRUCT << 24 | 2, 16, &members(&[[within, 2, 0], [0, 2, 64]]));
        draft.add(0, kind::PTR << 24, 6, &[]);
        draft.add(trace, kind::TYPEDEF << 24, 4, &[]);
        draft.add(0, kind::FUNC_PROTO << 24 | 3, 0, &[0; 24]);
        draft.finished()
    }

    #[test]
    fn requested_fields_and_tracepoints_are_kept() {
        let kernel = kernel();
        let reduced = reduced(&kernel, &["outer"], &["wanted"], &["trace"]).expect("understood");
        let structures = Types::read(&reduced.structures).expect("well made");
        let (_, outer) = structures.find(kind::STRUCT, &["outer"])[0];
        // The named member was not requested. The anonymous member may contain a requested field.
        let member = structures.get(outer).expect("there").more;
        assert_eq!((member.len(), half(member, 8)), (12, Some(64)));
        let inner = structures.get(half(member, 4).expect("a type") as usize).expect("there");
        assert_eq!((inner.more.len(), half(inner.more, 8)), (12, Some(0)));
        assert!(structures.is_named(half(inner.more, 0).expect("a name"), "wanted"));
        assert_eq!(reduced.tracepoints["trace"], Tracepoint { number: 5, arguments: 2 });
    }

    #[test]
    fn requested_numbers_are_kept_and_missing_ones_reported() {
        let mut draft = Draft::new();
        let [flags, first, second] = ["flags", "first", "second"].map(|name| draft.text(name));
        let entries = [first, 4, second, 6].iter().flat_map(|part| part.to_le_bytes()).collect::<Vec<u8>>();
        draft.add(flags, kind::ENUM << 24 | 2, 4, &entries);
        let flags = reduced(&draft.finished(), &["flags"], &["second"], &[]).expect("understood");
        assert!(flags.has("flags", "second") && !flags.has("flags", "first"));
        let kernel = reduced(&kernel(), &["outer"], &["wanted"], &[]).expect("understood");
        // The field is in an anonymous member. Fields of structures that were not requested are left out.
        assert!(
            kernel.has("outer", "wanted") && !kernel.has("outer", "other") && !kernel.has("inner", "wanted")
        );
    }

    #[test]
    fn truncated_or_invalid_type_data_is_refused() {
        let kernel = kernel();
        for length in [0, 3, 20, 40, 60] {
            assert!(reduced(&kernel[..length], &["outer"], &["wanted"], &[]).is_none(), "{length}");
        }
        assert!(reduced(&[0; 64], &["outer"], &["wanted"], &[]).is_none());
    }
}
