//! The data that is kept of a workspace and for how long: events of sessions, the audit, and the
//! contents of calls in it.

use narthex_console::{
    pages::settings::{Card, Cell, Form, Piece},
    parts::{
        Words,
        form::{Field, Input},
    },
};
use narthex_control::AuditSettings;
use narthex_model::command::{CommandLine, narthex};
use serde_json::{Value, json};

use super::{
    faults::Faults,
    tab::{self, AUDITORS, Asking, Made, SURE},
};
use crate::{
    body::RequestBody,
    console::{answer::Answered, sent::Sent, viewer::Viewer},
    problem::Problem,
};

const TAB: &str = "settings/kept";
const DONE: [(&str, &str); 4] = [
    ("events", "The time for events of sessions is saved."),
    ("contents_on", "The audit has the contents of later calls."),
    ("contents_off", "The audit has no contents of later calls."),
    ("audit", "The limits of the audit are saved."),
];
const EVENTS: &str = "events_kept_days";
const AUDIT: [&str; 2] = ["kept_days", "kept_events"];
const NO_NUMBER: &str = "it is not a whole number";
const REMEDY: &str = "write a whole number; 0 is for ever";

/// The texts of the forms.
struct Values {
    events: String,
    audit: Option<[String; 2]>,
}

impl Values {
    /// The values of now. The limits of the audit are for those who may read it.
    async fn now(viewer: &Viewer<'_>) -> Result<Self, Problem> {
        let control = viewer.control();
        let workspace = control.workspace(&viewer.workspace)?;
        let audit = match viewer.may(AUDITORS) {
            true => {
                let AuditSettings { kept_days, kept_events } =
                    control.audit_settings(Some(&viewer.workspace)).await?;
                Some([kept_days.to_string(), kept_events.to_string()])
            }
            false => None,
        };
        Ok(Self { events: workspace.settings.events_kept_days.to_string(), audit })
    }
}

pub(super) async fn show(viewer: &Viewer<'_>) -> Answered {
    let query = tab::only_done(viewer)?;
    let made = made(viewer, &Values::now(viewer).await?, &Faults::default())?;
    Made { told: tab::told(&query, &DONE), ..made }.answer(viewer).await
}

/// Sets the days for which events of ended sessions stay, as `PATCH` of the API does.
pub(super) async fn set_events(viewer: &Viewer<'_>, body: RequestBody) -> Answered {
    let sent: Sent = viewer.form(body).await?;
    let sent = sent.only(|name| [EVENTS, SURE].contains(&name))?;
    let text = sent.text(EVENTS);
    let now = viewer.control().workspace(&viewer.workspace)?.settings.events_kept_days;
    let days = text.parse::<u64>().ok();
    if days.is_some_and(|days| is_less(days, now.into())) && !tab::is_sure(&sent) {
        let effects = vec![
            format!(
                "Events of sessions that ended more than {text} days ago are removed for good."
            ),
            "The traces and messages of these sessions lose them. The audit stays.".to_owned(),
        ];
        let form = Form::new(viewer.path("settings/kept/events"), &viewer.csrf, "Keep less")
            .keep(EVENTS, &text);
        let facts = vec![("kept now", Cell::new(&days_words(now.into())))];
        return ask(viewer, "Keep events for less time?", effects, facts, form).await;
    }
    let value = days.map_or_else(|| json!(text), |days| json!(days));
    let Some(faults) = change(viewer, EVENTS, &value).await? else {
        return tab::done(viewer, TAB, "events", "");
    };
    let values = Values { events: text, ..Values::now(viewer).await? };
    made(viewer, &values, &faults)?.answer(viewer).await
}

/// Switches the contents of calls in the audit.
pub(super) async fn set_contents(viewer: &Viewer<'_>, body: RequestBody) -> Answered {
    let sent: Sent = viewer.form(body).await?;
    let sent = sent.only(|name| name == "audits_contents")?;
    let is_on = sent.is_on("audits_contents");
    match change(viewer, "audits_contents", &json!(is_on)).await? {
        None => {
            let verb = if is_on { "contents_on" } else { "contents_off" };
            tab::done(viewer, TAB, verb, "")
        }
        Some(faults) => made(viewer, &Values::now(viewer).await?, &faults)?.answer(viewer).await,
    }
}

/// Sets how long the audit is kept, as `PUT` of the API does.
pub(super) async fn set_audit(viewer: &Viewer<'_>, body: RequestBody) -> Answered {
    let sent: Sent = viewer.form(body).await?;
    let sent = sent.only(|name| AUDIT.contains(&name) || name == SURE)?;
    let texts = AUDIT.map(|name| sent.text(name));
    let mut faults = Faults::default();
    let [kept_days, kept_events] = AUDIT.map(|name| {
        let number = sent.text(name).parse::<u64>().ok();
        if number.is_none() {
            faults.add(name, NO_NUMBER, REMEDY);
        }
        number.unwrap_or_default()
    });
    if !faults.is_empty() {
        let values = Values { audit: Some(texts), ..Values::now(viewer).await? };
        return made(viewer, &values, &faults)?.answer(viewer).await;
    }
    let (control, workspace) = (viewer.control(), Some(&viewer.workspace));
    let wanted = AuditSettings { kept_days, kept_events };
    let now = control.audit_settings(workspace).await?;
    let is_less = is_less(kept_days, now.kept_days) || is_less(kept_events, now.kept_events);
    if is_less && !tab::is_sure(&sent) {
        return ask_audit(viewer, &now, &texts).await;
    }
    control.audit_keep(workspace, wanted, viewer.by()).await?;
    tab::done(viewer, TAB, "audit", "")
}

async fn ask_audit(viewer: &Viewer<'_>, now: &AuditSettings, texts: &[String; 2]) -> Answered {
    let [days, events] = texts;
    let effects = vec![
        "Events beyond these limits are removed at once, and for good.".to_owned(),
        "What remains can still be verified. Export the audit first to keep a copy.".to_owned(),
    ];
    let count = |count: u64| match count {
        0 => "all events".to_owned(),
        count => format!("the newest {count} events"),
    };
    let facts = vec![
        ("days now", Cell::new(&days_words(now.kept_days))),
        ("events now", Cell::new(&count(now.kept_events))),
        ("days then", Cell::new(&days_words(days.parse().unwrap_or_default()))),
        ("events then", Cell::new(&count(events.parse().unwrap_or_default()))),
        ("a copy", Cell::new("export the audit").to(Some(viewer.path("audit/export")))),
    ];
    let form = Form::new(viewer.path("settings/kept/audit"), &viewer.csrf, "Remove and keep less")
        .keep("kept_days", days)
        .keep("kept_events", events);
    ask(viewer, "Keep less of the audit?", effects, facts, form).await
}

async fn ask(
    viewer: &Viewer<'_>,
    title: &str,
    effects: Vec<String>,
    facts: Vec<(&'static str, Cell)>,
    form: Form,
) -> Answered {
    let sentence = "What is removed does not come back.";
    let head =
        tab::head(viewer, title, sentence, command(viewer), &tab::request(viewer, "PATCH", ""));
    Asking { head, effects, facts, form, back: viewer.path(TAB) }.answer(viewer).await
}

/// Changes one field of the workspace; the faults if it was refused.
async fn change(viewer: &Viewer<'_>, name: &str, value: &Value) -> Result<Option<Faults>, Problem> {
    let text = json!({ name: value }).to_string();
    let (control, workspace) = (viewer.control(), &viewer.workspace);
    match control.workspace_change(workspace, text.as_bytes(), &viewer.by()).await {
        Ok(_changed) => Ok(None),
        Err(error) => Faults::of(viewer, error).map(Some),
    }
}

/// True if less is kept than before; 0 is for ever.
fn is_less(wanted: u64, now: u64) -> bool {
    wanted != 0 && (now == 0 || wanted < now)
}

fn days_words(days: u64) -> String {
    match days {
        0 => "for ever".to_owned(),
        1 => "1 day".to_owned(),
        days => format!("{days} days"),
    }
}

fn command(viewer: &Viewer<'_>) -> CommandLine {
    narthex("workspaces change {} --events-kept-days 30", &[&viewer.workspace])
}

fn made(viewer: &Viewer<'_>, values: &Values, faults: &Faults) -> Result<Made, Problem> {
    let head = tab::head(
        viewer,
        "Kept data",
        "What is kept of sessions and calls, and for how long.",
        command(viewer),
        &tab::request(viewer, "PATCH", ""),
    );
    let workspace = viewer.control().workspace(&viewer.workspace)?;
    let form = |rest: &str, fields: Vec<Field>| {
        let form = Form::new(viewer.path(rest), &viewer.csrf, "Save").fields(fields);
        Piece::Form(form.off(tab::off(viewer)))
    };
    let field = |name: &'static str, label: &str, value: &str| {
        Field::new(name, label, Input::line(value)).fault(faults.at(name).as_deref())
    };
    let days = field(EVENTS, "Days after the end of a session", &values.events)
        .help("0 is for ever. Each session keeps its newest 5,000 events at most.");
    let sentence = "Events have the messages and steps of sessions.";
    let mut cards = vec![Card::new(
        "events",
        "Events of sessions",
        sentence,
        vec![form("settings/kept/events", vec![days])],
    )];
    let is_on = workspace.settings.audits_contents;
    let contents =
        Field::new("audits_contents", "The audit has contents of calls", Input::Check { is_on })
            .fault(faults.at("audits_contents").as_deref())
            .help(
                "Arguments and answers of later calls, also of active runs. Known secrets are \
                   removed; other private data is not.",
            );
    let sentence = "Without it, an event of a call says who called what, and how it ended.";
    cards.push(Card::new(
        "contents",
        "Contents of calls",
        sentence,
        vec![form("settings/kept/contents", vec![contents])],
    ));
    let mut audit = match &values.audit {
        Some([days, events]) => vec![form(
            "settings/kept/audit",
            vec![
                field("kept_days", "Days", days).help("0 is for ever."),
                field("kept_events", "Newest events", events).help("0 is all of them."),
            ],
        )],
        None => {
            vec![Piece::Note(Words::new("These limits are shown to admins and auditors alone."))]
        }
    };
    let keep = narthex("audit keep", &[]).in_workspace(viewer.workspace.as_str());
    audit.push(Piece::Command(Words::new(&keep.to_string())));
    let sentence = "Older events are removed. What remains can be verified.";
    cards.push(Card::new("audit", "The audit", sentence, audit));
    Ok(Made::new(head, TAB, cards).refused(!faults.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn for_ever_is_more_than_any_number() {
        for (wanted, now, expected) in
            [(30, 0, true), (0, 30, false), (0, 0, false), (7, 30, true), (30, 7, false)]
        {
            assert_eq!(is_less(wanted, now), expected, "{wanted} {now}");
        }
    }
}
