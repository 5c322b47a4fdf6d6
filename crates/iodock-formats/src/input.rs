//! Opens logs: files and standard input, plain or compressed (gzip, xz, zstd). The compression is recognised
//! by the first bytes, not by the name.

use crate::escapes::Escapes;
use crate::line_range::LinesOf;
use crate::pasted::{Cleaned, Pasted};
use crate::LineRange;
use iodock_event::{Losses, SourceError};
use liblzma::stream::{Stream, CONCATENATED};
use std::fs::{self, File};
use std::io::{self, BufReader, Cursor, Read};
use std::os::unix::fs::FileTypeExt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{mpsc, Arc, Mutex};
use std::thread;
use std::time::Duration;

/// Length of the uncompressed beginning that formats can examine, bytes. It is small, because thousands of
/// logs may be open.
const HEAD_SIZE: usize = 64 << 10;
/// Limit of that length for logs with a longer first line, bytes.
const LONGEST_HEAD: usize = 16 << 20;
const READ_SIZE: usize = 256 << 10;
/// Memory limit for decompressing xz, bytes. Its strongest setting, -9, needs 65 MiB, but a damaged header
/// may demand 4 GiB. zstd has the same limit by default.
const MOST_UNPACKING_BYTES: u64 = 128 << 20;
/// Time to wait for a program to open a named pipe for writing.
const WRITER_PATIENCE: Duration = Duration::from_secs(10);
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// A log that is being read.
pub struct Input {
    reader: Box<dyn Read + Send>,
    head: Vec<u8>,
    file: Arc<str>,
    compressed: bool,
    progress: Arc<Progress>,
    /// Number of the first line of the head.
    first_line: u64,
    /// Lines that were left out during reading.
    losses: Arc<Mutex<Losses>>,
}

/// Number of bytes of the log (as stored, perhaps compressed) that were read, and in total.
#[derive(Debug, Default)]
pub struct Progress {
    pub read: AtomicU64,
    pub total: Option<u64>,
}

impl Input {
    /// Opens `path`; `-` means standard input.
    pub fn open(path: &str) -> Result<Input, SourceError> {
        if path == "-" {
            return Input::from_reader(Box::new(io::stdin()), path, None);
        }
        let failed = |error: io::Error| open_error(path, &error);
        let file = opened(path).map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        if metadata.is_dir() {
            let hint = "give the log file inside it, or all of them: iodock import DIR/log.*";
            return Err(error(path, "is a directory, not a log".into(), hint));
        }
        let total = metadata.is_file().then_some(metadata.len());
        Input::from_reader(Box::new(file), path, total)
    }

    /// Reads from `reader`. Messages call it `name`. `total` is its number of bytes, if known.
    pub fn from_reader(
        reader: Box<dyn Read + Send>,
        name: &str,
        total: Option<u64>,
    ) -> Result<Input, SourceError> {
        let progress = Arc::new(Progress { read: AtomicU64::new(0), total });
        let mut counted = Counted { inner: reader, progress: Arc::clone(&progress) };
        let mut magic = Vec::with_capacity(8);
        read_up_to(&mut counted, &mut magic, 6).map_err(|error| read_error(name, 0, &error))?;
        let compression = Compression::of(&magic);
        let whole = Cursor::new(magic).chain(counted);
        let reader = compression.decoder(whole).map_err(|error| read_error(name, 0, &error))?;
        let compressed = compression != Compression::Plain;
        let reader = Box::new(Escapes::new(reader));
        let losses = Arc::default();
        let (file, first_line) = (name.into(), 1);
        let mut input = Input { reader, head: Vec::new(), file, compressed, progress, first_line, losses };
        input.fill_head()?;
        Ok(input)
    }

    /// Continues with a reader that starts again at the head and restores the log as the tracer wrote it.
    /// Other tools have changed the log as `pasted` describes.
    pub(crate) fn clean(&mut self, pasted: Pasted) -> Result<(), SourceError> {
        let (file, losses) = (Arc::clone(&self.file), Arc::clone(&self.losses));
        let cleaned = Cleaned::new(self.take_reader(), pasted, file, self.first_line, losses);
        self.reader = Box::new(cleaned);
        self.fill_head()
    }

    /// Restricts reading to a range of lines.
    pub(crate) fn take_lines(&mut self, lines: LineRange) -> Result<(), SourceError> {
        self.reader = Box::new(LinesOf::new(self.take_reader(), lines));
        self.first_line = lines.first;
        self.fill_head()
    }

    /// Returns a reader of the whole input, including the head.
    fn take_reader(&mut self) -> Box<dyn Read + Send> {
        let head = std::mem::take(&mut self.head);
        let reader = std::mem::replace(&mut self.reader, Box::new(io::empty()));
        Box::new(Cursor::new(head).chain(reader))
    }

    fn fill_head(&mut self) -> Result<(), SourceError> {
        let mut head = Vec::new();
        match read_head(&mut self.reader, &mut head) {
            // Further reading of a damaged archive reports the error again, so the data before the damage can
            // be used.
            Err(error) if !self.compressed || head.is_empty() => {
                return Err(read_error(&self.file, 0, &error));
            }
            Err(error) => self.reader = Box::new(Failing(Some(error))),
            Ok(()) => {}
        }
        // Editors of other systems put a byte order mark before the first line, which is removed here.
        if head.starts_with(BYTE_ORDER_MARK) {
            head.drain(..BYTE_ORDER_MARK.len());
        }
        self.head = head;
        Ok(())
    }

    /// Extends the head to `size` bytes, for formats that need more of it. An error is reported later, when
    /// reading reaches its position.
    pub(crate) fn extend_head(&mut self, size: usize) {
        if let Err(error) = read_up_to(&mut *self.reader, &mut self.head, size) {
            self.reader = Box::new(Failing(Some(error)));
        }
    }

    /// Returns the uncompressed beginning.
    pub fn head(&self) -> &[u8] {
        &self.head
    }

    /// Returns the path as the user gave it.
    pub fn file(&self) -> &Arc<str> {
        &self.file
    }

    pub(crate) fn progress(&self) -> Arc<Progress> {
        Arc::clone(&self.progress)
    }

    pub(crate) fn losses(&self) -> Arc<Mutex<Losses>> {
        Arc::clone(&self.losses)
    }

    pub(crate) fn first_line(&self) -> u64 {
        self.first_line
    }

    pub(crate) fn is_compressed(&self) -> bool {
        self.compressed
    }

    /// Returns a reader that starts at the first byte, including the head.
    pub(crate) fn into_reader(mut self) -> Box<dyn Read + Send> {
        self.take_reader()
    }
}

/// Reads the head, which contains at least one whole line if the log has one.
fn read_head(reader: &mut dyn Read, head: &mut Vec<u8>) -> io::Result<()> {
    let mut wanted = HEAD_SIZE;
    loop {
        read_up_to(reader, head, wanted)?;
        let whole = head.len() < wanted || wanted >= LONGEST_HEAD;
        if whole || memchr::memchr(b'\n', head).is_some() {
            return Ok(());
        }
        wanted *= 4;
    }
}

/// Input whose error was found before reading reached its position: it returns the error once, then the end
/// of the file.
struct Failing(Option<io::Error>);

impl Read for Failing {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        self.0.take().map_or(Ok(0), Err)
    }
}

struct Counted {
    inner: Box<dyn Read + Send>,
    progress: Arc<Progress>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.progress.read.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Compression {
    Plain,
    Gzip,
    Xz,
    Zstd,
}

impl Compression {
    fn of(magic: &[u8]) -> Compression {
        if magic.starts_with(&[0x1f, 0x8b]) {
            Compression::Gzip
        } else if magic.starts_with(&[0xfd, b'7', b'z', b'X', b'Z', 0]) {
            Compression::Xz
        } else if magic.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
            Compression::Zstd
        } else {
            Compression::Plain
        }
    }

    fn decoder<R: Read + Send + 'static>(self, reader: R) -> io::Result<Box<dyn Read + Send>> {
        Ok(match self {
            Compression::Plain => Box::new(reader),
            Compression::Gzip => {
                Box::new(flate2::bufread::MultiGzDecoder::new(BufReader::with_capacity(READ_SIZE, reader)))
            }
            Compression::Xz => {
                let stream = Stream::new_stream_decoder(MOST_UNPACKING_BYTES, CONCATENATED)?;
                let packed = BufReader::with_capacity(READ_SIZE, reader);
                Box::new(liblzma::bufread::XzDecoder::new_stream(packed, stream))
            }
            Compression::Zstd => {
                Box::new(zstd::Decoder::with_buffer(BufReader::with_capacity(READ_SIZE, reader))?)
            }
        })
    }
}

/// Opens a log. For a named pipe, it waits for a writer, but only for a limited time.
fn opened(path: &str) -> io::Result<File> {
    if !fs::metadata(path)?.file_type().is_fifo() {
        return File::open(path);
    }
    let (sender, receiver) = mpsc::channel();
    let name = path.to_owned();
    thread::spawn(move || sender.send(File::open(name)));
    let late = |_| Err(io::Error::other("a pipe that no program writes to"));
    receiver.recv_timeout(WRITER_PATIENCE).unwrap_or_else(late)
}

/// Reads until `buffer` holds `size` bytes or the input ends. After an error, `buffer` contains the bytes
/// read so far.
pub(crate) fn read_up_to(reader: &mut dyn Read, buffer: &mut Vec<u8>, size: usize) -> io::Result<()> {
    let mut filled = buffer.len();
    buffer.resize(size.max(filled), 0);
    let mut outcome = Ok(());
    while filled < buffer.len() {
        match reader.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => {
                outcome = Err(error);
                break;
            }
        }
    }
    buffer.truncate(filled);
    outcome
}

fn error(file: &str, message: String, hint: &str) -> SourceError {
    SourceError { file: file.into(), line: None, message, hint: hint.into() }
}

fn open_error(path: &str, failure: &io::Error) -> SourceError {
    let hint = match failure.kind() {
        io::ErrorKind::NotFound => "check the name",
        io::ErrorKind::PermissionDenied => "make it readable for you, or run as its owner",
        _ => "check the file",
    };
    error(path, format!("can't open it: {}", reason(failure)), hint)
}

/// Returns the error message for a read error after `line` whole lines.
pub(crate) fn read_error(path: &str, line: u64, failure: &io::Error) -> SourceError {
    let line = (line > 0).then_some(line);
    let reason = reason(failure);
    let hint = if reason.to_lowercase().contains("memory") {
        "unpacking it needs more than 128 MiB of memory: unpack it yourself, and import the log"
    } else {
        "check the disk, or copy the file again"
    };
    SourceError { file: path.into(), line, message: format!("can't read it: {reason}"), hint: hint.into() }
}

/// Returns the text of the system's error without Rust's addition `(os error 2)`.
fn reason(failure: &io::Error) -> String {
    let text = failure.to_string();
    text.split(" (os error").next().unwrap_or_default().to_string()
}
