//! The listener of `narthex up`: who may reach it, and its certificate.

use std::{
    convert::Infallible,
    io::{IsTerminal, stdin},
    time::SystemTime,
};

use narthex_client::cli::UpArgs;
use narthex_model::{Timestamp, with_causes};
use narthex_tls::{Followed, Identity, ServerTls, Source, TlsError};
use tokio::{
    net::TcpListener,
    signal::unix::{Signal, SignalKind, signal},
    sync::Notify,
};

use super::{
    event::Event,
    listen::{self, listen},
    published::Published,
};
use crate::{Failure, config::Settings, data_dir::DataDir, output, stop::Hangup};

/// The certificate of the listener, while it is followed.
pub(super) struct Door {
    /// `None` for plain HTTP.
    followed: Option<Followed>,
    /// SIGHUP, if it has the certificate read anew.
    hangups: Option<Signal>,
}

impl Door {
    /// Binds the listener, or takes the one that was handed over, and loads its certificate. If it
    /// may choose, it binds the first free port where no other is named.
    ///
    /// # Errors
    /// When the address is not allowed or taken, or the certificate cannot be used.
    pub(super) async fn open(
        settings: &Settings,
        args: &UpArgs,
        data: &DataDir,
        handed: Option<std::net::TcpListener>,
        may_choose: bool,
    ) -> Result<(TcpListener, Self), Failure> {
        let listener = match may_choose {
            true => listen::choose(settings, data)?,
            false => None,
        };
        let listener = match listener {
            Some(chosen) => chosen,
            None => listen(settings, data, args.remote, handed).await?,
        };
        let hosts =
            settings.allowed_hosts.iter().map(String::as_str).chain(settings.sign_in.host());
        let source = settings.tls.source(data.path(), listener.local_addr()?, hosts);
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
        published: &Published<'_>,
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
        let renewing = follow(followed, &asked, published, is_json);
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
    published: &Published<'_>,
    is_json: bool,
) -> Result<Infallible, Failure> {
    loop {
        let outcome = match followed.changed(asked).await {
            Ok(identity) => {
                let fingerprint = identity.fingerprint();
                published.change(|state| {
                    if state.fingerprints.first() != Some(&fingerprint) {
                        state.fingerprints.insert(0, fingerprint);
                        // The one before it is still accepted: a handshake may be under way.
                        state.fingerprints.truncate(2);
                    }
                })?;
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
