//! Opens a database of this program's version by a path or a URL, or reports why it cannot.
//!
//! * A file is made for its owner alone, searched for damage, and brought up to this version; a
//!   database of a server is taken if it is empty or ours, and brought up as well.
//! * Each step is a file of `migrations/`. A step that was published never changes again.
//!
//! A layer over `database` alone, which knows no object. Nothing here is on the way of a call.

pub(crate) mod connect;
mod fault;
mod migrations;
pub(crate) mod open;

pub use connect::ConnectError;
pub use open::OpenError;
