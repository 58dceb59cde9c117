//! Lists of the aggregated endpoint and of a server's own: views, pages, and the items that rules
//! hide.

pub(crate) mod awaited_pages;
pub(crate) mod exposure;
pub(crate) mod pages;
pub(crate) mod views;
