//! The data plane: every call of every door goes through this one pipeline.
//!
//! A door parses a message, finds the caller by token and hands both over; [`Gateway::call`]
//! classifies, routes, authorizes, forwards and records, and gives back an [`Answering`] to be
//! polled to its end. Nothing here knows HTTP or sockets.

mod again;
mod alike;
mod answering;
mod aside;
mod bridge;
mod built_in;
mod caller;
mod clock;
mod contents;
mod errand;
mod exposure;
mod finish;
mod gateway;
mod grants;
mod handshake;
mod held;
mod hub;
mod inbound;
mod links;
pub mod metrics;
mod open;
mod pages;
mod parked;
mod pipeline;
mod places;
mod prepare;
mod record;
mod refusal;
mod results;
mod rounds;
mod route;
mod run;
mod runs;
mod seal;
mod sending;
mod sent;
mod session;
mod session_table;
mod task_list;
mod tasks;
mod trace;
mod traffic;
mod view;
mod views;

pub use alike::{DoneAlike, NotAllowed};
pub use answering::{Answer, Answering, RefusedCall, Step};
pub use built_in::{
    BuiltInAnswer, BuiltInCall, BuiltInResult, BuiltInServer, BuiltInTool, Lacking,
};
pub use caller::{Caller, Endpoint, TraceContext};
pub use gateway::{Gateway, GatewayOptions};
pub use grants::{Consumed, Consuming, GrantLedger, LedgerError};
pub use held::LookingAt;
pub use narthex_model::{RunId, RunToken};
pub use narthex_registry::ConnectionId;
pub use narthex_upstream::is_large;
pub use pages::ToPage;
pub use places::{Full, Holder, Parts, Place, Places};
pub use run::{Changes, RunTable, RunView};
pub use runs::{FindingRun, RunSource};
pub use session::{Attended, Session, SessionId};
pub use trace::{CallSpan, TracedCall, Tracer};
pub use view::shown;
