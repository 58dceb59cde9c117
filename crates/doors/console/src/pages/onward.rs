//! The page that leads to the authorization server of a server.
//!
//! It is no redirect: a page's form may lead to narthex alone.

use askama::Template;

use crate::{Frame, filters, parts::Words};

/// The page.
#[derive(Debug, Template)]
#[template(path = "onward.html")]
pub struct OnwardPage {
    /// The frame.
    pub frame: Frame,
    /// The server.
    pub server: Words,
    /// The host of the authorization server.
    pub host: Words,
    /// The address, of `http` or `https`.
    pub url: String,
    /// The page to go back to.
    pub back: String,
}
