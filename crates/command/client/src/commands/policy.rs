//! `narthex policy`: the rules of a workspace, through the daemon.

use std::{collections::BTreeSet, process::ExitCode};

use http::Method;
use narthex_model::command::narthex;
use serde_json::{Map, Value, json};

use super::waiting::waiting;
use crate::{
    Context, Failure,
    cli::{CheckPolicyArgs, SetPolicyArgs, WorkspaceArgs},
    daemon_client::{ApiRequest, DaemonClient, workspace_path},
    documents::text_of,
    output::{self, harmless},
    table,
};

/// Stores the rules of a file.
///
/// # Errors
/// When the file cannot be read, no daemon answers, or it refuses the rules.
pub async fn set(args: &SetPolicyArgs, context: &Context) -> Result<ExitCode, Failure> {
    let rules = json!({ "rules": text_of(&args.file)? });
    change(Method::PUT, &args.place, &rules, context).await
}

/// Removes all rules.
///
/// # Errors
/// When no daemon answers, or it refuses.
pub async fn clear(place: &WorkspaceArgs, context: &Context) -> Result<ExitCode, Failure> {
    change(Method::DELETE, place, &json!({}), context).await
}

async fn change(
    method: Method,
    place: &WorkspaceArgs,
    body: &Value,
    context: &Context,
) -> Result<ExitCode, Failure> {
    let client = DaemonClient::operator(&context.daemon)?;
    let request = ApiRequest::new(method, policy_path(place)).entry(&body.to_string());
    let rules = waiting("changing the rules", context, client.api(request)).await?;
    warn(&rules, context);
    output::told(&rules, &counted(&rules), context.format)
}

/// Prints the rules.
///
/// # Errors
/// When no daemon answers, or it refuses.
pub async fn show(place: &WorkspaceArgs, context: &Context) -> Result<ExitCode, Failure> {
    let client = DaemonClient::operator(&context.daemon)?;
    let asked = client.api_get(policy_path(place));
    let rules = waiting("asking the daemon", context, asked).await?;
    if context.format.is_json() {
        output::done(&rules)?;
        return Ok(ExitCode::SUCCESS);
    }
    warn_of_faults(&rules, place);
    let text = rules["rules"].as_str().unwrap_or_default();
    if text.trim().is_empty() {
        // Standard output is the rules, which a program may read.
        if !context.format.is_quiet() {
            output::notice(&table::none_yet("rules", &narthex("policy set --file FILE", &[])));
        }
        return Ok(ExitCode::SUCCESS);
    }
    let lines: Vec<_> = text.trim_end().split('\n').map(harmless).collect();
    output::line(&lines.join("\n"))?;
    Ok(ExitCode::SUCCESS)
}

/// Names on standard error why stored rules cannot be read, and the commands that mend them.
fn warn_of_faults(rules: &Value, place: &WorkspaceArgs) {
    let faults = rules["faults"].as_array().map(Vec::as_slice).unwrap_or_default();
    let faults = faults.iter().map(|fault| {
        let text = |name: &str| fault[name].as_str().unwrap_or_default();
        let line = fault["line"].as_u64().map(|line| format!("line {line}: ")).unwrap_or_default();
        harmless(&format!("warning: {line}{}; {}", text("message"), text("remedy")))
    });
    let faults: Vec<_> = faults.collect();
    if faults.is_empty() {
        return;
    }
    let [check, set] = ["policy check --file FILE", "policy set --file FILE"]
        .map(|template| narthex(template, &[]).in_workspace(&place.workspace));
    output::notice("warning: the rules cannot be read, so all calls of the workspace are refused");
    faults.iter().for_each(|fault| output::notice(fault));
    output::notice(&format!("Correct the text in a file, try `{check}`, then run `{set}`."));
}

/// Asks the rules about one call.
///
/// # Errors
/// When an argument is no JSON object, a file cannot be read, no daemon answers, or it refuses.
pub async fn check(args: &CheckPolicyArgs, context: &Context) -> Result<ExitCode, Failure> {
    let entry = question(args)?;
    let client = DaemonClient::operator(&context.daemon)?;
    let request = ApiRequest::new(Method::POST, format!("{}/check", policy_path(&args.place)));
    let asked = waiting("asking the daemon", context, client.api(request.entry(&entry))).await;
    let checked = asked.map_err(in_flags)?;
    warn(&checked, context);
    output::told(&checked, &harmless(&sentence(&checked)), context.format)
}

/// A refusal with the flags of the command line in place of the API's fields.
fn in_flags(failure: Failure) -> Failure {
    let fields = failure.details.as_ref().and_then(|details| details["errors"].as_array());
    let fields = fields.into_iter().flatten().filter_map(|error| error["field"].as_str());
    let fields: BTreeSet<_> = fields.map(str::to_owned).collect();
    let flag = |field: &str| match field {
        "rules" => "--file".to_owned(),
        other => format!("--{}", other.replace('_', "-")),
    };
    fields.iter().fold(failure, |failure, field| {
        failure.with_flag(&format!("`{field}`: "), &format!("{}: ", flag(field)))
    })
}

/// Names that nothing has. JSON has them itself.
fn warn(answer: &Value, context: &Context) {
    if !context.format.is_json() {
        for told in answer["warnings"].as_array().into_iter().flatten() {
            output::notice(&format!("warning: {}", told.as_str().unwrap_or_default()));
        }
    }
}

/// The call that is asked about.
fn question(args: &CheckPolicyArgs) -> Result<String, Failure> {
    let rules = args.file.as_deref().map(text_of).transpose()?;
    let said = [
        ("agent", &args.agent),
        ("agent_type", &args.agent_type),
        ("server", &args.server),
        ("alias", &args.alias),
        ("tool", &args.tool),
        ("prompt", &args.prompt),
        ("resource", &args.resource),
        ("method", &args.method),
        ("origin", &args.origin),
        ("user", &args.user),
        ("endpoint", &args.endpoint),
        ("era", &args.era),
        ("at", &args.at),
        ("rules", &rules),
    ];
    let said = said.into_iter().filter_map(|(name, value)| Some((name, value.as_ref()?)));
    let mut question: Map<_, _> =
        said.map(|(name, value)| (name.to_owned(), Value::from(value.as_str()))).collect();
    if args.child {
        question.insert("is_child".to_owned(), true.into());
    }
    let mut entry = Value::Object(question).to_string();
    for (name, flag) in [("arguments", &args.arguments), ("annotations", &args.annotations)] {
        let Some(text) = flag else { continue };
        if let Err(error) = serde_json::from_str::<Map<String, Value>>(text) {
            return Err(Failure::usage(format!("--{name} is not a JSON object: {error}")));
        }
        // The arguments stay exactly as they were written: rules may see a difference.
        entry = format!("{{\"{name}\":{text},{}", &entry[1..]);
    }
    Ok(entry)
}

/// The answer of rules, in words.
fn sentence(checked: &Value) -> String {
    let text = |name: &str| checked[name].as_str().unwrap_or_default();
    let names = |name: &str| {
        let names = checked[name].as_array().into_iter().flatten().filter_map(Value::as_str);
        names.collect::<Vec<_>>().join(", ")
    };
    let (rule, reason, matched) = (text("rule"), text("reason"), names("matched"));
    match text("decision") {
        "forbidden" => format!("forbidden by the rule {rule}: {reason} (matching: {matched})"),
        "approval_required" => format!("requires {} (matching: {matched})", names("scopes")),
        _ => "no rule forbids it or requires a grant".to_owned(),
    }
}

/// The number of the rules of an answer, in words.
#[must_use]
pub fn counted(rules: &Value) -> String {
    match rules["ids"].as_array().map_or(0, Vec::len) {
        1 => "there is 1 rule".to_owned(),
        count => format!("there are {count} rules"),
    }
}

fn policy_path(place: &WorkspaceArgs) -> String {
    workspace_path(&place.workspace, "/policy")
}
