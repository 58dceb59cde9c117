//! Tools with which a run asks humans for permissions that it lacks (D15). No tool here grants
//! anything.

mod named;

use narthex_control::{Control, GrantRequestRow, GrantRequestStatus, GrantRequested, RequestOf};
use narthex_gateway::{BuiltInResult, Lacking, RunView, ToPage};
use narthex_model::{
    CallError, CallErrorKind, ErrorKind, GrantId, GrantOf, Timestamp, ToolScope, ToolScopeGrant,
};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{REQUEST_ID, object};
use crate::{Called, Effect, Tool, called::coded, failed, invalid, said};

pub(super) fn tools() -> Vec<Tool> {
    vec![request_grant(), request_permission()]
}

/// The name of the tool with which runs ask.
pub(crate) const ASKING: &str = "request_grant";
/// The maximum length of a request id that the platform generates. Agents may use longer ids.
const MADE_UP_MAX: usize = 100;

/// Arguments of [`ASKING`] that request the scope which a call lacks. Equal requests always have
/// the same id. `None` if the workspace forbids runs to ask, or the run acts for no agent and no
/// user.
pub(crate) fn ask(control: &Control, run: &RunView, lacking: &Lacking<'_>) -> Option<Value> {
    if !may_ask(control, run) {
        return None;
    }
    let Lacking { scope, server, name } = *lacking;
    let mut details = json!({ "scope": scope.as_str(), "server": server });
    let mut id = format!("{scope}@{server}");
    if !name.is_empty() {
        details["tool"] = json!(name);
        id = format!("{id}/{name}");
    }
    Some(json!({
        "request_id": request_id(&id),
        "grant_type": "tool_scope",
        "details": details,
        "scope": "once",
        "justification": format!("`{name}` of the server `{server}` requires `{scope}`"),
    }))
}

/// Arguments of [`ASKING`] that request a grant to start an agent. `None` as for [`ask`].
pub(super) fn ask_to_spawn(control: &Control, run: &RunView, agent: &str) -> Option<Value> {
    may_ask(control, run).then(|| {
        json!({
            "request_id": request_id(&format!("spawn:{agent}")),
            "grant_type": "spawn",
            "details": { "child_agent_id": agent },
            "scope": "once",
            "justification": format!("this run wants to start the agent `{agent}`"),
        })
    })
}

/// True if the workspace allows runs to ask, and the run acts for an agent or a user.
fn may_ask(control: &Control, run: &RunView) -> bool {
    let actors = run.authority.actors();
    let lets_ask = control.workspace(&run.workspace).is_ok_and(|one| one.settings.runtime_requests);
    lets_ask && (actors.agent.is_some() || actors.user.is_some())
}

/// Turns a name into a request id. Different names give different ids, even if they are too long
/// for an id.
fn request_id(name: &str) -> String {
    if name.len() <= MADE_UP_MAX && name.bytes().all(|byte| byte.is_ascii_graphic()) {
        return name.to_owned();
    }
    // FNV-1a distinguishes names well enough, and an attacker gains nothing from a collision.
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let begin = name.chars().filter(char::is_ascii_graphic).take(MADE_UP_MAX - 17);
    format!("{}~{hash:016x}", begin.collect::<String>())
}

fn request_grant() -> Tool {
    Tool {
        title: "Ask for a grant",
        description: "Asks a human to allow what was refused with `permission_required`, or to \
                      start an agent (`spawn`). Returns at once; the decision comes as a message \
                      with this request_id. If it is granted, make the same call again; else go \
                      on without it.",
        schema: object(
            json!({
                "request_id": {"type": "string", "pattern": REQUEST_ID},
                "grant_type": {"type": "string", "enum": GrantOf::WORDS},
                "details": {"type": "object", "description":
                    "tool_scope: `scope`; to ask for less also `server`, `tool`, `arguments`. \
                     spawn: `child_agent_id`."},
                "scope": {"type": "string", "enum": ["once", "run", "session", "persistent"],
                    "description": "For how long. Ask for no more than you need."},
                "justification": {"type": "string", "minLength": 1, "maxLength": 2000,
                    "description": "Why, for the human."},
            }),
            &["request_id", "grant_type", "details", "scope", "justification"],
        ),
        ..Tool::new(ASKING, Effect::Settles, |called| Box::pin(grant(called)))
    }
}

async fn grant(called: Called<'_>) -> Result<BuiltInResult, CallError> {
    let mut asked = RequestOf::read(&called.text).map_err(|error| failed(&error.into()))?;
    named::by_id(called.platform.runs.gateway(), called.run, &mut asked.of);
    let control = &called.platform.control;
    let of = control.grant_of_models(&called.run.workspace, asked.of);
    asked.of = of.map_err(|error| failed(&error))?;
    if let Some(row) = asked_before(&called, &asked).await? {
        return Ok(standing(&called, &row));
    }
    let is_other = control.grant_request_is_other(called.run, &asked).await;
    if is_other.map_err(|error| failed(&error))? {
        let id = &asked.asked_as;
        let text =
            format!("something else was asked for under the request_id `{id}`; choose another id");
        return Err(coded(CallErrorKind::InvalidArguments, "request_id_conflict", text));
    }
    let mut absent = named::absent(called.platform.runs.gateway(), called.run, &asked.of);
    // Only a request without a server is checked for a misspelt scope. A request with a server
    // probably copies a refusal, whose scope may be one that only a rule requires.
    if let GrantOf::ToolScope(of @ ToolScopeGrant { server: None, .. }) = &asked.of {
        let misspelt = misspelt(&called, &of.scope);
        absent.extend(misspelt.map(|told| ("details.scope".to_owned(), told)));
    }
    if !absent.is_empty() {
        return Err(invalid(absent));
    }
    let wanted = asked.asked_as.clone();
    let row = asked_for(&called, asked).await?.row;
    let mut result = standing(&called, &row);
    if row.asked_as != wanted {
        result.text.push_str("; the same was asked before, under that request_id");
    }
    result.to_page = to_page(&called, &row);
    Ok(result)
}

/// The error text for a scope that nothing visible to the run requires, with the scope that was
/// probably meant. It ignores the rules of the workspace, since it would reveal them to a model.
fn misspelt(called: &Called<'_>, scope: &ToolScope) -> Option<String> {
    let meant = named::meant(called.platform.runs.gateway(), called.run, scope)?;
    Some(format!("nothing that this run has requires `{scope}`; did you mean `{meant}`?"))
}

/// Finds an earlier request of the run. It may be the request of this same call, from before its
/// client led the user to the page. The id then comes from the client and is accepted only for an
/// equal request of this run. Otherwise it is a request under the same name, whose decision still
/// matters.
async fn asked_before(
    called: &Called<'_>,
    asked: &RequestOf,
) -> Result<Option<GrantRequestRow>, CallError> {
    let control = &called.platform.control;
    let Some(id) = called.asked.as_deref() else {
        let found = control.grant_request_decided(called.run, asked).await;
        return found.map_err(|error| failed(&error));
    };
    match control.grant_request(&called.run.workspace, id).await {
        Ok(row) => Ok(Some(row).filter(|row| row.run == called.run.id && row.of == asked.of)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed(&error)),
    }
}

/// The status of a request, in words and for programs.
fn standing(called: &Called<'_>, row: &GrantRequestRow) -> BuiltInResult {
    let id = &row.asked_as;
    let is_pending = row.status == GrantRequestStatus::Pending;
    let page = called.platform.control.grant_request_page(&row.workspace, &row.id.to_text());
    let page = page.filter(|_| is_pending);
    let text = match row.status {
        GrantRequestStatus::Pending => format!(
            "asked; nothing is granted yet. A human decides{}, and the decision comes as a message \
             with the request_id `{id}`",
            page.as_ref().map(|page| format!(" on {page}")).unwrap_or_default()
        ),
        GrantRequestStatus::Approved => "granted; make the call again".to_owned(),
        GrantRequestStatus::Denied => "a human has denied it; continue without it".to_owned(),
        GrantRequestStatus::Expired => "no human decided in time; continue without it".to_owned(),
    };
    let answer = json!({
        "ok": true,
        "status": row.status.as_str(),
        "request_id": id,
        "grant_request_id": row.id.to_text(),
        "grant_id": row.grant.map(GrantId::to_text),
        "expires_at": Timestamp::new(row.expires_at).to_string(),
        "page": page,
    });
    said(text, answer)
}

/// The page on which a human decides, if the client can lead its user there.
fn to_page(called: &Called<'_>, row: &GrantRequestRow) -> Option<ToPage> {
    let control = &called.platform.control;
    if !called.leads_to_pages || row.status != GrantRequestStatus::Pending {
        return None;
    }
    let url = control.grant_request_page(&row.workspace, &row.id.to_text())?;
    let who = row.agent.as_ref().map_or("An agent", |agent| agent.as_str());
    let message = format!("{who} asks for a permission. Decide about it on this page.");
    let (control, row) = (control.clone(), row.clone());
    let id = row.id.to_text();
    let done = Box::pin(async move { control.grant_request_settled(&row).await });
    Some(ToPage { id, url, message, done })
}

/// Creates the request. Followers of the session receive one event.
async fn asked_for(called: &Called<'_>, asked: RequestOf) -> Result<GrantRequested, CallError> {
    // No request is created if no session would receive the decision.
    called.can_be_told().await?;
    let control = &called.platform.control;
    control.request_grant(called.run, asked).await.map_err(|error| failed(&error))
}

fn request_permission() -> Tool {
    Tool {
        title: "Ask for tool scopes",
        description: "Asks a human for several tool scopes at once, for this session. Returns at \
                      once; the decisions come as messages.",
        schema: object(
            json!({
                "scopes": {"type": "array", "minItems": 1, "maxItems": 20, "uniqueItems": true,
                    "items": {"type": "string", "maxLength": 200},
                    "description": "Such as linear.write."},
                "justification": {"type": "string", "minLength": 1, "maxLength": 2000},
                "requested_tool": {"type": "string", "maxLength": 200},
                "requested_args": {"type": "object"},
            }),
            &["scopes", "justification"],
        ),
        ..Tool::new("request_permission", Effect::Settles, |called| Box::pin(permission(called)))
    }
}

#[derive(Deserialize)]
struct Permission {
    scopes: Vec<String>,
    justification: String,
    #[serde(default)]
    requested_tool: Option<String>,
    #[serde(default)]
    requested_args: Option<Map<String, Value>>,
}

async fn permission(mut called: Called<'_>) -> Result<BuiltInResult, CallError> {
    let asked: Permission = called.arguments()?;
    let scopes = read_scopes(&asked.scopes)?;
    let reason = match (&asked.requested_tool, &asked.requested_args) {
        (Some(tool), Some(arguments)) => {
            let arguments = Value::Object(arguments.clone());
            format!("{} (to call `{tool}` with {arguments})", asked.justification)
        }
        (Some(tool), None) => format!("{} (to call `{tool}`)", asked.justification),
        (None, _) => asked.justification,
    };
    let mut faults = Vec::new();
    for (index, scope) in scopes.iter().enumerate() {
        let told = misspelt(&called, scope);
        faults.extend(told.map(|told| (format!("scopes.{index}"), told)));
    }
    if !faults.is_empty() {
        return Err(invalid(faults));
    }
    let of = |scope: &ToolScope| {
        let (scope, server) = (scope.clone(), None);
        GrantOf::ToolScope(ToolScopeGrant { scope, server, tool: None, arguments: None })
    };
    let all: Vec<_> = scopes.iter().map(of).collect();
    let fits = called.platform.control.grant_requests_fit(called.run, &all).await;
    fits.map_err(|error| failed(&error))?;
    let mut requests = Vec::new();
    for (scope, of) in scopes.iter().zip(all) {
        let (asked_as, reason) = (format!("permission-{scope}"), reason.clone());
        let (arguments, duration) = (String::new(), "session");
        let asked = RequestOf { asked_as, of, arguments, duration, reason };
        let done = asked_for(&called, asked).await?;
        requests.push(json!({
            "details": done.row.of.details(),
            "request_id": done.row.asked_as,
            "grant_request_id": done.row.id.to_text(),
        }));
    }
    let text = "asked; end your turn now, and the decisions come as messages";
    Ok(said(text, json!({"ok": true, "status": "pending", "requests": requests})))
}

fn read_scopes(texts: &[String]) -> Result<Vec<ToolScope>, CallError> {
    let mut faults = Vec::new();
    let mut scopes = Vec::new();
    for (index, text) in texts.iter().enumerate() {
        match ToolScope::new(text) {
            Ok(scope) => scopes.push(scope),
            Err(error) => faults.push((format!("scopes.{index}"), error.to_string())),
        }
    }
    if faults.is_empty() { Ok(scopes) } else { Err(invalid(faults)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// D15, X-M55: generated ids differ for different requests, even if the requests are very long.
    #[test]
    fn d15_generated_request_ids_differ_for_different_requests() {
        assert_eq!(request_id("demo.write@demo/echo"), "demo.write@demo/echo");
        let long = |end: &str| request_id(&format!("demo.write@demo/{}{end}", "x".repeat(100)));
        assert_ne!(long("a"), long("b"));
        assert_ne!(request_id("a@b/\u{e9}"), request_id("a@b/\u{e8}"));
        for id in [long("a"), request_id("a@b/\u{e9} \n")] {
            assert!(
                id.len() <= MADE_UP_MAX && id.bytes().all(|one| one.is_ascii_graphic()),
                "{id}"
            );
        }
    }
}
