//! One connection to one MCP server: transports, handshake, lists, and forwarding.
//!
//! [`Link::forward`] and [`Link::notify`] take a [`narthex_policy::Permitted`] request by value and
//! a [`Booked`] with it. So a client's message reaches a server only after policy has allowed it,
//! the record has a place for it and the limits have counted it. The link sends the message that
//! policy saw. [`Asking`] lists the requests of narthex itself. Answers come back as undecoded
//! [`Frame`]s.

mod aside;
mod authorization;
mod booked;
mod cause;
mod connect;
mod connect_http;
mod connect_stdio;
mod credentials;
mod duplex;
mod frame;
mod handshake;
mod health;
mod http;
mod ids;
mod inventory;
mod link;
mod list_changes;
mod outlet;
mod redaction;
mod retry_after;
mod secrets;
mod sse;
mod stdio;

pub use aside::{Aside, is_large};
pub use booked::Booked;
pub use connect::{
    ConnectContext, ConnectError, Deadlines, Dialect, OnPhase, Phase, Supervision, connect,
};
pub use connect_stdio::may_install;
pub use credentials::{
    AtHand, CredentialFault, CredentialQuery, CredentialSource, Credentials, FinishFault,
    Finishing, Holder, Obtaining, RefusedRequest, SignInRedirect, changes,
};
pub use frame::{ClearedSecret, CutReason, Frame, LinkError, LinkEvent};
pub use health::{Doubt, Failure, Health};
pub use inventory::{Inventory, InventoryEntry, ListError, Listed};
pub use link::{
    Asking, ClientIdentity, Ended, Forwarded, Forwarding, Hop, InUse, KeptAwake, Link,
    ServerCapabilities, ServerFacts, TraceHeaders,
};
pub use list_changes::ListChanges;
pub use retry_after::RetryAfter;
