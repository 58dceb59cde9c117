//! The HTTP door: MCP endpoints, the operators' API, health, metrics and the boundary checks.
//!
//! Every request passes the same checks in this order: `Host` and `Origin`, the token, the route
//! ([`ROUTES`]), the method. This crate does not interpret MCP methods: it passes messages to the
//! gateway, and frames the gateway's answers as one JSON body or as an event stream.

mod auth;
mod batch;
mod body;
mod calling;
mod clients;
mod console;
mod cors;
mod daemon;
mod deciding;
mod detached;
mod devices;
mod document;
mod door;
mod entry;
mod feed;
mod file;
mod html;
mod hub;
mod legacy;
mod lines;
pub mod listener;
mod modern;
mod openapi;
mod options;
mod page_streams;
mod post;
mod problem;
mod programs;
mod public_servers;
mod replay;
mod request_warnings;
mod respond;
mod routes;
mod rows;
mod secret_users;
mod sender;
mod sending;
mod server_sign_in;
mod servers;
mod shapes;
mod signin;
mod status;
mod stream;
mod vfs;

pub use auth::TokenHash;
pub use body::RequestBody;
pub use console::{operator_pages, pages};
pub use document::openapi;
pub use door::Router;
pub use entry::router;
pub use openapi::Access;
pub use options::{HttpOptions, ReplayLimits};
pub use public_servers::{
    FindFault, Finding, FoundInput, FoundServer, FoundServers, FoundWay, PublicServers,
};
pub use respond::ResponseBody;
pub use routes::{Caching, ROUTES, Route};
pub use servers::API_BODY_MAX;
