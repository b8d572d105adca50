//! A network device of one packet in each direction.

use smoltcp::phy::{Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::time::Instant;

/// Holds the packet that arrives and the packet that leaves; both buffers are used again.
#[derive(Debug)]
pub(super) struct SingleSlotDevice {
    arrival: PacketBuffer,
    departure: PacketBuffer,
    mtu: usize,
}

#[derive(Debug, Default)]
struct PacketBuffer {
    bytes: Vec<u8>,
    /// True if the bytes are a packet on its way.
    present: bool,
}

impl SingleSlotDevice {
    pub(super) fn new(mtu: usize) -> SingleSlotDevice {
        SingleSlotDevice { arrival: PacketBuffer::default(), departure: PacketBuffer::default(), mtu }
    }

    /// Room for an arriving packet of `len` bytes.
    pub(super) fn arrival(&mut self, len: usize) -> &mut [u8] {
        self.arrival.bytes.resize(len, 0);
        &mut self.arrival.bytes
    }

    /// The packet written to [`SingleSlotDevice::arrival`] arrives at the next poll.
    pub(super) fn arrives(&mut self) {
        self.arrival.present = true;
    }

    /// The packet that was sent, once.
    pub(super) fn take_departure(&mut self) -> Option<&[u8]> {
        std::mem::take(&mut self.departure.present).then_some(&self.departure.bytes[..])
    }
}

impl Device for SingleSlotDevice {
    type RxToken<'a> = InFrame<'a>;
    type TxToken<'a> = OutFrame<'a>;

    fn receive(&mut self, _now: Instant) -> Option<(InFrame<'_>, OutFrame<'_>)> {
        std::mem::take(&mut self.arrival.present)
            .then_some((InFrame(&self.arrival.bytes), OutFrame(&mut self.departure)))
    }

    fn transmit(&mut self, _now: Instant) -> Option<OutFrame<'_>> {
        (!self.departure.present).then_some(OutFrame(&mut self.departure))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ip;
        capabilities.max_transmission_unit = self.mtu;
        capabilities
    }
}

/// The right to read the packet that arrived.
#[derive(Debug)]
pub(super) struct InFrame<'a>(&'a [u8]);

impl RxToken for InFrame<'_> {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, read: F) -> R {
        read(self.0)
    }
}

/// The right to write the packet that leaves.
#[derive(Debug)]
pub(super) struct OutFrame<'a>(&'a mut PacketBuffer);

impl TxToken for OutFrame<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, write: F) -> R {
        self.0.bytes.clear();
        self.0.bytes.resize(len, 0);
        self.0.present = true;
        write(&mut self.0.bytes)
    }
}
