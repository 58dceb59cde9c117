//! Reports to systemd that the daemon listens, as `sd_notify(3)` describes.

use std::os::unix::net::UnixDatagram;

use crate::config;

/// The variable with the socket of systemd.
const SOCKET: &str = "NOTIFY_SOCKET";

/// Reports that the daemon listens. Without systemd there is no socket, and nothing is reported.
pub(super) fn ready() {
    let Some(path) = config::variable(SOCKET).filter(|path| !path.is_empty()) else { return };
    if let Err(error) = send(&path) {
        tracing::warn!(%error, "systemd was not told that the daemon listens");
    }
}

fn send(path: &str) -> std::io::Result<()> {
    let socket = UnixDatagram::unbound()?;
    let text = b"READY=1\n";
    #[cfg(target_os = "linux")]
    if let Some(name) = path.strip_prefix('@') {
        use std::os::{linux::net::SocketAddrExt, unix::net::SocketAddr};
        socket.send_to_addr(text, &SocketAddr::from_abstract_name(name)?)?;
        return Ok(());
    }
    socket.send_to(text, path)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readiness_reaches_sockets_in_files_and_in_the_abstract_namespace() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        let mut text = [0; 64];
        send(path.to_str().unwrap()).unwrap();
        assert_eq!(socket.recv(&mut text).unwrap(), 8);
        assert_eq!(&text[..8], b"READY=1\n");
        send(folder.path().join("absent").to_str().unwrap()).unwrap_err();
        #[cfg(target_os = "linux")]
        {
            use std::os::{linux::net::SocketAddrExt, unix::net::SocketAddr};
            let name = format!("narthex-test-{}", std::process::id());
            let address = SocketAddr::from_abstract_name(&name).unwrap();
            let socket = UnixDatagram::bind_addr(&address).unwrap();
            send(&format!("@{name}")).unwrap();
            assert_eq!(socket.recv(&mut text).unwrap(), 8);
        }
    }
}
