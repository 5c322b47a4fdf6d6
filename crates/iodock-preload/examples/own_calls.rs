//! Lists the files that make system calls without libc, and these calls: `own_calls FILE...`.

use iodock_event::numbers_x86_64::NUMBERS;
use iodock_preload::own_calls::{numbers_of, Number};
use iodock_preload::{elf, shapes::Shapes};
use std::collections::BTreeMap;
use std::time::Instant;

fn main() {
    let shapes = &Shapes::of_this_machine().by_number;
    for path in std::env::args().skip(1) {
        let Ok(file) = std::fs::read(&path) else { continue };
        let Some(elf) = elf::parse(&file) else { continue };
        let begin = Instant::now();
        let mut found = BTreeMap::<String, u32>::new();
        let mut makes = false;
        for number in numbers_of(&file, &elf) {
            let name = match number {
                Number::Constant(number) => {
                    makes |= shapes.get(number as usize).is_some_and(|shape| shape.code > 0);
                    let name =
                        NUMBERS.iter().find(|&&(known, _)| u32::from(known) == number).map(|&(_, name)| name);
                    name.map_or_else(|| number.to_string(), |name| (*name).to_string())
                }
                other => {
                    makes = true;
                    format!("{other:?}")
                }
            };
            *found.entry(name).or_default() += 1;
        }
        if !found.is_empty() {
            println!("{} {path} {:?} {found:?}", if makes { "OWN" } else { "fine" }, begin.elapsed());
        }
    }
}
