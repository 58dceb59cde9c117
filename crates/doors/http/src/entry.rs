//! The door with the console beside its routes.

use narthex_gateway::Gateway;

use crate::{HttpOptions, Router, console, door};

/// Creates the HTTP door of a gateway.
#[must_use]
pub fn router(gateway: Gateway, options: HttpOptions) -> Router {
    door::router(gateway, options, console::BESIDE)
}
