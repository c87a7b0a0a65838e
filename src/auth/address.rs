//! Decides which addresses a peer may have us call: a client in a webhook, or a host of agents.
//!
//! A peer that names an address for us to call could reach behind our firewall: this machine, its
//! neighbours, a cloud machine's credential service. Names are resolved first, and the call goes to
//! the address that was checked.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;
use std::sync::Arc;

/// The addresses that are connected over TCP.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Reach {
    /// All.
    #[default]
    All,
    /// Those that are reachable for everyone on the Internet.
    Public,
    /// Those of these networks.
    Within(Arc<[Network]>),
}

/// The addresses that begin with the same bits. Those of IPv4 are `::ffff:0:0/96`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    first: u128,
    bits: u32,
}

impl Reach {
    /// Why an address is not connected.
    #[must_use]
    pub fn refuses(&self, address: IpAddr) -> Option<&'static str> {
        match self {
            Self::Public if !is_public(address) => Some("it is in a private network"),
            Self::Within(networks) if !networks.iter().any(|one| one.contains(address)) => {
                Some("it is at an address that the operator has not listed")
            }
            _ => None,
        }
    }
}

impl Network {
    /// Whether an address is in it.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        let differs = self.first ^ number(address);
        differs.checked_shr(128 - self.bits).unwrap_or(0) == 0
    }
}

fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(four) => four.to_ipv6_mapped().to_bits(),
        IpAddr::V6(six) => six.to_bits(),
    }
}

impl FromStr for Network {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let fault = "expected ADDRESS/BITS, such as 10.1.0.0/16, or an address";
        let (address, bits) = text.split_once('/').unzip();
        let address: IpAddr = address.unwrap_or(text).parse().map_err(|_| fault)?;
        let all = if address.is_ipv4() { 32 } else { 128 };
        let bits: u32 = bits.map_or(Ok(all), str::parse).map_err(|_| fault)?;
        if bits > all {
            return Err(fault);
        }
        let (first, bits) = (number(address), bits + 128 - all);
        Ok(Self { first, bits })
    }
}

/// Whether an address is reachable for everyone on the Internet (by the registries of
/// special-purpose addresses, RFC 6890 and its successors).
#[must_use]
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(four) => is_public_v4(four),
        IpAddr::V6(six) => is_public_v6(six),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    !(address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_documentation()
        || address.is_multicast()
        || a == 0
        || a >= 240
        || (a, b & 0xc0) == (100, 64)
        || (a, b, c) == (192, 0, 0)
        || (a, b, c) == (192, 88, 99)
        || (a, b & 0xfe) == (198, 18))
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let parts = address.segments();
    let [.., high, low] = parts;
    let [a, b] = high.to_be_bytes();
    let [c, d] = low.to_be_bytes();
    if let Some(four) = address.to_ipv4_mapped() {
        return is_public_v4(four);
    }
    // NAT64's well-known prefix holds an IPv4 address at its end.
    if parts[..6] == [0x64, 0xff9b, 0, 0, 0, 0] {
        return is_public_v4(Ipv4Addr::new(a, b, c, d));
    }
    // Global unicast, without the parts of it that are for documentation and for tunnels.
    let global = parts[0] & 0xe000 == 0x2000;
    let special = matches!((parts[0], parts[1]), (0x2001, 0..=0x1ff | 0xdb8))
        || parts[0] == 0x2002
        || parts[0] & 0xfff0 == 0x3ff0;
    global && !special
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_globally_reachable_addresses_are_public() {
        let public = "1.1.1.1 93.184.215.14 2606:4700::1111 ::ffff:1.1.1.1 64:ff9b::101:101";
        for public in public.split(' ') {
            assert!(is_public(public.parse().expect("an address")), "{public}");
        }
        let inner = "127.0.0.1 127.9.9.9 10.0.0.1 172.16.0.1 172.31.255.255 192.168.1.1 169.254.169.254 \
            100.64.0.1 0.0.0.0 0.1.2.3 255.255.255.255 224.0.0.1 198.18.0.1 192.0.0.170 \
            240.0.0.1 192.0.2.1 ::1 :: fe80::1 fc00::1 fd00:ec2::254 ff02::1 ::ffff:127.0.0.1 \
            ::ffff:169.254.169.254 ::127.0.0.1 64:ff9b::7f00:1 2002:7f00:1:: 2001:db8::1 2001::1 \
            fec0::1";
        for inner in inner.split(' ') {
            assert!(!is_public(inner.parse().expect("an address")), "{inner}");
        }
    }
}
