//! The daemon: its program, its store, and a few numbers.

use http::StatusCode;
use narthex_console::{
    html,
    pages::operator::OperatorPage,
    parts::{Moment, Same, Words},
};
use narthex_model::command::narthex;

use crate::{
    console::{
        answer::{self, Answered},
        frame::{Head, frame},
        viewer::Viewer,
    },
    daemon,
    shapes::Daemon,
};

/// Number of bytes of a megabyte.
const MEGABYTE: u64 = 1_000_000;

pub(super) async fn show(viewer: &Viewer<'_>) -> Answered {
    viewer.query(&[])?;
    let facts = daemon::facts(viewer.door);
    let head = Head {
        title: Words::new("Daemon"),
        sentence: "The program, its store, and what it has open at this moment.",
        same: Some(Same::new(&narthex("daemon info", &[]).to_string(), "GET /api/daemon")),
    };
    let page = OperatorPage {
        frame: frame(viewer, head).await?,
        numbers: numbers(viewer, &facts),
        pairs: pairs(&facts),
        started_at: Moment::new(viewer.door.started_at),
        is_audit_stuck: facts.audit_waiting.as_ref().is_some_and(|waiting| waiting.is_stuck),
        metrics: facts.metrics.to_owned(),
        metrics_address: Words::new(&format!("{}{}", facts.listens_at, facts.metrics)),
    };
    Ok(answer::page(StatusCode::OK, html(&page)))
}

/// The numbers of this moment. Unknown ones are left out.
fn numbers(viewer: &Viewer<'_>, facts: &Daemon) -> Vec<(&'static str, String)> {
    let snapshot = viewer.door.gateway.registry().snapshot();
    let counted = || snapshot.servers.iter().filter(|row| !row.is_overridden);
    let ready = counted().filter(|row| row.is_ready()).count();
    let mut numbers = vec![
        ("servers of files ready", format!("{ready} of {}", counted().count())),
        ("sessions of legacy clients", facts.open.sessions.to_string()),
        ("open streams", facts.open.streams.to_string()),
        ("of them of pages", facts.open.page_streams.to_string()),
        ("calls that wait for a client", facts.open.parked_calls.to_string()),
    ];
    if let Some(used) = &facts.process_use {
        let megabytes = used.resident_bytes / MEGABYTE;
        numbers.push(("memory", format!("{megabytes} MB")));
        numbers.push(("threads", used.threads.to_string()));
        numbers.push(("open files", used.open_files.to_string()));
    }
    if let Some(waiting) = &facts.audit_waiting {
        numbers.push(("audit not stored yet", format!("{} bytes", waiting.bytes)));
    }
    numbers
}

fn pairs(facts: &Daemon) -> Vec<(&'static str, Words)> {
    let mut pairs = vec![
        ("version", facts.version.to_owned()),
        ("machine", format!("{} {}", facts.system, facts.architecture)),
        ("process", facts.process.to_string()),
        ("listens at", facts.listens_at.clone()),
    ];
    pairs.extend(facts.public_origin.clone().map(|origin| ("people sign in at", origin)));
    match &facts.store {
        Some(store) => {
            pairs.push(("store", store.engine.to_owned()));
            pairs.push(("place of the store", store.place.clone()));
            pairs.push(("version of its schema", store.schema.to_string()));
        }
        None => pairs.push(("store", "none: nothing outlives the process".to_owned())),
    }
    pairs.push(("node", facts.node.clone()));
    pairs.into_iter().map(|(name, value)| (name, Words::new(&value))).collect()
}
