//! The part of a start before it serves. A restart has the next program check the same part first,
//! so that a program which does not start takes nothing over.

use narthex_client::cli::UpArgs;
use narthex_control::ControlOptions;
use narthex_model::RunToken;
use narthex_runs::ShareOptions;
use tokio::net::TcpListener;

use super::{
    door::Door,
    handover::{Taken, take},
};
use crate::{
    Failure,
    commands::source,
    config::Settings,
    data_dir::{DaemonLock, DataDir},
    secrets,
    stored::StorePlace,
};

/// All that a daemon needs to serve.
pub(super) struct Prepared {
    pub(super) lock: DaemonLock,
    pub(super) token: RunToken,
    pub(super) admin: RunToken,
    /// The place of the store, for people.
    pub(super) store: String,
    pub(super) followed: ControlOptions,
    pub(super) shares: ShareOptions,
    pub(super) listener: TcpListener,
    pub(super) door: Door,
}

impl Prepared {
    /// Reads, opens and binds all that a daemon needs.
    ///
    /// # Errors
    /// Each reason for which a daemon does not start, with its remedy.
    pub(super) async fn new(
        args: &UpArgs,
        data: &DataDir,
        place: &StorePlace,
        settings: &Settings,
    ) -> Result<Self, Failure> {
        let Taken { lock, listener } = take(args, data)?;
        // Without a token no client has an address of a daemon of this folder.
        let is_first = !data.client_token_file().try_exists()?;
        let may_choose = is_first && args.background && !args.handed_over;
        let token = data.client_token()?;
        let admin = data.admin_token()?;
        let opened = place.open().await?;
        let store = opened.place().to_owned();
        let vault = secrets::open(data, &settings.keys, &opened).await?;
        let mut followed = source::followed(settings, place, opened, vault).await?;
        let (listener, door) = Door::open(settings, args, data, listener, may_choose).await?;
        let address = listener.local_addr()?;
        followed.login = Some(settings.sign_in.options(address, door.is_tls()));
        let shares = ShareOptions::open(&data.shares_dir(), settings.shares_bytes)
            .map_err(|error| Failure::caused(error.kind(), &error))?;
        crate::app::check(&data.audit_dir(), settings.connections.is_strict)?;
        Ok(Self { lock, token, admin, store, followed, shares, listener, door })
    }
}
