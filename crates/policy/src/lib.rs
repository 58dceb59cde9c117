//! The only maker of a [`Permitted`] request: decides whether one request may be forwarded (D13).
//!
//! Forwarding takes `Permitted<Request>`, whose only constructor is [`RunPolicy::authorize`]. It
//! owns the bytes and the effective name that were checked, and hands them out only whole: what
//! was checked is what is sent. Pure: no I/O, no clock.

mod request;
mod rules;

pub use request::{Item, Request};
pub use rules::{Denial, Permitted, RunPolicy};
