//! One server of the configuration: its pages, and the decisions on its definitions.

mod calls;
mod configuration;
mod definitions;
mod log;
mod overview;
mod runs;
mod settings;
mod spot;
mod tools;

use super::page::Page;
use crate::{
    Access,
    routes::{ADMIN, AUDIT, SEE_CATALOG, SEE_RUNS},
};

pub(super) use self::{
    definitions::TOPIC as DEFINITIONS, log::TOPIC as LOG, overview::TOPIC as OVERVIEW,
    tools::TOPIC as TOOLS,
};

/// The pages, each with the access of the API's route that has the same data.
pub(super) const PAGES: &[Page] = &[
    Page::get("servers/{name}", Access::Shared, |viewer, _| Box::pin(overview::show(viewer))),
    Page::get("servers/{name}/tools", Access::Shared, |viewer, _| Box::pin(tools::show(viewer))),
    Page::get("servers/{name}/definitions", Access::Member(SEE_CATALOG), |viewer, _| {
        Box::pin(definitions::show(viewer))
    }),
    Page::post("servers/{name}/definitions/accept", Access::Member(ADMIN), |viewer, body| {
        Box::pin(definitions::accept(viewer, body))
    }),
    Page::post("servers/{name}/definitions/reject", Access::Member(ADMIN), |viewer, body| {
        Box::pin(definitions::reject(viewer, body))
    }),
    Page::get("servers/{name}/configuration", Access::Shared, |viewer, _| {
        Box::pin(configuration::show(viewer))
    }),
    Page::get("servers/{name}/log", Access::Operator, |viewer, _| Box::pin(log::show(viewer))),
    Page::get("servers/{name}/log.txt", Access::Operator, |viewer, _| Box::pin(log::file(viewer))),
    Page::get("servers/{name}/calls", Access::Member(AUDIT), |viewer, _| {
        Box::pin(calls::show(viewer))
    }),
    Page::get("servers/{name}/runs", Access::Member(SEE_RUNS), |viewer, _| {
        Box::pin(runs::show(viewer))
    }),
];
