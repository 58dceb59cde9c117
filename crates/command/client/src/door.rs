//! The daemon's HTTP door as settings and the command line give it: its address, its encryption,
//! and the machines that may reach it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::{Failure, cli::RemoteArgs, output};

/// An address to listen at, as a setting names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListenSetting {
    /// The address with its port.
    pub address: String,
    /// The flag, variable, or key of the settings file.
    pub source: String,
}

/// The settings of this process for the door of a daemon.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DoorSettings {
    /// The address, if a setting names one.
    pub listen: Option<ListenSetting>,
    /// The flags, variables and keys that have HTTP encrypted; none for plain HTTP.
    pub tls: Vec<String>,
}

impl DoorSettings {
    /// True if HTTP is encrypted.
    #[must_use]
    pub fn is_tls(&self) -> bool {
        !self.tls.is_empty()
    }

    /// The URL, without a path, of a daemon with these settings at a port of the loopback
    /// interface.
    #[must_use]
    pub fn url_at(&self, port: u16) -> String {
        local_url((Ipv4Addr::LOCALHOST, port).into(), self.is_tls())
    }
}

/// The URL of a listener, without a path, for programs on this machine.
#[must_use]
pub fn local_url(mut address: SocketAddr, is_tls: bool) -> String {
    if address.ip().is_unspecified() {
        address.set_ip(match address.ip() {
            IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        });
    }
    let scheme = if is_tls { "https" } else { "http" };
    format!("{scheme}://{address}")
}

/// The addresses that a setting names.
///
/// # Errors
/// When the setting names none, or one that other machines can reach without permission.
pub async fn addresses(
    listen: &ListenSetting,
    is_tls: bool,
    allowed: RemoteArgs,
) -> Result<Vec<SocketAddr>, Failure> {
    let ListenSetting { address, source } = listen;
    let found: Vec<_> = match tokio::net::lookup_host(address).await {
        Ok(found) => found.collect(),
        Err(error) => {
            return Err(Failure::usage(format!(
                "{source} names `{address}`, which is not an address with a port, such as \
                 127.0.0.1:7717: {error}"
            )));
        }
    };
    if !found.iter().all(|address| address.ip().is_loopback()) {
        check_remote(listen, is_tls, allowed)?;
    }
    Ok(found)
}

/// Refuses an address that other machines can reach, unless the command line allows it.
fn check_remote(listen: &ListenSetting, is_tls: bool, allowed: RemoteArgs) -> Result<(), Failure> {
    let ListenSetting { address, source } = listen;
    match (is_tls, allowed) {
        (
            true,
            RemoteArgs { allow_remote: true, .. } | RemoteArgs { allow_plain_remote: true, .. },
        ) => Ok(()),
        (true, _) => Err(Failure::usage(format!(
            "{source} names {address}, which other machines can reach; add --allow-remote to \
             serve them, or listen on 127.0.0.1"
        ))),
        (false, RemoteArgs { allow_plain_remote: true, .. }) => {
            output::notice(&format!(
                "warning: {address} can be reached from other machines, by plain HTTP: anyone on \
                 the network can read tokens, arguments and results"
            ));
            Ok(())
        }
        (false, _) => Err(Failure::usage(format!(
            "{source} names {address}, which other machines can reach, by plain HTTP: anyone on \
             the network can read it, tokens included; listen on 127.0.0.1, or encrypt it with \
             --tls-cert and --tls-key and add --allow-remote; --allow-plain-remote serves it \
             without encryption"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_machines_are_served_without_encryption_only_on_explicit_demand() {
        let listen = ListenSetting { address: "0.0.0.0:7717".into(), source: "--listen".into() };
        for (is_tls, allow_remote, allow_plain_remote, missing) in [
            (false, false, false, Some("--allow-plain-remote")),
            (false, true, false, Some("--allow-plain-remote")),
            (false, false, true, None),
            (true, false, false, Some("--allow-remote")),
            (true, true, false, None),
            (true, false, true, None),
        ] {
            let allowed = RemoteArgs { allow_remote, allow_plain_remote };
            let checked = check_remote(&listen, is_tls, allowed);
            match (checked, missing) {
                (Ok(()), None) => {}
                (Err(failure), Some(word)) => assert!(failure.message.contains(word), "{failure}"),
                (checked, _) => panic!("{is_tls} {allowed:?}: {checked:?}"),
            }
        }
    }

    #[test]
    fn a_url_is_one_that_this_machine_reaches() {
        for (listen, is_tls, url) in [
            ("127.0.0.1:7717", false, "http://127.0.0.1:7717"),
            ("0.0.0.0:1", true, "https://127.0.0.1:1"),
            ("[::]:1", true, "https://[::1]:1"),
            ("192.0.2.7:80", false, "http://192.0.2.7:80"),
        ] {
            assert_eq!(local_url(listen.parse().unwrap(), is_tls), url);
        }
        let door = DoorSettings { listen: None, tls: vec!["NARTHEX_TLS_CERT".into()] };
        assert_eq!(door.url_at(7717), "https://127.0.0.1:7717");
    }
}
