//! Opens a database of this program's version by a path or a URL, or returns the reason why it
//! cannot.
//!
//! * A file is created for its owner alone, checked for damage, and migrated to this version. A
//!   database of a server is used if it is empty or narthex's own, and migrated as well.
//! * Each step is a file of `migrations/`. A published step never changes again.
//!
//! A layer over `database` alone, which knows no object. No call of a tool waits for this module.

pub(crate) mod connect;
mod fault;
pub(crate) mod migrations;
pub(crate) mod open;

pub use connect::ConnectError;
pub use open::OpenError;
