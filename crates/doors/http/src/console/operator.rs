//! The pages of operators, which belong to no workspace: the daemon, all workspaces, the master
//! keys, and the files of the configuration.
//!
//! The audit of the installation is among them, by the pages of the audit.

mod daemon;
mod files;
mod keys;
mod workspaces;

use super::page::Page;
use crate::Access;

/// The pages and their actions. To humans who are no operators all of them are absent.
pub(super) const PAGES: &[Page] = &[
    Page::get("", Access::Operator, |viewer, _| Box::pin(daemon::show(viewer)))
        .in_nav("Daemon", "gear"),
    Page::get("workspaces", Access::Operator, |viewer, _| Box::pin(workspaces::list(viewer)))
        .in_nav("Workspaces", "layers"),
    Page::get("workspaces/new", Access::Operator, |viewer, _| Box::pin(workspaces::new(viewer))),
    Page::post("workspaces/new", Access::Operator, |viewer, body| {
        Box::pin(workspaces::create(viewer, body))
    }),
    Page::get("workspaces/{workspace}/delete", Access::Operator, |viewer, _| {
        Box::pin(workspaces::ask(viewer))
    }),
    Page::post("workspaces/{workspace}/delete", Access::Operator, |viewer, body| {
        Box::pin(workspaces::delete(viewer, body))
    }),
    Page::get("keys", Access::Operator, |viewer, _| Box::pin(keys::show(viewer)))
        .in_nav("Master keys", "key"),
    Page::post("keys/rotate", Access::Operator, |viewer, body| {
        Box::pin(keys::rotate(viewer, body))
    }),
    Page::get("files", Access::Operator, |viewer, _| Box::pin(files::show(viewer)))
        .in_nav("Files", "list"),
    Page::post("files/reload", Access::Operator, |viewer, body| {
        Box::pin(files::reload(viewer, body))
    }),
];
