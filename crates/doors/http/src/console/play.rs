//! The playground: a call of a tool, in a new run of the human.

mod arguments;
mod call;
mod caller;
mod indented;
mod schema;
mod text;

use std::collections::BTreeMap;

use http::StatusCode;
use narthex_console::{
    Told, html,
    pages::play::{CallAnswer, CallForm, Kept, PlayAskPage, PlayPage},
    parts::{
        Same, Words,
        form::{Choice, Field, Input, line_breaks},
    },
};
use narthex_model::{
    ErrorKind,
    command::{CommandLine, narthex},
};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use serde_json::{Map, Value};

use self::{
    arguments::{Act, Sent, Settled, settled},
    caller::{Caller, ME, Seen, Tool},
};
use super::{
    answer::{self, Answered},
    frame::{Head, frame},
    page::Page,
    viewer::{Form, Viewer},
};
use crate::{Access, body::RequestBody, problem::Problem, routes::RUN};

/// The page, and the call.
pub(super) const PAGES: &[Page] = &[
    Page::get("play", Access::Member(RUN), |viewer, _| Box::pin(show(viewer)))
        .in_nav("Playground", "play"),
    Page::post("play/call", Access::Member(RUN), |viewer, body| Box::pin(send(viewer, body))),
];

/// Number of tools in a choice. A server with more has a text field.
const OPTIONS_MAX: usize = 300;
/// Maximum number of characters of a description.
const DESCRIPTION_MAX: usize = 2_000;
/// Maximum number of characters of a schema on the page.
const SCHEMA_MAX: usize = 20_000;

/// The form of a call.
#[derive(Debug, Deserialize)]
struct CallFields {
    csrf: String,
    #[serde(default, rename = "as")]
    caller: String,
    #[serde(default)]
    server: String,
    #[serde(default)]
    tool: String,
    #[serde(default)]
    base: String,
    #[serde(default)]
    json: String,
    #[serde(default)]
    params: String,
    #[serde(default)]
    act: String,
    #[serde(default)]
    confirmed: String,
    /// The fields of the arguments.
    #[serde(flatten)]
    fields: BTreeMap<String, String>,
}

impl Form for CallFields {
    fn csrf(&self) -> &str {
        &self.csrf
    }
}

/// The tool that a page is about.
struct Chosen {
    caller: Caller,
    /// The word for the caller in forms.
    word: String,
    server: String,
    name: String,
    seen: Seen,
    tool: Option<Tool>,
}

/// The parts of a page after a form was sent.
#[derive(Default)]
struct After {
    params: String,
    params_fault: Option<String>,
    answer: Option<CallAnswer>,
    told: Option<Told>,
}

async fn show(viewer: &Viewer<'_>) -> Answered {
    let query = viewer.query(&["as", "server", "tool", "json"])?;
    let chosen =
        Chosen::of(viewer, query.text("as"), query.text("server"), query.text("tool")).await?;
    let arguments = match (query.text("json"), chosen.schema()) {
        ("", Some(schema)) => Settled::of(schema::beginning(schema)),
        ("", None) => Settled::of(Value::Object(Map::new())),
        (json, schema) => {
            let fields = BTreeMap::new();
            settled(schema, &Sent { base: "", json, fields: &fields }, Act::ToForm)
        }
    };
    page(viewer, &chosen, &arguments, After::default(), StatusCode::OK).await
}

async fn send(viewer: &Viewer<'_>, body: RequestBody) -> Answered {
    let form: CallFields = viewer.form(body).await?;
    let act = match form.act.as_str() {
        "to_json" => Act::ToJson,
        "to_form" => Act::ToForm,
        "" | "call" => Act::Call,
        _ => return Err(Problem::new(ErrorKind::Invalid, "press one of the buttons of the page")),
    };
    let chosen = Chosen::of(viewer, &form.caller, &form.server, &form.tool).await?;
    let sent = Sent { base: &form.base, json: &form.json, fields: &form.fields };
    let arguments = settled(chosen.schema(), &sent, act);
    let mut after = After { params: line_breaks(&form.params), ..After::default() };
    let params = match after.params.trim() {
        "" => None,
        text => match text::object(text) {
            Ok(params) => Some(params),
            Err(fault) => {
                after.params_fault = Some(fault);
                None
            }
        },
    };
    if !arguments.is_fine() || after.params_fault.is_some() {
        let status = StatusCode::UNPROCESSABLE_ENTITY;
        return page(viewer, &chosen, &arguments, after, status).await;
    }
    if act != Act::Call {
        return page(viewer, &chosen, &arguments, after, StatusCode::OK).await;
    }
    if chosen.is_destructive() && form.confirmed != "yes" {
        return ask(viewer, &chosen, &arguments, &after).await;
    }
    let wanted = call::Wanted {
        caller: &chosen.caller,
        server: &chosen.server,
        tool: &chosen.name,
        arguments: &arguments.text,
        params,
    };
    let status = match call::made(viewer, wanted).await {
        Ok(answer) => {
            after.answer = Some(answer);
            StatusCode::OK
        }
        Err(problem) => {
            let sentence = format!("The call was not made: {}", problem.detail());
            let sentence = Words::within(&sentence, DESCRIPTION_MAX);
            after.told = Some(Told { sentence, is_failure: true });
            answer::status(&problem)
        }
    };
    page(viewer, &chosen, &arguments, after, status).await
}

impl Chosen {
    async fn of(
        viewer: &Viewer<'_>,
        word: &str,
        server: &str,
        name: &str,
    ) -> Result<Self, Problem> {
        let caller = Caller::of(viewer, word).await?;
        let seen = caller.sees(viewer);
        let tool = seen.tool(server, name);
        let (word, server, name) = (word.to_owned(), server.to_owned(), name.to_owned());
        Ok(Self { caller, word, server, name, seen, tool })
    }

    fn schema(&self) -> Option<&Value> {
        self.tool.as_ref()?.schema.as_ref()
    }

    fn is_destructive(&self) -> bool {
        self.tool.as_ref().is_some_and(|tool| tool.is_destructive)
    }

    fn is_whole(&self) -> bool {
        !self.server.is_empty() && !self.name.is_empty()
    }

    /// The call as a command. Only the daemon's own run has one that makes it.
    fn command(&self, arguments: &str) -> Option<CommandLine> {
        if self.caller.agent().is_some() {
            return None;
        }
        let compact = text::object(arguments).ok()?.to_string();
        let given = (compact != "{}").then_some(compact);
        // A name that looks like an option stands behind `--`.
        let command = match self.name.starts_with('-') {
            true => narthex("call {} -- {}", &[&self.server, &self.name]),
            false => narthex("call {} {}", &[&self.server, &self.name]),
        };
        Some(command.words(given))
    }

    /// The call as a request, with the token of a run.
    fn request(&self, viewer: &Viewer<'_>) -> String {
        let encoded = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
        let (server, tool) = (encoded(&self.server), encoded(&self.name));
        format!("POST /mcp/w/{}/{server}/tools/{tool}", viewer.workspace)
    }

    /// The values that forms repeat.
    fn kept(&self, arguments: &Settled) -> Vec<Kept> {
        let kept = |name, value: &str| Kept { name, value: value.to_owned() };
        vec![
            kept("as", &self.word),
            kept("server", &self.server),
            kept("tool", &self.name),
            kept("base", &arguments.base()),
        ]
    }
}

async fn page(
    viewer: &Viewer<'_>,
    chosen: &Chosen,
    arguments: &Settled,
    after: After,
    status: StatusCode,
) -> Answered {
    let callers = caller::choosable(viewer).await?;
    let note = note(viewer, chosen, callers.is_empty());
    let mut frame = frame(viewer, head(viewer, chosen, arguments)).await?;
    frame.told = after.told.clone();
    let page = PlayPage {
        frame,
        path: viewer.path("play"),
        action: viewer.path("play/call"),
        choices: choices(chosen, &callers),
        note: note.map(|text| Words::new(&text)),
        form: chosen.is_whole().then(|| form(viewer, chosen, arguments, &after)),
        answer: after.answer,
    };
    Ok(answer::page(status, html(&page)))
}

/// The question before a call of a destructive tool.
async fn ask(viewer: &Viewer<'_>, chosen: &Chosen, arguments: &Settled, after: &After) -> Answered {
    let mut kept = chosen.kept(arguments);
    kept.push(Kept { name: "json", value: arguments.text.clone() });
    kept.push(Kept { name: "params", value: after.params.clone() });
    let head = Head {
        title: Words::new(&format!("Call {}?", chosen.name)),
        sentence: "A question before a call that may destroy something.",
        ..head(viewer, chosen, arguments)
    };
    let page = PlayAskPage {
        frame: frame(viewer, head).await?,
        action: viewer.path("play/call"),
        tool: Words::new(&chosen.name),
        server: Words::new(&chosen.server),
        caller: Words::new(&chosen.caller.words()),
        arguments: indented::indented(&arguments.text),
        kept,
    };
    Ok(answer::page(StatusCode::OK, html(&page)))
}

fn head(viewer: &Viewer<'_>, chosen: &Chosen, arguments: &Settled) -> Head {
    let command = chosen.command(&arguments.text).filter(|_| chosen.is_whole());
    let command = command.unwrap_or_else(|| narthex("call alias tool", &[]));
    let request = match chosen.is_whole() {
        true => chosen.request(viewer),
        false => format!("POST /mcp/w/{}/{{alias}}/tools/{{tool}}", viewer.workspace),
    };
    Head {
        title: Words::new("Playground"),
        sentence: "Calls a tool as a client would: grants, rules, limits and the audit count.",
        same: Some(Same::new(&command.to_string(), &request)),
    }
}

/// The reason why there is nothing to choose, or why a chosen tool has no form.
fn note(viewer: &Viewer<'_>, chosen: &Chosen, has_no_caller: bool) -> Option<String> {
    if has_no_caller {
        return Some(format!(
            "Nothing can be called here now: the workspace {} has no active run that you may see.",
            viewer.workspace
        ));
    }
    if chosen.seen.servers().is_empty() {
        return Some(
            "No server of this caller is ready, so its tools are unknown. Connected services has \
             the cause, or adds a server."
                .to_owned(),
        );
    }
    if chosen.server.is_empty() {
        return None;
    }
    let server = Words::within(&chosen.server, 80);
    if !chosen.seen.servers().contains(&chosen.server.as_str()) {
        return Some(format!("{server} is not ready, or is no server of this caller."));
    }
    if chosen.name.is_empty() {
        return Some(format!("Choose a tool of {server}."));
    }
    chosen.tool.is_none().then(|| {
        let tool = Words::within(&chosen.name, 80);
        format!("This caller sees no tool {tool} of {server}; a call gets that answer.")
    })
}

fn choices(chosen: &Chosen, callers: &[caller::Choosable]) -> Vec<Field> {
    let word = if chosen.word.is_empty() { ME } else { &chosen.word };
    let options = callers.iter().map(|one| Choice {
        value: one.value.clone(),
        label: Words::new(&one.label),
        is_chosen: one.value == word,
    });
    let callers = Input::Choice { options: options.collect() };
    let (servers, tools) = (chosen.seen.servers(), chosen.seen.tools(&chosen.server));
    let tools: Vec<_> = tools.iter().map(String::as_str).collect();
    vec![
        Field::new("as", "Called as", callers),
        Field::new("server", "Server", one_of(&servers, &chosen.server)),
        Field::new("tool", "Tool", one_of(&tools, &chosen.name)),
    ]
}

/// A choice, or a line of text if there are too many options, or none.
fn one_of(all: &[&str], chosen: &str) -> Input {
    if all.len() > OPTIONS_MAX || all.is_empty() {
        return Input::line(chosen);
    }
    let none = Choice {
        value: String::new(),
        label: Words::new("choose one"),
        is_chosen: !all.contains(&chosen),
    };
    let options = all.iter().map(|one| Choice {
        value: (*one).to_owned(),
        label: Words::within(one, 100),
        is_chosen: *one == chosen,
    });
    Input::Choice { options: std::iter::once(none).chain(options).collect() }
}

fn form(viewer: &Viewer<'_>, chosen: &Chosen, arguments: &Settled, after: &After) -> CallForm {
    let tool = chosen.tool.as_ref();
    let fields = chosen.schema().map(|schema| arguments.fields(schema)).unwrap_or_default();
    let is_cut = fields.len() >= schema::PARTS_MAX;
    let schema = tool.and_then(|tool| tool.schema_text.as_ref());
    let schema = schema.map(|text| indented::indented(text));
    let hints = tool.map(|tool| {
        let all = [(tool.is_destructive, "destructive"), (tool.is_read_only, "reads only")];
        all.into_iter().filter(|(is_said, _)| *is_said).map(|(_, word)| word).collect()
    });
    let scopes = tool.into_iter().flat_map(|tool| &tool.scopes);
    let params = chosen.caller.agent().map(|agent| {
        let label = format!("Parameters of the agent {}", Words::within(agent, 80));
        Field::new("params", &label, Input::area(&after.params, 3))
            .help("JSON, for an agent that needs some. The new run gets them.")
            .fault(after.params_fault.as_deref())
    });
    CallForm {
        tool: Words::new(&chosen.name),
        description: Words::within(tool.map_or("", |tool| &tool.description), DESCRIPTION_MAX),
        hints: hints.unwrap_or_default(),
        scopes: scopes.map(|scope| Words::new(scope)).collect(),
        caller: Words::new(&chosen.caller.words()),
        kept: chosen.kept(arguments),
        fields,
        remark: is_cut
            .then_some("The form has no room for further arguments: write them into the JSON."),
        json: arguments.json(),
        params,
        schema: schema.map(|text| text.chars().take(SCHEMA_MAX).collect()),
        command: chosen.command(&arguments.text).map(|command| command.to_string()),
        request: chosen.request(viewer),
    }
}
