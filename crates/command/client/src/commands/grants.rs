//! `narthex grants`: grants to users and agents, and requests of runs, through the daemon.

mod watch;

use std::{collections::BTreeMap, process::ExitCode};

use http::Method;
use narthex_model::command::{CommandLine, narthex};
use serde::Serialize;
use serde_json::{
    Map, Value, json,
    value::{RawValue, to_raw_value},
};

use super::{across, waiting::waiting};
use crate::cli::{CreateGrantArgs, GrantArgs, GrantsCommand, WorkspaceArgs};
use crate::{
    Context, Failure,
    daemon_client::{ApiRequest, DaemonClient, segment, workspace_path},
    output::{self, harmless},
    table,
};

/// Characters of a request's arguments that are in a table.
const ARGUMENTS_SHOWN: usize = 200;

pub async fn run(command: GrantsCommand, context: Context) -> Result<ExitCode, Failure> {
    let client = DaemonClient::operator(&context.daemon)?;
    match command {
        GrantsCommand::List { all, place } => {
            let query = if all { "?include_revoked=true" } else { "" };
            let path = workspace_path(&place.workspace, &format!("/grants{query}"));
            let items = waiting("asking the daemon", &context, client.api_all(&path)).await?;
            let header = ["id", "for", "what", "how long", "counts", "by", "used", "revoked"];
            let none = format!("Nothing is granted in workspace {}.", place.workspace);
            let none = or_elsewhere(
                &client,
                &items,
                (none, narthex("grants list", &[]), "/grants"),
                &place,
            );
            table::list(&items, &header, row, &none.await?, &context)
        }
        GrantsCommand::Show(GrantArgs { id, place }) => {
            let path = workspace_path(&place.workspace, &format!("/grants/{}", segment(&id)));
            let asked = client.api(ApiRequest::new(Method::GET, path));
            let grant = waiting("asking the daemon", &context, asked).await?;
            output::told(&grant, &sentence(&grant), context.format)
        }
        GrantsCommand::Create(args) => create(&client, &args, &context).await,
        GrantsCommand::Revoke(GrantArgs { id, place }) => {
            let path = workspace_path(&place.workspace, &format!("/grants/{}", segment(&id)));
            let asked = client.api(ApiRequest::new(Method::DELETE, path));
            waiting("revoking the grant", &context, asked).await?;
            let text = format!("{} is revoked", harmless(&id));
            output::told(&json!({ "id": id }), &text, context.format)
        }
        GrantsCommand::Pending { watch: true, place } => {
            watch::requests(&client, &place, &context).await
        }
        GrantsCommand::Pending { watch: false, place } => {
            let path = workspace_path(&place.workspace, "/grant-requests");
            let items = waiting("asking the daemon", &context, client.api_all(&path)).await?;
            let header = ["id", "run", "who", "what", "how long", "why", "until", "page"];
            let none = format!("No run of workspace {} waits for a grant.", place.workspace);
            let asked = (none, narthex("grants pending", &[]), "/grant-requests");
            let none = or_elsewhere(&client, &items, asked, &place);
            let listed = table::list(&items, &header, request_row, &none.await?, &context)?;
            warn_of_requests(&items, &context);
            Ok(listed)
        }
        GrantsCommand::Approve { id, scope, once, expires_at, reason, place } => {
            let scope = if once { Some("once") } else { scope.as_deref() };
            let body = said([
                ("scope", scope),
                ("reason", reason.as_deref()),
                ("expires_at", expires_at.as_deref()),
            ]);
            decide(&client, (&id, "approve"), &body, &place, &context).await
        }
        GrantsCommand::Deny { id, reason, place } => {
            let body = said([("reason", reason.as_deref())]);
            decide(&client, (&id, "deny"), &body, &place, &context).await
        }
    }
}

/// Says which requests ask for a scope that does not help. JSON has it itself.
fn warn_of_requests(items: &[Value], context: &Context) {
    if context.format.is_json() || context.format.is_quiet() {
        return;
    }
    for request in items {
        for warning in request["warnings"].as_array().into_iter().flatten() {
            let (id, told) = (table::text(request, "id"), warning.as_str().unwrap_or_default());
            output::notice(&format!("{id}: warning: {}", harmless(told)));
        }
    }
}

/// The text for an empty list, with the other workspaces where the list is not empty.
async fn or_elsewhere(
    client: &DaemonClient,
    items: &[Value],
    (none, command, path): (String, CommandLine, &str),
    place: &WorkspaceArgs,
) -> Result<String, Failure> {
    if !items.is_empty() {
        return Ok(none);
    }
    let has =
        async |workspace: &str| Ok(client.api_all(&workspace_path(workspace, path)).await?.len());
    let others = across::elsewhere(client, &place.workspace, &command, has).await?;
    Ok(if others.is_empty() { none } else { format!("{none} But {others}") })
}

/// An object whose members stay exactly as they were written: the digest of arguments is computed
/// from their text.
type Said<'a> = BTreeMap<&'a str, Box<RawValue>>;

fn texts<'a>(fields: &[(&'a str, Option<&str>)]) -> Said<'a> {
    let said = fields.iter().filter_map(|(name, text)| Some((*name, (*text)?)));
    said.map(|(name, text)| (name, raw(text))).collect()
}

fn raw<T: Serialize + ?Sized>(value: &T) -> Box<RawValue> {
    to_raw_value(value).expect("texts, and what was read, can be written")
}

async fn create(
    client: &DaemonClient,
    args: &CreateGrantArgs,
    context: &Context,
) -> Result<ExitCode, Failure> {
    let CreateGrantArgs { subject, duration, .. } = args;
    let mut details = texts(&[
        ("scope", args.scope.as_deref()),
        ("child_agent_id", args.spawn.as_deref()),
        ("server", args.server.as_deref()),
        ("tool", args.tool.as_deref()),
    ]);
    if let Some(arguments) = &args.arguments {
        let arguments = serde_json::from_str(arguments)
            .map_err(|error| Failure::usage(format!("--arguments is not JSON: {error}")))?;
        details.insert("arguments", arguments);
    }
    let word = match (duration.once, &duration.run, &duration.session) {
        (true, ..) => "once",
        (_, Some(_), _) => "run",
        (_, _, Some(_)) => "session",
        (..) => "persistent",
    };
    let mut body = texts(&[
        ("grant_type", Some(if args.spawn.is_some() { "spawn" } else { "tool_scope" })),
        ("scope", Some(word)),
        ("run_id", duration.run.as_deref()),
        ("session_id", duration.session.as_deref()),
        ("user_subject_id", subject.user.as_deref()),
        ("agent_subject_id", subject.agent.as_deref()),
        ("expires_at", args.expires_at.as_deref()),
        ("reason", args.reason.as_deref()),
    ]);
    body.insert("details", raw(&details));
    let path = workspace_path(&args.place.workspace, "/grants");
    let body = raw(&body);
    let asked = client.api(ApiRequest::new(Method::POST, path).entry(body.get()));
    let made = waiting("granting it", context, asked).await?;
    if context.format.is_quiet() {
        output::line(&table::text(&made, "id"))?;
        return Ok(ExitCode::SUCCESS);
    }
    warn_of(&made, context);
    output::told(&made, &sentence(&made), context.format)
}

async fn decide(
    client: &DaemonClient,
    (id, verb): (&str, &str),
    body: &Value,
    place: &WorkspaceArgs,
    context: &Context,
) -> Result<ExitCode, Failure> {
    let rest = format!("/grant-requests/{}/{verb}", segment(id));
    let path = workspace_path(&place.workspace, &rest);
    let body = body.to_string();
    let asked = client.api(ApiRequest::new(Method::POST, path).entry(&body));
    let decided = waiting("deciding", context, asked).await?;
    warn_of(&decided, context);
    let text = match decided["grant_id"].as_str() {
        Some(grant) => format!("{} is granted as {grant}{}", harmless(id), advisory(&decided)),
        None => format!("{} is refused", harmless(id)),
    };
    output::told(&decided, &text, context.format)
}

/// Prints the warnings of an answer; JSON has them itself.
fn warn_of(answer: &Value, context: &Context) {
    if context.format.is_json() || context.format.is_quiet() {
        return;
    }
    for warning in answer["warnings"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        output::notice(&format!("warning: {}", harmless(warning)));
    }
}

/// An object of the fields that have a value.
fn said<const N: usize>(fields: [(&str, Option<&str>); N]) -> Value {
    let fields =
        fields.into_iter().filter_map(|(name, text)| Some((name.to_owned(), text?.into())));
    fields.collect::<Map<_, _>>().into()
}

fn sentence(grant: &Value) -> String {
    let text = |member| table::text(grant, member);
    let (id, how_long, by) = (text("id"), text("scope"), text("granted_by"));
    let (subject, what) = (subject(grant), what(grant));
    let advisory = advisory(grant);
    let counts = if grant["counts"] == false { "; it has no effect now" } else { "" };
    format!("{id}: {what} for {subject}, {how_long}, by {by}{advisory}{counts}")
}

/// Says of a grant from a terminal that it proves nothing (D15, D28).
fn advisory(grant: &Value) -> String {
    match grant["is_advisory"].as_bool() {
        Some(true) => format!(
            "; advisory: nothing proves that a human granted it. Once a passkey or a sign-in \
             provider exists, only grants of humans who signed in with one count, unless the \
             daemon's setting `grants.require_proof` is off. To make a passkey, {}",
            super::users::first_passkey()
        ),
        _ => String::new(),
    }
}

/// Says if a grant counts, and if something proved that it is a human's.
fn counts(grant: &Value) -> &'static str {
    match (grant["counts"] != false, grant["is_advisory"] == true) {
        (true, false) => "yes",
        (true, true) => "advisory",
        (false, _) => "no",
    }
}

fn subject(grant: &Value) -> String {
    let of = |kind: &str, member: &str| {
        grant[member].as_str().map(|id| format!("{kind} {}", harmless(id)))
    };
    let user = of("user", "user_name");
    user.or_else(|| of("agent", "agent_subject_id")).unwrap_or_default()
}

fn what(grant: &Value) -> String {
    let details = &grant["details"];
    let names = ["scope", "child_agent_id", "server", "tool", "arguments_digest"];
    let texts = names.iter().filter_map(|name| details[*name].as_str());
    let mut texts = texts.map(harmless).collect::<Vec<_>>().join(" ");
    // Only requests of runs have arguments.
    if let Some(arguments) = grant["arguments"].as_str() {
        let shown: String = arguments.chars().take(ARGUMENTS_SHOWN).collect();
        let more =
            if shown.len() < arguments.len() { " … (all: --json, or its page)" } else { "" };
        texts = format!("{texts} with {}{more}", harmless(&shown));
    }
    if grant["grant_type"] == "spawn" { format!("to start runs of {texts}") } else { texts }
}

/// The agent whose call waits, and the user that it acts for.
fn asking(request: &Value) -> String {
    let of = |member: &str| request[member].as_str().map(harmless);
    match (of("agent_subject_id"), of("user_name")) {
        (Some(agent), Some(user)) => format!("{agent} for {user}"),
        (one, other) => one.or(other).unwrap_or_default(),
    }
}

fn row(grant: &Value) -> Vec<String> {
    let text = |member| table::text(grant, member);
    vec![
        text("id"),
        subject(grant),
        what(grant),
        text("scope"),
        counts(grant).to_owned(),
        text("granted_by"),
        text("consumed_at"),
        text("revoked_at"),
    ]
}

fn request_row(request: &Value) -> Vec<String> {
    let text = |member| table::text(request, member);
    vec![
        text("id"),
        text("run_id"),
        asking(request),
        what(request),
        text("scope"),
        text("reason"),
        text("expires_at"),
        text("page"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_used_grant_no_longer_counts_even_if_advisory() {
        for (grant, shown) in [
            (json!({ "counts": false, "is_advisory": true }), "no"),
            (json!({ "counts": false, "is_advisory": false }), "no"),
            (json!({ "counts": true, "is_advisory": true }), "advisory"),
            (json!({ "counts": true, "is_advisory": false }), "yes"),
        ] {
            assert_eq!(counts(&grant), shown, "{grant}");
        }
        let told = advisory(&json!({ "is_advisory": true }));
        assert!(told.contains("`narthex users create NAME`"), "{told}");
        assert!(told.contains("`narthex users link NAME`"), "{told}");
    }

    #[test]
    fn a_grant_request_shows_its_agent_user_and_purpose() {
        let request = json!({ "id": "grq_1", "run_id": "run_1", "agent_subject_id": "lead",
            "user_name": "ada", "grant_type": "spawn", "scope": "once", "reason": "help",
            "details": { "child_agent_id": "helper" }, "expires_at": "later" });
        let row = request_row(&request);
        let shown = ["grq_1", "run_1", "lead for ada", "to start runs of helper"];
        assert_eq!(row[..4], shown);
        let of_nobody = json!({ "user_name": "ada", "grant_type": "tool_scope",
            "details": { "scope": "x.y", "server": "s", "tool": "t" } });
        assert_eq!((&*asking(&of_nobody), &*what(&of_nobody)), ("ada", "x.y s t"));
        let exactly = json!({ "details": { "scope": "x.y" }, "arguments": "{\"a\":1}" });
        assert_eq!(what(&exactly), "x.y with {\"a\":1}");
    }
}
