//! The addresses to which a client may connect: for hosts that another party chose.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The addresses to which a client may connect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AllowedAddresses {
    /// Any address: the host is an operator's choice.
    #[default]
    Anywhere,
    /// Public addresses alone, none of this host or its network (X-E37). The client checks the very
    /// address that it connects to, so that a name cannot lead elsewhere later.
    Public,
}

impl AllowedAddresses {
    /// True if a client may connect to an address.
    #[must_use]
    pub fn permits(self, address: IpAddr) -> bool {
        match (self, address) {
            (Self::Anywhere, _) => true,
            (Self::Public, IpAddr::V4(address)) => is_public_v4(address),
            (Self::Public, IpAddr::V6(address)) => is_public_v6(address),
        }
    }
}

/// Decides by the registry of special addresses of IANA.
fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let is_special = match (a, b, c) {
        // This network, this host, private networks, and addresses that are not given out.
        (0 | 10 | 127 | 240..=255, ..) => true,
        // Carriers' networks.
        (100, 64..=127, _) => true,
        (172, 16..=31, _) | (192, 168, _) | (169, 254, _) => true,
        // Protocols, documents, old relays, benchmarks.
        (192, 0, 0 | 2) | (192, 88, 99) | (198, 18 | 19, _) | (198, 51, 100) | (203, 0, 113) => {
            true
        }
        // Multicast.
        (224..=239, ..) => true,
        _ => false,
    };
    !is_special
}

/// Only addresses for hosts of the internet, except those that embed an IPv4 address.
fn is_public_v6(address: Ipv6Addr) -> bool {
    let [first, second, third, ..] = address.segments();
    let is_global = first & 0xe000 == 0x2000;
    let is_special = match (first, second, third) {
        // Teredo, documents, benchmarks, ORCHID.
        (0x2001, 0..=0x1ff, _) | (0x2001, 0xdb8, _) | (0x3fff, 0..=0xfff, _) => true,
        // 6to4 has an address of IPv4 in it, which may be a private one.
        (0x2002, ..) => true,
        _ => false,
    };
    is_global && !is_special
}

#[cfg(test)]
mod tests {
    use super::*;

    /// X-E37: each block at its first and last address, and the addresses next to it.
    #[test]
    fn x_e37_only_public_addresses_are_reached() {
        let special = "
            0.0.0.0 0.255.255.255 10.0.0.1 10.255.255.255 100.64.0.0 100.127.255.255 127.0.0.1
            127.255.255.254 169.254.169.254 172.16.0.0 172.31.255.255 192.0.0.1 192.0.2.1
            192.88.99.1 192.168.0.1 192.168.255.255 198.18.0.1 198.19.255.255 198.51.100.1
            203.0.113.9 224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255 :: ::1
            ::ffff:127.0.0.1 ::ffff:7f00:1 ::ffff:8.8.8.8 ::7f00:1 64:ff9b::7f00:1 64:ff9b:1::1
            100::1 2001::1 2001:1ff::1 2001:db8::1 2002:7f00:1:: 3fff::1 fc00::1 fdff::1 fe80::1
            febf::1 fec0::1 ff02::1 5f00::1
        ";
        for special in special.split_whitespace() {
            let address = special.parse().unwrap();
            assert!(!AllowedAddresses::Public.permits(address), "{special}");
            assert!(AllowedAddresses::Anywhere.permits(address), "{special}");
        }
        let public = "
            1.1.1.1 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.0.0.1 128.0.0.1
            169.253.0.1 172.15.0.1 172.32.0.1 192.0.1.1 192.167.0.1 198.17.0.1 198.20.0.1
            223.255.255.255 2001:200::1 2606:4700::1111 2a00:1450::1 3ffe::1
        ";
        for public in public.split_whitespace() {
            assert!(AllowedAddresses::Public.permits(public.parse().unwrap()), "{public}");
        }
    }
}
