//! The actions of a server's row, by the same functions as the API's.

use http::{StatusCode, header};
use narthex_console::{
    Told, html,
    pages::{
        onward::OnwardPage,
        servers::{ServerTestPage, Stage, Tested, TestedPart},
    },
    parts::{Same, Words},
};
use narthex_control::{Probe, SignInVerbs, StageOutcome};
use narthex_model::{ErrorKind, command::narthex};
use narthex_registry::ServerResult;
use url::Url;

use crate::{
    body::RequestBody,
    console::{
        answer::{self, Answered, nothing},
        frame::{Head, frame},
        rows::{absent, back},
        viewer::Viewer,
    },
    listener::single,
    problem::Problem,
    server_sign_in,
    shapes::CsrfForm,
};

pub(super) async fn disable(viewer: &Viewer<'_>, body: RequestBody) -> Answered {
    let name = named(viewer, body).await?;
    viewer.control().disable(&name, &viewer.by()).await?;
    done(viewer, "disable", &name, &format!("{name} is disabled."), false)
}

pub(super) async fn enable(viewer: &Viewer<'_>, body: RequestBody) -> Answered {
    let name = named(viewer, body).await?;
    let result = viewer.control().enable(&name, &viewer.by()).await?;
    ended(viewer, "enable", &name, &result)
}

pub(super) async fn reconnect(viewer: &Viewer<'_>, body: RequestBody) -> Answered {
    let name = named(viewer, body).await?;
    let result = viewer.control().reconnect(&name).await?;
    ended(viewer, "reconnect", &name, &result)
}

/// Reads the files of the configuration anew.
pub(super) async fn reload(viewer: &Viewer<'_>, body: RequestBody) -> Answered {
    let CsrfForm { csrf: _ } = viewer.form(body).await?;
    if !viewer.sees_servers() {
        return Err(nothing());
    }
    let reloaded = viewer.control().reload().await?;
    match reloaded.files.iter().find_map(|file| file.error.as_ref()) {
        Some(error) => done(viewer, "reload", "", &format!("A file cannot be used: {error}"), true),
        None => {
            let count = reloaded.servers.len();
            done(viewer, "reload", "", &format!("The files have {count} servers."), false)
        }
    }
}

/// Tests a server by a connection of its own, and shows the stages.
pub(super) async fn test(viewer: &Viewer<'_>, body: RequestBody) -> Answered {
    let name = named(viewer, body).await?;
    let probe = viewer.control().probe(&name)?.run(|_stage| {}).await;
    let tested = tested(&probe);
    if viewer.wants_part() {
        return Ok(answer::page(StatusCode::OK, html(&TestedPart { tested })));
    }
    let request = format!("POST /api/servers/{name}/test");
    let head = Head {
        title: Words::new(&format!("Test of {name}")),
        sentence: "The stages of a new connection beside the one in use.",
        same: Some(Same::new(&narthex("mcp test {}", &[&name]).to_string(), &request)),
    };
    let frame = frame(viewer, head).await?;
    let page = ServerTestPage { frame, tested, back: back(viewer, &name)? };
    Ok(answer::page(StatusCode::OK, html(&page)))
}

/// Begins a sign-in, or shows the open one.
pub(super) async fn authorize(viewer: &Viewer<'_>, body: RequestBody) -> Answered {
    let name = named(viewer, body).await?;
    let verbs = SignInVerbs::of(viewer.control());
    let begun = verbs.authorize(&name, binding(viewer), &viewer.by()).await?;
    onward(viewer, &name, begun.url).await
}

/// Signs out, and begins a sign-in.
pub(super) async fn reauthorize(viewer: &Viewer<'_>, body: RequestBody) -> Answered {
    let name = named(viewer, body).await?;
    let verbs = SignInVerbs::of(viewer.control());
    let result = verbs.reauthorize(&name, binding(viewer), &viewer.by()).await?;
    match result.ok_or_else(|| absent(&name))? {
        ServerResult::Authenticating { auth_url, .. } => match Url::parse(&auth_url) {
            Ok(url) => onward(viewer, &name, url).await,
            Err(_no_url) => Err(no_page()),
        },
        result => ended(viewer, "reconnect", &name, &result),
    }
}

/// The server of the path, after the check of the form.
async fn named(viewer: &Viewer<'_>, body: RequestBody) -> Result<String, Problem> {
    let CsrfForm { csrf: _ } = viewer.form(body).await?;
    // Servers of the configuration are absent in all workspaces but one.
    let name = viewer.segment(0);
    if viewer.sees_servers() { Ok(name) } else { Err(absent(&name)) }
}

/// The login session to which a sign-in of this human is bound.
fn binding(viewer: &Viewer<'_>) -> Option<String> {
    let host = single(&viewer.browser.parts.headers, &header::HOST).flatten();
    server_sign_in::binding(viewer.control(), &viewer.signed_in, host)
}

/// The page that leads to the authorization server.
async fn onward(viewer: &Viewer<'_>, name: &str, url: Url) -> Answered {
    if !matches!(url.scheme(), "http" | "https") {
        return Err(no_page());
    }
    let request = format!("POST /api/servers/{name}/authorize");
    let head = Head {
        title: Words::new(&format!("Sign in to {name}")),
        sentence: "The server asks for an account, which this daemon will use.",
        same: Some(Same::new(&narthex("mcp authorize {}", &[&name]).to_string(), &request)),
    };
    let page = OnwardPage {
        frame: frame(viewer, head).await?,
        server: Words::new(name),
        host: Words::new(url.host_str().unwrap_or_default()),
        url: url.to_string(),
        back: back(viewer, name)?,
    };
    Ok(answer::page(StatusCode::OK, html(&page)))
}

fn no_page() -> Problem {
    let text = "the server named no page for its sign-in; see its log";
    Problem::new(ErrorKind::Unavailable, text)
}

/// The answer to an action that has connected a server, or tried to.
fn ended(viewer: &Viewer<'_>, verb: &str, name: &str, result: &ServerResult) -> Answered {
    let (sentence, is_failure) = match result {
        ServerResult::Ready { tool_count: 1, .. } => {
            (format!("{name} is ready, with one tool."), false)
        }
        ServerResult::Ready { tool_count, .. } => {
            (format!("{name} is ready, with {tool_count} tools."), false)
        }
        ServerResult::Authenticating { .. } => {
            (format!("{name} waits for a sign-in: use Authorize in its row."), true)
        }
        ServerResult::Error { error, .. } => (format!("{name} failed: {}", error.message), true),
    };
    done(viewer, verb, name, &sentence, is_failure)
}

fn done(viewer: &Viewer<'_>, verb: &str, name: &str, sentence: &str, is_failure: bool) -> Answered {
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.append_pair("done", verb).append_pair("name", name);
    let back = format!("{}?{}", back(viewer, name)?, query.finish());
    viewer.done(Told { sentence: Words::new(sentence), is_failure }, &back)
}

fn tested(probe: &Probe) -> Tested {
    let stage = |stage: &narthex_control::Stage| {
        let (outcome, is_fine) = match &stage.outcome {
            StageOutcome::Ok { count: None } => ("fine".to_owned(), true),
            StageOutcome::Ok { count: Some(count) } => (format!("{count} listed"), true),
            StageOutcome::Failed { reason } => (reason.clone(), false),
            StageOutcome::Timeout { after_ms } => (format!("no answer in {after_ms} ms"), false),
            StageOutcome::NotSupported => ("the server has none".to_owned(), true),
        };
        Stage {
            name: stage.name.as_str(),
            outcome: Words::new(&outcome),
            is_fine,
            ms: stage.duration_ms,
        }
    };
    Tested {
        server: Words::new(&probe.name),
        is_fine: probe.ok,
        stages: probe.stages.iter().map(stage).collect(),
    }
}
