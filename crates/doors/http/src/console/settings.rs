//! The settings of a workspace, one tab for each kind: its members, limits, channels, webhooks,
//! tokens of services, what is kept, and how people sign in.

mod channels;
mod faults;
mod finder;
mod general;
mod kept;
mod limits;
mod members;
mod outbound;
mod roles;
mod sign_in;
mod tab;
mod tokens;
mod usage;
mod webhooks;

pub(super) use self::finder::found;
use self::tab::{ADMINS, AUDITORS, MEMBERS, NAMERS};
use super::page::Page;

/// The tabs, their forms, and the pages that ask before a change that cannot be undone.
pub(super) const PAGES: &[Page] = &[
    Page::get("settings", MEMBERS, |viewer, _| Box::pin(general::show(viewer)))
        .in_nav("Settings", "gear"),
    Page::post("settings", ADMINS, |viewer, body| Box::pin(general::save(viewer, body))),
    Page::get("settings/members", AUDITORS, |viewer, _| Box::pin(members::show(viewer))),
    Page::get("settings/members/new", ADMINS, |viewer, _| Box::pin(members::new(viewer))),
    Page::post("settings/members/new", ADMINS, |viewer, body| Box::pin(members::add(viewer, body))),
    Page::get("settings/members/{member}/roles", AUDITORS, |viewer, _| {
        Box::pin(members::one(viewer))
    }),
    Page::post("settings/members/{member}/roles", ADMINS, |viewer, body| {
        Box::pin(members::set(viewer, body))
    }),
    Page::get("settings/members/{member}/remove", ADMINS, |viewer, _| {
        Box::pin(members::ask(viewer))
    }),
    Page::post("settings/members/{member}/remove", ADMINS, |viewer, body| {
        Box::pin(members::remove(viewer, body))
    }),
    Page::get("settings/limits", MEMBERS, |viewer, _| Box::pin(limits::show(viewer))),
    Page::post("settings/limits", ADMINS, |viewer, body| Box::pin(limits::save(viewer, body))),
    Page::get("settings/channels", NAMERS, |viewer, _| Box::pin(channels::show(viewer))),
    Page::get("settings/channels/new", ADMINS, |viewer, _| Box::pin(channels::new(viewer))),
    Page::post("settings/channels/new", ADMINS, |viewer, body| {
        Box::pin(channels::add(viewer, body))
    }),
    Page::get("settings/channels/{channel}/edit", ADMINS, |viewer, _| {
        Box::pin(channels::edit(viewer))
    }),
    Page::post("settings/channels/{channel}/edit", ADMINS, |viewer, body| {
        Box::pin(channels::set(viewer, body))
    }),
    Page::get("settings/channels/{channel}/remove", ADMINS, |viewer, _| {
        Box::pin(channels::ask(viewer))
    }),
    Page::post("settings/channels/{channel}/remove", ADMINS, |viewer, body| {
        Box::pin(channels::remove(viewer, body))
    }),
    Page::get("settings/webhooks", AUDITORS, |viewer, _| Box::pin(webhooks::show(viewer))),
    Page::get("settings/webhooks/new", ADMINS, |viewer, _| Box::pin(webhooks::new(viewer))),
    Page::post("settings/webhooks/new", ADMINS, |viewer, body| {
        Box::pin(webhooks::add(viewer, body))
    }),
    Page::get("settings/webhooks/{webhook}/deliveries", AUDITORS, |viewer, _| {
        Box::pin(webhooks::deliveries(viewer))
    }),
    Page::get("settings/webhooks/{webhook}/edit", ADMINS, |viewer, _| {
        Box::pin(webhooks::edit(viewer))
    }),
    Page::post("settings/webhooks/{webhook}/edit", ADMINS, |viewer, body| {
        Box::pin(webhooks::set(viewer, body))
    }),
    Page::post("settings/webhooks/{webhook}/again", ADMINS, |viewer, body| {
        Box::pin(webhooks::again(viewer, body))
    }),
    Page::get("settings/webhooks/{webhook}/remove", ADMINS, |viewer, _| {
        Box::pin(webhooks::ask(viewer))
    }),
    Page::post("settings/webhooks/{webhook}/remove", ADMINS, |viewer, body| {
        Box::pin(webhooks::remove(viewer, body))
    }),
    Page::get("settings/tokens", AUDITORS, |viewer, _| Box::pin(tokens::show(viewer))),
    Page::get("settings/tokens/new", ADMINS, |viewer, _| Box::pin(tokens::new(viewer))),
    Page::post("settings/tokens/new", ADMINS, |viewer, body| Box::pin(tokens::make(viewer, body))),
    Page::get("settings/tokens/{token}/revoke", ADMINS, |viewer, _| Box::pin(tokens::ask(viewer))),
    Page::post("settings/tokens/{token}/revoke", ADMINS, |viewer, body| {
        Box::pin(tokens::revoke(viewer, body))
    }),
    Page::get("settings/kept", MEMBERS, |viewer, _| Box::pin(kept::show(viewer))),
    Page::post("settings/kept/events", ADMINS, |viewer, body| {
        Box::pin(kept::set_events(viewer, body))
    }),
    Page::post("settings/kept/contents", ADMINS, |viewer, body| {
        Box::pin(kept::set_contents(viewer, body))
    }),
    Page::post("settings/kept/audit", ADMINS, |viewer, body| {
        Box::pin(kept::set_audit(viewer, body))
    }),
    Page::get("settings/sign-in", MEMBERS, |viewer, _| Box::pin(sign_in::show(viewer))),
];
