//! The pages of the console as HTML: views, their templates, and the files that pages load. Pure.
//!
//! A page is a struct in [`pages`] and a template of the same name. `http` fills the struct in
//! from the control plane, and [`html`] gives the text. All pages have one [`Frame`].
//!
//! Text of others is inert by the module `escape`: no template can show it otherwise, and a test
//! greps for the ways around it. What may be long is cut by [`parts::Words`].

pub mod assets;
mod escape;
#[expect(unreachable_pub, reason = "the macro of the filter makes its type public")]
mod filters;
mod frame;
pub mod pages;
pub mod parts;

pub use frame::{
    Account, Frame, NavGroup, NavLink, NavPlace, OperatorEntry, Related, Told, ToldPart, Waiting,
    Workspaces,
};

/// The policy of every page: its own files and nothing else, no inline script and no inline style.
pub const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
                          connect-src 'self'; form-action 'self'; base-uri 'none'; \
                          frame-ancestors 'none'";

/// Renders a page, or a part of one.
///
/// # Panics
/// Never: templates only write into a string.
#[must_use]
pub fn html(view: &impl askama::Template) -> String {
    view.render().expect("a string takes everything")
}
