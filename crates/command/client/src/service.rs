//! The daemon as a service of systemd or launchd: its definition, and the commands of its manager.
//!
//! A definition is the generated text of a unit or a property list. Its first comment is a mark by
//! which narthex knows its own files; a file without the mark is never changed.

mod manager;
mod own;
mod plist;
mod spec;
mod text;
mod unit;

pub use manager::{FAILED, Manager, State, Words, run, shown, tail};
pub use own::{SYSTEM_DATA, SYSTEM_USER, SYSUSERS, is_ours, sysusers};
pub use spec::{Spec, absolute_entries, utf8};
pub use text::{is_about, port_in, text, with_port};
