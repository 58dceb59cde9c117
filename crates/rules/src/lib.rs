//! Workspace rules in Cedar (D13): checked as a whole when they are saved, and asked at each call.
//!
//! Rules can only narrow: they forbid, or require a tool scope that somebody must have granted.
//! Pure: no I/O and no clock.

mod arguments;
mod ask;
mod bounds;
mod fault;
mod further;
mod named;
mod part;
mod schema;
mod set;
mod typed;
mod unreadable;
mod values;

pub use fault::{RuleFault, RuleFaults};
pub use named::{Named, RuleName};
/// What rules may name, as a Cedar schema that people read.
pub const SCHEMA: &str = schema::TEXT;

pub use set::{RULES_MAX, RuleSet, TEXT_MAX};
pub use unreadable::UnreadableRules;
