//! The length of a packet on its link: the bytes that the link adds, its shortest packet, and its
//! cells.
//!
//! # Source
//! Linux `net/sched/sch_cake.c` (`cake_calc_overhead`); `include/net/sch_generic.h`
//! (`psched_l2t_ns`) and iproute2 `tc/tc_core.c` (`tc_adjust_size`), which have the same order and
//! no PTM.

use ackclock_units::named;
use ackclock_units::parameter::{Domain, Visitor};

/// The link layer, for whose cells a packet's length is rounded up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LinkLayer {
    /// No cells.
    #[default]
    Ethernet,
    /// ATM: 48 bytes in each cell of 53.
    Atm,
    /// PTM: a byte more for each 64, or part of 64.
    Ptm,
}

named! { LinkLayer: Ethernet = "ethernet", Atm = "atm", Ptm = "ptm" }

/// The bytes of a packet on its link beyond those that the queue sees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Overhead {
    /// Bytes that each packet has in addition; fewer if below zero.
    pub bytes: i32,
    /// The least length, these bytes included.
    pub mpu: u32,
    /// The cells.
    pub layer: LinkLayer,
}

impl Overhead {
    /// So many bytes for each packet.
    pub const fn bytes(bytes: i32) -> Overhead {
        Overhead { bytes, mpu: 0, layer: LinkLayer::Ethernet }
    }

    /// The length on the link of a packet of `len` bytes.
    #[inline]
    pub fn of(self, len: u32) -> u32 {
        let len = len.saturating_add_signed(self.bytes).max(self.mpu);
        match self.layer {
            LinkLayer::Ethernet => len,
            LinkLayer::Atm => len.div_ceil(48).saturating_mul(53),
            LinkLayer::Ptm => len.saturating_add(len.div_ceil(64)),
        }
    }

    /// The bytes that every packet has in addition, if these are as many for each.
    pub fn uniform(self) -> Option<u32> {
        let is_uniform = self.mpu == 0 && self.layer == LinkLayer::Ethernet;
        u32::try_from(self.bytes).ok().filter(|_| is_uniform)
    }

    /// The parameters of a shaper, whose rate is that of a link with other lengths.
    pub(crate) fn parameters(&mut self, v: &mut impl Visitor, source: &'static str) {
        let most = Domain::Bytes(0, 65_535);
        let mut bytes = self.bytes.unsigned_abs();
        v.parameter("overhead", most, source, &mut bytes);
        self.bytes = bytes as i32;
        v.parameter("mpu", most, source, &mut self.mpu);
        v.parameter("linklayer", Domain::named::<LinkLayer>("link layer"), source, &mut self.layer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// sqm-scripts#74: with 10 bytes of overhead a packet of 1478 takes 31 cells of 53 bytes, 1643;
    /// 1488 = 31 * 48 is the longest that does.
    #[test]
    fn a_packet_fills_cells() {
        let atm = Overhead { layer: LinkLayer::Atm, ..Overhead::bytes(10) };
        assert_eq!([1477, 1478, 1479].map(|len| atm.of(len)), [1643, 1643, 1696]);
        // tc-stab(8): an ACK of 40 bytes over PPPoE LLC takes two cells.
        assert_eq!(Overhead { layer: LinkLayer::Atm, ..Overhead::bytes(40) }.of(40), 106);
        // A byte for each 64: 1500 + 30 = 1530 are 24 parts.
        assert_eq!(Overhead { layer: LinkLayer::Ptm, ..Overhead::bytes(30) }.of(1500), 1554);
    }

    /// `tc_adjust_size`: the least length counts before the cells.
    #[test]
    fn short_packets_have_the_least_length() {
        let ethernet = Overhead { mpu: 84, ..Overhead::bytes(38) };
        assert_eq!([0, 46, 47, 1500].map(|len| ethernet.of(len)), [84, 84, 85, 1538]);
        assert_eq!(Overhead { layer: LinkLayer::Atm, ..ethernet }.of(40), 106);
        assert_eq!(Overhead::bytes(-10).of(4), 0);
    }

    #[test]
    fn only_added_bytes_are_uniform() {
        assert_eq!(Overhead::bytes(14).uniform(), Some(14));
        let others = [
            Overhead { mpu: 1, ..Overhead::default() },
            Overhead { layer: LinkLayer::Ptm, ..Overhead::default() },
            Overhead::bytes(-1),
        ];
        assert!(others.iter().all(|overhead| overhead.uniform().is_none()));
    }
}
