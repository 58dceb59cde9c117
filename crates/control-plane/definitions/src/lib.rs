//! Screens definitions of tools, prompts, templates and resources, which servers write and models
//! read. Finds forbidden content (S22), changes (S23), and names that resemble those of others
//! (S24).
//!
//! Every function outside of [`reviews`] depends on its inputs alone. A definition is screened up
//! to [`DEFINITION_MAX`] bytes, every step takes time in proportion to its text, and results are
//! bounded and harmless to show: see [`harmless()`]. [`reviews`] applies them: it reads lists and
//! rows of the store, and notes decisions of humans.
//!
//! The rules find known patterns. They read English and a few phrases of other languages, each
//! string by itself. Instructions in other words, or spread over several strings, escape them. So a
//! definition without findings is not a safe one, and a finding is a reason for a human's review,
//! not a proof. Claims of a definition in `annotations` are screened like all other text, and relax
//! nothing (S25).

mod compare;
mod definition;
mod difference;
mod encoded;
mod finding;
mod folded;
mod hidden;
mod instructions;
mod judging;
mod markup;
mod names;
mod place;
pub mod reviews;
mod screen;

pub use compare::{Change, Unwanted, compare};
pub use definition::{DEFINITION_MAX, Definition, Unreadable};
pub use difference::{CHANGES_MAX, Difference, PlaceChange, SHOWN_MAX, difference};
pub use finding::{EXCERPT_MAX, FINDINGS_MAX, Finding, Rule};
pub use names::{LookAlike, NAME_MAX, Names, Resemblance};
pub use narthex_model::harmless;
pub use screen::{screen, screen_raw};
