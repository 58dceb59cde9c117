//! Ports of this machine: which are free, and which process listens at one.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener},
    num::NonZeroU16,
};

use crate::output::harmless;

/// The usual port of the daemon.
pub const USUAL_PORT: NonZeroU16 = NonZeroU16::new(7717).expect("the number is not zero");
/// Number of ports that are tried after it.
const TRIED: u16 = 200;

/// The process that listens at an address, as far as the kernel shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// The id and name of the process; the kernel hides those of other users.
    pub process: Option<(u32, String)>,
    /// The id of its user.
    pub uid: u32,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.process {
            Some((pid, name)) => write!(f, "process {pid} ({})", harmless(name)),
            None => write!(f, "a process of the user with the id {}", self.uid),
        }
    }
}

/// The first free port, from the usual one on.
#[must_use]
pub fn first_free(mut is_free: impl FnMut(NonZeroU16) -> bool) -> Option<NonZeroU16> {
    let all = (0..=TRIED).filter_map(|step| USUAL_PORT.checked_add(step));
    all.into_iter().find(|port| is_free(*port))
}

/// True if a daemon can listen at this port of the loopback interface.
#[must_use]
pub fn is_free(port: NonZeroU16) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port.get())).is_ok()
}

/// The process that keeps others from listening at an address. `None` where the system does not
/// tell.
#[must_use]
pub fn holder(address: SocketAddr) -> Option<Holder> {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"];
    let read = |path| fs_err::read_to_string(path).unwrap_or_default();
    let (inode, uid) = tables.into_iter().find_map(|path| listener_in(&read(path), address))?;
    Some(Holder { process: process_with(inode), uid })
}

/// The inode and user of the socket that listens at an address, from a table of the kernel.
fn listener_in(table: &str, address: SocketAddr) -> Option<(u64, u32)> {
    table.lines().skip(1).find_map(|line| {
        let fields: Vec<_> = line.split_ascii_whitespace().collect();
        let [_, local, _, state, _, _, _, uid, _, inode, ..] = fields[..] else { return None };
        let (host, port) = local.split_once(':')?;
        let is_there = u16::from_str_radix(port, 16).ok()? == address.port();
        let host = parsed(host)?;
        let is_meant = host == address.ip() || host.is_unspecified();
        (state == LISTENING && is_there && is_meant)
            .then(|| Some((inode.parse().ok()?, uid.parse().ok()?)))?
    })
}

/// The state of a listening socket in the tables.
const LISTENING: &str = "0A";

/// An address in the tables: words of 32 bits in the order of this machine's bytes.
fn parsed(host: &str) -> Option<IpAddr> {
    let word = |at: usize| {
        let text = host.get(at * 8..at * 8 + 8)?;
        Some(u32::from_str_radix(text, 16).ok()?.to_ne_bytes())
    };
    match host.len() {
        8 => Some(IpAddr::from(word(0)?)),
        32 => {
            let mut bytes = [0; 16];
            for (at, part) in bytes.chunks_exact_mut(4).enumerate() {
                part.copy_from_slice(&word(at)?);
            }
            // A socket of version 6 that also takes version 4 has the address in this form.
            Some(IpAddr::from(bytes).to_canonical())
        }
        _ => None,
    }
}

/// The process with an open socket of this inode, if this user may see it.
fn process_with(inode: u64) -> Option<(u32, String)> {
    let target = format!("socket:[{inode}]");
    let has_it = |pid: u32| {
        let open = fs_err::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten();
        open.filter_map(Result::ok).any(|entry| {
            fs_err::read_link(entry.path()).is_ok_and(|link| link.as_os_str() == &*target)
        })
    };
    let all = fs_err::read_dir("/proc").into_iter().flatten().filter_map(Result::ok);
    let pid =
        all.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).find(|p| has_it(*p))?;
    let name = fs_err::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    Some((pid, name.trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn the_holder_of_a_port_is_named() {
        for host in ["127.0.0.1:0", "0.0.0.0:0", "[::1]:0", "[::]:0"] {
            let Ok(listener) = TcpListener::bind(host) else { continue };
            let port = listener.local_addr().unwrap().port();
            let asked = match host {
                "[::1]:0" => format!("[::1]:{port}"),
                _ => format!("127.0.0.1:{port}"),
            };
            let asked: SocketAddr = asked.parse().unwrap();
            let found = holder(asked);
            if host == "[::]:0" && found.is_none() {
                panic!("a socket for both versions holds the port of version 4 as well");
            }
            let (pid, _) = found.unwrap().process.unwrap();
            assert_eq!(pid, std::process::id(), "{host}");
            drop(listener);
            assert_eq!(holder(asked), None, "{host}");
        }
    }

    #[test]
    fn the_next_free_port_follows_the_usual_one() {
        let taken = [7717, 7718, 7720];
        let free = |port: NonZeroU16| !taken.contains(&port.get());
        assert_eq!(first_free(free).unwrap().get(), 7719);
        assert_eq!(first_free(|_| false), None);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = NonZeroU16::new(listener.local_addr().unwrap().port()).unwrap();
        assert!(!is_free(port));
    }

    #[test]
    fn only_listening_sockets_of_the_address_count() {
        let rest = "00000000:00000000 00:00000000 00000000  1000 0";
        let table = format!(
            "  sl  local_address rem_address   st\n   \
             0: 0100007F:1E25 00000000:0000 0A {rest} 55 1\n   \
             1: 0100007F:1E26 0100007F:0016 01 {rest} 56 1\n"
        );
        let at = |text: &str| listener_in(&table, text.parse().unwrap());
        if cfg!(target_endian = "little") {
            assert_eq!(at("127.0.0.1:7717"), Some((55, 1000)));
        }
        assert_eq!(at("127.0.0.1:7718"), None);
        assert_eq!(at("127.0.0.2:7717"), None);
        let holder = Holder { process: None, uid: 1000 };
        assert_eq!(holder.to_string(), "a process of the user with the id 1000");
    }
}
