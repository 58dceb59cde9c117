//! The data plane: every call of every door passes this one pipeline.
//!
//! A door parses a message and finds the caller by a token. [`Gateway::call`] classifies, routes,
//! authorizes, forwards and records the message. It returns an [`Answering`], which the door polls
//! to its end. This crate knows no HTTP and no sockets.

mod answer;
mod arrivals;
mod built_in;
mod call;
mod caller;
mod clock;
mod endpoint;
mod gateway;
mod ledger;
mod links;
mod lists;
pub mod metrics;
mod names;
mod options;
mod places;
mod refusal;
mod runs;
mod seal;
mod session;
mod shared;
mod standing;
mod subscriptions;
mod tasks;
mod trace;
mod view;

pub use answer::{Answer, RefusedCall, Step};
pub use arrivals::Arrival;
pub use built_in::{
    BuiltInAnswer, BuiltInCall, BuiltInResult, BuiltInServer, BuiltInTool, Lacking,
};
pub use call::answering::Answering;
pub use caller::{Caller, TraceContext};
pub use endpoint::Endpoint;
pub use gateway::{DoneAlike, Gateway, LiveClient, NotAllowed};
pub use ledger::{Consumed, Consuming, GrantLedger, LedgerError};
pub use lists::pages::ToPage;
pub use narthex_model::{RunId, RunToken};
pub use narthex_registry::ConnectionId;
pub use narthex_upstream::is_large;
pub use options::GatewayOptions;
pub use places::{Full, Holder, Parts, Place, Places};
pub use runs::run::{Changes, RunTable, RunView};
pub use runs::{FindingRun, LookingAt, RunSource};
pub use session::{Attended, Session, SessionId};
pub use trace::{CallSpan, TracedCall, Tracer};
pub use view::{VisibleTool, shown};
