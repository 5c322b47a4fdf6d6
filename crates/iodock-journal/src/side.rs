//! Encodes frames of samples, mounts and task usages. A text that is repeated within a frame is written once.

use crate::wire::{put_bytes, put_quantity, put_signed, put_varint, Cursor};
use iodock_event::{Mount, Sample, SampleKind, TaskUsage};
use std::collections::HashMap;

/// Writes the texts of a frame: each as a number, followed by the text itself the first time.
#[derive(Default)]
struct TextWriter<'a> {
    ids: HashMap<&'a str, u64>,
}

impl<'a> TextWriter<'a> {
    fn put(&mut self, out: &mut Vec<u8>, text: &'a str) {
        let next = self.ids.len() as u64;
        let id = *self.ids.entry(text).or_insert(next);
        put_varint(out, id);
        if id == next {
            put_bytes(out, text.as_bytes());
        }
    }
}

#[derive(Default)]
struct TextReader {
    texts: Vec<String>,
}

impl TextReader {
    fn get(&mut self, cursor: &mut Cursor) -> Option<String> {
        let id = usize::try_from(cursor.varint()?).ok()?;
        if id == self.texts.len() {
            self.texts.push(cursor.string()?);
        }
        self.texts.get(id).cloned()
    }
}

pub fn encode_samples(samples: &[Sample]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut texts = TextWriter::default();
    let mut previous = 0i64;
    put_varint(&mut out, samples.len() as u64);
    for sample in samples {
        put_signed(&mut out, sample.ts.wrapping_sub(previous));
        previous = sample.ts;
        texts.put(&mut out, &sample.source);
        texts.put(&mut out, &sample.target);
        texts.put(&mut out, &sample.metric);
        out.push(sample.kind as u8);
        out.extend_from_slice(&sample.value.to_le_bytes());
    }
    out
}

pub fn decode_samples(payload: &[u8], samples: &mut Vec<Sample>) -> Option<()> {
    let mut cursor = Cursor::new(payload);
    let mut texts = TextReader::default();
    let mut previous = 0i64;
    for _ in 0..cursor.varint()? {
        previous = previous.wrapping_add(cursor.signed()?);
        let (source, target) = (texts.get(&mut cursor)?, texts.get(&mut cursor)?);
        let metric = texts.get(&mut cursor)?;
        let kind = if cursor.byte()? == 0 { SampleKind::Counter } else { SampleKind::Gauge };
        samples.push(Sample { ts: previous, source, target, metric, value: cursor.f64()?, kind });
    }
    Some(())
}

pub fn encode_mounts(mounts: &[Mount]) -> Vec<u8> {
    let mut out = Vec::new();
    put_varint(&mut out, mounts.len() as u64);
    for mount in mounts {
        for text in [&mount.mount_point, &mount.fs_type, &mount.source, &mount.options] {
            put_bytes(&mut out, text.as_bytes());
        }
    }
    out
}

pub fn decode_mounts(payload: &[u8], mounts: &mut Vec<Mount>) -> Option<()> {
    let mut cursor = Cursor::new(payload);
    for _ in 0..cursor.varint()? {
        let (mount_point, fs_type) = (cursor.string()?, cursor.string()?);
        mounts.push(Mount { mount_point, fs_type, source: cursor.string()?, options: cursor.string()? });
    }
    Some(())
}

pub fn encode_usages(usages: &[TaskUsage]) -> Vec<u8> {
    let mut out = Vec::new();
    put_varint(&mut out, usages.len() as u64);
    for usage in usages {
        put_varint(&mut out, u64::from(usage.tid));
        for value in [usage.time, usage.cpu_user_ns, usage.cpu_system_ns, usage.peak_memory_bytes] {
            put_quantity(&mut out, value);
        }
    }
    out
}

pub fn decode_usages(payload: &[u8], usages: &mut Vec<TaskUsage>) -> Option<()> {
    let mut cursor = Cursor::new(payload);
    for _ in 0..cursor.varint()? {
        let tid = cursor.u32()?;
        let (time, cpu_user_ns, cpu_system_ns) = (cursor.quantity()?, cursor.quantity()?, cursor.quantity()?);
        usages.push(TaskUsage {
            tid,
            time,
            cpu_user_ns,
            cpu_system_ns,
            peak_memory_bytes: cursor.quantity()?,
        });
    }
    Some(())
}
