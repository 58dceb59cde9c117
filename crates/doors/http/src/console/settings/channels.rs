//! The channels to which agents post: their provider, and the secrets that they name.

use narthex_console::{
    pages::settings::{Card, Cell, Form, Piece},
    parts::{
        Action, Empty, Moment, Words,
        form::{Field, Input},
        item::{Dated, Item},
    },
};
use narthex_model::{SecretName, command::narthex};
use narthex_outbound::{ChannelRow, ProviderKind};
use serde_json::{Map, Value, json};

use super::{
    faults::Faults,
    outbound::{Secrets, bare, outbound, reference, secret, taken},
    tab::{self, Asking, Made},
};
use crate::{
    body::RequestBody,
    console::{
        answer::{self, Answered},
        sent::Sent,
        viewer::Viewer,
    },
    problem::Problem,
};

const TAB: &str = "settings/channels";
const DONE: [(&str, &str); 2] =
    [("saved", "The channel {} is saved."), ("removed", "The channel {} is removed.")];
const FIELDS: [&str; 4] = ["name", "provider", "url", "signing_key"];

/// The values of the form.
#[derive(Default)]
struct Values {
    name: String,
    provider: String,
    url: String,
    signing_key: String,
}

impl Values {
    fn of(row: &ChannelRow) -> Self {
        let name =
            |name: &Option<SecretName>| name.as_ref().map(ToString::to_string).unwrap_or_default();
        Self {
            name: row.name.to_string(),
            provider: row.provider.clone(),
            url: name(&row.url),
            signing_key: name(&row.signing_key),
        }
    }

    fn sent(sent: &Sent) -> Self {
        Self {
            name: sent.text("name"),
            provider: sent.text("provider"),
            url: bare(&sent.text("url")).to_owned(),
            signing_key: bare(&sent.text("signing_key")).to_owned(),
        }
    }

    /// The channel as the API takes it.
    fn text(&self) -> String {
        let mut all = Map::new();
        all.insert("provider".to_owned(), json!(self.provider));
        for (key, name) in [("url", &self.url), ("signing_key", &self.signing_key)] {
            if !name.is_empty() {
                all.insert(key.to_owned(), json!(reference(name)));
            }
        }
        Value::Object(all).to_string()
    }
}

pub(super) async fn show(viewer: &Viewer<'_>) -> Answered {
    let query = viewer.query(&["after", "done", "name"])?;
    let all = outbound(viewer)?.channels(&viewer.workspace).await?;
    let rest = all.iter().filter(|row| row.name.as_str() > query.text("after"));
    let counted = format!("{} channels", all.len());
    let (shown, more) = tab::first(viewer, TAB, rest, &counted, |row| row.name.to_string());
    let pieces = match shown.is_empty() {
        true => vec![Piece::Empty(empty(viewer))],
        false => vec![Piece::Rows(shown.iter().map(|row| item(viewer, row)).collect()), more],
    };
    let head = tab::head(
        viewer,
        "Channels",
        "The places to which agents post messages. Agents know their names alone.",
        narthex("channels list", &[]),
        &tab::request(viewer, "GET", "/channels"),
    );
    let cards = vec![Card::new("channels", "Channels", "", pieces)];
    let primary = Some(tab::adding(viewer, "settings/channels/new", "Add a channel"));
    let made = Made { primary, ..Made::new(head, TAB, cards) };
    Made { told: tab::told(&query, &DONE), ..made }.answer(viewer).await
}

fn item(viewer: &Viewer<'_>, row: &ChannelRow) -> Item {
    let mut item = Item::new(&viewer.csrf, row.name.as_str());
    let off = tab::off(viewer);
    item.href = off.is_none().then(|| path(viewer, row, "edit"));
    item.facts.push(Words::new(&format!("provider {}", row.provider)));
    let named = [("address in", &row.url), ("signed with", &row.signing_key)];
    for (label, name) in named {
        item.facts.extend(name.as_ref().map(|name| Words::new(&format!("{label} {name}"))));
    }
    item.facts.push(Words::new(&format!("set by {}", row.updated_by)));
    item.times.push(Dated { label: "set", at: Moment::new(row.updated_at) });
    let remove = Action::new(path(viewer, row, "remove"), "Remove", "asks first").page();
    item.actions.push(match off {
        None => remove,
        Some(why) => remove.off(why),
    });
    item
}

fn path(viewer: &Viewer<'_>, row: &ChannelRow, verb: &str) -> String {
    viewer.action(TAB, row.name.as_str(), verb)
}

fn empty(viewer: &Viewer<'_>) -> Empty {
    let example = narthex("channels set notes --provider log", &[]);
    Empty {
        title: "No channels yet",
        sentence: "An agent posts a message to a channel by its name, with the tool post_message."
            .to_owned(),
        example: Some(example.in_workspace(viewer.workspace.as_str()).to_string()),
        page: Some("docs/guides/channels-and-webhooks.md"),
    }
}

/// The empty form of a new channel.
pub(super) async fn new(viewer: &Viewer<'_>) -> Answered {
    viewer.query(&[])?;
    let values = Values { provider: ProviderKind::Slack.as_str().to_owned(), ..Values::default() };
    made(viewer, &values, &Faults::default(), None).await?.answer(viewer).await
}

/// Creates a channel, as `PUT` of the API does. A name that is taken is refused.
pub(super) async fn add(viewer: &Viewer<'_>, body: RequestBody) -> Answered {
    let sent: Sent = viewer.form(body).await?;
    let sent = sent.only(|name| FIELDS.contains(&name))?;
    let values = Values::sent(&sent);
    let found = outbound(viewer)?.channel(&viewer.workspace, &values.name).await;
    let faults = match found {
        Ok(_row) => Some(taken("channel")),
        Err(_absent) => store(viewer, &values).await?,
    };
    match faults {
        None => tab::done(viewer, TAB, "saved", &values.name),
        Some(faults) => made(viewer, &values, &faults, None).await?.answer(viewer).await,
    }
}

/// The form of a channel.
pub(super) async fn edit(viewer: &Viewer<'_>) -> Answered {
    viewer.query(&[])?;
    let row = channel(viewer).await?;
    made(viewer, &Values::of(&row), &Faults::default(), Some(&row)).await?.answer(viewer).await
}

/// Replaces a channel, as `PUT` of the API does.
pub(super) async fn set(viewer: &Viewer<'_>, body: RequestBody) -> Answered {
    let sent: Sent = viewer.form(body).await?;
    let sent = sent.only(|name| FIELDS.contains(&name))?;
    let row = channel(viewer).await?;
    let values = Values { name: row.name.to_string(), ..Values::sent(&sent) };
    match store(viewer, &values).await? {
        None => tab::done(viewer, TAB, "saved", &values.name),
        Some(faults) => made(viewer, &values, &faults, Some(&row)).await?.answer(viewer).await,
    }
}

async fn channel(viewer: &Viewer<'_>) -> Result<ChannelRow, Problem> {
    Ok(outbound(viewer)?.channel(&viewer.workspace, &viewer.segment(0)).await?)
}

/// Stores a channel; the faults if it was refused.
async fn store(viewer: &Viewer<'_>, values: &Values) -> Result<Option<Faults>, Problem> {
    let (text, by) = (values.text(), viewer.by());
    let outbound = outbound(viewer)?;
    let set = outbound.channel_set(&viewer.workspace, &values.name, text.as_bytes(), &by).await;
    match set {
        Ok(_row) => Ok(None),
        Err(error) => Faults::of_outbound(viewer, error).map(Some),
    }
}

async fn made(
    viewer: &Viewer<'_>,
    values: &Values,
    faults: &Faults,
    row: Option<&ChannelRow>,
) -> Result<Made, Problem> {
    let title = match row {
        Some(row) => format!("Channel {}", row.name),
        None => "Add a channel".to_owned(),
    };
    let name = row.map_or("NAME", |row| row.name.as_str());
    let head = tab::head(
        viewer,
        &title,
        "A place to which agents post. Its address and its key are secrets.",
        narthex("channels set {} --provider log", &[&name]),
        &tab::request(viewer, "PUT", &format!("/channels/{name}")),
    );
    let fields = fields(&Secrets::read(viewer).await?, values, faults, row.is_some());
    let target = match row {
        Some(row) => path(viewer, row, "edit"),
        None => viewer.path("settings/channels/new"),
    };
    let form = Form::new(target, &viewer.csrf, "Save").fields(fields).fault(faults.rest(&FIELDS));
    let note = "log writes messages to the daemon's log. slack posts to an incoming webhook of \
                Slack, Mattermost and others. webhook posts signed JSON.";
    let add = Piece::Link { href: viewer.path("secrets/new"), label: Words::new("Add a secret") };
    let pieces = vec![Piece::Note(Words::new(note)), Piece::Form(form), add];
    let mut cards = vec![Card::new("channel", "The channel", "", pieces)];
    if let Some(row) = row {
        let label = Words::new(&format!("Remove {}", row.name));
        let pieces = vec![Piece::Link { href: path(viewer, row, "remove"), label }];
        cards.push(Card::new("remove", "Remove", "", pieces));
    }
    Ok(Made::new(head, TAB, cards).refused(!faults.is_empty()))
}

fn fields(secrets: &Secrets, values: &Values, faults: &Faults, is_stored: bool) -> Vec<Field> {
    let fault = |field: Field| {
        let fault = faults.at(&field.name);
        field.fault(fault.as_deref())
    };
    let name = Field::new("name", "Name", Input::line(&values.name)).required();
    let name = match is_stored {
        true => name.off("the name stays: agents use it"),
        false => name.help("Agents use this name."),
    };
    let providers = ProviderKind::ALL.map(ProviderKind::as_str);
    let provider = Field::new("provider", "Provider", Input::choice(&providers, &values.provider));
    vec![
        fault(name),
        fault(provider),
        fault(secrets.field("url", "Secret with the address", &values.url))
            .help("For slack and webhook."),
        fault(secrets.field("signing_key", "Secret that signs", &values.signing_key))
            .help("For webhook."),
    ]
}

/// Asks before a channel is removed.
pub(super) async fn ask(viewer: &Viewer<'_>) -> Answered {
    viewer.query(&[])?;
    let row = channel(viewer).await?;
    let head = tab::head(
        viewer,
        &format!("Remove the channel {}?", row.name),
        "What breaks, before it is removed.",
        narthex("channels remove {}", &[&row.name]),
        &tab::request(viewer, "DELETE", &format!("/channels/{}", row.name)),
    );
    let facts = vec![
        ("provider", Cell::new(&row.provider)),
        ("secret with the address", secret(viewer, row.url.as_ref())),
        ("secret that signs", secret(viewer, row.signing_key.as_ref())),
    ];
    let effects = vec![
        "Agents that post to it get the error channel_not_found from now on.".to_owned(),
        "Rules that name it stay, and fit nothing.".to_owned(),
        "Its secrets stay. Messages that were posted stay where they are.".to_owned(),
    ];
    let form = Form::new(path(viewer, &row, "remove"), &viewer.csrf, "Remove the channel");
    Asking { head, effects, facts, form, back: viewer.path(TAB) }.answer(viewer).await
}

/// Removes a channel, as `DELETE` of the API does.
pub(super) async fn remove(viewer: &Viewer<'_>, body: RequestBody) -> Answered {
    let sent: Sent = viewer.form(body).await?;
    let sent = sent.only(|name| name == tab::SURE)?;
    let row = channel(viewer).await?;
    if !tab::is_sure(&sent) {
        return answer::redirect(&path(viewer, &row, "remove"));
    }
    let outbound = outbound(viewer)?;
    outbound.channel_delete(&viewer.workspace, row.name.as_str(), &viewer.by()).await?;
    tab::done(viewer, TAB, "removed", row.name.as_str())
}
