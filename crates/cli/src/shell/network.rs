//! Devices, namespaces and addresses that nobody else has.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use anyhow::bail;

/// The shared address space between carriers and customers (RFC 6598), 100.64.0.0/10, in subnets of
/// four addresses: nobody's own network is there.
const SHARED: u32 = 0x6440_0000;

/// Prefixes of unique local addresses (RFC 4193), one for each level: from fdac:c10c:4c10::/48 on.
const LOCAL: u128 = 0xfdac_c10c_4c10 << 80;

/// Subnets of a level of nested shells, and levels.
const SLOTS: u32 = 1 << 16;
const LEVELS: u32 = 1 << 4;

/// The names and addresses of a shell's network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Network {
    /// The device at the other end, in the namespace of this process.
    pub(super) device: String,
    /// The namespaces of the shell, and of its peer.
    pub(super) namespaces: [String; 2],
    /// The addresses of the shell, and of the other end.
    pub(super) four: [Ipv4Addr; 2],
    pub(super) six: [Ipv6Addr; 2],
}

impl Network {
    /// One that nobody has: by the number of this process, and in a part of the address space that
    /// shells around this one do not use.
    pub(super) fn free(level: u32) -> anyhow::Result<Network> {
        let pid = std::process::id();
        let taken = ackclock_live::addresses()?;
        let slots = (0..SLOTS).map(|more| level % LEVELS * SLOTS + pid.wrapping_add(more) % SLOTS);
        let mut free = slots.map(|slot| Network::new(&format!("ack-{pid}"), slot));
        match free.find(|network| !taken.iter().any(|address| network.has(*address))) {
            Some(network) => Ok(network),
            None => bail!("every subnet of 100.64.0.0/10 that a shell would take is in use"),
        }
    }

    fn new(name: &str, slot: u32) -> Network {
        let four = |last| Ipv4Addr::from(SHARED + slot * 4 + last);
        let six = |last| Ipv6Addr::from(LOCAL | u128::from(slot) << 64 | last);
        Network {
            device: name.to_owned(),
            namespaces: [name.to_owned(), format!("{name}-peer")],
            four: [four(1), four(2)],
            six: [six(1), six(2)],
        }
    }

    /// Returns `true` if an address is in one of its subnets.
    fn has(&self, address: IpAddr) -> bool {
        match address {
            IpAddr::V4(address) => u32::from(address) >> 2 == u32::from(self.four[0]) >> 2,
            IpAddr::V6(address) => u128::from(address) >> 64 == u128::from(self.six[0]) >> 64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subnets_are_apart_and_within_their_space() {
        let slots = [0, 1, SLOTS - 1, SLOTS, LEVELS * SLOTS - 1];
        let networks = slots.map(|slot| Network::new("a", slot));
        for (number, network) in networks.iter().enumerate() {
            let space = u32::from(network.four[1]) >> 22;
            assert_eq!(space, SHARED >> 22, "{network:?}");
            assert_eq!(network.four.map(|address| u32::from(address) & 3), [1, 2]);
            let mut all = network.four.map(IpAddr::V4).to_vec();
            all.extend(network.six.map(IpAddr::V6));
            for (other, that) in networks.iter().enumerate() {
                assert_eq!(all.iter().any(|address| that.has(*address)), other == number);
            }
        }
    }

    #[test]
    fn a_device_has_a_name_that_the_kernel_takes() {
        let network = Network::free(3).expect("a subnet");
        assert!(network.device.len() <= 15, "{network:?}");
    }
}
