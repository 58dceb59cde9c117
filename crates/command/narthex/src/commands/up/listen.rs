//! The address of the daemon, and the process that has it already.

use std::{
    net::{Ipv4Addr, SocketAddr},
    num::NonZeroU16,
};

use narthex_client::{
    cli::{RemoteArgs, UpArgs},
    commands::service::{another_port, tell_chosen},
    door::{self, ListenSetting},
    listeners::{self, USUAL_PORT, first_free},
};
use narthex_model::ErrorKind;
use tokio::net::TcpListener;

use crate::{
    Failure,
    config::{Settings, TlsPlace},
    data_dir::DataDir,
};

/// The flag of the address.
const LISTEN: &str = "--listen";

/// Listens at the first free port, from the usual one on. `None` if a setting or an earlier start
/// names one, or if none is free.
///
/// # Errors
/// When the stored port cannot be read.
pub(super) fn choose(settings: &Settings, data: &DataDir) -> Result<Option<TcpListener>, Failure> {
    if settings.listen.is_some() || data.port()?.is_some() {
        return Ok(None);
    }
    let mut bound = None;
    let port = first_free(|port| {
        bound = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, port.get())).ok();
        bound.is_some()
    });
    let Some(listener) = port.and(bound) else { return Ok(None) };
    listener.set_nonblocking(true)?;
    Ok(Some(TcpListener::from_std(listener)?))
}

/// Stores the port of a daemon in the background that listens, if none is stored yet: clients get
/// its address, so later daemons have the same.
///
/// # Errors
/// When the port cannot be stored.
pub(super) fn keep(
    args: &UpArgs,
    settings: &Settings,
    data: &DataDir,
    port: u16,
) -> Result<(), Failure> {
    let Some(port) = NonZeroU16::new(port).filter(|_| args.background) else { return Ok(()) };
    if settings.listen.is_some() || data.port()?.is_some() {
        return Ok(());
    }
    data.store_port(port)?;
    if port != USUAL_PORT {
        tell_chosen(port);
    }
    Ok(())
}

/// Listens at the address of the settings, or else at the stored port, or at the usual one. A
/// listener that was handed over is used if it is there.
///
/// # Errors
/// When the address is none, can be reached from other machines without permission, or is taken.
pub(super) async fn listen(
    settings: &Settings,
    data: &DataDir,
    allowed: RemoteArgs,
    handed: Option<std::net::TcpListener>,
) -> Result<TcpListener, Failure> {
    let (listen, remedy) = match &settings.listen {
        Some(given) => (given.clone(), "choose another with --listen".to_owned()),
        None => {
            let stored = data.port()?;
            let address = (Ipv4Addr::LOCALHOST, stored.unwrap_or(USUAL_PORT).get());
            let address = SocketAddr::from(address).to_string();
            (ListenSetting { address, source: LISTEN.to_owned() }, another_port())
        }
    };
    let is_tls = !matches!(settings.tls, TlsPlace::Nowhere);
    let addresses = door::addresses(&listen, is_tls, allowed).await?;
    if let Some(handed) = handed {
        let at = handed.local_addr()?;
        let is_there =
            |one: &SocketAddr| one.ip() == at.ip() && [0, at.port()].contains(&one.port());
        if addresses.iter().any(is_there) {
            handed.set_nonblocking(true)?;
            return Ok(TcpListener::from_std(handed)?);
        }
    }
    TcpListener::bind(&addresses[..]).await.map_err(|error| {
        let kind = match error.kind() {
            std::io::ErrorKind::AddrInUse => ErrorKind::Conflict,
            std::io::ErrorKind::PermissionDenied => ErrorKind::Denied,
            _ => ErrorKind::Unavailable,
        };
        let holders = addresses.iter().filter(|_| kind == ErrorKind::Conflict);
        let why = match holders.copied().find_map(listeners::holder) {
            Some(holder) => format!("{holder} listens there already"),
            None => error.to_string(),
        };
        let ListenSetting { address, source } = &listen;
        let of = if source == LISTEN { String::new() } else { format!(" ({source})") };
        Failure::new(kind, format!("cannot listen on {address}{of}: {why}; {remedy}"))
    })
}
