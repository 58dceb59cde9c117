//! The filter of our templates: shows another template as a part.

use askama::{Template, Values, filters::Safe};

/// Renders a part of a page. It takes templates only, each of which has escaped its own values.
///
/// # Errors
/// When the part cannot be rendered.
#[askama::filter_fn]
pub(crate) fn part(view: impl Template, _: &dyn Values) -> askama::Result<Safe<String>> {
    view.render().map(Safe)
}
