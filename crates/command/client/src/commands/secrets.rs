//! `narthex secrets`: sets, lists and clears secrets through the daemon. No value is ever shown.

use std::process::ExitCode;

use crate::cli::{SecretsCommand, SetArgs, WorkspaceArgs};
use http::Method;
use narthex_model::{SecretName, command::narthex, header};
use serde_json::{Value, json};

pub use super::typed::VALUE_MAX;
use super::{typed, waiting::waiting};
use crate::{
    Context, Failure,
    daemon_client::{ApiRequest, DaemonClient, workspace_path},
    output::{self, counted, harmless},
    table,
};

pub async fn run(command: SecretsCommand, context: Context) -> Result<ExitCode, Failure> {
    match command {
        SecretsCommand::Set(args) => set(&args, &context).await,
        SecretsCommand::List { place } => list(&place, &context).await,
        SecretsCommand::Clear { name, place } => clear(&name, &place, &context).await,
        SecretsCommand::Keys => keys(&context).await,
        SecretsCommand::RotateKey => rotate_key(&context).await,
    }
}

async fn set(args: &SetArgs, context: &Context) -> Result<ExitCode, Failure> {
    if !args.value.is_empty() || args.name.contains('=') {
        return Err(Failure::usage(with_value(args)));
    }
    let name = checked(&args.name)?;
    // Before the user types for nothing.
    let client = DaemonClient::operator(&context.daemon)?;
    let value = typed::secret(name.as_str()).await?;
    let body = json!({ "value": value.expose() }).to_string();
    let path = secret_path(&args.place, &name);
    let asked = client.api(ApiRequest::new(Method::PUT, path).entry(&body));
    let stored = waiting(&format!("storing {name}"), context, asked).await?;
    let verb = if stored["replaced"] == true { "replaced" } else { "set" };
    let version = stored["version"].as_u64().unwrap_or_default();
    if let Some(warning) = stored["warning"].as_str() {
        output::notice(&format!("warning: {warning}"));
    }
    if !header::is_value(value.expose()) {
        output::notice(&format!(
            "warning: the value of {name} has line breaks or characters outside of ASCII: it works \
             as an environment variable of a program, but not as a header"
        ));
    }
    let sentence = format!(
        "{verb} {name}, version {version}; new runs use it, and servers of configuration files at \
         once"
    );
    output::told(&stored, &sentence, context.format)
}

/// The refusal of a value on the command line, with the command that takes one.
fn with_value(args: &SetArgs) -> String {
    let (set, note) = match &surely_named(args) {
        Some(name) => (narthex("secrets set {}", &[name]), ""),
        None => (narthex("secrets set NAME", &[]), ", with the secret's name as NAME,"),
    };
    let set = set.in_workspace(&args.place.workspace);
    format!(
        "nothing was stored; the value is now in the shell's history, and other processes could \
         read it: replace the secret where it was issued, then run `{set}`{note} and type the new \
         value at its prompt, or pipe it to its standard input"
    )
}

/// The name in `NAME=value` or `NAME value`, if it is certain that it is not the value: no other
/// word could be a name, and more than padding follows `=`.
fn surely_named(args: &SetArgs) -> Option<SecretName> {
    let (word, rest) = args.name.split_once('=').unwrap_or((&args.name, ""));
    let is_padded = args.name.contains('=') && rest.trim_end_matches('=').is_empty();
    let others = args.value.iter().map(String::as_str).chain([rest]);
    let is_ambiguous = is_padded || others.into_iter().any(|word| SecretName::new(word).is_ok());
    SecretName::new(word).ok().filter(|_| !is_ambiguous)
}

async fn list(place: &WorkspaceArgs, context: &Context) -> Result<ExitCode, Failure> {
    let client = DaemonClient::operator(&context.daemon)?;
    let path = secrets_path(place);
    let mut secrets = waiting("asking the daemon", context, client.api_all(&path)).await?;
    // The daemon remembers cleared names for the numbers of later versions.
    secrets.retain(|secret| secret["is_set"] == true || users(secret).is_some());
    if context.format.is_json() {
        output::done(&json!({ "items": secrets }))?;
        return Ok(ExitCode::SUCCESS);
    }
    if context.format.is_quiet() {
        for secret in secrets.iter().filter(|secret| secret["is_set"] == true) {
            output::line(text(secret, "name"))?;
        }
    } else {
        let none = table::none_yet("secrets", &narthex("secrets set NAME", &[]));
        let header = ["name", "set", "version", "kept", "updated", "by", "key", "used by"];
        let rows: Vec<_> = secrets.iter().map(row).collect();
        output::line(&table::render(&header, &rows, &none))?;
        for secret in secrets.iter().filter(|secret| secret["is_set"] != true) {
            output::notice(&unset(secret, place));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// A secret without a value that something needs, with the command that sets it.
fn unset(secret: &Value, place: &WorkspaceArgs) -> String {
    let (name, users) = (harmless(text(secret, "name")), users(secret).unwrap_or_default());
    let set = narthex("secrets set {}", &[&name]).in_workspace(&place.workspace);
    format!("{name} is not set, but needed by {users}; set it with `{set}`")
}

fn row(secret: &Value) -> Vec<String> {
    let versions = secret["versions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let newest = versions.last();
    let number = newest.and_then(|one| one["version"].as_u64());
    let key = newest.and_then(|one| one["key"].as_str());
    let or_none = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    vec![
        harmless(text(secret, "name")),
        if secret["is_set"] == true { "yes" } else { "no" }.to_owned(),
        or_none(number.map(|number| number.to_string())),
        versions.len().to_string(),
        harmless(text(secret, "updated_at")),
        harmless(text(secret, "updated_by")),
        or_none(key.map(harmless)),
        or_none(users(secret)),
    ]
}

/// The objects that name a secret, such as `agents.reader`, each once.
fn users(secret: &Value) -> Option<String> {
    let places = secret["used_by"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let mut objects: Vec<_> = places.map(|place| object(place).to_owned()).collect();
    objects.dedup();
    (!objects.is_empty()).then(|| harmless(&objects.join(", ")))
}

/// The first two steps of a place such as `agents.reader.mcpServers.docs.config.key`. Those of
/// files begin behind the file: `mcp.json:servers.docs.env.KEY`, `settings.json:mcp.servers.docs`.
fn object(place: &str) -> &str {
    let file = place.find(".json:").map_or(0, |at| at + ".json:".len());
    let steps = if file > 0 && place[file..].starts_with("mcp.") { 2 } else { 1 };
    let end = place[file..].match_indices('.').nth(steps);
    end.map_or(place, |(end, _)| &place[..file + end])
}

async fn clear(name: &str, place: &WorkspaceArgs, context: &Context) -> Result<ExitCode, Failure> {
    let name = checked(name)?;
    let client = DaemonClient::operator(&context.daemon)?;
    let asked = client.api(ApiRequest::new(Method::DELETE, secret_path(place, &name)));
    let cleared = waiting(&format!("clearing {name}"), context, asked).await?;
    let data = match cleared {
        Value::Null => json!({ "name": name.as_str() }),
        told => told,
    };
    if let Some(warning) = data["warning"].as_str() {
        output::notice(&format!("warning: {warning}"));
    }
    output::told_lines(&data, &cleared_lines(&name, &data), context.format)
}

/// Says that a secret is cleared, who uses it, and which servers of live runs that ended.
fn cleared_lines(name: &SecretName, data: &Value) -> Vec<String> {
    let texts = |value: &Value| {
        let texts = value.as_array().into_iter().flatten().filter_map(Value::as_str);
        texts.map(str::to_owned).collect::<Vec<_>>()
    };
    let mut told = vec![match texts(&data["used_by"]) {
        users if users.is_empty() => format!("cleared {name}"),
        users => format!("cleared {name}, which is used by {}", users.join(", ")),
    }];
    for run in data["runs"].as_array().into_iter().flatten() {
        let (number, agent) = (run["pid"].as_u64().unwrap_or_default(), text(run, "agent_name"));
        let mut line = |what: &str, names: Vec<String>| {
            if !names.is_empty() {
                let plural = if names.len() == 1 { "" } else { "s" };
                let names = names.join(", ");
                told.push(format!("run {number} of {agent}: {what}{plural} {names}"));
            }
        };
        line("ended server", texts(&run["servers"]));
        line("its agent still has the value in variable", texts(&run["agent_env_names"]));
    }
    told
}

async fn keys(context: &Context) -> Result<ExitCode, Failure> {
    let client = DaemonClient::operator(&context.daemon)?;
    let known = waiting("asking the daemon", context, client.api_get("/api/secrets/keys")).await?;
    if context.format.is_json() {
        output::done(&known)?;
        return Ok(ExitCode::SUCCESS);
    }
    let items = known["keys"].as_array().map(Vec::as_slice).unwrap_or_default();
    let row = |key: &Value| {
        let is_current = key["is_current"] == true;
        vec![
            table::text(key, "id"),
            if is_current { "seals" } else { "only opens" }.to_owned(),
            key["values"].as_u64().unwrap_or_default().to_string(),
            table::or_none(key, "made_at"),
        ]
    };
    table::list(items, &["key", "use", "values", "made"], row, "There are no keys.", context)
}

async fn rotate_key(context: &Context) -> Result<ExitCode, Failure> {
    let client = DaemonClient::operator(&context.daemon)?;
    let asked = client.api_post("/api/secrets/rotate-key");
    let rotation = waiting("encrypting all secrets again", context, asked).await?;
    let count = rotation["resealed"].as_u64().unwrap_or_default();
    let values = counted(count, "value");
    let are = if count == 1 { "is" } else { "are" };
    let sentence = format!("{values} {are} sealed again, with the key {}", text(&rotation, "key"));
    let done = output::told(&rotation, &sentence, context.format)?;
    let unused = rotation["unused"].as_array().map_or(0, Vec::len);
    if unused > 0 && !context.format.is_json() {
        output::notice(
            "the older keys are not needed any more: leave only the first key in \
             NARTHEX_MASTER_KEY, and restart the daemon",
        );
    }
    Ok(done)
}

fn checked(name: &str) -> Result<SecretName, Failure> {
    SecretName::new(name).map_err(|error| Failure::usage(error.to_string()))
}

fn secrets_path(place: &WorkspaceArgs) -> String {
    workspace_path(&place.workspace, "/secrets")
}

fn secret_path(place: &WorkspaceArgs, name: &SecretName) -> String {
    format!("{}/{name}", secrets_path(place))
}

fn text<'v>(value: &'v Value, member: &str) -> &'v str {
    value[member].as_str().unwrap_or_default()
}
