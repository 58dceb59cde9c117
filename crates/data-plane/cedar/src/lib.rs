//! Workspace rules in Cedar (D13): checked as a whole when saved, and evaluated at each call.
//!
//! Rules can only narrow: they forbid, or require a tool scope that a human must have granted.
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
/// The names that rules may use, as a Cedar schema for people.
pub const SCHEMA: &str = schema::TEXT;

pub use set::{RULES_MAX, RuleSet, TEXT_MAX};
pub use unreadable::UnreadableRules;
