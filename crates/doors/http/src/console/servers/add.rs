//! The form that adds a server to the user's settings, as `narthex mcp add` does.

use http::StatusCode;
use narthex_client_files::catalog::may_hold_secret;
use narthex_console::{
    html,
    pages::servers::add::ServerAddPage,
    parts::{
        Same, Words,
        form::{Field, Input, line_breaks},
    },
};
use narthex_control::ControlError;
use narthex_model::{ErrorKind, command::narthex};
use narthex_registry::layers::EditError;
use serde::Deserialize;

use super::described::{Refused, described};
use crate::{
    body::RequestBody,
    console::{
        answer::{self, Answered, nothing},
        frame::{Head, frame},
        rows,
        viewer::{Form, Viewer},
    },
    problem::Problem,
};

/// Maximum size of the form, which holds one entry.
const FORM_MAX: usize = 64 * 1024;

/// The form.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Sent {
    csrf: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    server: String,
    #[serde(default)]
    variables: String,
    /// `on` if an entry of this name is replaced.
    #[serde(default)]
    replace: String,
}

impl Form for Sent {
    fn csrf(&self) -> &str {
        &self.csrf
    }
}

/// The reasons why the form was refused, by field.
#[derive(Default)]
struct Faults {
    name: Option<String>,
    server: Option<String>,
    variables: Option<String>,
}

pub(super) async fn show(viewer: &Viewer<'_>) -> Answered {
    viewer.query(&[])?;
    page(viewer, Sent::default(), Faults::default(), StatusCode::OK).await
}

/// Stores the entry, and leads to the page of the server, which connects in the background.
pub(super) async fn add(viewer: &Viewer<'_>, body: RequestBody) -> Answered {
    let sent: Sent = viewer.form_within(body, FORM_MAX).await?;
    let refused = StatusCode::UNPROCESSABLE_ENTITY;
    let read = match described(&sent.server, &line_breaks(&sent.variables)) {
        Ok(read) => read,
        Err(fault) => return page(viewer, sent, fault.into(), refused).await,
    };
    let given = sent.name.trim().to_owned();
    let name = if given.is_empty() { read.name.unwrap_or_default() } else { given };
    if name.is_empty() {
        let name = Some("Give the server a name.".to_owned());
        return page(viewer, sent, Faults { name, ..Faults::default() }, refused).await;
    }
    if !viewer.sees_servers() {
        return Err(nothing());
    }
    let (control, by) = (viewer.control(), viewer.by());
    let saved = match sent.replace.is_empty() {
        true => control.add_server(&name, &read.entry, &by).await,
        false => control.put_server(&name, &read.entry, &by).await,
    };
    match saved {
        Ok(saved) => {
            let path = rows::page(viewer, &saved.name);
            answer::redirect(&format!("{path}?done=add"))
        }
        Err(error) => {
            let faults = faults_of(error)?;
            page(viewer, sent, faults, refused).await
        }
    }
}

/// The field that a refusal of the settings is about.
fn faults_of(error: ControlError) -> Result<Faults, Problem> {
    let text = error.to_string();
    match &error {
        ControlError::Edit(EditError::Name(_) | EditError::Exists { .. }) => {
            Ok(Faults { name: Some(text), ..Faults::default() })
        }
        other if other.kind() == ErrorKind::Invalid => {
            Ok(Faults { server: Some(text), ..Faults::default() })
        }
        _ => Err(error.into()),
    }
}

impl From<Refused> for Faults {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Server(text) => Self { server: Some(text), ..Self::default() },
            Refused::Variables(text) => Self { variables: Some(text), ..Self::default() },
        }
    }
}

async fn page(viewer: &Viewer<'_>, sent: Sent, faults: Faults, status: StatusCode) -> Answered {
    if !viewer.sees_servers() {
        return Err(nothing());
    }
    let command = narthex("mcp add git -- uvx mcp-server-git", &[]).to_string();
    let head = Head {
        title: Words::new("Add a server"),
        sentence: "A program or an address that has tools. All your clients get its tools.",
        same: Some(Same::new(&command, "PUT /api/servers/NAME")),
    };
    let page = ServerAddPage {
        frame: frame(viewer, head).await?,
        path: viewer.path("add-server"),
        back: viewer.path("servers"),
        registry: viewer.in_nav("registry"),
        catalog: viewer.in_nav("catalog"),
        fields: fields(&sent, &faults),
    };
    Ok(answer::page(status, html(&page)))
}

fn fields(sent: &Sent, faults: &Faults) -> Vec<Field> {
    let name = Input::Line { value: sent.name.clone(), example: "git".to_owned() };
    let (server, of_server) = shown(&sent.server, faults.server.as_deref());
    let (variables, of_variables) = shown(&sent.variables, faults.variables.as_deref());
    let replace = Input::Check { is_on: !sent.replace.is_empty() };
    vec![
        Field::new("name", "Name", name)
            .help("Small letters, digits, _ and -. It may stay empty if the text below has one.")
            .fault(faults.name.as_deref()),
        Field::new("server", "Command, address or entry", Input::area(&server, 5))
            .help(
                "Such as: uvx mcp-server-git, or https://docs.example.com/mcp, or the JSON that \
                 the server's documentation gives for other clients.",
            )
            .required()
            .fault(of_server.as_deref()),
        Field::new("variables", "Variables", Input::area(&variables, 3))
            .help(
                "NAME=value, one a line. They are the environment of a program, and the headers \
                 for an address. Write a key as NAME=${secret:NAME}, and set NAME under Secrets.",
            )
            .fault(of_variables.as_deref()),
        Field::new("replace", "Replace the entry of this name, if there is one", replace),
    ]
}

/// A text as the page shows it again. One that may have a secret is not repeated.
fn shown(text: &str, fault: Option<&str>) -> (String, Option<String>) {
    let text = line_breaks(text);
    let has_literal = |line: &str| may_hold_secret(line) && !line.contains("${secret:");
    if !text.lines().any(has_literal) {
        return (text, fault.map(str::to_owned));
    }
    let note = "The text may have a secret, so it is not shown again.";
    let fault = fault.map_or_else(|| note.to_owned(), |fault| format!("{fault} {note}"));
    (String::new(), Some(fault))
}
