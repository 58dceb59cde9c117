//! Addresses of the senders of registrations, as far as they tell senders apart.

use std::net::{IpAddr, Ipv6Addr};

use narthex_http_client::AllowedAddresses;

/// The part of an IPv6 address that one site has.
const SITE: u128 = u128::MAX << 64;

/// The address under which registrations of a sender are counted. `None` for an address of this
/// machine or a private network: a proxy there sends the requests of all.
pub(super) fn counted_as(sender: IpAddr) -> Option<IpAddr> {
    let sender = sender.to_canonical();
    if !AllowedAddresses::Public.permits(sender) {
        return None;
    }
    Some(match sender {
        IpAddr::V4(_) => sender,
        // One site has all addresses of its network.
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & SITE).into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn door_a4_public_addresses_are_counted_by_site() {
        let counted = |text: &str| counted_as(text.parse().unwrap()).map(|one| one.to_string());
        for (sender, site) in [
            ("93.184.216.34", "93.184.216.34"),
            ("::ffff:93.184.216.34", "93.184.216.34"),
            ("2606:2800:220:1:248:1893:25c8:1946", "2606:2800:220:1::"),
            ("2606:2800:220:1::1", "2606:2800:220:1::"),
            ("2606:2800:220:2::1", "2606:2800:220:2::"),
        ] {
            assert_eq!(counted(sender).as_deref(), Some(site), "{sender}");
        }
    }

    #[test]
    fn door_a4_addresses_that_proxies_have_are_not_counted() {
        for sender in ["127.0.0.1", "::1", "10.0.0.1", "192.168.1.1", "fd00::1", "fe80::1"] {
            assert_eq!(counted_as(sender.parse().unwrap()), None, "{sender}");
        }
    }
}
