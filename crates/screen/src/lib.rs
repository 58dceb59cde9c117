//! Looks at definitions of tools, prompts, templates and resources, which servers write and models
//! read: what they say that they should not (S22), what changed in them (S23), and whose names
//! they resemble (S24).
//!
//! Everything here is a function of its inputs. A definition is looked at up to
//! [`DEFINITION_MAX`] bytes, every step takes time in proportion to its text, and what comes out
//! is bounded and harmless to show: see [`harmless()`].
//!
//! The rules find what is known. They read English and a few phrases of other languages, each
//! string by itself: instructions in other words, or spread over several strings, they do not
//! see. So a definition without findings is not a safe one, and a finding is a reason for a human
//! to look, not a proof. What a definition says of itself in `annotations` is looked at like all
//! else, and relaxes nothing (S25).

mod compare;
mod definition;
mod difference;
mod encoded;
mod finding;
mod folded;
mod harmless;
mod hidden;
mod instructions;
mod markup;
mod names;
mod place;
mod screen;

pub use compare::{Change, Unwanted, compare};
pub use definition::{DEFINITION_MAX, Definition, Unreadable};
pub use difference::{CHANGES_MAX, Difference, PlaceChange, SHOWN_MAX, difference};
pub use finding::{EXCERPT_MAX, FINDINGS_MAX, Finding, Rule};
pub use harmless::harmless;
pub use names::{LookAlike, NAME_MAX, Names, Resemblance};
pub use screen::{screen, screen_raw};
