//! The account of the signed-in human: connections, programs, passkeys and sign-ins.

use askama::Template;

use crate::{
    Frame, filters,
    parts::{Words, form::Field, item::Item},
};

/// The page.
#[derive(Debug, Template)]
#[template(path = "me.html")]
pub struct MePage {
    /// The frame.
    pub frame: Frame,
    /// The connections to servers that people sign in to.
    pub connections: Vec<Item>,
    /// The address of the next page of connections.
    pub next: Option<String>,
    /// The programs that the human let in.
    pub programs: Vec<Item>,
    /// The page on which a program is connected.
    pub connect: String,
    /// The passkeys.
    pub passkeys: Vec<Item>,
    /// The way to another passkey.
    pub adding: Adding,
    /// The sign-ins of the human.
    pub logins: Vec<Item>,
}

/// The way to another passkey.
#[derive(Debug, Clone)]
pub enum Adding {
    /// A form, with the page to open after it.
    Form {
        /// The name of the new passkey.
        field: Box<Field>,
        /// The path.
        then: String,
    },
    /// The reason why the human cannot add one now.
    Off(&'static str),
}

/// The page that leads to the authorization server of a server.
#[derive(Debug, Template)]
#[template(path = "me_onward.html")]
pub struct MeOnwardPage {
    /// The frame.
    pub frame: Frame,
    /// The server.
    pub server: Words,
    /// The host of the authorization server.
    pub host: Words,
    /// The address.
    pub url: String,
    /// The page to go back to.
    pub back: String,
}

#[cfg(test)]
pub(super) mod samples;
