//! Shapes of the catalog.

mod agent;
mod attachments;
mod definitions;
mod import;
mod object;
mod server;

pub(crate) use self::{agent::*, attachments::*, definitions::*, import::*, object::*, server::*};
