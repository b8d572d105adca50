//! Completing a capture on a full disk: whole blocks, and room for the closing statistics.

use std::fs::File;
use std::io::{self, ErrorKind, Seek, SeekFrom, Write};

use pcap_parser::EPB_MAGIC;

/// Bytes of the shortest block, and of an enhanced packet block up to and including its timestamp.
const SHORTEST: usize = 12;
const UP_TO_TIME: usize = 20;

/// A file of blocks, with an account of what it contains.
#[derive(Debug)]
pub(super) struct BlockFile {
    file: File,
    /// Everything that was written.
    all: BlockExtent,
    /// The longest prefix that leaves room for statistics.
    less: BlockExtent,
    /// Bytes of the statistics.
    room: u64,
}

/// Whole blocks from the beginning of a file.
#[derive(Clone, Debug)]
pub(super) struct BlockExtent {
    bytes: u64,
    /// Packets of each interface.
    pub(super) packets: Vec<u64>,
    /// The time of the latest packet, in nanoseconds since the epoch.
    pub(super) last: u64,
}

impl BlockExtent {
    /// Adds the blocks of `bytes` that end at or before `limit`, and returns their length.
    fn add(&mut self, bytes: &[u8], limit: usize) -> usize {
        let mut at = 0;
        while let Some(len) = length(&bytes[at..]).filter(|len| at + len <= limit) {
            let block = &bytes[at..at + len];
            if word(block, 0) == EPB_MAGIC && len >= UP_TO_TIME {
                if let Some(packets) = self.packets.get_mut(word(block, 8) as usize) {
                    *packets += 1;
                }
                let time = u64::from(word(block, 12)) << 32 | u64::from(word(block, 16));
                self.last = self.last.max(time);
            }
            at += len;
        }
        self.bytes += at as u64;
        at
    }
}

/// The length of the block at the beginning of `bytes`, if the block is complete.
fn length(bytes: &[u8]) -> Option<usize> {
    let len = bytes.get(4..8).map(|_| word(bytes, 4) as usize)?;
    (SHORTEST..=bytes.len()).contains(&len).then_some(len)
}

fn word(bytes: &[u8], at: usize) -> u32 {
    bytes[at..].first_chunk().map_or(0, |word| u32::from_le_bytes(*word))
}

impl BlockFile {
    /// An empty file of a capture that begins at `start`, in nanoseconds since the epoch; the
    /// statistics of its `interfaces` interfaces take `room` bytes.
    pub(super) fn new(file: File, interfaces: usize, start: u64, room: usize) -> BlockFile {
        let nothing = BlockExtent { bytes: 0, packets: vec![0; interfaces], last: start };
        BlockFile { file, all: nothing.clone(), less: nothing, room: room as u64 }
    }

    pub(super) fn into_file(self) -> File {
        self.file
    }

    /// Writes a chunk of whole blocks. An error comes with the number of bytes written, for
    /// [`keep`](BlockFile::keep).
    pub(super) fn write(&mut self, chunk: &[u8]) -> Result<(), (io::Error, usize)> {
        let mut written = 0;
        while written < chunk.len() {
            match self.file.write(&chunk[written..]) {
                Ok(0) => return Err((ErrorKind::WriteZero.into(), written)),
                Ok(more) => written += more,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err((error, written)),
            }
        }
        self.take_in(chunk, written);
        Ok(())
    }

    /// Accounts for the first `written` bytes of a chunk.
    fn take_in(&mut self, chunk: &[u8], written: usize) {
        let limit = (written as u64).saturating_sub(self.room) as usize;
        if limit > 0 {
            self.less.clone_from(&self.all);
            self.less.add(chunk, limit);
        }
        self.all.add(chunk, written);
    }

    /// Cuts the file, which ends with the first `written` bytes of `chunk`, at the end of a block,
    /// and appends the statistics of the rest. `false` if that leaves no packet.
    pub(super) fn keep(&mut self, chunk: &[u8], written: usize, end: impl FnOnce(&BlockExtent) -> Vec<u8>) -> bool {
        self.take_in(chunk, written);
        if self.less.packets.iter().all(|&packets| packets == 0) {
            return false;
        }
        let statistics = end(&self.less);
        let bytes = self.less.bytes;
        let cut = self.file.set_len(bytes).and_then(|()| self.file.seek(SeekFrom::Start(bytes)));
        if cut.is_err() {
            return false;
        }
        if self.file.write_all(&statistics).is_err() {
            // Other tools can read the capture without its statistics.
            let _ = self.file.set_len(bytes);
        }
        let _ = self.file.sync_all();
        true
    }
}
