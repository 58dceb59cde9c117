//! The form that adds a server to the configuration.

use askama::Template;

use crate::{Frame, filters, parts::form::Field};

/// The page.
#[derive(Debug, Template)]
#[template(path = "server_add.html")]
pub struct ServerAddPage {
    /// The frame.
    pub frame: Frame,
    /// The path that the form is sent to.
    pub path: String,
    /// The page to go back to.
    pub back: String,
    /// The path of the registry; `None` for a human who may not search it.
    pub registry: Option<String>,
    /// The path of the catalog; `None` for a human who may not see it.
    pub catalog: Option<String>,
    /// The fields, in their order.
    pub fields: Vec<Field>,
}
