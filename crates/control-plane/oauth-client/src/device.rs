//! Sign-ins on another device (RFC 8628).

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use narthex_oauth::{
    client::{
        Asked, Device, DeviceError, DeviceStep, Flow, Found, Grant, TokenEndpoint, TokenGrant,
        Tokens, shown_url,
    },
    scopes::Scopes,
};
use tokio::{sync::watch, time::sleep};
use url::Url;

use crate::{
    SignInError,
    client_choice::Choice,
    consent::leave_issuer,
    discover::Search,
    entry::{Entry, place},
    first_request,
    grant_row::{Client, GrantValue},
    guard::Guard,
    holding::Holding,
};

/// Number of consents that are known at once.
const DEVICES_MAX: usize = 256;
/// Number of random bytes of an id.
const ID_BYTES: usize = 16;

/// A begun consent on another device.
#[derive(Debug, Clone)]
pub struct DeviceBegun {
    /// The code that the person types.
    pub user_code: String,
    /// The address that the person opens.
    pub verification_uri: Url,
    /// The address with the code, for a link.
    pub verification_uri_complete: Option<Url>,
    /// The end of the code, in seconds since 1970.
    pub expires_at: u64,
    /// The id by which the state is asked for.
    pub id: String,
}

/// The state of a consent on another device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeviceState {
    /// The person has not answered.
    Pending,
    /// The person has agreed, and the tokens are stored.
    Done,
    /// The person has declined.
    Denied,
    /// The code has ended, or there is no such consent.
    Expired,
    /// The consent has failed for this reason.
    Failed(String),
}

/// The consents of one process.
#[derive(Debug, Default)]
pub(crate) struct Devices(Mutex<HashMap<String, Known>>);

#[derive(Debug)]
struct Known {
    state: watch::Receiver<DeviceState>,
    expires_at: u64,
}

impl Devices {
    /// The state of a consent.
    pub(crate) fn state(&self, id: &str) -> DeviceState {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(id).map_or(DeviceState::Expired, |known| known.state.borrow().clone())
    }

    /// Remembers a consent, until a while after its end.
    fn add(&self, id: String, consent: Known, now: u64) -> Result<(), SignInError> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= DEVICES_MAX {
            known.retain(|_, known| known.expires_at > now);
        }
        if known.len() >= DEVICES_MAX {
            return Err(SignInError::TooManyDevices);
        }
        known.insert(id, consent);
        Ok(())
    }
}

/// A consent that is polled for.
struct Polled {
    holding: Arc<Holding>,
    entry: Arc<Entry>,
    guard: Guard,
    found: Found,
    client: Client,
    device: Device,
    /// Number of sign-outs before: a later one ends the consent.
    sign_outs: u64,
}

/// Begins a consent on another device, and polls for its end in a task of its own.
///
/// # Errors
/// When the authorization server has no such consents, or refuses the client.
pub(crate) async fn begin(
    holding: &Arc<Holding>,
    devices: &Devices,
) -> Result<DeviceBegun, SignInError> {
    let sign_outs = holding.sign_outs();
    let entry = holding.entry();
    let person = entry.person()?;
    let parts = &holding.parts;
    let guard = holding.guard().await;
    let (server, settings) = (&entry.url, &person.settings);
    let first = first_request::ask(&parts.fetcher, &guard, server).await;
    let search = Search { server, challenge: first.challenge(), flow: Flow::Device, settings };
    let found = search.run(&parts.fetcher, &guard).await?;
    let choice = Choice { person, found: &found, is_anew: false, is_for_devices: true };
    let client = choice.make(holding, &guard).await?;
    leave_issuer(holding, &found, client.kind).await?;
    let now = parts.now();
    let endpoint = endpoint(&found, &client, now);
    let bad = |fault| SignInError::Request { server: entry.alias.clone(), fault };
    let request = endpoint.authorize_device(&found.scopes).map_err(bad)?;
    let fetched = parts.fetcher.post_form(&guard, &request).await;
    let device = Device::read(&fetched.reply(), guard.reach(), now).map_err(|refusal| {
        let endpoint = found.metadata.device_authorization_endpoint.as_ref();
        let endpoint = endpoint.map(shown_url).unwrap_or_default();
        SignInError::Token { server: entry.alias.clone(), endpoint, refusal }
    })?;
    let id = random_id()?;
    let begun = DeviceBegun {
        user_code: device.user_code.clone(),
        verification_uri: device.verification_uri.clone(),
        verification_uri_complete: device.verification_uri_complete.clone(),
        expires_at: device.expires_at(),
        id: id.clone(),
    };
    let (sender, state) = watch::channel(DeviceState::Pending);
    devices.add(id, Known { state, expires_at: begun.expires_at }, now)?;
    let holding = Arc::clone(holding);
    let mut polled = Polled { holding, entry, guard, found, client, device, sign_outs };
    let options = &parts.options;
    let polling = async move {
        let end = polled.poll().await;
        sender.send_replace(end);
    };
    drop(options.tasks.spawn_on(polling, &options.runtime));
    Ok(begun)
}

fn endpoint<'a>(found: &'a Found, client: &'a Client, now: u64) -> TokenEndpoint<'a> {
    TokenEndpoint {
        metadata: &found.metadata,
        client: &client.identity,
        resource: found.resource.as_deref(),
        now,
    }
}

fn random_id() -> Result<String, SignInError> {
    let mut bytes = [0; ID_BYTES];
    getrandom::fill(&mut bytes).map_err(|_error| SignInError::NoRandomness)?;
    Ok(hex::encode(bytes))
}

impl Polled {
    /// Polls until the consent has ended.
    async fn poll(&mut self) -> DeviceState {
        let mut pause = self.device.pause();
        loop {
            let stop = self.holding.parts.stop.clone();
            tokio::select! {
                // The authorization server decides how often it may be asked.
                () = sleep(pause) => {}
                () = stop.cancelled() => {
                    return DeviceState::Failed(SignInError::Stopped.to_string());
                }
            }
            if self.has_ended() {
                return DeviceState::Expired;
            }
            match self.ask().await {
                DeviceStep::Granted(_) if self.has_ended() => return DeviceState::Expired,
                DeviceStep::Wait(next) => pause = next,
                DeviceStep::Granted(tokens) => return self.store(*tokens).await,
                DeviceStep::Failed(DeviceError::Expired) => return DeviceState::Expired,
                DeviceStep::Failed(DeviceError::Denied) => return DeviceState::Denied,
                DeviceStep::Failed(error) => return DeviceState::Failed(error.to_string()),
            }
        }
    }

    /// True after a sign-out.
    fn has_ended(&self) -> bool {
        self.holding.sign_outs() != self.sign_outs
    }

    async fn ask(&mut self) -> DeviceStep {
        let parts = &self.holding.parts;
        let now = parts.now();
        let request = endpoint(&self.found, &self.client, now).device(&self.device);
        let Ok(request) = request else { return DeviceStep::Failed(DeviceError::Expired) };
        let fetched = parts.fetcher.post_form(&self.guard, &request).await;
        let scopes: &Scopes = &self.found.scopes;
        let asked = Asked { grant: TokenGrant::Device, scopes, now };
        self.device.answer(&fetched.reply(), asked)
    }

    /// Stores the tokens, and uses them only then.
    async fn store(&self, tokens: Tokens) -> DeviceState {
        let Self { holding, entry, found, client, .. } = self;
        let grant = Grant {
            issuer: found.issuer.clone(),
            client_id: client.identity.id.clone(),
            resource: found.resource.clone(),
            requested: found.scopes.clone(),
            origin: TokenGrant::Device,
            tokens,
            generation: 0,
            key: None,
        };
        let value = GrantValue {
            grant,
            server: place(&entry.url),
            metadata: Some(found.metadata.clone()),
            client: Some(client.clone()),
        };
        let options = &holding.parts.options;
        let facts = value.facts(Some(holding.now()));
        let stored = options.store.put_grant(holding.key.clone(), value.to_stored(), facts).await;
        let adopted = match stored {
            Ok(row) => holding.given(&row),
            Err(fault) => Err(fault.into()),
        };
        match adopted {
            Ok(()) => DeviceState::Done,
            Err(error) => DeviceState::Failed(error.to_string()),
        }
    }
}
