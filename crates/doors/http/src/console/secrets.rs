//! Secrets of a workspace: their names with three states, never a value.

mod clear;
mod done;
mod entries;
mod forms;
mod list;

use super::page::Page;
use crate::{
    Access,
    routes::{ADMIN, NAMES},
};

/// The list, the page that adds a secret, the page before one is cleared, and the actions.
pub(super) const PAGES: &[Page] = &[
    Page::get("secrets", Access::Member(NAMES), |viewer, _| Box::pin(list::show(viewer)))
        .in_nav("Secrets", "lock"),
    Page::get("secrets/new", Access::Member(ADMIN), |viewer, _| Box::pin(forms::new(viewer))),
    Page::post("secrets/new", Access::Member(ADMIN), |viewer, body| {
        Box::pin(forms::add(viewer, body))
    }),
    Page::post("secrets/{secret}/set", Access::Member(ADMIN), |viewer, body| {
        Box::pin(forms::set(viewer, body))
    }),
    Page::get("secrets/{secret}/clear", Access::Member(ADMIN), |viewer, _| {
        Box::pin(clear::show(viewer))
    }),
    Page::post("secrets/{secret}/clear", Access::Member(ADMIN), |viewer, body| {
        Box::pin(clear::clear(viewer, body))
    }),
];
