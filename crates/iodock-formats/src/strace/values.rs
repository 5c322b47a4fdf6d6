//! Reads values that appear both alone and inside structures: descriptors, strings, flags.

use super::lexer::{unescape, Lexer};
use iodock_event::{constants, Batch, LossKind, Text, AT_FDCWD, NO_FD};

/// Parses a descriptor such as `3`, `3</path>`, `AT_FDCWD` or `AT_FDCWD</dir>`.
#[inline]
pub fn descriptor(lexer: &mut Lexer<'_>, batch: &mut Batch) -> (i32, Text) {
    let fd = if lexer.peek() == b'A' && lexer.eat_word(b"AT_FDCWD") {
        AT_FDCWD
    } else {
        match lexer.integer() {
            // strace prints some negative numbers as unsigned (0xffffffff).
            Some(number) => number as i32,
            None => {
                whole_value(lexer, batch);
                return (NO_FD, Text::NONE);
            }
        }
    };
    if lexer.peek() != b'<' {
        whole_value(lexer, batch);
        return (fd, Text::NONE);
    }
    (fd, descriptor_name(lexer, batch))
}

/// Counts a loss unless the value ends here. A number that is followed by letters is not a number.
#[inline]
pub fn whole_value(lexer: &Lexer<'_>, batch: &mut Batch) {
    if lexer.peek().is_ascii_alphanumeric() {
        unreadable(batch);
    }
}

#[cold]
fn unreadable(batch: &mut Batch) {
    batch.losses.add(LossKind::UnreadableArguments, 1);
}

/// Parses the flags of open. Each flag must be known, because an unknown one could change how the file is
/// open.
pub fn open_flags(lexer: &mut Lexer<'_>, batch: &mut Batch) -> u64 {
    let mut words = *lexer;
    loop {
        let word = words.word();
        let is_number = word.first().is_some_and(u8::is_ascii_digit);
        if !is_number && !word.is_empty() && !constants::is_open_flag(word) {
            unreadable(batch);
        }
        if !words.eat(b'|') {
            return flags(lexer);
        }
    }
}

/// Parses the name `<...>` after a descriptor.
#[inline]
pub fn descriptor_name(lexer: &mut Lexer<'_>, batch: &mut Batch) -> Text {
    if lexer.peek() != b'<' {
        return Text::NONE;
    }
    match lexer.bracketed() {
        Some(name) => push_unescaped(name, memchr::memchr(b'\\', name).is_some(), batch),
        None => Text::NONE,
    }
}

/// Stores a string with its escapes resolved.
#[inline]
pub fn push_unescaped(inner: &[u8], escaped: bool, batch: &mut Batch) -> Text {
    if !escaped {
        return batch.push_text(inner);
    }
    let start = batch.bytes.len();
    unescape(inner, &mut batch.bytes);
    Text { start: start as u32, length: (batch.bytes.len() - start) as u32 }
}

/// Parses flags such as `O_RDONLY|O_CLOEXEC|0x8`. Names that do not influence tracking count as 0.
#[inline]
pub fn flags(lexer: &mut Lexer<'_>) -> u64 {
    let mut flags = 0;
    loop {
        if lexer.peek().is_ascii_digit() {
            flags |= lexer.integer().unwrap_or(0) as u64;
        } else {
            let word = lexer.word();
            if word.is_empty() {
                return flags;
            }
            flags |= constants::value(word).unwrap_or(0);
        }
        if !lexer.eat(b'|') {
            return flags;
        }
    }
}
