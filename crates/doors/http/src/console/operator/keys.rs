//! The master keys: which one seals, how many values each seals, and the change of the key.

use http::StatusCode;
use narthex_console::{
    Told, html,
    pages::operator::OperatorKeysPage,
    parts::{
        Action, Moment, Same, Words,
        item::{Badge, Dated, Item},
    },
};
use narthex_control::{Installation, MasterKeyFacts, MasterKeys};
use narthex_model::command::narthex;

use crate::{
    body::RequestBody,
    console::{
        answer::{self, Answered},
        frame::{Head, frame},
        viewer::Viewer,
    },
    problem::Problem,
    servers::Query,
    shapes::CsrfForm,
};

/// The reason why a key from outside is not changed here.
const NOT_OURS: &str = "the key is set outside of narthex: put a new one in front of it there, and \
                        restart the daemon";

pub(super) async fn show(viewer: &Viewer<'_>) -> Answered {
    let query = viewer.query(&["done", "count"])?;
    let known = Installation::of(viewer.control()).master_keys().await?;
    let head = Head {
        title: Words::new("Master keys"),
        sentence: "The keys that seal the secrets of all workspaces, and mark the audit.",
        same: Some(Same::new(&narthex("secrets keys", &[]).to_string(), "GET /api/secrets/keys")),
    };
    let mut frame = frame(viewer, head).await?;
    frame.told = told(&query)?;
    let is_open = known.keys.len() > 1;
    let page = OperatorKeysPage {
        frame,
        place: Words::new(&known.place),
        keys: known.keys.iter().map(|key| item(viewer, &known, key)).collect(),
        is_open,
        rotate: rotation(viewer, &known, is_open),
        command: Words::new(&narthex("secrets rotate-key", &[]).to_string()),
        request: Words::new("POST /api/secrets/rotate-key"),
    };
    Ok(answer::page(StatusCode::OK, html(&page)))
}

/// The button that changes the key, or completes a change.
fn rotation(viewer: &Viewer<'_>, known: &MasterKeys, is_open: bool) -> Action {
    let label = if is_open { "Finish the change" } else { "Change the key" };
    let hint = "seals every value anew under the newest key";
    let action = Action::new(viewer.path("keys/rotate"), label, hint).page();
    let action = if is_open { action.primary() } else { action };
    match known.is_ours || is_open {
        true => action,
        false => action.off(NOT_OURS),
    }
}

fn item(viewer: &Viewer<'_>, known: &MasterKeys, key: &MasterKeyFacts) -> Item {
    let MasterKeyFacts { id, is_current, values, made_at } = key;
    let mut item = Item::new(&viewer.csrf, id.as_str());
    item.badge = Some(match is_current {
        true => Badge::fine("current: seals"),
        false => Badge::asks("old: only opens"),
    });
    let plural = if *values == 1 { "value" } else { "values" };
    item.facts.push(Words::new(&format!("seals {values} stored {plural}")));
    match made_at {
        Some(at) => item.times.push(Dated { label: "made", at: Moment::new(*at) }),
        None => item.facts.push(Words::new("made at an unknown time: the audit has no such event")),
    }
    if !is_current && !known.is_ours && *values == 0 {
        let note = format!("No value needs this key any more. Remove it from {}.", known.place);
        item.note = Some(Words::new(&note));
    }
    item
}

/// The sentence for the last action.
fn told(query: &Query) -> Result<Option<Told>, Problem> {
    if query.word("done", &["", "rotate"])? != "rotate" {
        return Ok(None);
    }
    let count: u64 = query.text("count").parse().unwrap_or_default();
    let values = if count == 1 { "value is" } else { "values are" };
    let sentence = format!("The key is changed: {count} {values} sealed under the current key.");
    Ok(Some(Told { sentence: Words::new(&sentence), is_failure: false }))
}

/// Changes the key, as the API does.
pub(super) async fn rotate(viewer: &Viewer<'_>, body: RequestBody) -> Answered {
    let CsrfForm { csrf: _ } = viewer.form(body).await?;
    let rotation = viewer.control().secret_rotate_key(&viewer.by()).await?;
    let query = format!("keys?done=rotate&count={}", rotation.resealed);
    answer::redirect(&viewer.path(&query))
}
