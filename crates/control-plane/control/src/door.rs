//! The door as an authorization server for its clients: combines the values of `oauth`, the rows of
//! the store, and the registered clients.
//!
//! A human's consent makes a program a registered client, whose runs the human drives. The tokens
//! that the program gets open that client's run. A token that this process has seen is checked in
//! memory alone, with the table of permissions, which follows the store.

mod access;
mod answers;
mod assertions;
mod bounded;
mod clients;
mod company;
mod connections;
mod counted;
mod documents;
mod fault;
mod fetched_keys;
mod foreign;
mod foreign_token;
mod introspections;
mod key_source;
mod keys;
mod requests;
mod senders;
mod server;
mod tokens;

use narthex_store::Store;

pub use self::{
    access::DoorAccess,
    answers::{DoorAnswer, DoorAsserted, DoorForm, DoorToken},
    clients::DoorRegistration,
    connections::NewConnection,
    fault::{DoorFault, DoorStop},
    foreign_token::DoorForeign,
    introspections::DoorAsker,
    requests::{DoorBrowser, DoorChoice, DoorHuman},
    server::DoorServer,
};
use crate::Control;

/// The authorization server of the door of one daemon.
#[derive(Debug, Clone, Copy)]
pub struct DoorDesk<'c> {
    control: &'c Control,
    server: &'c DoorServer,
    store: &'c Store,
}

impl<'c> DoorDesk<'c> {
    /// The authorization server of a daemon; `None` if its door gives no tokens.
    #[must_use]
    pub fn of(control: &'c Control) -> Option<Self> {
        let (server, store) = (control.door_server()?, control.store()?);
        Some(Self { control, server, store })
    }

    /// The rules and documents.
    #[must_use]
    pub fn server(&self) -> &'c DoorServer {
        self.server
    }
}
