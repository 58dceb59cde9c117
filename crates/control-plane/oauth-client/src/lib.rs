//! Sign-ins of narthex at the authorization servers of others, over HTTP and a store.
//!
//! [`SignIns`] opens the credentials that links ask for. A credential discovers the authorization
//! server after a refusal, registers narthex there, opens an address at which a person agrees, and
//! renews the tokens. The values of all these steps are those of `narthex_oauth::client`; this
//! crate sends their requests, keeps their results in a [`store::TokenStore`], and owns the tasks.
//!
//! No token, code, verifier or client secret leaves this crate except in a request to the server
//! that it is for, and sealed in the store.

mod attempt_row;
mod attempts;
mod belonging;
mod client_choice;
mod consent;
mod credential;
mod device;
mod discover;
mod entry;
mod error;
mod exchange;
mod fetch;
mod file_store;
mod finish;
mod first_request;
mod grant_row;
mod guard;
mod holding;
mod identity;
mod identity_row;
mod job;
mod keep_alive;
mod known;
mod lease;
mod loading;
mod machine;
mod memory_store;
mod options;
mod renewal;
mod shared_clients;
mod sign_ins;
mod sign_out;
mod state;
mod status;
pub mod store;
mod tables;
mod work;

pub use self::{
    consent::BeginAs,
    device::{DeviceBegun, DeviceState},
    entry::SignInTarget,
    error::SignInError,
    file_store::FileStore,
    finish::{BrowserAnswer, Finished, Unfinished},
    guard::Guard,
    identity_row::LoginIdentity,
    memory_store::MemoryStore,
    options::{Clock, NoHooks, RedirectBases, SignInHooks, SignInOptions, SystemClock},
    shared_clients::{IssuerRule, NoIssuer, SharedClient, SharedClients},
    sign_ins::{Begun, Prepared, SignIns},
    sign_out::{Revoked, SignedOut},
    status::{ClientOrigin, GrantStatus},
};
