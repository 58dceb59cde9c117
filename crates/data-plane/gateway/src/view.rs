//! The view of callers at an aggregated endpoint: one list made of many servers' lists, the route
//! of each name, and the gateway's tools for clients that support only tools.
//!
//! A [`View`] is a function of its [`parts`]: it asks no server and knows no run.
//!
//! This module is a layer of its own: it imports no other module of this crate.

mod aggregate;
mod decided;
mod method;
mod notice;
mod own_tool;

pub(crate) use aggregate::{Part, View, ViewOptions, exposed, parts, seen_rows};
pub use aggregate::{VisibleTool, shown};
pub(crate) use decided::{check_capabilities, check_decided, check_question, check_questions};
#[cfg(test)]
pub(crate) use method::names as method_names;
pub(crate) use method::{Handling, handling, has_rounds, is_like_known, known_name};
pub(crate) use notice::{Notice, notice};
pub(crate) use own_tool::{OwnCall, OwnTool};
