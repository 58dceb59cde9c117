//! The limits of a workspace, with the use of today beside them (O100, X-E115).

use narthex_console::{
    pages::settings::{Card, Form, Group, Piece},
    parts::{
        Words,
        form::{Field, Input},
    },
};
use narthex_model::{WorkspaceLimits, command::narthex};
use serde_json::{Map, Value, json};

use super::{
    faults::Faults,
    tab::{self, Made},
    usage,
};
use crate::{
    body::RequestBody,
    console::{answer::Answered, sent::Sent, viewer::Viewer},
    problem::Problem,
};

const TAB: &str = "settings/limits";
const DONE: [(&str, &str); 1] = [("saved", "The limits are saved.")];

/// A limit: its key, its words, its value without one, and a sentence.
type Limit = (&'static str, &'static str, &'static str, &'static str);

/// The limits in the groups of the form.
const GROUPS: [(&str, &[Limit]); 3] = [
    (
        "Calls of all runs together",
        &[
            ("calls_per_second", "Calls a second", "", "On average. Give one of the two rates."),
            ("calls_per_minute", "Calls a minute", "", "On average. Give one of the two rates."),
            ("burst", "Calls at once after a pause", "", "Needs a rate; else those of one period."),
            ("concurrent_calls", "Open calls at one time", "", ""),
            ("calls_per_day", "Calls a day", "", "A day in UTC."),
        ],
    ),
    (
        "One run",
        &[
            ("servers_per_run", "Servers of a run", "", "Counts for later runs."),
            (
                "memory_mb_per_run",
                "Memory of a run in MiB",
                "",
                "Of all its programs together. Counts for later runs.",
            ),
        ],
    ),
    (
        "Agents that start others",
        &[
            ("children_per_session", "Active children of a session", "32", "Empty for 32."),
            ("child_depth", "Sessions above a session", "8", "Empty for 8."),
            ("children_per_day", "Children a day", "1000", "Of all sessions. Empty for 1000."),
            (
                "child_silence_minutes",
                "Minutes of silence before a child ends",
                "30",
                "Empty for 30. Counts at once.",
            ),
        ],
    ),
];

/// The texts of the form by their keys.
type Values = Map<String, Value>;

pub(super) async fn show(viewer: &Viewer<'_>) -> Answered {
    let query = viewer.query(&["after", "done", "name"])?;
    let limits = viewer.control().workspace_limits(&viewer.workspace).await?;
    let made = made(viewer, &values(&limits), &Faults::default(), query.text("after")).await?;
    Made { told: tab::told(&query, &DONE), ..made }.answer(viewer).await
}

/// Replaces all limits, as `PUT` of the API does.
pub(super) async fn save(viewer: &Viewer<'_>, body: RequestBody) -> Answered {
    let sent: Sent = viewer.form(body).await?;
    let sent = sent.only(|name| keys().any(|key| key == name))?;
    let texts = keys().map(|key| (key.to_owned(), json!(sent.text(key))));
    let texts: Values = texts.filter(|(_, text)| *text != json!("")).collect();
    let wanted: Values = texts.iter().map(|(key, text)| (key.clone(), amount(text))).collect();
    let text = Value::Object(wanted).to_string();
    let (control, workspace) = (viewer.control(), &viewer.workspace);
    match control.set_workspace_limits(workspace, text.as_bytes(), viewer.by()).await {
        Ok(_limits) => tab::done(viewer, TAB, "saved", ""),
        Err(error) => {
            let faults = Faults::of(viewer, error)?;
            made(viewer, &texts, &faults, "").await?.answer(viewer).await
        }
    }
}

/// A number that is written with digits. Another text stays one, and is refused.
fn amount(text: &Value) -> Value {
    let number = text.as_str().and_then(|text| text.parse::<u64>().ok());
    number.map_or_else(|| text.clone(), |number| json!(number))
}

fn keys() -> impl Iterator<Item = &'static str> {
    GROUPS.into_iter().flat_map(|(_, limits)| limits.iter().map(|(key, ..)| *key))
}

/// The limits in their normal form, which has a number for each key.
fn values(limits: &WorkspaceLimits) -> Values {
    match json!(limits) {
        Value::Object(all) => all,
        _ => Values::new(),
    }
}

async fn made(
    viewer: &Viewer<'_>,
    values: &Values,
    faults: &Faults,
    after: &str,
) -> Result<Made, Problem> {
    let head = tab::head(
        viewer,
        "Limits",
        "What is used today beside its limits, and the limits of the workspace.",
        narthex("limits set", &[]),
        &tab::request(viewer, "PUT", "/limits"),
    );
    let used = viewer.control().usage(&viewer.workspace).await?;
    let mut cards = usage::cards(viewer, &used, after).await?;
    let known: Vec<_> = keys().collect();
    let mut form = Form::new(viewer.path(TAB), &viewer.csrf, "Save the limits");
    for (legend, limits) in GROUPS {
        let fields = limits.iter().map(|limit| field(*limit, values, faults)).collect();
        form = form.group(Group { legend: Some(legend), fault: None, fields });
    }
    let form = form.fault(faults.rest(&known)).off(tab::off(viewer));
    let note = "An empty field sets no limit. Limits of calls count for the next call, also of \
                active runs.";
    let pieces = vec![Piece::Note(Words::new(note)), Piece::Form(form)];
    cards.insert(1, Card::new("limits", "Limits of the workspace", "", pieces));
    Ok(Made::new(head, TAB, cards).refused(!faults.is_empty()))
}

fn field(limit: Limit, values: &Values, faults: &Faults) -> Field {
    let (key, label, usual, help) = limit;
    let value = match values.get(key) {
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => String::new(),
    };
    let input = Input::Line { value, example: usual.to_owned() };
    let field = Field::new(key, label, input).fault(faults.at(key).as_deref());
    if help.is_empty() { field } else { field.help(help) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each limit of the model has a field: a page that lacks one would remove it.
    #[test]
    fn o100_each_limit_has_a_field() {
        let all = json!({
            "calls_per_second": 1, "burst": 2, "concurrent_calls": 3, "calls_per_day": 4,
            "servers_per_run": 5, "memory_mb_per_run": 6, "children_per_session": 7,
            "child_depth": 8, "children_per_day": 9, "child_silence_minutes": 10,
        });
        let text = all.to_string();
        let limits = WorkspaceLimits::parse(text.as_bytes(), &mut |place, _| panic!("{place}"));
        let shown = values(&limits.unwrap());
        assert_eq!(shown.len(), 10);
        assert!(shown.keys().all(|key| keys().any(|known| known == key)), "{shown:?}");
        assert_eq!(keys().count(), shown.len() + 1, "the other rate");
        assert_eq!(amount(&json!("12")), json!(12));
        assert_eq!(amount(&json!("-1")), json!("-1"));
    }
}
