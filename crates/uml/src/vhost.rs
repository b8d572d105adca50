//! A network interface of a guest: the device's side of vhost-user, with notifications in band.
//!
//! Kicks and calls are messages like all others, each answered, and not events on descriptors of
//! their own. Nothing is therefore ever in progress at an unknown time, which is what a virtual clock
//! needs.
//!
//! # Source
//!
//! - QEMU, `docs/interop/vhost-user.rst`: messages, `REPLY_ACK`, `INBAND_NOTIFICATIONS`.
//! - Linux 6.1, `arch/um/drivers/virtio_uml.c` and `vhost_user.h`: the driver's side.
//! - VIRTIO 1.1, section 5.1: the network device, its header (5.1.6) and configuration (5.1.4).
//!
//! # Departures
//!
//! - No offload is offered. A driver that cannot leave checksums to the device has no scatter-gather
//!   and no segmentation (`netdev_fix_features`), hence one packet of the guest is one of the link.
//! - Merged receive buffers are offered to guests with an MTU above 1,500 bytes only: they change
//!   the memory that a packet is charged with (`truesize`), and with it TCP's receive window.

use std::collections::VecDeque;
use std::fs::File;
use std::os::fd::OwnedFd;

use crate::vring::{GuestMemory, Region, RingFault, VirtRing};

/// Bytes of a message's header: request, flags, size.
pub(crate) const HEADER: usize = 12;
/// The most bytes of a payload: that of a table of eight regions, and a configuration, are less.
const MAX_PAYLOAD: u32 = 4096;
/// The most regions of memory.
const MAX_REGIONS: usize = 8;

const VERSION: u32 = 1;
const VERSION_MASK: u32 = 3;
const REPLY: u32 = 1 << 2;
const NEED_REPLY: u32 = 1 << 3;

/// `VIRTIO_F_VERSION_1`, `VIRTIO_NET_F_MAC`, `VIRTIO_NET_F_MRG_RXBUF`.
const VERSION_1: u64 = 1 << 32;
const MAC: u64 = 1 << 5;
const MERGED: u64 = 1 << 15;
/// `VHOST_USER_F_PROTOCOL_FEATURES`.
const PROTOCOL_FEATURES: u64 = 1 << 30;
/// `REPLY_ACK`, `BACKEND_REQ`, `CONFIG`, `INBAND_NOTIFICATIONS` of protocol features: all are needed.
const PROTOCOL: u64 = 1 << 3 | 1 << 5 | 1 << 9 | 1 << 14;

/// `struct virtio_net_hdr_v1`; the count of buffers is in its last two bytes.
const NET_HEADER: usize = 12;
/// The most bytes of a frame: those of the longest IP packet, and a header of Ethernet.
const MAX_FRAME: usize = 65_535 + 14;

/// Queues of the device (section 5.1.2).
pub(crate) const RECEIVE: usize = 0;
const SEND: usize = 1;

/// A message of the driver.
#[derive(Debug)]
pub(crate) struct VhostMessage {
    pub(crate) request: u32,
    pub(crate) flags: u32,
    pub(crate) payload: Vec<u8>,
    pub(crate) fds: Vec<OwnedFd>,
}

/// Request, flags and length of the payload of the message with this header.
pub(crate) fn parse_header(bytes: &[u8; HEADER]) -> Result<(u32, u32, usize), RingFault> {
    let (request, flags, size) = (word(bytes, 0)?, word(bytes, 4)?, word(bytes, 8)?);
    if flags & VERSION_MASK != VERSION {
        return Err(RingFault(format!(
            "vhost-user message {request} of version {}, not {VERSION}",
            flags & VERSION_MASK
        )));
    }
    if size > MAX_PAYLOAD {
        return Err(RingFault(format!("vhost-user message {request} of {size} bytes, more than {MAX_PAYLOAD}")));
    }
    Ok((request, flags, size as usize))
}

/// The bytes of a reply.
fn reply(request: u32, payload: &[u8]) -> Vec<u8> {
    message(request, VERSION | REPLY, payload)
}

/// The bytes of a call of the driver: queue `number` has something.
pub(crate) fn call(number: usize) -> Vec<u8> {
    // VHOST_USER_BACKEND_VRING_CALL, with struct vhost_vring_state.
    let mut state = [0; 8];
    state[..4].copy_from_slice(&(number as u32).to_ne_bytes());
    message(4, VERSION | NEED_REPLY, &state)
}

/// Whether the reply to a call says that it was understood.
pub(crate) fn is_accepted(flags: u32, payload: &[u8]) -> bool {
    flags & REPLY != 0 && payload.iter().all(|&byte| byte == 0)
}

fn message(request: u32, flags: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER + payload.len());
    for word in [request, flags, payload.len() as u32] {
        bytes.extend(word.to_ne_bytes());
    }
    bytes.extend(payload);
    bytes
}

/// What follows from a message.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// Bytes to answer.
    pub(crate) reply: Option<Vec<u8>>,
    /// The connection on which the driver takes calls.
    pub(crate) calls: Option<OwnedFd>,
    /// Frames were taken from the driver.
    pub(crate) has_sent: bool,
}

/// The device.
#[derive(Debug)]
pub(crate) struct VhostDevice {
    features: u64,
    /// Protocol features are agreed upon.
    is_agreed: bool,
    config: [u8; 12],
    memory: GuestMemory,
    rings: [VirtRing; 2],
    /// Frames of the driver.
    pub(crate) sent: VecDeque<Vec<u8>>,
    /// Frames for the driver, which wait for buffers.
    pub(crate) waiting: VecDeque<Vec<u8>>,
    /// Buffers of frames that are done with.
    spare: Vec<Vec<u8>>,
    /// Buffers of this queue went back, and the driver has not been told.
    is_returned: [bool; 2],
}

impl VhostDevice {
    /// A device with this hardware address, for packets of `mtu` bytes.
    pub(crate) fn new(mac: [u8; 6], mtu: u16) -> VhostDevice {
        let mut config = [0; 12];
        config[..6].copy_from_slice(&mac);
        VhostDevice {
            features: VERSION_1 | MAC | PROTOCOL_FEATURES | if mtu > 1500 { MERGED } else { 0 },
            is_agreed: false,
            config,
            memory: GuestMemory::default(),
            rings: [VirtRing::default(), VirtRing::default()],
            sent: VecDeque::new(),
            waiting: VecDeque::new(),
            spare: Vec::new(),
            is_returned: [false; 2],
        }
    }

    /// A message of the driver.
    pub(crate) fn receive(&mut self, message: VhostMessage) -> Result<Outcome, RingFault> {
        let VhostMessage { request, flags, payload, mut fds } = message;
        let mut outcome = Outcome::default();
        let mut own_reply = None;
        match request {
            // GET_FEATURES, SET_FEATURES
            1 => own_reply = Some(self.features.to_ne_bytes().to_vec()),
            2 => self.set_features(long(&payload, 0)?)?,
            // SET_OWNER, RESET_OWNER
            3 | 4 => {}
            // SET_MEM_TABLE
            5 => self.set_memory(&payload, fds)?,
            // SET_VRING_NUM, SET_VRING_ADDR, SET_VRING_BASE, GET_VRING_BASE
            8 => self.ring(&payload)?.set_size(word(&payload, 4)?)?,
            9 => {
                let at = |at| self.memory.guest_address(long(&payload, at)?);
                let (descriptors, used, available) = (at(8)?, at(16)?, at(24)?);
                self.ring(&payload)?.set_addresses(descriptors, available, used);
            }
            10 => {
                let base = word(&payload, 4)?;
                let base = u16::try_from(base).map_err(|_| RingFault(format!("a queue's base is {base}")))?;
                self.ring(&payload)?.set_base(base);
            }
            11 => {
                let base = u32::from(self.ring(&payload)?.base());
                own_reply = Some([word(&payload, 0)?.to_ne_bytes(), base.to_ne_bytes()].concat());
            }
            // SET_VRING_KICK, SET_VRING_CALL, SET_VRING_ERR: descriptors that in-band messages replace.
            12..=14 => {}
            // GET_PROTOCOL_FEATURES, SET_PROTOCOL_FEATURES
            15 => own_reply = Some(PROTOCOL.to_ne_bytes().to_vec()),
            16 => {
                let taken = long(&payload, 0)?;
                if taken != PROTOCOL {
                    return Err(RingFault(format!(
                        "it takes vhost-user features {taken:#x} of {PROTOCOL:#x}: its kernel cannot be notified in \
                         band, as virtual time needs (Linux 5.6 and later can)"
                    )));
                }
                self.is_agreed = true;
            }
            // GET_QUEUE_NUM
            17 => own_reply = Some(2_u64.to_ne_bytes().to_vec()),
            // SET_VRING_ENABLE
            18 => {
                let is_enabled = word(&payload, 4)? != 0;
                self.ring(&payload)?.is_enabled = is_enabled;
            }
            // SET_BACKEND_REQ_FD
            21 => outcome.calls = fds.pop(),
            // GET_CONFIG, SET_CONFIG
            24 => own_reply = Some(self.config(payload)?),
            25 => {}
            // VRING_KICK
            35 => {
                if word(&payload, 0)? as usize == SEND {
                    outcome.has_sent = self.send()?;
                }
            }
            _ => return Err(RingFault(format!("vhost-user message {request} is unknown"))),
        }
        outcome.reply = match own_reply {
            Some(payload) => Some(reply(request, &payload)),
            None if flags & NEED_REPLY != 0 => Some(reply(request, &0_u64.to_ne_bytes())),
            None => None,
        };
        Ok(outcome)
    }

    /// Whether the driver has taken what it needs to.
    pub(crate) fn is_ready(&self) -> bool {
        self.is_agreed && self.rings.iter().all(|ring| ring.is_enabled)
    }

    fn set_features(&mut self, taken: u64) -> Result<(), RingFault> {
        if taken & !self.features != 0 || taken & VERSION_1 == 0 {
            return Err(RingFault(format!("its driver takes features {taken:#x} of {:#x}", self.features)));
        }
        self.features = taken;
        Ok(())
    }

    fn set_memory(&mut self, payload: &[u8], fds: Vec<OwnedFd>) -> Result<(), RingFault> {
        let count = word(payload, 0)? as usize;
        if count != fds.len() || count > MAX_REGIONS {
            return Err(RingFault(format!("{count} regions of memory with {} files", fds.len())));
        }
        let region = |(number, fd): (usize, OwnedFd)| {
            let field = |field: usize| long(payload, 8 + 32 * number + 8 * field);
            let (guest, size, user, offset) = (field(0)?, field(1)?, field(2)?, field(3)?);
            if [guest, user, offset].iter().any(|from| from.checked_add(size).is_none()) {
                return Err(RingFault(format!("a region of {size} bytes at {guest:#x} has no end")));
            }
            Ok(Region { guest, user, size, offset, file: File::from(fd) })
        };
        self.memory = GuestMemory(fds.into_iter().enumerate().map(region).collect::<Result<_, RingFault>>()?);
        Ok(())
    }

    /// The queue that a payload begins with.
    fn ring(&mut self, payload: &[u8]) -> Result<&mut VirtRing, RingFault> {
        let number = word(payload, 0)?;
        self.rings.get_mut(number as usize).ok_or_else(|| RingFault(format!("queue {number}, of 2")))
    }

    /// The reply to a request for a part of the configuration: it has the same length.
    fn config(&self, mut payload: Vec<u8>) -> Result<Vec<u8>, RingFault> {
        let (offset, size) = (word(&payload, 0)? as usize, word(&payload, 4)? as usize);
        let to = payload.get_mut(12..).filter(|to| to.len() == size);
        let to = to.ok_or_else(|| RingFault(format!("asks for {size} bytes of its configuration with others")))?;
        for (at, byte) in to.iter_mut().enumerate() {
            *byte = self.config.get(offset.saturating_add(at)).copied().unwrap_or(0);
        }
        Ok(payload)
    }

    /// Takes the frames that the driver sends.
    fn send(&mut self) -> Result<bool, RingFault> {
        let before = self.sent.len();
        while let Some(head) = self.rings[SEND].take(&self.memory)? {
            let mut frame = self.spare.pop().unwrap_or_default();
            frame.clear();
            for buffer in self.rings[SEND].chain.iter().filter(|buffer| !buffer.is_writable) {
                let (from, len) = (frame.len(), buffer.len as usize);
                if len > NET_HEADER + MAX_FRAME - from {
                    return Err(RingFault(format!("sends a frame of more than {MAX_FRAME} bytes")));
                }
                frame.resize(from + len, 0);
                self.memory.read(buffer.address, &mut frame[from..])?;
            }
            if frame.len() < NET_HEADER {
                return Err(RingFault(format!("sends {} bytes, less than a header", frame.len())));
            }
            frame.drain(..NET_HEADER);
            self.sent.push_back(frame);
            self.rings[SEND].put(&self.memory, head, 0)?;
            self.is_returned[SEND] = true;
        }
        Ok(self.sent.len() > before)
    }

    /// A buffer for a frame.
    pub(crate) fn frame(&mut self) -> Vec<u8> {
        let mut frame = self.spare.pop().unwrap_or_default();
        frame.clear();
        frame
    }

    /// A frame is done with.
    pub(crate) fn recycle(&mut self, frame: Vec<u8>) {
        self.spare.push(frame);
    }

    /// Hands over frames that wait, as long as the driver has buffers.
    pub(crate) fn fill(&mut self) -> Result<(), RingFault> {
        while let Some(frame) = self.waiting.pop_front() {
            if !self.hand_over(&frame)? {
                self.waiting.push_front(frame);
                break;
            }
            self.is_returned[RECEIVE] = true;
            self.spare.push(frame);
        }
        Ok(())
    }

    /// Writes a frame into the driver's buffers; `false` if they do not suffice now.
    fn hand_over(&mut self, frame: &[u8]) -> Result<bool, RingFault> {
        let ring = &mut self.rings[RECEIVE];
        let base = ring.base();
        let mut used: Vec<(u16, u32)> = Vec::new();
        let mut count_at = None;
        // Bytes of header and frame so far.
        let (mut at, total) = (0, NET_HEADER + frame.len());
        while at < total {
            let Some(head) = ring.take(&self.memory)? else {
                ring.restore(base);
                return Ok(false);
            };
            let before = at;
            for buffer in ring.chain.iter().filter(|buffer| buffer.is_writable) {
                let mut address = buffer.address;
                let mut room = buffer.len as usize;
                if at == 0 {
                    if room < NET_HEADER {
                        return Err(RingFault(format!("a receive buffer of {room} bytes, less than a header")));
                    }
                    self.memory.write(address, &[0; NET_HEADER])?;
                    count_at = Some(address + NET_HEADER as u64 - 2);
                    (at, room, address) = (NET_HEADER, room - NET_HEADER, address + NET_HEADER as u64);
                }
                let from = at - NET_HEADER;
                let part = &frame[from..frame.len().min(from + room)];
                self.memory.write(address, part)?;
                at += part.len();
            }
            used.push((head, (at - before) as u32));
            if at < total && self.features & MERGED == 0 {
                return Err(RingFault(format!("a receive buffer of less than {total} bytes")));
            }
            if at == before {
                return Err(RingFault("a receive buffer of no bytes".to_owned()));
            }
        }
        if let Some(count_at) = count_at {
            self.memory.write(count_at, &(used.len() as u16).to_le_bytes())?;
        }
        for (head, len) in used {
            ring.put(&self.memory, head, len)?;
        }
        Ok(true)
    }

    /// The next queue that the driver is to be called for.
    pub(crate) fn next_call(&mut self) -> Result<Option<usize>, RingFault> {
        for number in [RECEIVE, SEND] {
            if std::mem::take(&mut self.is_returned[number]) && self.rings[number].wants_call(&self.memory)? {
                return Ok(Some(number));
            }
        }
        Ok(None)
    }
}

/// The 32-bit number at `at` of a payload.
fn word(payload: &[u8], at: usize) -> Result<u32, RingFault> {
    let bytes = payload.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
    bytes.map(u32::from_ne_bytes).ok_or_else(|| short(payload))
}

/// The 64-bit number at `at` of a payload.
fn long(payload: &[u8], at: usize) -> Result<u64, RingFault> {
    let bytes = payload.get(at..at + 8).and_then(|bytes| bytes.try_into().ok());
    bytes.map(u64::from_ne_bytes).ok_or_else(|| short(payload))
}

fn short(payload: &[u8]) -> RingFault {
    RingFault(format!("a vhost-user message with a payload of {} bytes is too short", payload.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vring::tests::{AVAILABLE, BASE, BYTES, USED, describe, memory, offer};

    fn words(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    fn longs(longs: &[u64]) -> Vec<u8> {
        longs.iter().flat_map(|long| long.to_ne_bytes()).collect()
    }

    fn tell(device: &mut VhostDevice, request: u32, payload: Vec<u8>) -> Result<Option<Vec<u8>>, RingFault> {
        let message = VhostMessage { request, flags: VERSION | NEED_REPLY, payload, fds: Vec::new() };
        device.receive(message).map(|outcome| outcome.reply)
    }

    const ACK: [u8; 8] = [0; 8];

    /// A device whose queue `number` is the one that `vring::tests` describes.
    fn device(number: u32, mtu: u16) -> (VhostDevice, GuestMemory) {
        let mut device = VhostDevice::new([2, 0, 0, 0, 0, 1], mtu);
        let features = device.features;
        assert_eq!(tell(&mut device, 2, longs(&[features])), Ok(Some(reply(2, &ACK))));
        assert_eq!(tell(&mut device, 16, longs(&[PROTOCOL])), Ok(Some(reply(16, &ACK))));
        let memory = memory();
        let file = memory.0[0].file.try_clone().expect("a second handle");
        let mut table = words(&[1, 0]);
        table.extend(longs(&[BASE, BYTES, 0x7000_0000, 0x1000]));
        let message = VhostMessage { request: 5, flags: VERSION, payload: table, fds: vec![OwnedFd::from(file)] };
        assert!(device.receive(message).expect("a proper table").reply.is_none());
        let mut addresses = words(&[number, 0]);
        let user = |address| address - BASE + 0x7000_0000;
        addresses.extend(longs(&[user(BASE), user(USED), user(AVAILABLE), u64::MAX]));
        for (request, payload) in
            [(8, words(&[number, 4])), (10, words(&[number, 0])), (9, addresses), (18, words(&[number, 1]))]
        {
            assert_eq!(tell(&mut device, request, payload), Ok(Some(reply(request, &ACK))));
        }
        (device, memory)
    }

    #[test]
    fn questions_are_answered_with_what_is_asked() {
        let mut device = VhostDevice::new([2, 0, 0, 0, 0, 1], 1500);
        // The driver compares flags with REPLY and version 1 (vhost_user_recv_resp).
        let mut expected = words(&[1, 5, 8]);
        expected.extend(longs(&[1 << 32 | 1 << 30 | 1 << 5]));
        assert_eq!(tell(&mut device, 1, Vec::new()), Ok(Some(expected)));
        // Six bytes at 0: the reply is as long as the question, which the driver checks.
        let mut asked = words(&[0, 6, 0]);
        asked.extend([0; 6]);
        let mut config = words(&[24, 5, 18, 0, 6, 0]);
        config.extend([2, 0, 0, 0, 0, 1]);
        assert_eq!(tell(&mut device, 24, asked), Ok(Some(config)));
        assert!(!device.is_ready());
    }

    #[test]
    fn frames_of_the_driver_lose_their_header() {
        let (mut device, memory) = device(1, 1500);
        memory.write(0x2000 + 12, b"first").expect("inside");
        memory.write(0x2100, b" part").expect("inside");
        describe(&memory, 0, 0x2000, 12 + 5, 1, 3);
        describe(&memory, 3, 0x2100, 5, 0, 0);
        offer(&memory, 1, 0);
        let kick = VhostMessage { request: 35, flags: VERSION | NEED_REPLY, payload: words(&[1, 0]), fds: Vec::new() };
        let outcome = device.receive(kick).expect("a proper kick");
        assert!(outcome.has_sent);
        assert_eq!(outcome.reply, Some(reply(35, &ACK)));
        assert_eq!(device.sent.pop_front().as_deref(), Some(&b"first part"[..]));
        assert_eq!((device.next_call(), device.next_call()), (Ok(Some(1)), Ok(None)));
    }

    #[test]
    fn frames_for_the_driver_wait_for_buffers() {
        let (mut device, memory) = device(0, 1500);
        device.waiting.extend([b"one".to_vec(), b"two".to_vec()]);
        device.fill().expect("no fault");
        assert_eq!((device.waiting.len(), device.next_call()), (2, Ok(None)));
        describe(&memory, 1, 0x2000, 1530, 2, 0);
        offer(&memory, 1, 1);
        device.fill().expect("no fault");
        assert_eq!((device.waiting.len(), device.next_call()), (1, Ok(Some(0))));
        let mut bytes = [0; 15];
        memory.read(0x2000, &mut bytes).expect("inside");
        assert_eq!(bytes, *b"\0\0\0\0\0\0\0\0\0\0\x01\0one");
        let mut used = [0; 8];
        memory.read(USED + 4, &mut used).expect("inside");
        assert_eq!(used, [1, 0, 0, 0, 15, 0, 0, 0]);
    }

    /// A packet of 100 bytes in buffers of 60: 12 + 48, and 52. The driver offers them one by one.
    #[test]
    fn long_frames_are_spread_over_buffers() {
        let (mut device, memory) = device(0, 9000);
        device.waiting.push_back(vec![7; 100]);
        describe(&memory, 0, 0x2000, 60, 2, 0);
        describe(&memory, 1, 0x3000, 60, 2, 0);
        offer(&memory, 1, 0);
        device.fill().expect("no fault");
        assert_eq!(device.waiting.len(), 1);
        offer(&memory, 2, 1);
        device.fill().expect("no fault");
        assert_eq!(device.waiting.len(), 0);
        let mut count = [0; 2];
        memory.read(0x2000 + 10, &mut count).expect("inside");
        assert_eq!(count, [2, 0]);
        let mut used = [0; 16];
        memory.read(USED + 4, &mut used).expect("inside");
        assert_eq!(used, [0, 0, 0, 0, 60, 0, 0, 0, 1, 0, 0, 0, 52, 0, 0, 0]);
    }

    #[test]
    fn a_driver_that_breaks_the_protocol_is_refused() {
        let mut device = VhostDevice::new([0; 6], 1500);
        // Every request with every length of payload up to that of the longest: no panic.
        for request in 0..64 {
            for len in 0..64 {
                for byte in [0, 1, 0xff] {
                    let _ = tell(&mut device, request, vec![byte; len]);
                }
            }
        }
        let mut device = VhostDevice::new([0; 6], 1500);
        assert!(tell(&mut device, 2, longs(&[1 << 32 | 1 << 28])).is_err(), "what was not offered");
        assert!(tell(&mut device, 2, longs(&[1 << 5])).is_err(), "a legacy driver");
        assert!(tell(&mut device, 16, longs(&[1 << 3])).is_err(), "no notifications in band");
        assert!(tell(&mut device, 8, words(&[2, 4])).is_err(), "a third queue");
        assert!(tell(&mut device, 5, words(&[1, 0])).is_err(), "no file");
        assert!(tell(&mut device, 99, Vec::new()).is_err(), "no such message");
        let header = |words: [u32; 3]| {
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
            parse_header(&bytes.try_into().expect("twelve bytes"))
        };
        assert_eq!(header([35, 9, 8]), Ok((35, 9, 8)));
        assert!(header([35, 8, 8]).is_err() && header([35, 9, 4097]).is_err());
    }

    #[test]
    fn frames_have_lengths_that_exist() {
        let kick = || VhostMessage { request: 35, flags: VERSION, payload: words(&[1, 0]), fds: Vec::new() };
        for len in [0, 11, u32::MAX] {
            let (mut device, memory) = device(1, 1500);
            describe(&memory, 0, 0x2000, len, 0, 0);
            offer(&memory, 1, 0);
            assert!(device.receive(kick()).is_err(), "{len}");
        }
        let (mut device, memory) = device(0, 1500);
        device.waiting.push_back(vec![7; 100]);
        describe(&memory, 0, 0x2000, 60, 2, 0);
        offer(&memory, 1, 0);
        assert!(device.fill().is_err(), "too short a buffer");
        let (mut device, memory) = self::device(0, 9000);
        device.waiting.push_back(vec![7; 100]);
        describe(&memory, 0, u64::MAX - 20, 60, 2, 0);
        offer(&memory, 1, 0);
        assert!(device.fill().is_err(), "outside of the memory");
    }
}
