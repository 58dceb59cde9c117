//! The tokens of services: their list, a new one that is shown once, and their end.

use std::{cmp::Reverse, sync::Arc, time::SystemTime};

use http::StatusCode;
use narthex_console::{
    html,
    pages::settings::{Card, Cell, Form, Piece, SettingsTokenPage},
    parts::{
        Action, Empty, Moment, Words,
        form::{Field, Input},
        item::{Badge, Dated, Item},
    },
};
use narthex_control::{CreatedToken, KnownToken};
use narthex_model::{ErrorKind, Roles, Secret, command::narthex};
use serde_json::json;

use super::{
    faults::Faults,
    roles,
    tab::{self, Asking, Made},
};
use crate::{
    body::RequestBody,
    console::{
        answer::{self, Answered},
        frame::frame,
        sent::Sent,
        viewer::Viewer,
    },
    problem::Problem,
};

const TAB: &str = "settings/tokens";
const DONE: [(&str, &str); 1] = [("revoked", "The token of {} is revoked.")];
const FIELDS: [&str; 3] = ["service", "label", "days"];
const DAY_S: u64 = 24 * 60 * 60;

pub(super) async fn show(viewer: &Viewer<'_>) -> Answered {
    let query = viewer.query(&["after", "done", "name"])?;
    let (now, after) = (SystemTime::now(), query.text("after"));
    let mut all = viewer.control().service_tokens(&viewer.workspace)?;
    all.sort_by_key(|one| (!one.is_live(now), Reverse(one.row.created_at)));
    let skipped = all.iter().position(|one| one.row.id.as_str() == after);
    let rest = all.iter().skip(skipped.map_or(0, |place| place + 1));
    let counted = format!("{} tokens", all.len());
    let (shown, more) = tab::first(viewer, TAB, rest, &counted, |one| one.row.id.to_string());
    let pieces = match shown.is_empty() {
        true => vec![Piece::Empty(empty(viewer))],
        false => vec![Piece::Rows(shown.iter().map(|one| item(viewer, one, now)).collect()), more],
    };
    let head = tab::head(
        viewer,
        "Service tokens",
        "Programs use the API with them, each as a service with roles of its own.",
        narthex("tokens list", &[]),
        &tab::request(viewer, "GET", "/service-tokens"),
    );
    let sentence = "Valid ones first. The text of a token is stored nowhere, and shown once.";
    let cards = vec![Card::new("tokens", "Tokens", sentence, pieces)];
    let primary = Some(tab::adding(viewer, "settings/tokens/new", "Make a token"));
    let made = Made { primary, ..Made::new(head, TAB, cards) };
    Made { told: tab::told(&query, &DONE), ..made }.answer(viewer).await
}

fn item(viewer: &Viewer<'_>, one: &KnownToken, now: SystemTime) -> Item {
    let row = &one.row;
    let mut item = Item::new(&viewer.csrf, one.account.name.as_str());
    item.badge = Some(match (row.revoked_at, one.is_live(now)) {
        (Some(_), _) => Badge::off("revoked"),
        (None, false) => Badge::off("expired"),
        (None, true) if one.account.disabled_at.is_some() => Badge::off("service is disabled"),
        (None, true) => Badge::fine("valid"),
    });
    if !row.label.is_empty() {
        item.facts.push(Words::new(&row.label));
    }
    item.facts.push(Words::new(&roles::words(one.account.roles.get(&viewer.workspace))));
    item.facts.push(Words::new(&format!("made by {}", row.created_by)));
    item.facts.extend(row.is_proved.then(|| Words::new("made with proof of a human")));
    item.times.push(Dated { label: "made", at: Moment::new(row.created_at) });
    match one.last_used_at() {
        Some(at) => item.times.push(Dated { label: "last used", at: Moment::new(at) }),
        None => item.facts.push(Words::new("not used yet")),
    }
    if let Some(at) = row.revoked_at {
        item.times.push(Dated { label: "revoked", at: Moment::new(at) });
        return item;
    }
    item.times.extend(row.expires_at.map(|at| Dated { label: "ends", at: Moment::new(at) }));
    let hint = "asks first, and then ends the token at once";
    let revoke = Action::new(path(viewer, one), "Revoke", hint).page();
    item.actions.push(match tab::off(viewer) {
        None => revoke,
        Some(why) => revoke.off(why),
    });
    item
}

fn path(viewer: &Viewer<'_>, one: &KnownToken) -> String {
    viewer.path(&format!("{TAB}/{}/revoke", one.row.id))
}

fn empty(viewer: &Viewer<'_>) -> Empty {
    let example = narthex("tokens create ci --role runner --label build", &[]);
    Empty {
        title: "No tokens yet",
        sentence: "A program such as a build gets a token, and with it the roles of its service."
            .to_owned(),
        example: Some(example.in_workspace(viewer.workspace.as_str()).to_string()),
        page: Some("docs/guides/team.md"),
    }
}

/// The texts of the form.
#[derive(Default)]
struct Values {
    service: String,
    label: String,
    days: String,
    roles: Roles,
}

/// The empty form of a new token.
pub(super) async fn new(viewer: &Viewer<'_>) -> Answered {
    viewer.query(&[])?;
    let values = Values { days: "90".to_owned(), ..Values::default() };
    form(viewer, &values, &Faults::default()).answer(viewer).await
}

/// Makes a token, as `POST` of the API does. This answer alone has its text.
pub(super) async fn make(viewer: &Viewer<'_>, body: RequestBody) -> Answered {
    let sent: Sent = viewer.form(body).await?;
    let sent = sent.only(|name| FIELDS.contains(&name) || roles::is_box(name))?;
    let [service, label, days] = FIELDS.map(|name| sent.text(name));
    let values = Values { service, label, days, roles: roles::sent(&sent) };
    let mut wanted = json!({ "service": values.service, "label": values.label });
    if !values.roles.is_empty() {
        wanted["roles"] = json!(values.roles);
    }
    if !values.days.is_empty() {
        let seconds = values.days.parse::<u64>().ok().and_then(|days| days.checked_mul(DAY_S));
        wanted["expires_in"] = seconds.map_or_else(|| json!(values.days), |seconds| json!(seconds));
    }
    let (by, is_proved) = (viewer.by(), viewer.principal.is_proved());
    let (control, workspace) = (viewer.control(), &viewer.workspace);
    let text = wanted.to_string();
    match control.service_token_create(workspace, text.as_bytes(), (&by, is_proved)).await {
        Ok(made) => made_token(viewer, &made).await,
        Err(error) => {
            let faults = Faults::of(viewer, error)?;
            form(viewer, &values, &faults).answer(viewer).await
        }
    }
}

fn form(viewer: &Viewer<'_>, values: &Values, faults: &Faults) -> Made {
    let head = tab::head(
        viewer,
        "Make a service token",
        "A program gets the roles of its service, until the token ends.",
        narthex("tokens create SERVICE", &[]),
        &tab::request(viewer, "POST", "/service-tokens"),
    );
    let field = |name: &'static str, label: &str, value: &str, fault: &str| {
        Field::new(name, label, Input::line(value)).fault(faults.at(fault).as_deref())
    };
    let fields = vec![
        field("service", "Service", &values.service, "service")
            .required()
            .help("Such as ci. It is created if there is none of this name."),
        field("label", "Purpose", &values.label, "label").help("For people, such as build."),
        field("days", "Days until it ends", &values.days, "expires_in")
            .help("At most 3650. Empty for 90."),
    ];
    let form = Form::new(viewer.path("settings/tokens/new"), &viewer.csrf, "Make the token")
        .fields(fields)
        .group(roles::group(&values.roles, faults))
        .fault(faults.rest(&["service", "label", "expires_in", "roles"]));
    let note = "Check roles for a new service. A service that exists keeps its roles: check none.";
    let pieces = vec![Piece::Note(Words::new(note)), Piece::Form(form)];
    let cards = vec![Card::new("new", "The token", "", pieces)];
    Made::new(head, TAB, cards).refused(!faults.is_empty())
}

/// The answer with the text of the new token.
async fn made_token(viewer: &Viewer<'_>, made: &CreatedToken) -> Answered {
    let CreatedToken { token, known } = made;
    let name = known.account.name.as_str();
    let head = tab::head(
        viewer,
        &format!("Token of {name}"),
        "It is shown on this page, and never again.",
        narthex("tokens list", &[]),
        &tab::request(viewer, "GET", "/service-tokens"),
    );
    let own = known.account.roles.get(&viewer.workspace);
    let mut facts = vec![
        ("service", Cell::new(name)),
        ("id", Cell::new(known.row.id.as_str())),
        ("roles", Cell::new(&roles::words(own))),
    ];
    facts.extend(known.row.expires_at.map(|at| ("ends", Cell::at("", Moment::new(at)))));
    let origin = viewer.control().sign_in_origin().map(|origin| origin.at("/api/me"));
    let address = origin.unwrap_or_else(|| "/api/me".to_owned());
    let page = SettingsTokenPage {
        frame: frame(viewer, head).await?,
        tabs: tab::tabs(viewer, TAB),
        token: Secret::new(token.expose()),
        facts,
        rights: rights(own, known.row.is_proved),
        example: Words::new(&format!("curl -H \"Authorization: Bearer $TOKEN\" {address}")),
        back: viewer.path(TAB),
    };
    Ok(answer::page(StatusCode::CREATED, html(&page)))
}

/// The things that a program may do with the token.
fn rights(own: Option<&Roles>, is_proved: bool) -> Vec<Words> {
    let mut rights: Vec<_> = own
        .into_iter()
        .flatten()
        .map(|role| Words::new(&format!("{role}: {}", roles::rights(*role))))
        .collect();
    rights.push(Words::new("It works in this workspace alone, by the API and the command line."));
    rights.push(Words::new("It opens no MCP endpoint, and decides no request for a grant."));
    rights.push(Words::new(match is_proved {
        true => {
            "It was made with proof of a human: it may create runs that a human drives, also \
                 where proof is required."
        }
        false => {
            "It was made without proof of a human: where proof is required, it creates no \
                  runs that a human drives."
        }
    }));
    rights
}

/// The token of the path. Others are absent.
fn token(viewer: &Viewer<'_>) -> Result<Arc<KnownToken>, Problem> {
    let id = viewer.segment(0);
    let all = viewer.control().service_tokens(&viewer.workspace)?;
    let found = all.into_iter().find(|one| one.row.id.as_str() == id);
    found.ok_or_else(|| Problem::new(ErrorKind::NotFound, "there is no such token"))
}

/// Asks before a token is revoked.
pub(super) async fn ask(viewer: &Viewer<'_>) -> Answered {
    viewer.query(&[])?;
    let (one, now) = (token(viewer)?, SystemTime::now());
    let (name, id) = (one.account.name.as_str(), one.row.id.as_str());
    let head = tab::head(
        viewer,
        &format!("Revoke the token of {name}?"),
        "What ends, before the token is revoked for good.",
        narthex("tokens revoke {}", &[&id]),
        &tab::request(viewer, "DELETE", &format!("/service-tokens/{id}")),
    );
    let mut facts = vec![
        ("id", Cell::new(id)),
        ("purpose", Cell::new(&one.row.label)),
        ("made", Cell::at(&format!("by {},", one.row.created_by), Moment::new(one.row.created_at))),
    ];
    facts.push(match one.last_used_at() {
        Some(at) => ("last used", Cell::at("", Moment::new(at))),
        None => ("last used", Cell::new("not yet")),
    });
    let all = viewer.control().service_tokens(&viewer.workspace)?;
    let is_other = |other: &&Arc<KnownToken>| {
        other.account.id == one.account.id && other.row.id != one.row.id && other.is_live(now)
    };
    let others = all.iter().filter(is_other).count();
    let effects = vec![
        "Each request with it is refused at once.".to_owned(),
        "Runs that it created go on.".to_owned(),
        format!("Other valid tokens of the service stay: {others}."),
    ];
    let form = Form::new(path(viewer, &one), &viewer.csrf, "Revoke the token");
    let off = one.row.revoked_at.map(|_| "it is revoked already");
    let (form, back) = (form.off(off), viewer.path(TAB));
    Asking { head, effects, facts, form, back }.answer(viewer).await
}

/// Revokes a token, as `DELETE` of the API does.
pub(super) async fn revoke(viewer: &Viewer<'_>, body: RequestBody) -> Answered {
    let sent: Sent = viewer.form(body).await?;
    let sent = sent.only(|name| name == tab::SURE)?;
    let one = token(viewer)?;
    if !tab::is_sure(&sent) {
        return answer::redirect(&path(viewer, &one));
    }
    let (control, workspace) = (viewer.control(), &viewer.workspace);
    control.service_token_revoke(workspace, one.row.id.as_str(), &viewer.by()).await?;
    tab::done(viewer, TAB, "revoked", one.account.name.as_str())
}
