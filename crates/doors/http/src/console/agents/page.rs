//! The page of one capability or agent: the form on the left, its effect on the right.

use http::StatusCode;
use narthex_console::{
    Related, Told, html,
    pages::agents::{AgentPage, Delete, Effective, RunForm, Unset},
    parts::{Same, Words},
};
use narthex_control::{CatalogError, CatalogObject, ControlError, FieldError, TrialInputs};
use narthex_model::{CatalogKind, command::narthex};
use serde_json::{Map, Value, json};

use super::{
    around::Around,
    draft::Draft,
    effective::{self, effective},
    faults::Faults,
    fields::Sketch,
    inputs,
};
use crate::{
    Access,
    console::{
        answer::{self, Answered},
        frame::{self, Head, frame},
        links::Links,
        live,
        sent::Sent,
        viewer::Viewer,
    },
    problem::Problem,
    routes::{ADMIN, AUTHOR, RUN},
};

/// An object that a page shows, with the unsaved state of its form.
pub(super) struct Open {
    pub(super) kind: CatalogKind,
    pub(super) object: CatalogObject,
    /// The neighbours, if they were read before.
    pub(super) around: Option<Around>,
    pub(super) draft: Option<Draft>,
    pub(super) sent: Option<Sent>,
    /// The inputs of a run on trial.
    pub(super) inputs: Option<TrialInputs>,
    pub(super) faults: Vec<FieldError>,
    /// Faults that belong to no field.
    pub(super) lines: Vec<Words>,
    pub(super) told: Option<Told>,
    /// The places that a deletion would break.
    pub(super) breaks: Vec<Words>,
    pub(super) status: StatusCode,
}

impl Open {
    /// A stored object, without changes.
    pub(super) fn stored(kind: CatalogKind, object: CatalogObject) -> Self {
        Self {
            kind,
            object,
            around: None,
            draft: None,
            sent: None,
            inputs: None,
            faults: Vec::new(),
            lines: Vec::new(),
            told: None,
            breaks: Vec::new(),
            status: StatusCode::OK,
        }
    }

    /// The same object with the result of an action that failed.
    pub(super) fn failed(self, status: StatusCode, sentence: &str) -> Self {
        let told = Some(Told { sentence: Words::new(sentence), is_failure: true });
        Self { status, told, ..self }
    }
}

/// The definition of a stored object; an empty one if it cannot be read.
pub(super) fn definition_of(object: &CatalogObject) -> Map<String, Value> {
    object.definition.as_ref().and_then(Value::as_object).cloned().unwrap_or_default()
}

/// Takes the values of servers out of a definition (D39).
fn without_values(definition: &mut Map<String, Value>) {
    let attached = definition.get_mut("mcpServers").and_then(Value::as_object_mut);
    for one in attached.into_iter().flat_map(Map::values_mut).filter_map(Value::as_object_mut) {
        one.remove("config");
    }
}

/// The path of an object below its workspace.
pub(super) fn path_of(kind: CatalogKind, id: &str) -> String {
    format!("{}/{id}", list_of(kind))
}

/// The path of the list of a kind.
pub(super) fn list_of(kind: CatalogKind) -> &'static str {
    match kind {
        CatalogKind::Agent => "agents",
        CatalogKind::Capability | CatalogKind::Server => "capabilities",
    }
}

/// The page of an object.
pub(super) async fn render(viewer: &Viewer<'_>, mut open: Open) -> Answered {
    let is_author = viewer.may(Access::Member(AUTHOR));
    let around = match open.around.take() {
        Some(around) => around,
        None if is_author => Around::read(viewer, open.kind).await?,
        None => Around::default(),
    };
    let mut stored = definition_of(&open.object);
    if !is_author {
        without_values(&mut stored);
    }
    let definition = open.draft.as_ref().map_or_else(|| stored.clone(), |it| it.definition.clone());
    let mut known = std::mem::take(&mut open.faults);
    if is_author && open.draft.is_none() {
        known.extend(open.object.errors.iter().cloned());
    }
    let (effective, merged) = match is_author {
        true => effective_of(viewer, &open, &definition, &mut known).await?,
        false => {
            let text = "The effective configuration has values of servers, which are for authors.";
            (Effective::absent(text), None)
        }
    };
    let mut faults = Faults::new(known);
    let sketch = Sketch {
        kind: open.kind,
        definition: &definition,
        stored: &stored,
        sent: open.sent.as_ref().filter(|_| is_author),
        merged: merged.as_ref(),
        around: &around,
        off: (!is_author).then_some("Only admins and authors of the workspace change this."),
    };
    let mut form = sketch.form(&mut faults);
    let own = path_of(open.kind, &open.object.id);
    form.path = viewer.path(&format!("{own}/edit"));
    form.tag.clone_from(&open.object.tag);
    if open.kind == CatalogKind::Agent {
        let sent = open.sent.as_ref();
        form.run = Some(RunForm {
            fields: inputs::fields(&definition, merged.as_ref(), sent, &mut faults),
            has_preview: is_author,
            start: viewer.path(&format!("{own}/start")),
            off: start_off(viewer, &stored),
        });
    }
    let mut lines = std::mem::take(&mut open.lines);
    lines.extend(faults.rest());
    let delete = is_author.then(|| Delete {
        path: viewer.path(&format!("{own}/delete")),
        is_forced: !open.breaks.is_empty(),
        breaks: std::mem::take(&mut open.breaks),
    });
    let injected = injected(viewer, &open).await?;
    let mut frame = frame(viewer, head(viewer, &open, is_author)).await?;
    frame.told = open.told;
    frame.related = related(viewer, open.kind, &open.object.id);
    let query = viewer.query(&["done"])?;
    frame.live = Some(live::address(viewer, vec![frame::live(&frame)], &query));
    let back = viewer.path(list_of(open.kind));
    let unset = unset(viewer, merged.as_ref());
    let page = AgentPage { frame, injected, faults: lines, unset, form, effective, delete, back };
    Ok(answer::page(open.status, html(&page)))
}

/// The names of the variables that operators inject into the runs of an agent.
async fn injected(viewer: &Viewer<'_>, open: &Open) -> Result<Vec<Words>, Problem> {
    if open.kind != CatalogKind::Agent {
        return Ok(Vec::new());
    }
    let names = viewer.control().env_names(&viewer.workspace).await?;
    let names = names.of_agent(&open.object.id);
    Ok(names.iter().map(|name| Words::new(&name.to_string())).collect())
}

/// The runs, grants and requests of an agent, or the agents with a capability; and the events.
fn related(viewer: &Viewer<'_>, kind: CatalogKind, id: &str) -> Vec<Related> {
    let links = Links::of(viewer);
    let links = match kind {
        CatalogKind::Agent => {
            let of_it = &[("agent", id)];
            let links = links.runs("Its runs", of_it).grants("Its grants", of_it);
            links.requests("What it waits for", of_it)
        }
        CatalogKind::Capability | CatalogKind::Server => {
            links.agents("Agents with it", &[("capability", id)])
        }
    };
    links.audit("Its changes", &[("resource", id)]).found()
}

fn head(viewer: &Viewer<'_>, open: &Open, is_author: bool) -> Head {
    let (id, workspace) = (&open.object.id, &viewer.workspace);
    let (title, sentence, command, request) = match open.kind {
        CatalogKind::Agent => (
            format!("Agent {id}"),
            "The servers of its runs, and where each value comes from.",
            narthex("agents get {}", &[id]),
            match is_author {
                true => format!("GET /api/workspaces/{workspace}/agents/{id}?view=merged"),
                false => format!("GET /api/workspaces/{workspace}/agents/{id}"),
            },
        ),
        CatalogKind::Capability | CatalogKind::Server => (
            format!("Capability {id}"),
            "A bundle of servers, or of text, which agents include.",
            narthex("capabilities get {}", &[id]),
            format!("GET /api/workspaces/{workspace}/capabilities/{id}"),
        ),
    };
    let command = command.in_workspace(workspace).to_string();
    Head { title: Words::new(&title), sentence, same: Some(Same::new(&command, &request)) }
}

/// The secrets without which runs are refused, for those who may set them.
fn unset(viewer: &Viewer<'_>, merged: Option<&Value>) -> Vec<Unset> {
    let merged = merged.filter(|_| viewer.may(Access::Member(ADMIN)));
    let names = merged.map(effective::unset).unwrap_or_default();
    let one = |name: &str| Unset {
        name: Words::new(name),
        href: viewer.path(&format!("secrets?q={name}")),
    };
    names.into_iter().map(one).collect()
}

/// The reason why the human can start no run of a stored agent.
fn start_off(viewer: &Viewer<'_>, stored: &Map<String, Value>) -> Option<&'static str> {
    if !viewer.may(Access::Starter(RUN)) {
        return Some("only admins and runners of the workspace start runs");
    }
    if viewer.door.options.runs.is_none() {
        return Some("this process creates and ends no runs");
    }
    let is_off = stored.get("active") == Some(&Value::Bool(false));
    is_off.then_some("the agent is not active: check Active, and save")
}

/// The sentence above the effective configuration of an agent.
fn sentence(open: &Open) -> &'static str {
    match &open.draft {
        Some(_) => "With the values of the form, saved or not.",
        None => "Each value with the level that gives it, and what it overrides.",
    }
}

/// The merged view of the definition, and its part of the page. A run on trial is a part of it.
async fn effective_of(
    viewer: &Viewer<'_>,
    open: &Open,
    definition: &Map<String, Value>,
    known: &mut Vec<FieldError>,
) -> Result<(Effective, Option<Value>), Problem> {
    let (control, workspace) = (viewer.control(), &viewer.workspace);
    let (text, sentence) = match open.kind {
        CatalogKind::Agent => (Value::Object(definition.clone()), sentence(open)),
        // An agent that includes nothing else shows what the capability gives.
        CatalogKind::Capability | CatalogKind::Server => {
            let sentence = "What agents get that include the stored capability, before their own \
                            values.";
            (json!({ "name": "any", "capabilities": [open.object.id] }), sentence)
        }
    };
    let text = text.to_string().into_bytes();
    let made = match &open.inputs {
        Some(inputs) => {
            let trial = control.catalog_trial(workspace, text, inputs.clone()).await;
            trial.map(|trial| (trial.merged, Some(trial.run)))
        }
        None => control.catalog_preview(workspace, text).await.map(|merged| (merged, None)),
    };
    let (merged, run) = match made {
        Ok(made) => made,
        Err(ControlError::Catalog(CatalogError::Refused(faults))) => {
            if known.is_empty() {
                known.extend(faults);
            }
            let text = "It is not known before the faults of the form are mended.";
            return Ok((Effective::absent(text), None));
        }
        Err(error) => return Err(error.into()),
    };
    let resolved = run.as_ref().and_then(|run| run.as_ref().ok());
    let mut shown = effective(&merged, resolved, sentence);
    match &run {
        None => {}
        Some(Ok(run)) => {
            let left_out = run["skipped"].as_array().map_or(0, Vec::len);
            let told = match left_out {
                0 => "A run with these inputs has these values. No server was started.".to_owned(),
                count => format!(
                    "A run with these inputs has these values, and does without {count} optional \
                     servers. No server was started."
                ),
            };
            shown.run = Some(Words::new(&told));
            shown.run_faults = effective::faults(&run["warnings"]);
        }
        Some(Err(faults)) => {
            shown.run = Some(Words::new("A run with these inputs would be refused."));
            let sentence = |fault: &FieldError| Words::new(&fault.to_string());
            shown.run_faults = faults.iter().map(sentence).collect();
            let of_inputs = |fault: &&FieldError| {
                fault.field.starts_with("run.params") || fault.field.starts_with("run.scope")
            };
            known.extend(faults.iter().filter(of_inputs).cloned());
        }
    }
    Ok((shown, Some(merged)))
}
