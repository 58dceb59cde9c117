//! Capabilities and agents: the lists, and one of them with its attachments, the origin of each
//! value, and the preview of a run.
//!
//! Files import in one direction: `verbs` and `list` the page, the page the fields, and these the
//! form and the values.

mod around;
mod draft;
mod effective;
mod faults;
mod fields;
mod filter;
mod inputs;
mod keys;
mod list;
mod page;
mod values;
mod verbs;

use narthex_model::CatalogKind;

use super::page::Page;
use crate::{
    Access,
    routes::{AUTHOR, READER, RUN},
};

pub(super) use self::list::{agents, capabilities};

const AGENT: CatalogKind = CatalogKind::Agent;
const CAPABILITY: CatalogKind = CatalogKind::Capability;

/// The lists, the pages of single objects, and the actions.
pub(super) const PAGES: &[Page] = &[
    Page::get("capabilities", Access::Member(AUTHOR), |viewer, _| {
        Box::pin(list::show(viewer, CAPABILITY))
    })
    .in_nav("Capabilities", "layers"),
    Page::get("agents", Access::Member(READER), |viewer, _| Box::pin(list::show(viewer, AGENT)))
        .in_nav("Agents", "person"),
    Page::post("new-capability", Access::Member(AUTHOR), |viewer, body| {
        Box::pin(list::create(viewer, CAPABILITY, body))
    }),
    Page::post("new-agent", Access::Member(AUTHOR), |viewer, body| {
        Box::pin(list::create(viewer, AGENT, body))
    }),
    Page::get("capabilities/{capability}", Access::Member(AUTHOR), |viewer, _| {
        Box::pin(verbs::show(viewer, CAPABILITY))
    }),
    Page::get("agents/{agent}", Access::Member(READER), |viewer, _| {
        Box::pin(verbs::show(viewer, AGENT))
    }),
    Page::post("capabilities/{capability}/edit", Access::Member(AUTHOR), |viewer, body| {
        Box::pin(verbs::edit(viewer, CAPABILITY, body))
    }),
    Page::post("agents/{agent}/edit", Access::Member(AUTHOR), |viewer, body| {
        Box::pin(verbs::edit(viewer, AGENT, body))
    }),
    Page::post("capabilities/{capability}/delete", Access::Member(AUTHOR), |viewer, body| {
        Box::pin(verbs::delete(viewer, CAPABILITY, body))
    }),
    Page::post("agents/{agent}/delete", Access::Member(AUTHOR), |viewer, body| {
        Box::pin(verbs::delete(viewer, AGENT, body))
    }),
    Page::post("agents/{agent}/start", Access::Starter(RUN), |viewer, body| {
        Box::pin(verbs::start(viewer, body))
    }),
];
