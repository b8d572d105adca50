//! Writing a capture.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{SystemTime, UNIX_EPOCH};

use ackclock_sim::spec::{Clock, NodeSpec, RunSpec};
use ackclock_units::Time;
use pcap_parser::{BOM_MAGIC, EPB_MAGIC, IDB_MAGIC, ISB_MAGIC, OptionCode, SHB_MAGIC};

use super::salvage::BlockFile;
use super::{APPLICATION, CHANGE, CaptureDirection, INBOUND, OUTBOUND, RAW_IP, SCENARIO, fingerprint};
use crate::LiveError;

/// Bytes per write to the disk.
const CHUNK: usize = 256 << 10;

/// The most chunks: 256 MiB may wait for the disk, half a second of 2 Gbit/s in each direction.
const CHUNKS: usize = 1024;

/// Chunks that are allocated, with their memory touched, before the run begins.
const READY: usize = 16;

/// The most bytes of a packet that are captured: libpcap's largest snapshot length, and IP has no
/// longer packets.
const SNAPLEN: u32 = 262_144;

/// Bytes of an enhanced packet block apart from the packet and its padding: 28 before it (s4.3),
/// then `epb_flags`, the end of options and the length again.
const PACKET_BLOCK: usize = 28 + 8 + 4 + 4;

/// Bytes of a statistics block without options.
const SHORTEST_STATISTICS: usize = 12 + 12 + 4;

/// The most bytes of an option's text; its length field has 16 bits.
const TEXT: usize = 4096;

/// A capture that a separate thread writes, so that the loop neither waits for a disk nor allocates
/// per packet.
///
/// The file appears once it is complete: until then it has a hidden name that ends in `.partial`,
/// and is removed if the writer is dropped. On a full disk, what was captured so far is completed
/// and kept. A path that exists and is no regular file (a pipe) is written to directly.
#[derive(Debug)]
pub(crate) struct CaptureWriter {
    path: PathBuf,
    hidden: Option<HiddenFile>,
    thread: JoinHandle<Result<File, WriteFailure>>,
    full: SyncSender<Vec<u8>>,
    empty: Arc<EmptyChunks>,
    /// Chunks that have been allocated.
    chunks: usize,
    /// The chunk that is being filled.
    chunk: Vec<u8>,
    /// Time 0, in nanoseconds since the epoch.
    epoch: u64,
    /// Each host's interface; `None` for a host without a device.
    interfaces: Vec<Option<u32>>,
    /// Snapshot length, in bytes.
    snap: u32,
    /// Packets of each interface.
    counts: Vec<u64>,
    /// The thread has stopped after an error.
    failed: Arc<AtomicBool>,
    /// The run waits for the disk.
    waits: bool,
    /// Packets captured when the disk had fallen too far behind.
    stalled: Option<u64>,
}

/// The error that stopped the thread.
#[derive(Debug)]
struct WriteFailure {
    source: io::Error,
    /// The file is a valid capture up to the error.
    kept: bool,
}

/// Chunks that have been written. The last one is reused first, while it is in the cache.
#[derive(Debug, Default)]
struct EmptyChunks(Mutex<Vec<Vec<u8>>>);

/// The hidden file, removed on drop.
#[derive(Debug)]
struct HiddenFile(PathBuf);

/// Whether `path` may be overwritten: it does not exist, is empty, or is a pcapng file.
fn may_be_replaced(path: &Path) -> io::Result<bool> {
    let mut begins = Vec::new();
    match File::open(path) {
        Ok(file) => file.take(4).read_to_end(&mut begins)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        Err(error) => return Err(error),
    };
    Ok(begins.is_empty() || begins == SHB_MAGIC.to_le_bytes())
}

impl CaptureWriter {
    /// Begins a capture at time 0 of a run, with up to `snap` bytes of each packet, or all. Time 0 is
    /// now, or the beginning of 1970 for a run in virtual time, which then waits for the disk. Replaces
    /// an existing capture, but no other file.
    pub(crate) fn create(path: &Path, spec: &RunSpec, snap: Option<u32>) -> Result<CaptureWriter, LiveError> {
        let failure = |source| LiveError::File { path: path.to_owned(), source };
        let ordinary = fs::metadata(path).map_or(true, |found| found.is_file());
        if ordinary && !may_be_replaced(path).map_err(failure)? {
            let why = "it is no capture, and would be lost: choose another name, or remove it";
            return Err(failure(io::Error::new(io::ErrorKind::AlreadyExists, why)));
        }
        let hidden = ordinary.then(|| hidden_name(path)).transpose().map_err(failure)?;
        let file = File::create(hidden.as_deref().unwrap_or(path)).map_err(failure)?;
        let hidden = hidden.map(HiddenFile);

        let is_virtual = spec.live.as_deref().is_some_and(|live| live.clock == Clock::Virtual);
        #[expect(clippy::disallowed_methods, reason = "what a clock on the wall shows at time 0, for people")]
        let now = if is_virtual { UNIX_EPOCH } else { SystemTime::now() };
        let epoch = now.duration_since(UNIX_EPOCH).map_or(0, |since| u64::try_from(since.as_nanos()).unwrap_or(0));
        let nodes = spec.live.as_deref().map_or(&[][..], |live| &live.nodes);
        let devices = || nodes.iter().filter_map(|node| Some((node, device(node)?)));

        let (full, to_write) = sync_channel(CHUNKS);
        // Writing to the memory makes the kernel provide it.
        let ready = (0..READY).map(|_| vec![1; CHUNK]);
        let empty = Arc::new(EmptyChunks::default());
        ready.for_each(|chunk| empty.give_back(chunk));
        let failed = Arc::new(AtomicBool::new(false));
        let (told, give_back) = (failed.clone(), empty.clone());
        let counts = vec![0; devices().count()];
        let room = statistics(epoch, epoch, &counts).len();
        let blocks = BlockFile::new(file, counts.len(), epoch, room);
        let thread = thread::Builder::new()
            .name("capture".to_owned())
            .spawn(move || write_all(blocks, epoch, &to_write, &give_back, &told))
            .map_err(failure)?;

        let snap = snap.map_or(SNAPLEN, |snap| snap.min(SNAPLEN));
        let mut chunk = Vec::with_capacity(CHUNK);
        section_header(&mut chunk, spec);
        for (node, tun) in devices() {
            interface_description(&mut chunk, &node.name, tun, snap);
        }
        for interface in 0..devices().count() as u32 {
            interface_statistics(&mut chunk, interface, epoch, epoch, None);
        }
        let mut numbers = 0..;
        Ok(CaptureWriter {
            path: path.to_owned(),
            hidden,
            thread,
            full,
            empty,
            chunks: READY + 1,
            chunk,
            epoch,
            interfaces: nodes.iter().map(|node| device(node).and_then(|_| numbers.next())).collect(),
            snap,
            counts,
            failed,
            waits: is_virtual,
            stalled: None,
        })
    }

    /// Records a packet; the times in one direction must not decrease. [`CaptureWriter::failed`]
    /// and [`CaptureWriter::finish`] report errors.
    #[inline]
    pub(crate) fn packet(&mut self, at: Time, node: usize, way: CaptureDirection, bytes: &[u8]) {
        let Some(interface) = self.interfaces.get(node).copied().flatten() else { return };
        let (original, bytes) = (bytes.len(), &bytes[..bytes.len().min(self.snap as usize)]);
        if self.chunk.len() + PACKET_BLOCK + bytes.len() + 3 > CHUNK {
            self.hand_over();
        }
        if self.stalled.is_some() {
            return;
        }
        self.counts[interface as usize] += 1;
        let at = self.epoch.saturating_add(at.as_nanos());
        enhanced_packet(&mut self.chunk, (interface, way), at, bytes, original);
    }

    /// Records changes that were made together, each `KEY=VALUE`.
    pub(crate) fn change(&mut self, at: Time, set: &[String]) {
        let room = SHORTEST_STATISTICS + set.iter().map(|text| CHANGE.len() + text.len() + 8).sum::<usize>();
        if self.chunk.len() + room > CHUNK {
            self.hand_over();
        }
        if self.stalled.is_some() || self.counts.is_empty() {
            return;
        }
        let begin = begin_block(&mut self.chunk, ISB_MAGIC);
        self.chunk.extend(0u32.to_le_bytes());
        self.chunk.extend(timestamp(self.epoch.saturating_add(at.as_nanos())));
        for text in set {
            option(&mut self.chunk, OptionCode::Comment, format!("{CHANGE}{text}").as_bytes());
        }
        end_block(&mut self.chunk, begin);
    }

    /// Returns `true` if writing has failed; cheap.
    pub(crate) fn failed(&self) -> bool {
        self.stalled.is_some() || self.failed.load(Ordering::Relaxed)
    }

    /// Passes the chunk to the thread and takes an empty one.
    #[cold]
    fn hand_over(&mut self) {
        if self.stalled.is_some() {
            return;
        }
        let empty = match self.empty.take() {
            Some(chunk) => chunk,
            None if self.chunks < CHUNKS || self.waits => {
                self.chunks += 1;
                Vec::with_capacity(CHUNK)
            }
            None => {
                self.stalled = Some(self.counts.iter().sum());
                return;
            }
        };
        let chunk = std::mem::replace(&mut self.chunk, empty);
        // The channel has room for every chunk of a run that does not wait; a thread that has stopped
        // returns its error.
        let sent = if self.waits { self.full.send(chunk).is_ok() } else { self.full.try_send(chunk).is_ok() };
        if !sent {
            self.stalled = Some(self.counts.iter().sum());
        }
    }

    /// Completes the capture of a run that ended at `end`: waits for the disk and renames the file.
    pub(crate) fn finish(mut self, end: Time) -> Result<(), LiveError> {
        let end = self.epoch.saturating_add(end.as_nanos());
        self.chunk.extend(statistics(self.epoch, end, &self.counts));
        let CaptureWriter { path, hidden, thread, full, chunk, stalled, .. } = self;
        let sent = full.send(chunk);
        drop(full);
        let died =
            |_| Err(WriteFailure { source: io::Error::other("the thread that writes it has died"), kept: false });
        let appear = || hidden.as_ref().map_or(Ok(()), |hidden| fs::rename(&hidden.0, &path));
        let up_to_there = |source: io::Error| match appear() {
            Ok(()) if hidden.is_some() => {
                io::Error::new(source.kind(), format!("{source}; what was captured up to there is kept"))
            }
            _ => source,
        };
        let result = match (thread.join().unwrap_or_else(died), stalled, sent) {
            (Err(WriteFailure { source, kept: true }), ..) => Err(up_to_there(source)),
            (Err(WriteFailure { source, kept: false }), ..) => Err(source),
            (Ok(_), Some(packets), _) => Err(up_to_there(io::Error::other(format!(
                "the disk cannot keep up: {} MiB are waiting to be written after {packets} packets",
                (CHUNK * CHUNKS) >> 20
            )))),
            (Ok(_), None, Err(_)) => Err(io::ErrorKind::BrokenPipe.into()),
            (Ok(file), None, Ok(())) => {
                let stored = if hidden.is_some() { file.sync_all() } else { Ok(()) };
                stored.and_then(|()| appear())
            }
        };
        drop(hidden);
        result.map_err(|source| LiveError::File { path, source })
    }
}

impl EmptyChunks {
    fn give_back(&self, mut chunk: Vec<u8>) {
        chunk.clear();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(chunk);
    }

    fn take(&self) -> Option<Vec<u8>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }
}

impl Drop for HiddenFile {
    fn drop(&mut self) {
        // After the rename the hidden file no longer exists.
        let _ = fs::remove_file(&self.0);
    }
}

/// The description of a host's interface: its device, or its stack; `None` for one that has neither.
fn device(node: &NodeSpec) -> Option<&str> {
    node.tun.as_deref().or_else(|| node.stack.as_ref().map(|stack| stack.name()))
}

/// The name of the file while it is written, in its final directory.
fn hidden_name(path: &Path) -> io::Result<PathBuf> {
    let name = path.file_name().ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "it has no name"))?;
    let mut hidden = OsString::from(".");
    hidden.push(name);
    hidden.push(".partial");
    Ok(path.with_file_name(hidden))
}

/// The thread: writes chunks until the channel is closed. Time 0 is at `epoch`.
fn write_all(
    mut blocks: BlockFile,
    epoch: u64,
    full: &Receiver<Vec<u8>>,
    empty: &EmptyChunks,
    failed: &AtomicBool,
) -> Result<File, WriteFailure> {
    for chunk in full {
        if let Err((source, written)) = blocks.write(&chunk) {
            failed.store(true, Ordering::Relaxed);
            let kept = blocks.keep(&chunk, written, |extent| statistics(epoch, extent.last, &extent.packets));
            return Err(WriteFailure { source, kept });
        }
        empty.give_back(chunk);
    }
    Ok(blocks.into_file())
}

/// The blocks that end a capture at `end`: the packet count of each interface.
pub(super) fn statistics(start: u64, end: u64, packets: &[u64]) -> Vec<u8> {
    let mut blocks = Vec::new();
    for (interface, &packets) in packets.iter().enumerate() {
        interface_statistics(&mut blocks, interface as u32, start, end, Some(packets));
    }
    blocks
}

fn section_header(to: &mut Vec<u8>, spec: &RunSpec) {
    let begin = begin_block(to, SHB_MAGIC);
    to.extend(BOM_MAGIC.to_le_bytes());
    // Version 1.0; the length of the section is not known.
    to.extend([1, 0, 0, 0]);
    to.extend((-1i64).to_le_bytes());
    let RunSpec { title, seed, run, .. } = spec;
    let title: String = title.chars().take(TEXT / 4 - 128).collect();
    let comment = format!("{title}\nseed {seed}, run {run}, {SCENARIO}{:016x}", fingerprint(spec));
    option(to, OptionCode::Comment, comment.as_bytes());
    option(to, OptionCode::ShbUserAppl, format!("{APPLICATION} {}", env!("CARGO_PKG_VERSION")).as_bytes());
    end_block(to, begin);
}

fn interface_description(to: &mut Vec<u8>, name: &str, tun: &str, snap: u32) {
    let begin = begin_block(to, IDB_MAGIC);
    to.extend(RAW_IP.to_le_bytes());
    to.extend([0, 0]);
    to.extend(snap.to_le_bytes());
    option(to, OptionCode::IfName, name.as_bytes());
    option(to, OptionCode::IfDescription, tun.as_bytes());
    // Units of 10^-9 s.
    option(to, OptionCode::IfTsresol, &[9]);
    end_block(to, begin);
}

/// A statistics block: the start of the run, and at the end also its end and the packet count.
fn interface_statistics(to: &mut Vec<u8>, interface: u32, start: u64, now: u64, packets: Option<u64>) {
    let begin = begin_block(to, ISB_MAGIC);
    to.extend(interface.to_le_bytes());
    to.extend(timestamp(now));
    option(to, OptionCode::IsbStartTime, &timestamp(start));
    if let Some(packets) = packets {
        option(to, OptionCode::IsbEndTime, &timestamp(now));
        option(to, OptionCode::IsbIfRecv, &packets.to_le_bytes());
    }
    end_block(to, begin);
}

/// An enhanced packet block for a packet of `original` bytes, captured as `bytes`.
#[inline]
fn enhanced_packet(
    to: &mut Vec<u8>,
    (interface, way): (u32, CaptureDirection),
    at: u64,
    bytes: &[u8],
    original: usize,
) {
    let padding = bytes.len().wrapping_neg() % 4;
    let len = (PACKET_BLOCK + bytes.len() + padding) as u32;
    let mut head = [0; 28];
    head[0..4].copy_from_slice(&EPB_MAGIC.to_le_bytes());
    head[4..8].copy_from_slice(&len.to_le_bytes());
    head[8..12].copy_from_slice(&interface.to_le_bytes());
    head[12..20].copy_from_slice(&timestamp(at));
    head[20..24].copy_from_slice(&(bytes.len() as u32).to_le_bytes());
    head[24..28].copy_from_slice(&(original as u32).to_le_bytes());
    to.extend_from_slice(&head);
    to.extend_from_slice(bytes);
    to.extend_from_slice(&[0; 3][..padding]);
    let flags = match way {
        CaptureDirection::FromHost => OUTBOUND,
        CaptureDirection::ToHost => INBOUND,
    };
    let mut tail = [0; 16];
    // epb_flags has code 2 and 4 bytes; opt_endofopt has neither.
    tail[0..4].copy_from_slice(&[2, 0, 4, 0]);
    tail[4..8].copy_from_slice(&flags.to_le_bytes());
    tail[12..16].copy_from_slice(&len.to_le_bytes());
    to.extend_from_slice(&tail);
}

/// A timestamp, upper half first (s4.3).
fn timestamp(nanos: u64) -> [u8; 8] {
    nanos.rotate_left(32).to_le_bytes()
}

/// Begins a block and returns its position; [`end_block`] fills in the length.
fn begin_block(to: &mut Vec<u8>, kind: u32) -> usize {
    let begin = to.len();
    to.extend(kind.to_le_bytes());
    to.extend([0; 4]);
    begin
}

/// Ends the options and writes both lengths of the block (s3.1).
fn end_block(to: &mut Vec<u8>, begin: usize) {
    to.extend([0; 4]);
    let len = ((to.len() - begin + 4) as u32).to_le_bytes();
    to[begin + 4..begin + 8].copy_from_slice(&len);
    to.extend(len);
}

/// An option with its padding (s3.5); a value that is too long is truncated.
fn option(to: &mut Vec<u8>, code: OptionCode, value: &[u8]) {
    let value = &value[..value.len().min(TEXT)];
    to.extend(code.0.to_le_bytes());
    to.extend((value.len() as u16).to_le_bytes());
    to.extend(value);
    to.extend(&[0; 3][..value.len().wrapping_neg() % 4]);
}
