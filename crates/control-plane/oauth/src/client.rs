//! Narthex as a client of authorization servers.
//!
//! Each step is a value that leads to the next. [`Discovery`] finds the authorization server of an
//! MCP server, [`Way::choose`] and [`Registering`] give narthex an identity there, an [`Attempt`]
//! leads a person through the authorization, and a [`TokenEndpoint`] makes the requests for tokens,
//! whose answers [`Tokens::read`] reads. A [`Grant`] is the stored result. The caller sends the
//! requests, within the limits of time and size, and only to addresses that its guard allows.
//!
//! Texts of servers are hostile: errors show error codes and addresses only, never descriptions.

mod authentication;
mod authorization;
mod callback;
mod configured;
mod device;
mod discovery;
mod exchange;
mod failure;
mod grant;
mod identity;
mod preset;
mod registration;
mod request;
mod revocation;
mod scope_choice;
mod settings;
mod shown;
mod token_endpoint;
mod tokens;
mod way;

pub use authentication::{AuthMethod, ClientIdentity};
pub use authorization::{
    ATTEMPT_LIFE, Attempt, AuthorizationError, Binding, Plan, StoredAttemptFault,
};
pub use callback::{Awaited, Callback, CallbackFault, redirect_uri, state_hash};
pub use configured::{
    ClientCredentials, ConfiguredFault, SETTING_ALGORITHM, SETTING_PRIVATE_KEY, SETTING_TOKEN_URL,
};
pub use device::{Device, DeviceError, DeviceStep};
pub use discovery::{Discovery, DiscoveryError, Found, Step};
pub use exchange::{Subject, TokenExchange, read_exchanged, read_id_jag};
pub use failure::{Consequence, Failure, NextState, Refusal, backoff};
pub use grant::{Freshness, Grant, Reaction, StoredGrantFault};
pub use identity::{Exchange, Given, Identity, IdentitySource, SETTING_PROVIDER_TOKEN_URL};
pub use preset::Preset;
pub use registration::{
    ClientProfile, RegisteredClient, Registering, RegistrationError, RegistrationStep,
    StoredClientFault,
};
pub use request::{Form, FormRequest, JsonRequest, Reply};
pub use revocation::{Revocation, RevocationOutcome};
pub use scope_choice::{ScopeSources, StepUp};
pub use settings::{
    Flow, PkceRule, RegistrationRule, ResourceRule, SETTING_AUTHORIZATION_SERVER,
    SETTING_CLIENT_ID, SETTING_CLIENT_NAME, SETTING_PKCE, SETTING_REGISTRATION, SETTING_SCOPES,
    Settings,
};
pub use shown::{shown_code, shown_url};
pub use token_endpoint::{RequestFault, TokenEndpoint};
pub use tokens::{Asked, TokenGrant, Tokens};
pub use way::{ClientDocument, Way, WayError};
