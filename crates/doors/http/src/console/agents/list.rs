//! The lists of capabilities and agents, and the forms for new ones.

use http::StatusCode;
use narthex_console::{
    Told, html,
    pages::{
        agents::{AgentRow, AgentsPage, NewAgent},
        search::Found,
    },
    parts::{
        Empty, Same, Words,
        form::{Field, Input},
    },
};
use narthex_control::{
    CatalogChange, CatalogError, CatalogObject, ControlError, EnvNames, FieldError, Precondition,
};
use narthex_model::{CatalogKind, command::narthex};
use serde_json::{Value, json};

use super::{
    around::ALL,
    faults::Faults,
    filter,
    page::{list_of, path_of},
};
use crate::{
    Access,
    body::RequestBody,
    console::{
        answer::{self, Answered},
        asked,
        frame::{self, Head, frame},
        live,
        sent::Sent,
        viewer::Viewer,
    },
    problem::Problem,
    routes::{AUTHOR, READER},
    servers::Query,
};

/// Number of rows of one page, which keeps the page under 100 KB.
const PAGE: u32 = 50;
/// Number of results of a search.
const FOUND: usize = 21;

/// The list of a kind.
pub(super) async fn show(viewer: &Viewer<'_>, kind: CatalogKind) -> Answered {
    list(viewer, kind, None, StatusCode::OK).await
}

/// Creates an object with a name and a description.
pub(super) async fn create(viewer: &Viewer<'_>, kind: CatalogKind, body: RequestBody) -> Answered {
    let sent: Sent = viewer.form(body).await?;
    let mut definition = json!({ "name": sent.text("name") });
    let description = sent.text("description");
    if !description.is_empty() {
        definition["description"] = description.into();
    }
    let change = CatalogChange {
        workspace: viewer.workspace.clone(),
        kind,
        precondition: Precondition::None,
        by: viewer.by(),
        is_offline: false,
    };
    let text = definition.to_string().into_bytes();
    let faults = match viewer.control().catalog_create(change, text).await {
        Ok(written) => {
            let own = path_of(kind, &written.object.id);
            return answer::redirect(&viewer.path(&format!("{own}?done=created")));
        }
        Err(ControlError::Catalog(CatalogError::Refused(faults))) => faults,
        Err(ControlError::Catalog(error @ CatalogError::Exists { .. })) => {
            let remedy = "open it from the list, or choose another name";
            let message = error.to_string();
            let message = message.split("; ").next().unwrap_or_default();
            vec![FieldError::invalid("name", message, remedy)]
        }
        Err(error) => return Err(error.into()),
    };
    list(viewer, kind, Some((sent, faults)), StatusCode::UNPROCESSABLE_ENTITY).await
}

/// The agents whose names have a text, for the search.
pub(in crate::console) async fn agents(
    viewer: &Viewer<'_>,
    text: &str,
) -> Result<Vec<Found>, Problem> {
    found(viewer, CatalogKind::Agent, text).await
}

/// The capabilities whose names have a text, for the search.
pub(in crate::console) async fn capabilities(
    viewer: &Viewer<'_>,
    text: &str,
) -> Result<Vec<Found>, Problem> {
    found(viewer, CatalogKind::Capability, text).await
}

async fn found(viewer: &Viewer<'_>, kind: CatalogKind, text: &str) -> Result<Vec<Found>, Problem> {
    let (roles, about) = match kind {
        CatalogKind::Agent => (READER, "an agent"),
        CatalogKind::Capability | CatalogKind::Server => (AUTHOR, "a capability"),
    };
    if !viewer.may(Access::Member(roles)) {
        return Ok(Vec::new());
    }
    let all = viewer.control().catalog_list(&viewer.workspace, kind, "", ALL).await?;
    let named = all.items.iter().filter(|one| one.id.contains(text)).take(FOUND);
    let found = named.map(|one| Found {
        href: viewer.path(&path_of(kind, &one.id)),
        name: Words::new(&one.id),
        about: Words::new(about),
    });
    Ok(found.collect())
}

async fn list(
    viewer: &Viewer<'_>,
    kind: CatalogKind,
    refused: Option<(Sent, Vec<FieldError>)>,
    status: StatusCode,
) -> Answered {
    let query = viewer.query(known(kind))?;
    let filtered: String = query.text("q").trim().to_lowercase().chars().take(64).collect();
    let after = match query.text("after") {
        "" => before(&filtered),
        after => after.to_owned(),
    };
    let (control, workspace) = (viewer.control(), &viewer.workspace);
    let (all, next) = match filter::set(kind, &query).is_empty() {
        true => {
            let mut all = control.catalog_list(workspace, kind, &after, PAGE).await?;
            let listed = all.items.len();
            all.items.retain(|one| one.id.starts_with(&filtered));
            // Names are in order: behind the first other name there is none that fits.
            let next = all.next.filter(|_| all.items.len() == listed);
            (all.items, next)
        }
        false => filter::fitting(viewer, kind, &query, &filtered, &after).await?,
    };
    let env = match kind {
        CatalogKind::Agent => Some(control.env_names(workspace).await?),
        CatalogKind::Capability | CatalogKind::Server => None,
    };
    let is_author = viewer.may(Access::Member(AUTHOR));
    let rows = all.iter().map(|one| row(viewer, kind, one, env.as_ref()));
    let rows: Vec<_> = rows.map(|row| if is_author { row } else { without_faults(row) }).collect();
    let filters = filter::shown(viewer, kind, &query, &filtered);
    let is_new = rows.is_empty() && filters.is_empty() && query.text("after").is_empty();
    let mut frame = frame(viewer, head(viewer, kind)).await?;
    frame.told = told(kind, &query);
    frame.live = Some(live::address(viewer, vec![frame::live(&frame)], &query));
    let page = AgentsPage {
        frame,
        rows,
        next: next.map(|next| {
            let mut pairs = filter::set(kind, &query);
            pairs.extend([("q", &*filtered), ("after", &*next)]);
            asked::address(viewer, list_of(kind), &pairs)
        }),
        kept: filter::kept(kind, &query),
        filters,
        path: viewer.path(list_of(kind)),
        create: is_author.then(|| new(viewer, kind, refused, is_new)),
        empty: empty(viewer, kind, is_new),
        filtered,
    };
    Ok(answer::page(status, html(&page)))
}

/// A name before all that begin so, and behind all others before these. Names are ASCII.
fn before(prefix: &str) -> String {
    let mut text = prefix.to_owned();
    let last = text.pop().and_then(|last| u8::try_from(last).ok());
    if let Some(last) = last.filter(u8::is_ascii_graphic) {
        text.push(char::from(last.saturating_sub(1)));
        text.push('\u{7f}');
    }
    text
}

/// The parameters of the address of a list.
fn known(kind: CatalogKind) -> &'static [&'static str] {
    match kind {
        CatalogKind::Agent => &["q", "after", "done", "name", "server", "capability"],
        CatalogKind::Capability | CatalogKind::Server => &["q", "after", "done", "name", "server"],
    }
}

fn head(viewer: &Viewer<'_>, kind: CatalogKind) -> Head {
    let (title, sentence, command) = match kind {
        CatalogKind::Agent => (
            "Agents",
            "Each agent has capabilities and servers, and runs with their values.",
            narthex("agents list", &[]),
        ),
        CatalogKind::Capability | CatalogKind::Server => (
            "Capabilities",
            "Bundles of servers with values, which agents include.",
            narthex("capabilities list", &[]),
        ),
    };
    let request = format!("GET /api/workspaces/{}/{}", viewer.workspace, list_of(kind));
    let command = command.in_workspace(&viewer.workspace).to_string();
    Head { title: Words::new(title), sentence, same: Some(Same::new(&command, &request)) }
}

fn told(kind: CatalogKind, query: &Query) -> Option<Told> {
    let name = query.subject();
    let sentence = format!("The {kind} {name} is deleted.");
    let told = Told { sentence: Words::new(&sentence), is_failure: false };
    (query.text("done") == "deleted").then_some(told)
}

fn row(
    viewer: &Viewer<'_>,
    kind: CatalogKind,
    object: &CatalogObject,
    env: Option<&EnvNames>,
) -> AgentRow {
    let none = Value::Null;
    let definition = object.definition.as_ref().unwrap_or(&none);
    let count = |member: &str| match &definition[member] {
        Value::Array(items) => items.len(),
        Value::Object(members) => members.len(),
        _ => 0,
    };
    let counted = |count: usize, one: &str, many: &str| match count {
        1 => format!("1 {one}"),
        count => format!("{count} {many}"),
    };
    let mut facts = Vec::new();
    if kind == CatalogKind::Agent {
        facts.push(definition["agent_type"].as_str().unwrap_or("worker").to_owned());
        if definition["active"] == false {
            facts.push("not active".to_owned());
        }
        facts.push(counted(count("capabilities"), "capability", "capabilities"));
    } else {
        facts.extend(definition["type"].as_str().map(str::to_owned));
    }
    let servers = count("mcpServers");
    facts.push(counted(servers, "server of its own", "servers of its own"));
    let injected = env.map(|env| env.of_agent(&object.id)).unwrap_or_default();
    let fault = object.errors.first();
    AgentRow {
        href: viewer.path(&path_of(kind, &object.id)),
        name: Words::new(&object.id),
        about: Words::new(definition["description"].as_str().unwrap_or_default()),
        facts: facts.iter().map(|fact| Words::new(fact)).collect(),
        injected: injected.iter().map(|name| Words::new(&name.to_string())).collect(),
        fault: fault.map(|fault| Words::new(&format!("It cannot be used: {fault}"))),
    }
}

/// A row without the faults of the stored form, which would reveal hidden members (D39).
fn without_faults(row: AgentRow) -> AgentRow {
    AgentRow { fault: None, ..row }
}

fn new(
    viewer: &Viewer<'_>,
    kind: CatalogKind,
    refused: Option<(Sent, Vec<FieldError>)>,
    is_new: bool,
) -> NewAgent {
    let is_open = is_new || refused.is_some();
    let (sent, faults) = refused.unzip();
    let mut faults = Faults::new(faults.unwrap_or_default());
    let text = |name: &str| sent.as_ref().and_then(|sent| sent.get(name)).unwrap_or_default();
    let name = Input::Line { value: text("name"), example: "reader".to_owned() };
    let name = Field::new("name", "Name", name).required();
    let name = name.help("Of a-z, 0-9, _ and -; it never changes.");
    let fields = vec![
        name.fault(faults.take("name").as_deref()),
        Field::new("description", "Description", Input::line(&text("description")))
            .fault(faults.take("description").as_deref()),
    ];
    let (path, label) = match kind {
        CatalogKind::Agent => ("new-agent", "New agent"),
        CatalogKind::Capability | CatalogKind::Server => ("new-capability", "New capability"),
    };
    NewAgent { path: viewer.path(path), label, fields, faults: faults.rest(), is_open }
}

fn empty(viewer: &Viewer<'_>, kind: CatalogKind, is_new: bool) -> Empty {
    if !is_new {
        return Empty {
            title: "No name fits",
            sentence: "Take a filter away, or empty the field above, to see more.".to_owned(),
            example: None,
            page: None,
        };
    }
    let (title, sentence, command) = match kind {
        CatalogKind::Agent => (
            "No agents yet",
            "An agent has servers of the catalog with their values. Its runs see their tools.",
            narthex("agents apply --file agent.yaml", &[]),
        ),
        CatalogKind::Capability | CatalogKind::Server => (
            "No capabilities yet",
            "A capability is a bundle of servers with values that several agents include.",
            narthex("capabilities apply --file capability.yaml", &[]),
        ),
    };
    Empty {
        title,
        sentence: sentence.to_owned(),
        example: Some(command.in_workspace(&viewer.workspace).to_string()),
        page: Some("docs/guides/catalog.md"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_begins_before_its_names_and_behind_all_others() {
        let after = before("re");
        assert!(after.as_str() < "re" && after.as_str() < "reader");
        assert!(after.as_str() > "rdzz_z9" && after.as_str() > "rd");
        assert_eq!(before(""), "");
    }
}
