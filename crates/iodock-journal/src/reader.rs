//! Reads a journal, complete or cut.

use crate::decode::{decode_records, NameReader};
use crate::faults::decode_faults;
use crate::frame::{FrameHeader, FrameKind, HEADER, MAGIC, PREAMBLE, VERSION};
use crate::meta::{Closing, JournalMeta};
use crate::side::{decode_mounts, decode_samples, decode_usages};
use iodock_event::{
    Batch, Clock, FaultBatch, FirstLoss, LossKind, Mount, RecordSource, Sample, SourceError, TaskUsage,
};
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::Path;

/// Returns a journal's records up to its end or to the first damaged frame. The reader also collects samples,
/// mounts and usages: callers take them between batches, or at the end.
pub struct JournalReader {
    name: String,
    input: BufReader<File>,
    /// Offset of the end of the last valid frame, and length of the file, in bytes.
    position: u64,
    length: u64,
    sequence: u32,
    payload: Vec<u8>,
    names: NameReader,
    meta: JournalMeta,
    samples: Vec<Sample>,
    mounts: Vec<Mount>,
    usages: Vec<TaskUsage>,
    closing: Option<Closing>,
    /// Bytes after the last valid frame, if reading stopped before a closing frame.
    lost: Option<u64>,
    /// Whether the journal's recorder may still append frames.
    is_growing: bool,
    spare: Vec<Batch>,
}

enum Next {
    Frame(u32),
    End,
}

impl JournalReader {
    /// Opens a journal. Fails if the file can't be read, is not a journal, has a newer format, or ends within
    /// its first frame.
    pub fn open(path: impl AsRef<Path>) -> Result<JournalReader, SourceError> {
        let path = path.as_ref();
        let name = path.display().to_string();
        let opened = File::open(path).and_then(|file| Ok((file.metadata()?.len(), file)));
        let (length, file) = opened.map_err(|error| refusal(&name, error.to_string(), "check the path"))?;
        let mut reader = JournalReader {
            name,
            input: BufReader::with_capacity(1 << 16, file),
            position: 0,
            length,
            sequence: 0,
            payload: Vec::new(),
            names: NameReader::default(),
            meta: JournalMeta::default(),
            samples: Vec::new(),
            mounts: Vec::new(),
            usages: Vec::new(),
            closing: None,
            lost: None,
            is_growing: false,
            spare: Vec::new(),
        };
        reader.read_preamble()?;
        reader.read_meta()?;
        Ok(reader)
    }

    pub fn meta(&self) -> &JournalMeta {
        &self.meta
    }

    /// Returns how the recording ended. `None` until the closing frame is read, and for a cut journal.
    pub fn closing(&self) -> Option<&Closing> {
        self.closing.as_ref()
    }

    /// Returns whether the journal ended without a closing frame.
    pub fn is_cut(&self) -> bool {
        self.lost.is_some()
    }

    /// Marks the journal as still being written, so that its present end is not counted as a loss.
    #[must_use]
    pub fn growing(self) -> JournalReader {
        JournalReader { is_growing: true, ..self }
    }

    /// Limits reading to the first `length` bytes, a length that another reader has found.
    #[must_use]
    pub fn up_to(self, length: u64) -> JournalReader {
        JournalReader { length: length.min(self.length), ..self }
    }

    pub fn is_growing(&self) -> bool {
        self.is_growing
    }

    /// Returns the number of bytes of the file that this reader reads.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Returns the samples that were read since the last call.
    pub fn take_samples(&mut self) -> Vec<Sample> {
        std::mem::take(&mut self.samples)
    }

    /// Returns the mounts that were read since the last call.
    pub fn take_mounts(&mut self) -> Vec<Mount> {
        std::mem::take(&mut self.mounts)
    }

    /// Returns the usages that were read since the last call.
    pub fn take_usages(&mut self) -> Vec<TaskUsage> {
        std::mem::take(&mut self.usages)
    }

    fn read_preamble(&mut self) -> Result<(), SourceError> {
        let mut preamble = [0; PREAMBLE];
        let got = read_full(&mut self.input, &mut preamble)
            .map_err(|error| refusal(&self.name, error.to_string(), "check the path"))?;
        if got < MAGIC.len() || preamble[..MAGIC.len()] != MAGIC {
            let message = "not an iodock journal";
            return Err(refusal(&self.name, message.into(), "only iodock record writes journals"));
        }
        let version = u32::from_le_bytes([preamble[8], preamble[9], preamble[10], preamble[11]]);
        if got == PREAMBLE && version > VERSION {
            let message = format!("journal of format {version}; this iodock reads up to {VERSION}");
            return Err(refusal(&self.name, message, "use the iodock that recorded it, or a newer one"));
        }
        self.position = got as u64;
        Ok(())
    }

    fn read_meta(&mut self) -> Result<(), SourceError> {
        if let Next::Frame(kind) = self.next_frame()? {
            if kind == FrameKind::Meta as u32 {
                if let Some(meta) = JournalMeta::decode(&self.payload) {
                    self.meta = meta;
                    return Ok(());
                }
            }
        }
        let message = "the journal was cut within its first bytes: nothing was recorded";
        Err(refusal(&self.name, message.into(), "record again"))
    }

    /// Reads the next frame into `payload`. At the end of the file or at a damaged frame, records the loss.
    fn next_frame(&mut self) -> Result<Next, SourceError> {
        let mut header = [0; HEADER];
        if self.read(&mut header)? < HEADER {
            return self.end();
        }
        let header = FrameHeader::parse(&header);
        let left = self.length.saturating_sub(self.position + HEADER as u64);
        // This check comes before the allocation, so that a damaged length can't request too much memory.
        if u64::from(header.length) > left || header.sequence != self.sequence {
            return self.end();
        }
        let mut payload = std::mem::take(&mut self.payload);
        payload.resize(header.length as usize, 0);
        let got = self.read(&mut payload)?;
        self.payload = payload;
        if got < self.payload.len() || !header.matches(&self.payload) {
            return self.end();
        }
        self.sequence = self.sequence.wrapping_add(1);
        self.position += HEADER as u64 + u64::from(header.length);
        Ok(Next::Frame(header.kind))
    }

    fn read(&mut self, buffer: &mut [u8]) -> Result<usize, SourceError> {
        read_full(&mut self.input, buffer).map_err(|error| {
            let message = format!("cannot read on at byte {}: {error}", self.position);
            refusal(&self.name, message, "check the file system that holds the store")
        })
    }

    /// Handles the lack of a further complete frame. This is no loss in a journal that is still being
    /// written.
    fn end(&mut self) -> Result<Next, SourceError> {
        if !self.is_growing {
            return Ok(self.stop());
        }
        let back = self.input.seek(SeekFrom::Start(self.position));
        back.map(|_| Next::End).map_err(|error| {
            refusal(&self.name, error.to_string(), "check the file system that holds the store")
        })
    }

    fn stop(&mut self) -> Next {
        // The loss is at least 1, so that a journal without a closing frame is also reported.
        self.lost = Some(self.length.saturating_sub(self.position).max(1));
        Next::End
    }

    /// Processes one frame. Returns `None` if its payload is invalid although its checksum is right.
    fn take_frame(&mut self, kind: u32, batch: &mut Batch) -> Option<()> {
        match FrameKind::from_number(kind) {
            Some(FrameKind::Names) => self.names.add(&self.payload),
            Some(FrameKind::Records) => decode_records(&self.payload, &self.names, batch),
            Some(FrameKind::Samples) => decode_samples(&self.payload, &mut self.samples),
            Some(FrameKind::Mounts) => decode_mounts(&self.payload, &mut self.mounts),
            Some(FrameKind::Usages) => decode_usages(&self.payload, &mut self.usages),
            Some(FrameKind::Closing) => {
                self.closing = Some(Closing::decode(&self.payload)?);
                Some(())
            }
            // `next_faults` and `next_raw` read these frames.
            Some(FrameKind::Faults | FrameKind::Raw) => Some(()),
            // The reader skips a second meta frame, and kinds of frames that only later versions know.
            Some(FrameKind::Meta) | None => Some(()),
        }
    }

    /// Returns the next page faults, and skips all other frames. Returns `None` at the end.
    ///
    /// # Errors
    /// Fails if the file can't be read further.
    pub fn next_faults(&mut self) -> Result<Option<FaultBatch>, SourceError> {
        while self.closing.is_none() && self.lost.is_none() {
            let Next::Frame(kind) = self.next_frame()? else { break };
            let mut faults = FaultBatch::default();
            let decoded = match FrameKind::from_number(kind) {
                Some(FrameKind::Faults) => decode_faults(&self.payload, &mut faults),
                Some(FrameKind::Closing) => self.take_frame(kind, &mut Batch::default()),
                _ => Some(()),
            };
            if decoded.is_none() {
                self.stop();
            } else if !faults.is_empty() {
                return Ok(Some(faults));
            }
        }
        Ok(None)
    }

    /// Returns the payload of the next raw frame, and skips all other frames. Returns `None` at the end.
    ///
    /// # Errors
    /// Fails if the file can't be read further.
    pub fn next_raw(&mut self) -> Result<Option<&[u8]>, SourceError> {
        while self.closing.is_none() && self.lost.is_none() {
            let Next::Frame(kind) = self.next_frame()? else { break };
            if kind == FrameKind::Raw as u32 {
                return Ok(Some(&self.payload));
            }
            if kind == FrameKind::Closing as u32 {
                self.closing = Closing::decode(&self.payload);
                break;
            }
        }
        Ok(None)
    }

    /// Returns the number of bytes after the last valid frame, or 0 if the journal is complete.
    pub fn lost_bytes(&self) -> u64 {
        self.lost.unwrap_or(0)
    }

    fn lose_rest(&self, batch: &mut Batch) {
        let Some(lost) = self.lost else { return };
        batch.losses.add(LossKind::JournalCut, lost);
        let place =
            FirstLoss { file: self.name.clone(), line: 0, sample: format!("at byte {}", self.position) };
        batch.losses.first.entry(LossKind::JournalCut).or_insert(place);
    }
}

impl RecordSource for JournalReader {
    fn next_batch(&mut self) -> Result<Option<Batch>, SourceError> {
        if self.closing.is_some() || self.lost.is_some() {
            return Ok(None);
        }
        let mut batch = self.spare.pop().unwrap_or_default();
        batch.clear();
        loop {
            let frame_start = self.position;
            let Next::Frame(kind) = self.next_frame()? else {
                if self.is_growing {
                    return Ok(None);
                }
                self.lose_rest(&mut batch);
                return Ok(Some(batch));
            };
            if self.take_frame(kind, &mut batch).is_none() {
                self.position = frame_start;
                self.stop();
                self.lose_rest(&mut batch);
                return Ok(Some(batch));
            }
            if self.closing.is_some() {
                return Ok(None);
            }
            if kind == FrameKind::Records as u32 {
                return Ok(Some(batch));
            }
        }
    }

    fn recycle(&mut self, batch: Batch) {
        self.spare.push(batch);
    }

    fn go_on(&mut self) -> Result<(), SourceError> {
        let about = self.input.get_ref().metadata();
        self.length = about.map_err(|error| refusal(&self.name, error.to_string(), "check the path"))?.len();
        Ok(())
    }

    fn clock(&self) -> Clock {
        self.meta.clock
    }

    fn progress(&self) -> (u64, Option<u64>) {
        (self.position, Some(self.length))
    }
}

fn refusal(file: &str, message: String, hint: &str) -> SourceError {
    SourceError { file: file.into(), line: None, message, hint: hint.into() }
}

/// Reads until `buffer` is full or the file ends.
fn read_full(input: &mut impl Read, buffer: &mut [u8]) -> std::io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match input.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(got) => filled += got,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}
