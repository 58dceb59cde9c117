//! Messages between daemon and shim over their socket.
//!
//! The daemon sends one [`Order`] with the server's three pipes attached, and later single bytes,
//! each of which asks the tree to end. A closed daemon side means: kill all processes. The shim
//! answers with lines of JSON.

use std::ffi::OsString;
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags,
};
use serde::{Deserialize, Serialize};

use crate::confine::Plan;

/// More than any system lets a program have of arguments and variables, as JSON.
const ORDER_MAX: usize = 64 << 20;

/// The program to start. Holds secrets, so it can be sent and not shown.
#[derive(Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) command: OsString,
    pub(crate) args: Vec<OsString>,
    pub(crate) env: Vec<(OsString, OsString)>,
    pub(crate) working_dir: Option<OsString>,
    pub(crate) confinement: Option<Plan>,
    /// A folder that is to be removed once no process is left.
    pub(crate) temporary: Option<OsString>,
}

/// The server's ends of its pipes: stdin, stdout, stderr.
pub(crate) type Pipes = [OwnedFd; 3];

/// The shim's report about the server.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Report {
    /// The server runs with this process id, which is also the number of its group and session.
    Started { leader: i32 },
    /// The system refused to start the server.
    Refused { errno: i32 },
    /// The server could not be confined as requested, for this reason.
    Unconfined { text: String },
    /// The leader ended with this wait status. `others` is true if processes of its tree still run.
    Ended { status: i32, others: bool },
    /// No process is left.
    Gone,
}

/// Asks the tree to end.
pub(crate) const TERMINATE: [u8; 1] = [b't'];

/// The first message, which carries the pipes: the length of the next one.
pub(crate) fn send_pipes(
    socket: impl AsFd,
    pipes: [BorrowedFd<'_>; 3],
    length: u32,
) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    control.push(SendAncillaryMessage::ScmRights(&pipes));
    let length = length.to_le_bytes();
    let parts = [IoSlice::new(&length)];
    let sent = rustix::net::sendmsg(socket, &parts, &mut control, SendFlags::NOSIGNAL)?;
    if sent == length.len() { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
}

/// Waits for the order; `None` when the daemon is gone before it gave one.
pub(crate) fn receive_order(socket: &UnixStream) -> io::Result<Option<(Order, Pipes)>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut length = [0; 4];
    let mut parts = [IoSliceMut::new(&mut length)];
    let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::WAITALL;
    let received = rustix::net::recvmsg(socket, &mut parts, &mut control, flags)?;
    if received.bytes == 0 {
        return Ok(None);
    }
    let pipes: Vec<OwnedFd> = control
        .drain()
        .flat_map(|message| match message {
            RecvAncillaryMessage::ScmRights(pipes) => pipes.collect(),
            _ => Vec::new(),
        })
        .collect();
    let invalid = |what| io::Error::new(io::ErrorKind::InvalidData, what);
    let pipes = pipes.try_into().map_err(|_pipes| invalid("an order comes with three pipes"))?;
    let length = usize::try_from(u32::from_le_bytes(length)).unwrap_or(usize::MAX);
    if received.bytes != 4 || length > ORDER_MAX {
        return Err(invalid("an order is at most 64 MiB long"));
    }
    let mut text = vec![0; length];
    let mut reader = socket;
    reader.read_exact(&mut text)?;
    Ok(Some((serde_json::from_slice(&text)?, pipes)))
}

/// Sends one line.
pub(crate) fn report(mut socket: &UnixStream, report: &Report) -> io::Result<()> {
    let mut line = serde_json::to_vec(report)?;
    line.push(b'\n');
    socket.write_all(&line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_arrives_with_its_pipes() {
        let (daemon, shim) = UnixStream::pair().unwrap();
        let (mut reader, writer) = io::pipe().unwrap();
        let order = Order {
            command: "tool".into(),
            args: vec!["a b".into()],
            env: vec![("K".into(), "v".into())],
            working_dir: None,
            confinement: None,
            temporary: None,
        };
        let text = serde_json::to_vec(&order).unwrap();
        let pipes = [writer.as_fd(), writer.as_fd(), writer.as_fd()];
        send_pipes(&daemon, pipes, text.len().try_into().unwrap()).unwrap();
        (&daemon).write_all(&text).unwrap();
        drop(writer);
        let (order, [stdin, stdout, stderr]) = receive_order(&shim).unwrap().unwrap();
        assert_eq!((order.command, order.args.len()), ("tool".into(), 1));
        drop((stdin, stdout));
        std::fs::File::from(stderr).write_all(b"through").unwrap();
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "through");
    }

    #[test]
    fn a_closed_daemon_socket_gives_no_order() {
        let (daemon, shim) = UnixStream::pair().unwrap();
        drop(daemon);
        assert!(receive_order(&shim).unwrap().is_none());
    }
}
