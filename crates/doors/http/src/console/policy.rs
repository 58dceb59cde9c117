//! The rules of a workspace: their text, a test of a call, and what a change takes from runs.

mod asked;
mod preview;

use http::StatusCode;
use narthex_console::{
    Told, html,
    pages::policy::{Decision, PolicyPage, Preview, RuleFault, Written},
    parts::{
        Moment, Same, Words,
        form::{Field, Input, line_breaks},
    },
};
use narthex_control::{
    CatalogError, ControlError, Precondition, RulesChecked, RulesError, WrittenRules,
};
use narthex_model::command::narthex;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use self::asked::decided;
use super::{
    answer::{self, Answered},
    frame::{Head, frame},
    page::Page,
    viewer::{Form, Viewer},
};
use crate::{
    Access,
    body::RequestBody,
    problem::Problem,
    routes::{ADMIN, NAMES},
};

/// The page, and its actions.
pub(super) const PAGES: &[Page] = &[
    Page::get("policy", Access::Member(NAMES), |viewer, _| Box::pin(show(viewer)))
        .in_nav("Policy", "lock"),
    Page::post("policy/check", Access::Member(NAMES), |viewer, body| Box::pin(check(viewer, body))),
    Page::post("policy/preview", Access::Member(NAMES), |viewer, body| {
        Box::pin(previewed(viewer, body))
    }),
    Page::post("policy/save", Access::Member(ADMIN), |viewer, body| Box::pin(save(viewer, body))),
];

/// Number of visible lines of the text, at least and at most.
const ROWS_MIN: usize = 12;
const ROWS_MAX: usize = 40;
/// Maximum number of faults on the page.
const FAULTS: usize = 50;

/// The form: the text, its version, and a call to test.
#[derive(Debug, Default, Deserialize)]
struct RulesForm {
    csrf: String,
    #[serde(default)]
    rules: String,
    #[serde(default)]
    tag: String,
    #[serde(default)]
    agent: String,
    #[serde(default)]
    server: String,
    #[serde(default)]
    tool: String,
    #[serde(default)]
    arguments: String,
    #[serde(default)]
    user: String,
}

impl Form for RulesForm {
    fn csrf(&self) -> &str {
        &self.csrf
    }
}

/// The results that a page shows.
#[derive(Default)]
struct After {
    faults: Vec<RuleFault>,
    decision: Option<Decision>,
    preview: Option<Preview>,
    told: Option<Told>,
}

async fn show(viewer: &Viewer<'_>) -> Answered {
    let query = viewer.query(&["done"])?;
    let stored = viewer.control().rules(&viewer.workspace).await?;
    let faults = stored.faults.iter().map(|fault| RuleFault {
        message: Words::new(&match fault.line {
            Some(line) => format!("line {line}: {}", fault.message),
            None => fault.message.clone(),
        }),
        remedy: Words::new(&fault.remedy),
    });
    let told = (query.text("done") == "save").then(|| Told {
        sentence: Words::new("The rules are stored, and apply from the next call on."),
        is_failure: false,
    });
    let after = After { faults: faults.take(FAULTS).collect(), told, ..After::default() };
    let form = RulesForm {
        rules: stored.text().to_owned(),
        tag: stored.tag.clone().unwrap_or_default(),
        ..RulesForm::default()
    };
    page(viewer, &stored, &form, after, StatusCode::OK).await
}

/// Tests the call of the form against the text of the form.
async fn check(viewer: &Viewer<'_>, body: RequestBody) -> Answered {
    let form = read(viewer, body).await?;
    let stored = viewer.control().rules(&viewer.workspace).await?;
    let (after, status) = match decided(viewer, &question(&form)).await {
        Ok(checked) => {
            let decision = Some(decision(&checked, &form.rules));
            (After { decision, ..After::default() }, StatusCode::OK)
        }
        Err(error) => refused(error)?,
    };
    page(viewer, &stored, &form, after, status).await
}

/// Shows what the text of the form changes for active runs.
async fn previewed(viewer: &Viewer<'_>, body: RequestBody) -> Answered {
    let form = read(viewer, body).await?;
    let stored = viewer.control().rules(&viewer.workspace).await?;
    let (after, status) = match preview::of(viewer, &form.rules).await {
        Ok(preview) => (After { preview: Some(preview), ..After::default() }, StatusCode::OK),
        Err(error) => refused(error)?,
    };
    page(viewer, &stored, &form, after, status).await
}

/// Stores the text, unless the rules were changed since the page was made.
async fn save(viewer: &Viewer<'_>, body: RequestBody) -> Answered {
    let form = read(viewer, body).await?;
    let condition = match form.tag.as_str() {
        "" => Precondition::New,
        tag => Precondition::Tags(vec![tag.to_owned()]),
    };
    let document = json!({ "rules": form.rules }).to_string();
    let control = viewer.control();
    let written =
        control.rules_write(&viewer.workspace, document.as_bytes(), condition, viewer.by()).await;
    let (after, status) = match written {
        Ok(_stored) => return answer::redirect(&viewer.path("policy?done=save")),
        Err(ControlError::Rules(RulesError::Changed)) => {
            let sentence = "The rules were changed since you read them. Your text is kept below; \
                            open this page again to see theirs.";
            let told = Some(Told { sentence: Words::new(sentence), is_failure: true });
            (After { told, ..After::default() }, StatusCode::CONFLICT)
        }
        Err(error) => refused(error)?,
    };
    let stored = control.rules(&viewer.workspace).await?;
    page(viewer, &stored, &form, after, status).await
}

async fn read(viewer: &Viewer<'_>, body: RequestBody) -> Result<RulesForm, Problem> {
    let form: RulesForm = viewer.form(body).await?;
    Ok(RulesForm { rules: line_breaks(&form.rules), ..form })
}

/// The faults of a text or of a call, for the page. Other failures are not the human's.
fn refused(error: ControlError) -> Result<(After, StatusCode), Problem> {
    match error {
        ControlError::Catalog(CatalogError::Refused(all) | CatalogError::Question(all)) => {
            let faults = all.iter().take(FAULTS).map(|fault| RuleFault {
                message: Words::new(&match fault.field.as_str() {
                    "" | "rules" => fault.message.clone(),
                    field => format!("{field}: {}", fault.message),
                }),
                remedy: Words::new(&fault.remedy),
            });
            let after = After { faults: faults.collect(), ..After::default() };
            Ok((after, StatusCode::UNPROCESSABLE_ENTITY))
        }
        error => Err(error.into()),
    }
}

/// The question about the call of the form, as the API takes it.
fn question(form: &RulesForm) -> String {
    let mut asked = Map::new();
    let texts = [
        ("agent", &form.agent),
        ("server", &form.server),
        ("tool", &form.tool),
        ("user", &form.user),
    ];
    for (name, text) in texts.into_iter().filter(|(_, text)| !text.trim().is_empty()) {
        asked.insert(name.to_owned(), json!(text.trim()));
    }
    asked.insert("rules".to_owned(), json!(form.rules));
    let arguments = form.arguments.trim();
    if arguments.is_empty() {
        return Value::Object(asked).to_string();
    }
    match serde_json::from_str::<Value>(arguments) {
        Ok(_) => {
            // Rules may tell spellings apart, so the text stays as it was written.
            let rest = Value::Object(asked).to_string();
            let rest = rest.strip_prefix('{').unwrap_or_default();
            format!("{{\"arguments\":{arguments},{rest}")
        }
        Err(_no_json) => {
            asked.insert("arguments".to_owned(), json!(arguments));
            Value::Object(asked).to_string()
        }
    }
}

fn decision(checked: &RulesChecked, text: &str) -> Decision {
    let ruling = &checked.ruling;
    let scopes: Vec<_> = ruling.scopes.iter().map(|scope| scope.as_str()).collect();
    let sentence = match (&ruling.forbidden, scopes.is_empty()) {
        (Some(by), _) if by.reason.is_empty() => {
            format!("Forbidden by the rule {}.", placed(text, &by.rule))
        }
        (Some(by), _) => {
            format!("Forbidden by the rule {}: {}", placed(text, &by.rule), by.reason)
        }
        (None, false) => format!("A human must grant {} first.", scopes.join(", ")),
        (None, true) => "Allowed by the rules.".to_owned(),
    };
    let failed = |rule: &str| ruling.failed.iter().any(|one| &**one == rule);
    let matched = ruling.matched.iter().map(|rule| {
        let note = if failed(rule) { " (could not be evaluated, so it counts)" } else { "" };
        Words::new(&format!("{}{note}", placed(text, rule)))
    });
    Decision {
        sentence: Words::new(&sentence),
        is_refused: checked.decision() != "allowed",
        matched: matched.collect(),
    }
}

/// The name of a rule, with its line if the text names it.
fn placed(text: &str, rule: &str) -> String {
    let name = format!("@id(\"{rule}\")");
    match text.lines().position(|line| line.contains(&name)) {
        Some(index) => format!("{rule}, line {}", index + 1),
        None => rule.to_owned(),
    }
}

async fn page(
    viewer: &Viewer<'_>,
    stored: &WrittenRules,
    form: &RulesForm,
    after: After,
    status: StatusCode,
) -> Answered {
    let request = format!("GET /api/workspaces/{}/policy", viewer.workspace);
    let command = narthex("policy show", &[]).in_workspace(viewer.workspace.as_str());
    let head = Head {
        title: Words::new("Policy"),
        sentence: "The rules that decide calls of this workspace's runs, beside grants.",
        same: Some(Same::new(&command.to_string(), &request)),
    };
    let mut frame = frame(viewer, head).await?;
    frame.told = after.told;
    let may_save = viewer.may(Access::Member(ADMIN));
    let page = PolicyPage {
        frame,
        rules: rules(form, may_save),
        tag: form.tag.clone(),
        call: call(form),
        faults: after.faults,
        decision: after.decision,
        preview: after.preview,
        written: stored.row.as_ref().map(|row| Written {
            revision: row.head.revision,
            at: Moment::new(row.head.updated_at),
            by: Words::new(&row.updated_by),
        }),
        check: viewer.path("policy/check"),
        preview_path: viewer.path("policy/preview"),
        save: may_save.then(|| viewer.path("policy/save")),
    };
    Ok(answer::page(status, html(&page)))
}

fn rules(form: &RulesForm, may_save: bool) -> Field {
    let rows = form.rules.lines().count().clamp(ROWS_MIN, ROWS_MAX);
    let input = Input::area(&form.rules, u8::try_from(rows).unwrap_or(u8::MAX));
    let help = match may_save {
        true => "Faults name their line. Rules of more than 60 KB are set by a command.",
        false => "You may try another text here. Only an admin stores one.",
    };
    Field::new("rules", "Rules, written in Cedar", input).help(help)
}

fn call(form: &RulesForm) -> Vec<Field> {
    let line = |name: &str, label: &str, value: &str| Field::new(name, label, Input::line(value));
    vec![
        line("server", "Server", &form.server).help("The id in the catalog, or the alias."),
        line("tool", "Tool", &form.tool).help("The server's own name of it."),
        line("agent", "Agent", &form.agent).help("Empty: the run has none."),
        line("user", "Human", &form.user).help("Who drives the run, by name or id."),
        Field::new("arguments", "Arguments", Input::area(&form.arguments, 3)).help("JSON."),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A rule is told with its line where the text has its name.
    #[test]
    fn a_rule_is_told_with_its_line() {
        let text = "// all\n@id(\"writes\")\nforbid(principal, action, resource);";
        assert_eq!(placed(text, "writes"), "writes, line 2");
        assert_eq!(placed(text, "rule-2"), "rule-2");
    }

    /// The arguments of a question stay as they were written.
    #[test]
    fn arguments_stay_as_they_were_written() {
        let form = RulesForm {
            server: " linear ".to_owned(),
            arguments: "{\"b\": 1.0, \"a\": 2}".to_owned(),
            ..RulesForm::default()
        };
        let asked = question(&form);
        assert!(asked.starts_with("{\"arguments\":{\"b\": 1.0, \"a\": 2},"), "{asked}");
        let read: Value = serde_json::from_str(&asked).unwrap();
        assert_eq!((&read["server"], &read["rules"]), (&json!("linear"), &json!("")));
        let bad = question(&RulesForm { arguments: "{".to_owned(), ..RulesForm::default() });
        assert_eq!(serde_json::from_str::<Value>(&bad).unwrap()["arguments"], "{");
    }
}
