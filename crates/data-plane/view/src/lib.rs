//! The view of callers at an aggregated endpoint: one list out of many servers', the route of each
//! name, and tools of our own for clients that know tools alone.
//!
//! A [`View`] is made of [`parts`] and is a function of them: it asks no server and knows no run.

mod decided;
mod list_kind;
mod method;
mod notice;
mod own_tool;
mod view;

pub use decided::{
    Undecidable, check_capabilities, check_decided, check_question, check_questions,
};
pub use list_kind::ListKind;
pub use method::{Handling, handling, is_like_known, known_name};
pub use notice::{Notice, notice};
pub use own_tool::{OwnCall, OwnTool};
pub use view::{Part, View, ViewOptions, exposed, parts, seen_rows, shown};
