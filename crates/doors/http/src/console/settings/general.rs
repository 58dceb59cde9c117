//! The name of a workspace, and what its runs may do.

use narthex_console::{
    pages::settings::{Card, Cell, Form, Piece},
    parts::{
        Words,
        form::{Choice, Field, Input},
    },
};
use narthex_control::Workspace;
use narthex_model::{EnabledModel, OauthOnOrchestrators, command::narthex};
use serde_json::{Map, Value, json};

use super::{
    faults::Faults,
    tab::{self, Made},
};
use crate::{
    body::RequestBody,
    console::{answer::Answered, sent::Sent, viewer::Viewer},
};

const TAB: &str = "settings";
const FIELDS: [&str; 4] = ["name", "runtime_requests", "oauth_on_orchestrators", "models"];
const DONE: [(&str, &str); 2] =
    [("saved", "The settings are saved."), ("same", "Nothing has changed.")];

/// The values of the form.
struct Values {
    name: String,
    runtime_requests: bool,
    oauth_on_orchestrators: String,
    models: String,
}

impl Values {
    fn of(workspace: &Workspace) -> Self {
        Self {
            name: workspace.name.clone(),
            runtime_requests: workspace.settings.runtime_requests,
            oauth_on_orchestrators: workspace.settings.oauth_on_orchestrators.to_string(),
            models: written(workspace.models.all()),
        }
    }

    fn sent(sent: &Sent) -> Self {
        Self {
            name: sent.text("name"),
            runtime_requests: sent.is_on("runtime_requests"),
            oauth_on_orchestrators: sent.text("oauth_on_orchestrators"),
            models: sent.text("models"),
        }
    }

    /// The fields that differ from those of the workspace, as the API takes them.
    fn changes(&self, now: &Workspace) -> Map<String, Value> {
        let (before, mut change) = (Self::of(now), Map::new());
        if self.name != before.name {
            change.insert("name".to_owned(), json!(self.name));
        }
        if self.runtime_requests != before.runtime_requests {
            change.insert("runtime_requests".to_owned(), json!(self.runtime_requests));
        }
        if self.oauth_on_orchestrators != before.oauth_on_orchestrators {
            let value = json!(self.oauth_on_orchestrators);
            change.insert("oauth_on_orchestrators".to_owned(), value);
        }
        let models = read(&self.models);
        if models != now.models.all() {
            change.insert("models".to_owned(), json!(models));
        }
        change
    }
}

pub(super) async fn show(viewer: &Viewer<'_>) -> Answered {
    let query = tab::only_done(viewer)?;
    let workspace = viewer.control().workspace(&viewer.workspace)?;
    let made = made(viewer, &Values::of(&workspace), &Faults::default());
    Made { told: tab::told(&query, &DONE), ..made }.answer(viewer).await
}

/// Changes the fields that differ, as `PATCH` of the API does.
pub(super) async fn save(viewer: &Viewer<'_>, body: RequestBody) -> Answered {
    let sent: Sent = viewer.form(body).await?;
    let sent = sent.only(|name| FIELDS.contains(&name))?;
    let values = Values::sent(&sent);
    let (control, workspace) = (viewer.control(), &viewer.workspace);
    let change = values.changes(&control.workspace(workspace)?);
    if change.is_empty() {
        return tab::done(viewer, TAB, "same", "");
    }
    let text = Value::Object(change).to_string();
    match control.workspace_change(workspace, text.as_bytes(), &viewer.by()).await {
        Ok(_changed) => tab::done(viewer, TAB, "saved", ""),
        Err(error) => {
            let faults = Faults::of(viewer, error)?;
            made(viewer, &values, &faults).answer(viewer).await
        }
    }
}

fn made(viewer: &Viewer<'_>, values: &Values, faults: &Faults) -> Made {
    let id = &viewer.workspace;
    let head = tab::head(
        viewer,
        "Settings",
        "The name of the workspace, and what its runs may do.",
        narthex("workspaces change {} --name NAME", &[id]),
        &tab::request(viewer, "PATCH", ""),
    );
    let form = Form::new(viewer.path(TAB), &viewer.csrf, "Save")
        .fields(fields(values, faults))
        .fault(faults.rest(&FIELDS))
        .off(tab::off(viewer));
    let facts = vec![("id", Cell::new(id.as_str()))];
    let deleting = "An operator creates and deletes workspaces. The id never changes.";
    let cards = vec![
        Card::new("general", "General", "", vec![Piece::Form(form)]),
        Card::new(
            "facts",
            "The workspace",
            "",
            vec![Piece::Pairs(facts), Piece::Note(Words::new(deleting))],
        ),
    ];
    Made::new(head, TAB, cards).refused(!faults.is_empty())
}

fn fields(values: &Values, faults: &Faults) -> Vec<Field> {
    let fault = |field: Field, name: &str| field.fault(faults.at(name).as_deref());
    let requests = Input::Check { is_on: values.runtime_requests };
    vec![
        fault(Field::new("name", "Name", Input::line(&values.name)), "name")
            .help("The name that people read."),
        fault(
            Field::new("runtime_requests", "Runs may ask for grants", requests),
            "runtime_requests",
        )
        .help("Without this, a call that needs a grant is refused, and no human is asked."),
        fault(
            Field::new(
                "oauth_on_orchestrators",
                "Servers with a sign-in of each person, for agents that are no workers",
                oauth(&values.oauth_on_orchestrators),
            ),
            "oauth_on_orchestrators",
        )
        .help("It counts when an agent is saved, and for later runs."),
        fault(Field::new("models", "Models", Input::area(&values.models, 5)), "models").help(
            "The models that runs may ask for, the newest first: one in each line, with other \
             names behind an equals sign, as in opus-4-5 = opus, big. Empty for any model.",
        ),
    ]
}

fn oauth(chosen: &str) -> Input {
    let words = |one| match one {
        OauthOnOrchestrators::Off => "never",
        OauthOnOrchestrators::OnAttended => "in runs that a person drives",
        OauthOnOrchestrators::On => "always",
    };
    let option = |one: OauthOnOrchestrators| Choice {
        value: one.to_string(),
        label: Words::new(words(one)),
        is_chosen: one.as_str() == chosen,
    };
    Input::Choice { options: OauthOnOrchestrators::ALL.map(option).to_vec() }
}

/// The models as lines.
fn written(models: &[EnabledModel]) -> String {
    let line = |model: &EnabledModel| match model.short_names.is_empty() {
        true => model.id.clone(),
        false => format!("{} = {}", model.id, model.short_names.join(", ")),
    };
    models.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// The models of the lines that have a text.
fn read(text: &str) -> Vec<EnabledModel> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let model = |line: &str| {
        let (id, names) = line.split_once('=').unwrap_or((line, ""));
        let names = names.split(',').map(str::trim).filter(|name| !name.is_empty());
        let short_names = names.map(str::to_owned).collect();
        EnabledModel { id: id.trim().to_owned(), short_names }
    };
    lines.map(model).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_are_read_as_they_are_written() {
        let text = "opus-4-5 = opus, big\nhaiku";
        let models = read(text);
        assert_eq!(models.len(), 2);
        assert_eq!(models[0].short_names, ["opus", "big"]);
        assert_eq!(written(&models), text);
        assert_eq!(read(" \n\n  haiku =\n"), [models[1].clone()]);
        assert_eq!(written(&read("")), "");
    }
}
