//! Protocols over UDP: datagrams in place of IP packets.

use std::net::{IpAddr, SocketAddr};

use ackclock_units::outside::Failure;
use ackclock_units::{Ecn, Time};
use etherparse::{IpEcn, IpNumber, Ipv4Header, Ipv6Header, NetSlice, SlicedPacket, TransportSlice, UdpHeader};

use crate::{RecoveryEvent, Stack};

/// Hop limit of packets that are sent.
const HOP_LIMIT: u8 = 64;

/// A UDP datagram with the fields of its IP header that transport protocols use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram<'a> {
    /// Address and port of the sender.
    pub from: SocketAddr,
    /// Address and port of the receiver.
    pub to: SocketAddr,
    /// ECN codepoint.
    pub ecn: Ecn,
    /// Contents.
    pub payload: &'a [u8],
}

/// A transport protocol over UDP, with its applications.
pub trait Transport: Send {
    /// A datagram has reached the host.
    fn input(&mut self, now: Time, datagram: Datagram<'_>);

    /// Appends the payload of the next datagram to send at `now` to `payload`, which is empty, and
    /// returns its destination and codepoint; `None` if there is nothing to send now.
    fn output(&mut self, now: Time, payload: &mut Vec<u8>) -> Option<(SocketAddr, Ecn)>;

    /// The address and port of the host now, if they are no longer those of its socket: datagrams leave
    /// from there, and those for another address are discarded. Default: they have not changed.
    fn moved_to(&self) -> Option<SocketAddr> {
        None
    }

    /// As [`Stack::next_deadline`].
    fn next_deadline(&self) -> Time;

    /// As [`Stack::on_deadline`].
    fn on_deadline(&mut self, now: Time);

    /// As [`Stack::failure`].
    fn failure(&self) -> Option<&Failure> {
        None
    }

    /// As [`Stack::results`].
    fn results(&self, now: Time, see: &mut dyn FnMut(&'static str, f64)) {
        let _ = (now, see);
    }

    /// As [`Stack::observe`].
    fn observe(&mut self) {}

    /// As [`Stack::observed`].
    fn observed(&mut self, see: &mut dyn FnMut(Time, RecoveryEvent)) {
        let _ = see;
    }
}

/// A host with one UDP socket, which a [`Transport`] uses. Datagrams for other ports, with a wrong
/// checksum, or in fragments are discarded.
#[derive(Debug)]
pub struct UdpHost<T> {
    local: SocketAddr,
    transport: T,
    payload: Vec<u8>,
    failure: Option<Failure>,
}

impl<T: Transport> UdpHost<T> {
    /// A host whose socket is bound to `local`.
    pub fn new(local: SocketAddr, transport: T) -> UdpHost<T> {
        UdpHost { local, transport, payload: Vec::new(), failure: None }
    }
}

impl<T: Transport> Stack for UdpHost<T> {
    fn input(&mut self, now: Time, packet: &[u8]) {
        if let Some(datagram) = read_udp(packet)
            && datagram.to == self.transport.moved_to().unwrap_or(self.local)
        {
            self.transport.input(now, datagram);
        }
    }

    fn output(&mut self, now: Time, buffer: &mut [u8]) -> Option<usize> {
        self.payload.clear();
        let (to, ecn) = self.transport.output(now, &mut self.payload)?;
        let from = self.transport.moved_to().unwrap_or(self.local);
        let datagram = Datagram { from, to, ecn, payload: &self.payload };
        let written = write_udp(datagram, buffer);
        if written.is_none() {
            let (bytes, most) = (self.payload.len(), buffer.len());
            let what = format!("a datagram of {bytes} bytes from {from} to {to} does not fit the MTU of {most}");
            self.failure.get_or_insert_with(|| Failure::new(now, what));
        }
        written
    }

    fn next_deadline(&self) -> Time {
        self.transport.next_deadline()
    }

    fn on_deadline(&mut self, now: Time) {
        self.transport.on_deadline(now);
    }

    fn failure(&self) -> Option<&Failure> {
        self.failure.as_ref().or_else(|| self.transport.failure())
    }

    fn results(&self, now: Time, see: &mut dyn FnMut(&'static str, f64)) {
        self.transport.results(now, see);
    }

    fn observe(&mut self) {
        self.transport.observe();
    }

    fn observed(&mut self, see: &mut dyn FnMut(Time, RecoveryEvent)) {
        self.transport.observed(see);
    }
}

/// The datagram in an IP packet; `None` if it is anything else, a fragment, or damaged.
pub fn read_udp(packet: &[u8]) -> Option<Datagram<'_>> {
    let sliced = SlicedPacket::from_ip(packet).ok()?;
    let (source, destination, ecn) = match sliced.net.as_ref()? {
        NetSlice::Ipv4(ip) => {
            let header = ip.header();
            (IpAddr::V4(header.source_addr()), IpAddr::V4(header.destination_addr()), header.ecn().value())
        }
        NetSlice::Ipv6(ip) => {
            let header = ip.header();
            (IpAddr::V6(header.source_addr()), IpAddr::V6(header.destination_addr()), header.traffic_class() & 0b11)
        }
        NetSlice::Arp(_) => return None,
    };
    let Some(TransportSlice::Udp(udp)) = sliced.transport else { return None };
    // RFC 768: zero is no checksum, over IPv4.
    let is_right = match udp.checksum() {
        0 => source.is_ipv4(),
        // With the checksum itself the sum is all ones.
        _ => folded(source, destination, udp.slice())? == 0xffff,
    };
    is_right.then_some(Datagram {
        from: SocketAddr::new(source, udp.source_port()),
        to: SocketAddr::new(destination, udp.destination_port()),
        ecn: Ecn::from_bits(ecn),
        payload: udp.payload(),
    })
}

/// Writes a datagram as an IP packet to the beginning of `buffer`, and returns its length. `None` if
/// it does not fit, or mixes IPv4 and IPv6.
pub fn write_udp(datagram: Datagram<'_>, buffer: &mut [u8]) -> Option<usize> {
    let Datagram { from, to, ecn, payload } = datagram;
    let udp_len = u16::try_from(UdpHeader::LEN + payload.len()).ok()?;
    let ip_len = if from.is_ipv4() { Ipv4Header::MIN_LEN } else { Ipv6Header::LEN };
    let len = ip_len + usize::from(udp_len);
    let (ip, rest) = buffer.get_mut(..len)?.split_at_mut(ip_len);
    match (from.ip(), to.ip()) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let header = ipv4(source.octets(), destination.octets(), ecn, udp_len)?;
            ip.copy_from_slice(&header.to_bytes());
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            let header = Ipv6Header {
                traffic_class: ecn.bits(),
                payload_length: udp_len,
                next_header: IpNumber::UDP,
                hop_limit: HOP_LIMIT,
                source: source.octets(),
                destination: destination.octets(),
                ..Ipv6Header::default()
            };
            ip.copy_from_slice(&header.to_bytes());
        }
        _ => return None,
    }
    let udp = UdpHeader { source_port: from.port(), destination_port: to.port(), length: udp_len, checksum: 0 };
    rest[..UdpHeader::LEN].copy_from_slice(&udp.to_bytes());
    rest[UdpHeader::LEN..].copy_from_slice(payload);
    let checksum = match !folded(from.ip(), to.ip(), rest)? {
        0 => 0xffff,
        sum => sum,
    };
    // The sum is that of the machine's byte order, in its byte order (RFC 1071 section 2 B).
    rest[6..UdpHeader::LEN].copy_from_slice(&checksum.to_ne_bytes());
    Some(len)
}

/// The one's complement sum of a datagram, header and payload, with its pseudo header (RFC 768; RFC
/// 8200 section 8.1), in the machine's byte order. `None` if it mixes IPv4 and IPv6.
fn folded(from: IpAddr, to: IpAddr, datagram: &[u8]) -> Option<u16> {
    let word = |bytes| u128::from(u32::from_ne_bytes(bytes));
    let addresses = match (from, to) {
        (IpAddr::V4(from), IpAddr::V4(to)) => word(from.octets()) + word(to.octets()),
        (IpAddr::V6(from), IpAddr::V6(to)) => sum(&from.octets()) + sum(&to.octets()),
        _ => return None,
    };
    let [high, low] = u16::try_from(datagram.len()).ok()?.to_be_bytes();
    let sum = addresses + word([0, IpNumber::UDP.0, high, low]) + sum(datagram);
    let (high, low) = ((sum >> 64) as u64, sum as u64);
    let mut sum = (low >> 32) + (low & 0xffff_ffff) + high;
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    Some(sum as u16)
}

/// The sum of words of 64 bits: a one's complement sum of 16 bits before it is folded (RFC 1071 section
/// 2 C).
fn sum(bytes: &[u8]) -> u128 {
    let line = |line: &[u8; 32]| -> u128 {
        line.as_chunks::<8>().0.iter().map(|&word| u128::from(u64::from_ne_bytes(word))).sum()
    };
    let (lines, rest) = bytes.as_chunks::<32>();
    let mut last = [0; 32];
    last[..rest.len()].copy_from_slice(rest);
    lines.iter().map(line).sum::<u128>() + line(&last)
}

/// An IPv4 header that forbids fragmentation (`IP_PMTUDISC_DO`, which QUIC requires: RFC 9000
/// section 14).
fn ipv4(source: [u8; 4], destination: [u8; 4], ecn: Ecn, udp_len: u16) -> Option<Ipv4Header> {
    let mut header = Ipv4Header::new(udp_len, HOP_LIMIT, IpNumber::UDP, source, destination).ok()?;
    header.ecn = IpEcn::try_new(ecn.bits()).ok()?;
    header.header_checksum = header.calc_header_checksum();
    Some(header)
}

#[cfg(test)]
mod tests {
    use etherparse::PacketBuilder;

    use super::*;

    fn pair(v6: bool) -> [SocketAddr; 2] {
        let texts = if v6 { ["[fd00::1]:4433", "[fd00::2]:9"] } else { ["10.0.0.1:4433", "10.0.0.2:9"] };
        texts.map(|text| text.parse().expect("an address"))
    }

    /// Packets are those that etherparse's own builder writes.
    #[test]
    fn datagrams_are_written_and_read() {
        for (v6, len) in [(false, 0), (false, 1), (false, 1472), (true, 0), (true, 777), (true, 1452)] {
            let [from, to] = pair(v6);
            let payload: Vec<u8> = (0..len).map(|number| number as u8).collect();
            let mut buffer = [0; 1500];
            let datagram = Datagram { from, to, ecn: Ecn::Ce, payload: &payload };
            let written = write_udp(datagram, &mut buffer).expect("it fits");
            assert_eq!(read_udp(&buffer[..written]), Some(datagram));

            let mut expected = Vec::new();
            let builder = match (from.ip(), to.ip()) {
                (IpAddr::V4(from), IpAddr::V4(to)) => {
                    let mut header = Ipv4Header::new(0, 64, IpNumber::UDP, from.octets(), to.octets()).unwrap();
                    header.ecn = IpEcn::try_new(3).unwrap();
                    PacketBuilder::ip(etherparse::IpHeaders::Ipv4(header, Default::default()))
                }
                (IpAddr::V6(from), IpAddr::V6(to)) => {
                    let (source, destination) = (from.octets(), to.octets());
                    let header =
                        Ipv6Header { traffic_class: 3, hop_limit: 64, source, destination, ..Ipv6Header::default() };
                    PacketBuilder::ip(etherparse::IpHeaders::Ipv6(header, Default::default()))
                }
                _ => unreachable!(),
            };
            builder.udp(from.port(), to.port()).write(&mut expected, &payload).unwrap();
            assert_eq!(&buffer[..written], expected);
        }
    }

    #[test]
    fn anything_else_is_refused() {
        let [from, to] = pair(false);
        let datagram = Datagram { from, to, ecn: Ecn::NotEct, payload: &[1, 2, 3] };
        let mut buffer = [0; 100];
        let written = write_udp(datagram, &mut buffer).unwrap();
        // Every damaged bit of ports, lengths and payload is noticed, but for those of the checksum's
        // own 16 bits that make it zero.
        for bit in 8 * 20..8 * written {
            let mut damaged = buffer;
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(read_udp(&damaged[..written]), None, "bit {bit}");
        }
        assert_eq!(write_udp(datagram, &mut buffer[..written - 1]), None);
        let [_, v6] = pair(true);
        assert_eq!(write_udp(Datagram { to: v6, ..datagram }, &mut [0; 100]), None);
        assert_eq!((read_udp(&[]), read_udp(&buffer[..27])), (None, None));
    }
}
