//! The data plane: every call of every door passes this one pipeline.
//!
//! A door parses a message and finds the caller by a token. [`Gateway::call`] classifies, routes,
//! authorizes, forwards and records the message. It returns an [`Answering`], which the door polls
//! to its end. This crate knows no HTTP and no sockets.

mod built_in;
mod call;
mod caller;
mod endpoint;
mod gateway;
mod links;
mod lists;
pub mod metrics;
mod options;
mod runs;
mod session;
mod shared;
mod subscriptions;
mod tasks;
mod view;

pub use built_in::{
    BuiltInAnswer, BuiltInCall, BuiltInResult, BuiltInServer, BuiltInTool, Lacking,
};
pub use call::answer::{Answer, RefusedCall, Step};
pub use call::answering::Answering;
pub use call::authorize::{Consumed, Consuming, GrantLedger, LedgerError};
pub use call::tool_equivalents::{DoneAlike, NotAllowed};
pub use call::trace::{CallSpan, TracedCall, Tracer};
pub use caller::{Caller, TraceContext};
pub use endpoint::Endpoint;
pub use gateway::Gateway;
pub use lists::pages::ToPage;
pub use narthex_model::{RunId, RunToken};
pub use narthex_registry::ConnectionId;
pub use narthex_upstream::is_large;
pub use options::GatewayOptions;
pub use runs::run::{Changes, RunTable, RunView};
pub use runs::{FindingRun, LookingAt, RunSource};
pub use session::{Attended, Session, SessionId};
pub use subscriptions::places::{Full, Holder, Parts, Place, Places};
pub use view::shown;
