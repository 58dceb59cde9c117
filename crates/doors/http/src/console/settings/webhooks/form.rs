//! The form of a webhook: its secrets, and the events that it gets.

use narthex_console::{
    pages::settings::{Card, Form, Group, Piece},
    parts::{
        Words,
        form::{Field, Input},
    },
};
use narthex_model::command::narthex;
use narthex_outbound::{WEBHOOK_EVENTS, WebhookRow};
use serde_json::json;

use super::place::{TAB, path, webhook};
use crate::{
    body::RequestBody,
    console::{
        answer::Answered,
        sent::Sent,
        settings::{
            faults::Faults,
            outbound::{Secrets, bare, outbound, reference, taken},
            tab::{self, Made},
        },
        viewer::Viewer,
    },
    problem::Problem,
};

const FIELDS: [&str; 3] = ["name", "url", "signing_key"];
const KEY: &str = "signing_key";
/// The beginning of the names of the boxes for events.
const EVENT: &str = "event_";

/// The values of the form.
#[derive(Default)]
struct Values {
    name: String,
    url: String,
    signing_key: String,
    events: Vec<String>,
}

impl Values {
    fn new() -> Self {
        let events = WEBHOOK_EVENTS.map(|kind| kind.as_str().to_owned()).to_vec();
        Self { events, ..Self::default() }
    }

    fn of(row: &WebhookRow) -> Self {
        Self {
            name: row.name.to_string(),
            url: row.url.to_string(),
            signing_key: row.signing_key.to_string(),
            events: row.kinds.clone(),
        }
    }

    fn sent(sent: &Sent) -> Self {
        let kinds = WEBHOOK_EVENTS.map(|kind| kind.as_str().to_owned());
        Self {
            name: sent.text("name"),
            url: bare(&sent.text("url")).to_owned(),
            signing_key: bare(&sent.text(KEY)).to_owned(),
            events: kinds.into_iter().filter(|kind| sent.is_on(&event(kind))).collect(),
        }
    }

    /// The webhook as the API takes it. An empty name of a secret is left out.
    fn text(&self) -> String {
        let mut all = json!({ "events": self.events });
        for (key, name) in [("url", &self.url), (KEY, &self.signing_key)] {
            if !name.is_empty() {
                all[key] = json!(reference(name));
            }
        }
        all.to_string()
    }
}

fn event(kind: &str) -> String {
    format!("{EVENT}{kind}")
}

/// True for the name of a field of the form.
fn is_field(name: &str) -> bool {
    let kind = name.strip_prefix(EVENT).unwrap_or_default();
    FIELDS.contains(&name) || WEBHOOK_EVENTS.iter().any(|known| known.as_str() == kind)
}

/// The words for an event.
fn about(kind: &str) -> &'static str {
    match kind {
        "agent.permission_request" => "a run asks for a grant",
        "permission.granted" => "a human has granted it",
        "permission.denied" => "a human has denied it, or its time is over",
        "session.completed" => "a session has done its work",
        "session.cancelled_by_parent" => "the parent of a session has ended it",
        "session.ended" => "a session was ended",
        _ => "",
    }
}

/// The empty form of a new webhook.
pub(in super::super) async fn new(viewer: &Viewer<'_>) -> Answered {
    viewer.query(&[])?;
    made(viewer, &Values::new(), &Faults::default(), None).await?.answer(viewer).await
}

/// Creates a webhook, as `PUT` of the API does. A name that is taken is refused.
pub(in super::super) async fn add(viewer: &Viewer<'_>, body: RequestBody) -> Answered {
    let sent: Sent = viewer.form(body).await?;
    let values = Values::sent(&sent.only(is_field)?);
    let found = outbound(viewer)?.webhook(&viewer.workspace, &values.name).await;
    let faults = match found {
        Ok(_row) => Some(taken("webhook")),
        Err(_absent) => store(viewer, &values).await?,
    };
    match faults {
        None => tab::done(viewer, TAB, "saved", &values.name),
        Some(faults) => made(viewer, &values, &faults, None).await?.answer(viewer).await,
    }
}

/// The form of a webhook.
pub(in super::super) async fn edit(viewer: &Viewer<'_>) -> Answered {
    viewer.query(&[])?;
    let row = webhook(viewer).await?;
    made(viewer, &Values::of(&row), &Faults::default(), Some(&row)).await?.answer(viewer).await
}

/// Replaces a webhook, as `PUT` of the API does.
pub(in super::super) async fn set(viewer: &Viewer<'_>, body: RequestBody) -> Answered {
    let sent: Sent = viewer.form(body).await?;
    let sent = sent.only(is_field)?;
    let row = webhook(viewer).await?;
    let values = Values { name: row.name.to_string(), ..Values::sent(&sent) };
    match store(viewer, &values).await? {
        None => tab::done(viewer, TAB, "saved", &values.name),
        Some(faults) => made(viewer, &values, &faults, Some(&row)).await?.answer(viewer).await,
    }
}

/// Stores a webhook; the faults if it was refused.
async fn store(viewer: &Viewer<'_>, values: &Values) -> Result<Option<Faults>, Problem> {
    let (text, by) = (values.text(), viewer.by());
    let outbound = outbound(viewer)?;
    let set = outbound.webhook_set(&viewer.workspace, &values.name, text.as_bytes(), &by).await;
    match set {
        Ok(_row) => Ok(None),
        Err(error) => Faults::of_outbound(viewer, error).map(Some),
    }
}

async fn made(
    viewer: &Viewer<'_>,
    values: &Values,
    faults: &Faults,
    row: Option<&WebhookRow>,
) -> Result<Made, Problem> {
    let title = match row {
        Some(row) => format!("Edit the webhook {}", row.name),
        None => "Add a webhook".to_owned(),
    };
    let name = row.map_or("NAME", |row| row.name.as_str());
    let head = tab::head(
        viewer,
        &title,
        "An address that gets events of sessions, signed. Address and key are secrets.",
        narthex("webhooks set {} --url '${URL}' --signing-key '${KEY}'", &[&name]),
        &tab::request(viewer, "PUT", &format!("/webhooks/{name}")),
    );
    let target = match row {
        Some(row) => path(viewer, row, "edit"),
        None => viewer.path("settings/webhooks/new"),
    };
    let fields = fields(&Secrets::read(viewer).await?, values, faults, row.is_some());
    let known: Vec<_> = FIELDS.into_iter().chain(["events"]).collect();
    let form = Form::new(target, &viewer.csrf, "Save")
        .fields(fields)
        .group(events(values, faults))
        .fault(faults.rest(&known));
    let note = match row {
        Some(_) => "A change makes the next attempt due at once. The webhook goes on at its place.",
        None => "It gets later events. Each is tried up to 12 times, over about three hours.",
    };
    let add = Piece::Link { href: viewer.path("secrets/new"), label: Words::new("Add a secret") };
    let pieces = vec![Piece::Note(Words::new(note)), Piece::Form(form), add];
    let cards = vec![Card::new("webhook", "The webhook", "", pieces)];
    Ok(Made::new(head, TAB, cards).refused(!faults.is_empty()))
}

fn fields(secrets: &Secrets, values: &Values, faults: &Faults, is_stored: bool) -> Vec<Field> {
    let fault = |field: Field| {
        let fault = faults.at(&field.name);
        field.fault(fault.as_deref())
    };
    let name = Field::new("name", "Name", Input::line(&values.name)).required();
    let name = if is_stored { name.off("the name stays") } else { name };
    vec![
        fault(name),
        fault(secrets.field("url", "Secret with the address", &values.url)),
        fault(secrets.field(KEY, "Secret that signs", &values.signing_key))
            .help("The receiver checks the signature with the same value."),
    ]
}

fn events(values: &Values, faults: &Faults) -> Group {
    let field = |kind: &str| {
        let is_on = values.events.iter().any(|chosen| chosen == kind);
        Field::new(event(kind), kind, Input::Check { is_on }).help(about(kind))
    };
    Group {
        legend: Some("Events"),
        fault: faults.at("events").as_deref().map(Words::new),
        fields: WEBHOOK_EVENTS.iter().map(|kind| field(kind.as_str())).collect(),
    }
}
