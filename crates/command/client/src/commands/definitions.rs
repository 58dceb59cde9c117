//! `narthex servers definitions`, `accept` and `reject`: the definitions of servers, and humans'
//! decisions on them.

use std::process::ExitCode;

use crate::cli::{DecideArgs, ServersCommand, SourceArgs, WorkspaceArgs};
use http::Method;
use narthex_model::{CatalogKind, ErrorKind, command::narthex};
use serde_json::{Value, json};

use super::{catalog::object_path, waiting::waiting};
use crate::{
    Context, Failure,
    daemon_client::{ApiRequest, DaemonClient},
    output::{self, harmless},
    table,
};

const COLUMNS: [&str; 7] = ["name", "kind", "state", "why", "digest", "first seen", "last seen"];
/// Number of characters of a digest in outputs for people.
const DIGEST_SHOWN: usize = 12;

pub async fn run(command: ServersCommand, context: Context) -> Result<ExitCode, Failure> {
    match command {
        ServersCommand::Catalog(command) => {
            Box::pin(super::catalog::run(CatalogKind::Server, command, context)).await
        }
        ServersCommand::Definitions { id, quarantined, source, place } => {
            list((&id, source), quarantined, &place, &context).await
        }
        ServersCommand::Accept(args) => decide(&args, "accept", &context).await,
        ServersCommand::Reject(args) => decide(&args, "reject", &context).await,
    }
}

fn path(server: &str, place: &WorkspaceArgs) -> String {
    format!("{}/definitions", object_path(CatalogKind::Server, place, server))
}

/// The source of the server, as the API has it.
fn source(args: SourceArgs) -> &'static str {
    match (args.live, args.catalog) {
        (true, _) => "live",
        (false, true) => "catalog",
        (false, false) => "any",
    }
}

async fn list(
    (server, from): (&str, SourceArgs),
    is_quarantined: bool,
    place: &WorkspaceArgs,
    context: &Context,
) -> Result<ExitCode, Failure> {
    let client = DaemonClient::operator(&context.daemon)?;
    let state = if is_quarantined { "quarantined" } else { "all" };
    let path = format!("{}?state={state}&source={}", path(server, place), source(from));
    let items = waiting("asking the daemon", context, client.api_all(&path)).await?;
    let none = match is_quarantined {
        true => "No definition is under review.",
        false => "This server was never listed, so it has no definitions yet.",
    };
    let code = table::list(&items, &COLUMNS, row, none, context)?;
    if context.format.is_text() {
        let mut waiting = items.iter().filter(|item| item["state"] == "quarantined");
        waiting.try_for_each(|item| output::line(&format!("\n{}", told(item))))?;
        let mut flagged = items.iter().filter_map(flagged);
        flagged.try_for_each(|told| output::line(&format!("\n{told}")))?;
    }
    Ok(code)
}

fn row(item: &Value) -> Vec<String> {
    let text = |member| table::text(item, member);
    vec![
        text("name"),
        text("kind"),
        text("state"),
        text("reason"),
        digest(item),
        text("first_seen"),
        text("last_seen"),
    ]
}

fn digest(item: &Value) -> String {
    table::text(item, "digest").chars().take(DIGEST_SHOWN).collect()
}

/// The warning about a flagged definition that is used although no human has looked at it: where
/// `on_flagged` says `warn`.
fn flagged(item: &Value) -> Option<String> {
    let findings = findings(item);
    (item["state"] == "pinned" && !findings.is_empty()).then(|| {
        let text = |member| table::text(item, member);
        let (name, kind, digest) = (text("name"), text("kind"), digest(item));
        let first = format!(
            "warning: {name} ({kind}, {digest}) has suspicious text, and callers get it because \
             `on_flagged` is `warn`"
        );
        [vec![first], findings].concat().join("\n")
    })
}

/// The findings in a definition, a line for each.
fn findings(item: &Value) -> Vec<String> {
    let line = |finding: &Value| {
        let of = |member| table::text(finding, member);
        format!("  {} at {}: {}", of("rule"), of("place"), of("excerpt"))
    };
    item["findings"].as_array().into_iter().flatten().map(line).collect()
}

/// The text that a human has to read before they decide.
fn told(item: &Value) -> String {
    let text = |member| table::text(item, member);
    let mut lines =
        vec![format!("{} ({}, {}): {}", text("name"), text("kind"), digest(item), text("reason"))];
    if let Some(old) = item["renamed_from"].as_str() {
        lines.push(format!("  its name was {}", harmless(old)));
    }
    if item["like"].is_object() {
        let like = |member| table::text(&item["like"], member);
        lines.push(format!("  its name is like {} of the server {}", like("name"), like("server")));
    }
    lines.extend(findings(item));
    match item["difference"]["changes"].as_array() {
        Some(changes) => {
            for change in changes {
                lines.push(format!("  {}", table::text(change, "place")));
                for (sign, member) in [("-", "old"), ("+", "new")] {
                    let side = change[member].as_str();
                    lines.extend(side.map(|side| format!("  {sign} {}", harmless(side))));
                }
            }
            if let Some(more @ 1..) = item["difference"]["left_out"].as_u64() {
                lines.push(format!("  and {more} more places"));
            }
        }
        None => lines.push(format!("  {}", text("text"))),
    }
    lines.join("\n")
}

async fn decide(args: &DecideArgs, verb: &str, context: &Context) -> Result<ExitCode, Failure> {
    let client = DaemonClient::operator(&context.daemon)?;
    let path = path(&args.server, &args.place);
    let from = source(args.source);
    // A definition that was decided on before is decided on anew only if it is named.
    let state = if args.all { "quarantined" } else { "all" };
    let asked = format!("{path}?state={state}&source={from}");
    let mut items = waiting("asking the daemon", context, client.api_all(&asked)).await?;
    let known = items.clone();
    undecided(&mut items, verb, !args.digests.is_empty());
    let chosen = chosen(args, &items, &known)?;
    if context.format.is_text() {
        chosen.iter().try_for_each(|item| output::line(&told(item)))?;
    }
    let digests: Vec<_> = chosen.iter().map(|item| &item["digest"]).collect();
    let body = json!({ "digests": digests }).to_string();
    let path = format!("{path}/{verb}?source={from}");
    let asked = client.api(ApiRequest::new(Method::POST, path).entry(&body));
    let decided = waiting("deciding", context, asked).await?;
    let text = format!("{verb}ed {} of the server {}", chosen.len(), args.server);
    output::told(&decided, &text, context.format)
}

/// Keeps the definitions that `verb` would change. When a definition is accepted by name, only the
/// one under review is accepted, if there is one; digests can accept others.
fn undecided(items: &mut Vec<Value>, verb: &str, is_by_digest: bool) {
    if verb == "reject" {
        return items.retain(|item| item["state"] != "rejected");
    }
    let waits = |item: &Value| item["state"] == "quarantined";
    let waiting: Vec<_> =
        items.iter().filter(|item| waits(item)).map(|item| item["name"].clone()).collect();
    items.retain(|item| {
        let is_older = !is_by_digest && waiting.contains(&item["name"]);
        waits(item) || item["state"] == "rejected" && !is_older
    });
}

/// The definitions of `items` that the arguments name. If several have one name, the arguments must
/// name a digest. `known` are all definitions, also those that are in the wanted state already.
fn chosen<'i>(
    args: &DecideArgs,
    items: &'i [Value],
    known: &[Value],
) -> Result<Vec<&'i Value>, Failure> {
    let DecideArgs { names, digests, all, .. } = args;
    let is_digest = |item: &Value| {
        let own = item["digest"].as_str().unwrap_or_default();
        digests.iter().any(|digest| !digest.is_empty() && own.starts_with(digest))
    };
    let is_meant = |item: &&Value| {
        let is_named = names.iter().any(|name| item["name"] == name.as_str());
        *all || (is_named || names.is_empty()) && (is_digest(item) || digests.is_empty())
    };
    let chosen: Vec<_> = items.iter().filter(is_meant).collect();
    let missing = |what: &str, text: &str| {
        let is_it = |item: &&Value| match item[what].as_str() {
            Some(own) if what == "digest" => own.starts_with(text),
            own => own == Some(text),
        };
        let why = match known.iter().find(is_it).filter(|_| !text.is_empty()) {
            Some(item) => {
                let state = table::text(item, "state");
                format!("the definition with the {what} `{text}` is {state} already")
            }
            None => format!("there is no definition with the {what} `{text}`"),
        };
        let all = narthex("servers definitions {}", &[&args.server]);
        let text = format!("{why}; `{all}` shows all");
        Failure::new(ErrorKind::NotFound, text)
    };
    for name in names {
        let count = chosen.iter().filter(|item| item["name"] == name.as_str()).count();
        if count == 0 {
            return Err(missing("name", name));
        }
        if count > 1 {
            let text = format!("there are {count} definitions with the name `{name}`; choose one");
            let text = format!("{text} with --digest");
            return Err(Failure::new(ErrorKind::Conflict, text));
        }
    }
    for digest in digests {
        let is_it =
            |item: &&&Value| item["digest"].as_str().is_some_and(|own| own.starts_with(digest));
        if chosen.iter().find(is_it).is_none() {
            return Err(missing("digest", digest));
        }
    }
    match chosen.is_empty() {
        true => Err(Failure::new(ErrorKind::NotFound, "no definition is under review")),
        false => Ok(chosen),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(verb: &str, is_by_digest: bool) -> Vec<String> {
        let item = |(name, state): (&str, &str)| json!({ "name": name, "state": state });
        let all = [
            ("echo", "pinned"),
            ("echo", "rejected"),
            ("echo", "quarantined"),
            ("old", "rejected"),
            ("fine", "accepted"),
        ];
        let mut items = all.map(item).to_vec();
        undecided(&mut items, verb, is_by_digest);
        let text = |item: &Value| format!("{} {}", item["name"], item["state"]).replace('"', "");
        items.iter().map(text).collect()
    }

    /// S23: people see since when a definition is known, and when it was listed last.
    #[test]
    fn s23_a_row_shows_when_a_definition_was_first_and_last_seen() {
        let item = json!({ "name": "echo", "kind": "tool", "state": "rejected", "reason": null,
            "digest": "0123456789abcdef", "first_seen": "then", "last_seen": "now" });
        let row = row(&item);
        assert_eq!(row.len(), COLUMNS.len());
        assert_eq!(row[4..], ["0123456789ab", "then", "now"]);
    }

    /// S22: a flagged definition that is used with a warning is shown with its findings.
    #[test]
    fn s22_a_flagged_definition_in_use_is_shown_with_its_findings() {
        let finding = json!({ "rule": "hidden_text", "place": "/description", "excerpt": "Load" });
        let item = |state: &str, findings: Value| {
            json!({ "name": "echo", "kind": "tool", "digest": "0123456789abcdef", "state": state,
                "findings": findings })
        };
        let told = flagged(&item("pinned", json!([finding]))).unwrap();
        assert!(
            told.starts_with("warning: echo (tool, 0123456789ab) has suspicious text"),
            "{told}"
        );
        assert!(told.ends_with("\n  hidden_text at /description: Load"), "{told}");
        assert_eq!(flagged(&item("pinned", json!([]))), None);
        // Waiting ones are shown with their change, and an accepted one is not shown again.
        for state in ["quarantined", "accepted", "rejected"] {
            assert_eq!(flagged(&item(state, json!([finding]))), None, "{state}");
        }
    }

    /// S23: a rejected definition can be accepted after all; of a name with a waiting one only that
    /// is meant.
    #[test]
    fn s23_a_rejected_definition_can_be_accepted_by_name_or_digest() {
        assert_eq!(left("accept", false), ["echo quarantined", "old rejected"]);
        assert_eq!(left("accept", true), ["echo rejected", "echo quarantined", "old rejected"]);
        assert_eq!(left("reject", false), ["echo pinned", "echo quarantined", "fine accepted"]);
    }

    /// S23: a definition that cannot be decided on is reported with its state, and where all are.
    #[test]
    fn s23_deciding_on_an_already_decided_definition_reports_its_state() {
        let item = |of: [&str; 3]| json!({ "name": of[0], "digest": of[1], "state": of[2] });
        let known = [["echo", "abc1", "accepted"], ["new", "def2", "quarantined"]].map(item);
        let decide = |digests: &[&str], names: &[&str]| {
            let words = names.iter().map(|name| (*name).to_owned());
            let args = DecideArgs {
                server: "docs".to_owned(),
                names: words.collect(),
                digests: digests.iter().map(|digest| (*digest).to_owned()).collect(),
                all: false,
                source: SourceArgs { live: false, catalog: false },
                place: WorkspaceArgs { workspace: "default".to_owned() },
            };
            let mut items = known.to_vec();
            undecided(&mut items, "accept", !digests.is_empty());
            chosen(&args, &items, &known).map(|chosen| chosen.len()).map_err(|f| f.message)
        };
        let all = "`narthex servers definitions docs` shows all";
        let told = decide(&["abc"], &[]).unwrap_err();
        assert_eq!(
            told,
            format!("the definition with the digest `abc` is accepted already; {all}")
        );
        let told = decide(&[], &["echo"]).unwrap_err();
        assert_eq!(told, format!("the definition with the name `echo` is accepted already; {all}"));
        let told = decide(&["fff"], &[]).unwrap_err();
        assert_eq!(told, format!("there is no definition with the digest `fff`; {all}"));
        assert_eq!(decide(&["def"], &[]), Ok(1));
    }
}
