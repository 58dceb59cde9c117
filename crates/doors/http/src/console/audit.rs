//! The audit: events by filters, one event in words, the verification, and the export.

mod event;
mod place;
mod verify;

use http::{HeaderValue, StatusCode, header};
use narthex_console::{
    html,
    pages::audit::{AuditPage, AuditRow, Verified},
    parts::{
        Empty, Filter, Moment, Same, Words,
        form::{Field, Input},
    },
};
use narthex_control::{AuditItem, AuditPage as Found, AuditPlace};
use narthex_model::command::narthex;
use serde_json::Value;

use self::place::{address, api, command, object};
use super::{
    answer::{self, Answered},
    frame::{Head, frame},
    page::Page,
    viewer::Viewer,
};
use crate::{
    Access,
    body::RequestBody,
    problem::Problem,
    routes::AUDIT,
    servers::{Query, audit_cursor, audit_lines, audit_query},
    shapes::CsrfForm,
};

/// The list, one event, and the actions.
pub(super) const PAGES: &[Page] = &[
    Page::get("audit", Access::Member(AUDIT), |viewer, _| Box::pin(list(viewer)))
        .in_nav("Audit", "shield"),
    Page::post("audit/verify", Access::Member(AUDIT), |viewer, body| {
        Box::pin(verify(viewer, body))
    }),
    Page::get("audit/export", Access::Member(AUDIT), |viewer, _| Box::pin(export(viewer))),
    Page::get("audit/event", Access::Member(AUDIT), |viewer, _| Box::pin(event::show(viewer))),
];

/// The same for the audit of the installation, which operators see.
pub(super) const OF_INSTALLATION: &[Page] = &[
    Page::get("audit", Access::Operator, |viewer, _| Box::pin(list(viewer)))
        .in_nav("Audit", "shield"),
    Page::post("audit/verify", Access::Operator, |viewer, body| Box::pin(verify(viewer, body))),
    Page::get("audit/export", Access::Operator, |viewer, _| Box::pin(export(viewer))),
    Page::get("audit/event", Access::Operator, |viewer, _| Box::pin(event::show(viewer))),
];

/// The parameters of the list, each with its words.
const FILTERS: [(&str, &str, &str); 8] = [
    ("actor", "Who (id)", "the id of a principal, a run or a client"),
    ("kind", "What (beginning of the kind)", "such as workspace.secret"),
    ("resource", "Object (id)", "the id of a server, a secret, an agent"),
    ("run", "Run (id)", "such as run_0a1b2c3d4e5f"),
    ("server", "Server", "the name of the server that was called"),
    ("since", "Since", "a day or a time in UTC, such as 2026-11-22"),
    ("until", "Until", "a day or a time in UTC"),
    ("outcome", "Outcome", "such as ok, tool_error or permission_required"),
];
/// Number of rows of one page.
const PAGE: usize = 50;
/// The filters that the store does not know: a page looks for them in the events that it reads.
const SOUGHT: [&str; 2] = ["server", "outcome"];
/// Number of events that are read first, which is enough for a usual outcome, and then.
const BATCHES: [u32; 2] = [200, 800];
/// Maximum number of characters of a name in a row.
const NAME_MAX: usize = 120;
const WHOLE: &str = "attachment; filename=\"audit.jsonl\"";

/// The events of a page.
#[derive(Default)]
struct Looked {
    items: Vec<AuditItem>,
    /// Number of events that were read.
    count: usize,
    /// The last place that was read, if more events follow.
    next: Option<AuditPlace>,
    waiting: Option<String>,
}

async fn list(viewer: &Viewer<'_>) -> Answered {
    page(viewer, &filters_of(viewer)?, None).await
}

fn filters_of(viewer: &Viewer<'_>) -> Result<Query, Problem> {
    let known: Vec<_> = FILTERS.iter().map(|(name, ..)| *name).chain(["after"]).collect();
    viewer.query(&known)
}

/// Verifies all events of the workspace, and shows the result above the newest of them.
async fn verify(viewer: &Viewer<'_>, body: RequestBody) -> Answered {
    let CsrfForm { csrf: _ } = viewer.form(body).await?;
    let verified = verify::verified(viewer).await?;
    page(viewer, &viewer.query(&[])?, Some(verified)).await
}

/// All events of the workspace as lines, as the API answers them.
async fn export(viewer: &Viewer<'_>) -> Answered {
    viewer.query(&[])?;
    let export = viewer.control().audit_export(viewer.audited().as_ref()).await?;
    let mut response = audit_lines(&viewer.door.gateway, export);
    response.headers_mut().insert(header::CONTENT_DISPOSITION, HeaderValue::from_static(WHOLE));
    Ok(response)
}

async fn page(viewer: &Viewer<'_>, query: &Query, verified: Option<Verified>) -> Answered {
    let looked = look(viewer, query).await?;
    let is_filtered = FILTERS.iter().any(|(name, ..)| !query.text(name).is_empty());
    let next = looked.next.as_ref().map(|place| {
        let mut pairs = set(query);
        pairs.push(("after", audit_cursor(place)));
        address(viewer, &pairs)
    });
    let page = AuditPage {
        frame: frame(viewer, head(viewer, query)).await?,
        path: viewer.path("audit"),
        fields: fields(query),
        filters: filters(viewer, query),
        rows: looked.items.iter().map(|item| row(viewer, item)).collect(),
        looked_at: (looked.count > looked.items.len()).then_some(looked.count),
        next,
        waiting: looked.waiting.as_deref().map(Words::new),
        verify: viewer.path("audit/verify"),
        verified,
        export: viewer.path("audit/export"),
        empty: empty(is_filtered),
    };
    Ok(answer::page(StatusCode::OK, html(&page)))
}

/// Reads events until a page is full, at most [`BATCHES`]. The store finds all filters but
/// [`SOUGHT`].
async fn look(viewer: &Viewer<'_>, query: &Query) -> Result<Looked, Problem> {
    let mut wanted = audit_query(query, viewer.audited())?;
    let sought = SOUGHT.map(|name| (name, query.text(name)));
    let fits = |event: &Value| {
        let has = |(name, text): &(&str, &str)| {
            text.is_empty() || event.get(*name).and_then(Value::as_str) == Some(*text)
        };
        sought.iter().all(has)
    };
    if sought.iter().all(|(_, text)| text.is_empty()) {
        let page = viewer.control().audit_list(&wanted).await?;
        let next = page.items.last().filter(|_| page.has_more).map(|item| item.place.clone());
        let waiting = waiting(&page);
        return Ok(Looked { count: page.items.len(), items: page.items, next, waiting });
    }
    let mut looked = Looked::default();
    for limit in BATCHES {
        wanted.limit = limit;
        let page = viewer.control().audit_list(&wanted).await?;
        looked.waiting = looked.waiting.or_else(|| waiting(&page));
        let (has_more, last) = (page.has_more, page.items.last().map(|item| item.place.clone()));
        for item in page.items {
            if looked.items.len() >= PAGE {
                // The rest of this batch is read again by the next page.
                looked.next = looked.items.last().map(|item| item.place.clone());
                return Ok(looked);
            }
            looked.count += 1;
            if fits(&item.event) {
                looked.items.push(item);
            }
        }
        wanted.after.clone_from(&last);
        looked.next = last.filter(|_| has_more);
        if looked.next.is_none() {
            break;
        }
    }
    Ok(looked)
}

fn waiting(page: &Found) -> Option<String> {
    page.waiting.as_ref().map(|waiting| format!("Not in this list yet: {waiting}."))
}

fn head(viewer: &Viewer<'_>, query: &Query) -> Head {
    let mut command = command(viewer);
    let mut request = form_urlencoded::Serializer::new(String::new());
    let flags = [
        ("actor", "--actor"),
        ("kind", "--kind"),
        ("resource", "--resource"),
        ("run", "--run"),
        ("since", "--since"),
        ("until", "--until"),
    ];
    for (name, flag) in flags.into_iter().filter(|(name, _)| !query.text(name).is_empty()) {
        command = command.option(flag, query.text(name));
        request.append_pair(name, query.text(name));
    }
    let command = command.in_workspace(viewer.workspace.as_str());
    let (request, place) = (request.finish(), api(viewer));
    let request = match request.as_str() {
        "" => format!("GET {place}"),
        query => format!("GET {place}?{query}"),
    };
    Head {
        title: Words::new("Audit"),
        sentence: match viewer.is_of_operators() {
            true => "What was done outside of any workspace, by whom, and with which outcome.",
            false => "What was done in this workspace, by whom, and with which outcome.",
        },
        same: Some(Same::new(&command.to_string(), &request)),
    }
}

fn row(viewer: &Viewer<'_>, item: &AuditItem) -> AuditRow {
    let event = &item.event;
    let text = |place: &str| event.pointer(place).and_then(Value::as_str).unwrap_or_default();
    let outcome = text("/outcome");
    AuditRow {
        href: viewer.path(&format!("audit/event?at={}", audit_cursor(&item.place))),
        at: Moment::new(item.place.happened_at),
        kind: Words::within(text("/kind"), NAME_MAX),
        actor: Words::within(&format!("{} {}", text("/actor/kind"), text("/actor/id")), NAME_MAX),
        object: Words::within(&object(event), NAME_MAX),
        outcome: Words::within(outcome, NAME_MAX),
        is_failure: outcome != "ok",
    }
}

/// The parameters that are set.
fn set(query: &Query) -> Vec<(&'static str, String)> {
    let all = FILTERS.iter().map(|(name, ..)| (*name, query.text(name).to_owned()));
    all.filter(|(_, value)| !value.is_empty()).collect()
}

fn fields(query: &Query) -> Vec<Field> {
    let field = |(name, label, help): &(&str, &str, &str)| {
        Field::new(*name, label, Input::line(query.text(name))).help(help)
    };
    FILTERS.iter().map(field).collect()
}

/// The filters that are set, each as the address without it.
fn filters(viewer: &Viewer<'_>, query: &Query) -> Vec<Filter> {
    let pairs = set(query);
    let without = |(name, value): &(&'static str, String)| {
        let rest: Vec<_> = pairs.iter().filter(|(other, _)| other != name).cloned().collect();
        Filter {
            href: address(viewer, &rest),
            label: format!("{name}: {} ✕", Words::within(value, 40)),
            count: None,
            is_current: true,
        }
    };
    pairs.iter().map(without).collect()
}

fn empty(is_filtered: bool) -> Empty {
    match is_filtered {
        true => Empty {
            title: "No event fits",
            sentence: "Take a filter away, or look at older events.".to_owned(),
            example: None,
            page: None,
        },
        false => Empty {
            title: "No events yet",
            sentence: "Each call and each change becomes an event, with its actor and outcome."
                .to_owned(),
            example: Some(narthex("audit list", &[]).to_string()),
            page: Some("docs/reference/audit.md"),
        },
    }
}
