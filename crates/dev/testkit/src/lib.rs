//! Test support shared by the crates: the fixture MCP server, a server that misbehaves on request,
//! authorization servers with a protected MCP server, the header-adding forwarder, the load
//! generator, an authenticator in software, a check of answers against an OpenAPI document, a
//! registry of servers, the search for secrets in outputs, messages of both eras, the number of
//! rounds that long tests run, a clock that proceeds by steps, the warnings that are logged, texts
//! of many shapes for readers, and addresses that no stranger may lead a client to.
//!
//! Nothing here depends on another narthex crate, so that its checks rest on an independent reading
//! of the protocol.

pub mod addresses;
pub mod archive;
pub mod authenticator;
pub mod authorization;
pub mod canary;
#[cfg(any(test, feature = "clock"))]
pub mod clock;
pub mod contract;
pub mod fixture;
pub mod forwarder;
pub mod load;
pub mod messages;
pub mod peer;
pub mod planted;
pub mod postgres;
pub mod public_registry;
pub mod rounds;
pub mod shapes;
pub mod unruly;
pub mod warnings;

use tokio::task::JoinHandle;

pub use self::rounds::rounds;

#[expect(
    clippy::disallowed_methods,
    reason = "test peers end with their process or runtime and never drain"
)]
pub(crate) fn spawn<F>(future: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    tokio::spawn(future)
}
