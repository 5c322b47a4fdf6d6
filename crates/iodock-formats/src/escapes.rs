//! Removes terminal control sequences while a log is read.
//!
//! Colours and cursor movements come from the terminal from which a log was copied: from `script`, `grep
//! --color`, or the output of a program. Tracers print ESC inside strings as `\33`, so a raw ESC is never
//! part of the data. Source of the sequences: ECMA-48, 5th edition, and xterm's control sequences.

use memchr::memchr;
use std::io::{self, Read};

const ESC: u8 = 0x1b;
const BELL: u8 = 0x07;

/// The reader's position in a control sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SequenceState {
    Text,
    /// The position after ESC, or after an intermediate byte (`ESC ( B`).
    Escape,
    /// The position after `ESC [`, before the letter that ends the parameters.
    Control,
    /// The position after `ESC ]`, `ESC P` and similar, before the BEL or `ESC \` that ends the text.
    Command,
}

/// A reader that removes control sequences from its input. A sequence that is not completed on its line ends
/// at the end of the line.
pub struct Escapes<R> {
    inner: R,
    place: SequenceState,
}

impl<R: Read> Escapes<R> {
    pub fn new(inner: R) -> Self {
        Escapes { inner, place: SequenceState::Text }
    }

    /// Moves the remaining text to the front and returns its length.
    #[cold]
    fn strip(&mut self, bytes: &mut [u8]) -> usize {
        let mut kept = 0;
        for at in 0..bytes.len() {
            let byte = bytes[at];
            let (next, keep) = self.place.after(byte);
            self.place = next;
            if keep {
                bytes[kept] = byte;
                kept += 1;
            }
        }
        kept
    }
}

impl SequenceState {
    /// Returns the state after `byte`, and whether the byte is text.
    fn after(self, byte: u8) -> (SequenceState, bool) {
        match (self, byte) {
            (_, b'\n') => (SequenceState::Text, true),
            (_, ESC) => (SequenceState::Escape, false),
            (SequenceState::Text, _) => (SequenceState::Text, true),
            (SequenceState::Escape, b'[') => (SequenceState::Control, false),
            (SequenceState::Escape, b']' | b'P' | b'X' | b'^' | b'_') => (SequenceState::Command, false),
            (SequenceState::Escape, 0x20..=0x2f) => (SequenceState::Escape, false),
            (SequenceState::Control, 0x20..=0x3f) => (SequenceState::Control, false),
            (SequenceState::Command, BELL) => (SequenceState::Text, false),
            (SequenceState::Command, _) => (SequenceState::Command, false),
            (SequenceState::Escape | SequenceState::Control, 0x30..=0x7e) => (SequenceState::Text, false),
            // The bytes form no control sequence, so only the ESC is removed.
            (SequenceState::Escape | SequenceState::Control, _) => (SequenceState::Text, true),
        }
    }
}

impl<R: Read> Read for Escapes<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let count = self.inner.read(buffer)?;
            let plain = self.place == SequenceState::Text && memchr(ESC, &buffer[..count]).is_none();
            if plain || count == 0 {
                return Ok(count);
            }
            // The loop reads again if all bytes were removed, because returning 0 would signal the end of the
            // input.
            match self.strip(&mut buffer[..count]) {
                0 => {}
                kept => return Ok(kept),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stripped(text: &[u8], step: usize) -> Vec<u8> {
        let mut reader = Escapes::new(text);
        let mut out = Vec::new();
        let mut buffer = vec![0; step];
        loop {
            match reader.read(&mut buffer).unwrap() {
                0 => return out,
                count => out.extend_from_slice(&buffer[..count]),
            }
        }
    }

    #[test]
    fn escape_sequences_are_removed_wherever_chunks_are_cut() {
        let cases: &[(&[u8], &[u8])] = &[
            (b"write(1, \"\\33[0m\") = 1\n", b"write(1, \"\\33[0m\") = 1\n"),
            (b"\x1b[01;32muser@n1\x1b[00m:~$ ls\r\n", b"user@n1:~$ ls\r\n"),
            (b"\x1b[01;31m\x1b[Kread\x1b[m\x1b[K(3) = 0", b"read(3) = 0"),
            (b"\x1b]0;a title\x07close(3) = 0", b"close(3) = 0"),
            (b"\x1b]8;;http://a/\x1b\\close\x1b]8;;\x1b\\(3) = 0", b"close(3) = 0"),
            (b"\x1b(B\x1b[mclose(3)\x1b7 = 0\x1b[?25l", b"close(3) = 0"),
            (
                b"close(3) = 0\x1b[31\nclose(4) = 0\x1b]0;x\nclose(5) = 0\x1b",
                b"close(3) = 0\nclose(4) = 0\nclose(5) = 0",
            ),
        ];
        for (text, expected) in cases {
            for step in [1, 2, 3, 64] {
                assert_eq!(&stripped(text, step), expected, "{}", String::from_utf8_lossy(text));
            }
        }
    }
}
