//! What a call is told that lacks a grant: what it lacks, and how to ask for it (X-M55, D15).

use narthex_model::{Alias, CallError, CallErrorKind, GrantSubject, ToolScope};
use narthex_policy::Item;
use serde_json::{Value, json};

use crate::{Caller, Granters, Lacking, gateway::Shared, refusal::Refusal};

/// What is said where the operator's token grants nothing (`grants.require_proof`).
const PROVED: &str = "they sign in with a passkey or at a provider, and decide at the page of the \
                      request, or grant it over the API";

impl Shared {
    /// The answer to a call that requires what nobody has granted (D16).
    pub(crate) fn ungranted(
        &self,
        caller: &Caller,
        (server, item, granted): (&str, &Item, &str),
        missing: &[ToolScope],
        has_digest: bool,
    ) -> Refusal {
        let scopes: Vec<_> = missing.iter().map(ToolScope::as_str).collect();
        let (named, name) = (scopes.join("` and `"), item.name());
        let (how, ask) = self.how_to_ask(caller, server, granted, missing);
        let mut message = format!("`{name}` requires `{named}`, which nobody has granted; {how}");
        if !has_digest {
            message += ". Its arguments have a number that not all programs read alike, so that no \
                        grant for exact arguments counts";
        }
        let details = Some(json!({ "scopes": scopes, "name": name, "ask": ask }));
        Refusal::Call(CallError { kind: CallErrorKind::PermissionRequired, message, details })
    }

    /// How to ask for each of these scopes, in words and for programs: the calls that do so, by the
    /// name that the tool has at the caller's endpoint. Where there is no such tool, or the
    /// workspace lets no runs ask, what a human does.
    fn how_to_ask(
        &self,
        caller: &Caller,
        server: &str,
        name: &str,
        missing: &[ToolScope],
    ) -> (String, Value) {
        let tool = self.asking_tool(caller);
        let arguments = |scope| {
            let tools = &self.built_in.get()?.tools;
            tools.ask(&caller.run, &Lacking { scope, server, name })
        };
        let calls: Option<Vec<_>> = missing.iter().map(arguments).collect();
        let commands: Vec<_> =
            missing.iter().filter_map(|scope| command(caller, server, name, scope)).collect();
        let typed = commands.join("` and `");
        let granters = self.ledger.get().map_or(Granters::Nobody, |ledger| ledger.granters());
        if let (Some(tool), Some(calls)) = (tool, calls) {
            let where_to = match granters {
                Granters::Proved => PROVED.to_owned(),
                Granters::Humans | Granters::Nobody => format!(
                    "`narthex grants pending` shows them what was asked, and `{typed}` grants it \
                     unasked"
                ),
            };
            let how = format!(
                "ask for it with `{tool}`, as `details.ask` says, and make the same call again \
                 once a human has granted it: {where_to}"
            );
            let call = |arguments| json!({ "name": tool, "arguments": arguments });
            let calls: Vec<_> = calls.into_iter().map(call).collect();
            return (how, json!({ "server": Alias::built_in().as_str(), "calls": calls }));
        }
        if commands.is_empty() {
            let how = "the run acts for nobody now, so nothing can be granted for it: a human has \
                       to speak to its session first";
            return (how.to_owned(), json!({ "commands": commands }));
        }
        let path = format!("POST /api/workspaces/{}/grants", caller.run.workspace);
        match granters {
            Granters::Nobody => {
                let how = "nothing can be granted where no daemon keeps it: start one with \
                           `narthex up` and make the call there, without `--config`";
                return (how.to_owned(), json!({ "commands": [] }));
            }
            Granters::Proved => {
                let how = format!("nobody can be asked from here: {PROVED}");
                return (how, json!({ "commands": [], "api": path }));
            }
            Granters::Humans => {}
        }
        let how = format!(
            "nobody can be asked from here; a human grants it with `{typed}`, and then the same \
             call succeeds"
        );
        (how, json!({ "commands": commands, "api": path }))
    }
}

/// What grants a scope for one call, to be typed by a human. `None` where the run acts for nobody.
fn command(caller: &Caller, server: &str, name: &str, scope: &ToolScope) -> Option<String> {
    let (run, actors) = (&caller.run, caller.run.authority.actors());
    let subject = match (&actors.agent, &actors.user) {
        (Some(agent), _) => GrantSubject::Agent(agent.clone()),
        (None, user) => GrantSubject::User(user.clone()?),
    };
    let mut command = format!("narthex grants create {scope}");
    match subject {
        GrantSubject::Agent(agent) => command += &format!(" --agent {agent}"),
        GrantSubject::User(user) => command += &format!(" --user {user}"),
    }
    command += &format!(" --server {server}");
    if !name.is_empty() && !name.chars().any(char::is_control) {
        // What a server calls a tool is none of a shell's business.
        command += &format!(" --tool '{}'", name.replace('\'', "'\\''"));
    }
    Some(format!("{command} --once --workspace {}", run.workspace))
}
