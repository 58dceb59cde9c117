//! The listener of `narthex up`: who may reach it, and its certificate.

use std::{
    convert::Infallible,
    io::{IsTerminal, stdin},
    net::SocketAddr,
    path::Path,
    time::SystemTime,
};

use narthex_client::cli::UpArgs;
use narthex_model::{ErrorKind, Timestamp, with_causes};
use narthex_tls::{Followed, Identity, ServerTls, Source, TlsError};
use tokio::{
    net::TcpListener,
    signal::unix::{Signal, SignalKind, signal},
    sync::Notify,
};

use super::event::Event;
use crate::{
    Failure,
    config::{Settings, TlsPlace},
    data_dir::{DaemonState, DataDir},
    output,
    stop::Hangup,
};

/// The flag of the address, which gives none by default.
const LISTEN: &str = "--listen";

/// The certificate of the listener, while it is followed.
pub(super) struct Door {
    /// `None` for plain HTTP.
    followed: Option<Followed>,
    /// SIGHUP, if it has the certificate read anew.
    hangups: Option<Signal>,
}

/// The permissions of the command line.
struct Allowed {
    remote: bool,
    plain_remote: bool,
}

impl Door {
    /// Binds the listener, and loads its certificate.
    ///
    /// # Errors
    /// When the address is not allowed or taken, or the certificate cannot be used.
    pub(super) async fn open(
        settings: &Settings,
        args: &UpArgs,
        data: &Path,
    ) -> Result<(TcpListener, Self), Failure> {
        let allowed = Allowed { remote: args.allow_remote, plain_remote: args.allow_plain_remote };
        let is_tls = !matches!(settings.tls, TlsPlace::Nowhere);
        let listener = listen(settings, is_tls, &allowed).await?;
        let hosts =
            settings.allowed_hosts.iter().map(String::as_str).chain(settings.sign_in.host());
        let source = settings.tls.source(data, listener.local_addr()?, hosts);
        // A closed terminal ends its daemon, as that of other programs. A service has none.
        let is_asked = source.as_ref().is_some_and(Source::is_files) && !stdin().is_terminal();
        let hangups = is_asked.then(|| signal(SignalKind::hangup())).transpose()?;
        let followed = source.map(begin).transpose()?;
        Ok((listener, Self { followed, hangups }))
    }

    /// The encryption of the listener; `None` for plain HTTP.
    pub(super) fn tls(&self) -> Option<ServerTls> {
        self.followed.as_ref().map(|followed| followed.tls().clone())
    }

    pub(super) fn is_tls(&self) -> bool {
        self.followed.is_some()
    }

    /// The certificate in use.
    pub(super) fn identity(&self) -> Option<&Identity> {
        self.followed.as_ref().map(Followed::identity)
    }

    /// The effect of SIGHUP on the daemon.
    pub(super) fn hangup(&self) -> Hangup {
        if self.hangups.is_some() { Hangup::IsHandled } else { Hangup::Stops }
    }

    /// Lines of `narthex up` about the certificate.
    pub(super) fn certificate_lines(&self) -> String {
        let Some(followed) = &self.followed else { return String::new() };
        let identity = followed.identity();
        let until = Timestamp::new(identity.expires());
        let mut lines = format!("  certificate  until {until}, with the SHA-256 fingerprint\n");
        lines.push_str(&format!("               {}\n", identity.fingerprint()));
        if let Source::SelfSigned(made) = followed.source() {
            let file = made.certificate_file();
            lines.push_str(&format!(
                "               {}: the file for clients that are to trust it\n",
                file.display()
            ));
        }
        lines
    }

    /// Follows the source of the certificate, for as long as the future is polled. A certificate
    /// is published before it is used, so that commands on this machine accept it.
    pub(super) async fn renew(
        &mut self,
        data: &DataDir,
        state: DaemonState,
        is_json: bool,
    ) -> Result<Infallible, Failure> {
        let Self { followed: Some(followed), hangups } = self else {
            return std::future::pending().await;
        };
        let asked = Notify::new();
        let asking = async {
            let Some(hangups) = hangups else { return };
            while hangups.recv().await.is_some() {
                asked.notify_one();
            }
        };
        let renewing = follow(followed, &asked, data, state, is_json);
        tokio::pin!(renewing);
        tokio::select! {
            biased;
            failed = &mut renewing => return failed,
            () = asking => {}
        }
        renewing.await
    }
}

/// Uses each new certificate of the source, and reports it.
async fn follow(
    followed: &mut Followed,
    asked: &Notify,
    data: &DataDir,
    mut state: DaemonState,
    is_json: bool,
) -> Result<Infallible, Failure> {
    loop {
        let outcome = match followed.changed(asked).await {
            Ok(identity) => {
                let fingerprint = identity.fingerprint();
                if state.fingerprints.first() != Some(&fingerprint) {
                    state.fingerprints.insert(0, fingerprint);
                    // The one before it is still accepted: a handshake may be under way.
                    state.fingerprints.truncate(2);
                }
                data.publish(&state)?;
                followed.adopt(identity)
            }
            Err(error) => Err(error),
        };
        report(followed, outcome, is_json)?;
    }
}

fn begin(source: Source) -> Result<Followed, Failure> {
    if let Some(warning) = source.warning() {
        output::notice(&format!("warning: {warning}"));
    }
    let followed = Followed::begin(source).map_err(|error| failure(&error))?;
    let identity = followed.identity();
    if followed.source().is_files() && identity.ends_soon(SystemTime::now()) {
        let end = Timestamp::new(identity.expires());
        output::notice(&format!("warning: the certificate expires at {end}; renew it"));
    }
    Ok(followed)
}

fn failure(error: &TlsError) -> Failure {
    Failure::new(error.kind(), with_causes(error))
}

/// Reports the result of a change of the certificate.
fn report(
    followed: &Followed,
    outcome: Result<(), TlsError>,
    is_json: bool,
) -> Result<(), Failure> {
    let fingerprint = followed.identity().fingerprint();
    let error = outcome.err().map(|error| with_causes(&error));
    match &error {
        // A log line in each format: an operator must learn of it.
        Some(error) => tracing::error!(
            "the changed certificate is not used, and the earlier one stays: {error}"
        ),
        None => tracing::info!(%fingerprint, "the certificate was read anew"),
    }
    if let Some(warning) = followed.source().warning() {
        tracing::warn!("{warning}");
    }
    if is_json {
        return output::json(&Event::Certificate { fingerprint, error });
    }
    if error.is_none() {
        output::notice(&format!("the certificate in use has the fingerprint {fingerprint}"));
    }
    Ok(())
}

/// Binds the address of the settings. Faults name the flag, variable or setting that gave it.
async fn listen(
    settings: &Settings,
    is_tls: bool,
    allowed: &Allowed,
) -> Result<TcpListener, Failure> {
    let (address, source) = (&*settings.listen, settings.source("listen").unwrap_or(LISTEN));
    let addresses: Vec<SocketAddr> = match tokio::net::lookup_host(address).await {
        Ok(addresses) => addresses.collect(),
        Err(error) => {
            return Err(Failure::usage(format!(
                "{source} names `{address}`, which is not an address with a port, such as \
                 127.0.0.1:7717: {error}"
            )));
        }
    };
    if !addresses.iter().all(|address| address.ip().is_loopback()) {
        check_remote(source, address, is_tls, allowed)?;
    }
    TcpListener::bind(&addresses[..]).await.map_err(|error| {
        let kind = match error.kind() {
            std::io::ErrorKind::AddrInUse => ErrorKind::Conflict,
            std::io::ErrorKind::PermissionDenied => ErrorKind::Denied,
            _ => ErrorKind::Unavailable,
        };
        let of = if source == LISTEN { String::new() } else { format!(" ({source})") };
        let text = format!("cannot listen on {address}{of}: {error}; choose another with --listen");
        Failure::new(kind, text)
    })
}

/// Refuses an address that other machines can reach, unless the command line allows it.
fn check_remote(
    source: &str,
    address: &str,
    is_tls: bool,
    allowed: &Allowed,
) -> Result<(), Failure> {
    match (is_tls, allowed) {
        (true, Allowed { remote: true, .. } | Allowed { plain_remote: true, .. }) => Ok(()),
        (true, _) => Err(Failure::usage(format!(
            "{source} names {address}, which other machines can reach; add --allow-remote to \
             serve them, or listen on 127.0.0.1"
        ))),
        (false, Allowed { plain_remote: true, .. }) => {
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
        for (is_tls, remote, plain_remote, missing) in [
            (false, false, false, Some("--allow-plain-remote")),
            (false, true, false, Some("--allow-plain-remote")),
            (false, false, true, None),
            (true, false, false, Some("--allow-remote")),
            (true, true, false, None),
            (true, false, true, None),
        ] {
            let allowed = Allowed { remote, plain_remote };
            let checked = check_remote(LISTEN, "0.0.0.0:7717", is_tls, &allowed);
            match (checked, missing) {
                (Ok(()), None) => {}
                (Err(failure), Some(word)) => assert!(failure.message.contains(word), "{failure}"),
                (checked, _) => panic!("{is_tls} {remote} {plain_remote}: {checked:?}"),
            }
        }
    }
}
