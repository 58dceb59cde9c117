//! The error of a call that lacks a grant: the missing scopes, and how to ask (X-M55, D15, D28).

use narthex_model::{Alias, CallError, CallErrorKind, ToolScope};
use narthex_policy::Item;
use serde_json::{Value, json};

use crate::{Caller, Lacking, refusal::Refusal, shared::Shared};

/// The longest message, in bytes: in the text for a model the instructions how to ask follow it.
const MESSAGE_MAX: usize = 140;

impl Shared {
    /// The answer to a call that needs a scope that no human has granted (D16). `granted` is the
    /// item's name in grants.
    pub(crate) fn ungranted(
        &self,
        caller: &Caller,
        (server, item, granted): (&str, &Item, &str),
        missing: &[ToolScope],
        has_digest: bool,
    ) -> Refusal {
        let scopes: Vec<_> = missing.iter().map(ToolScope::as_str).collect();
        let is_own = server == Alias::built_in().as_str();
        let offered = is_own.then(|| self.offered_name(&caller.run, item.name())).flatten();
        let (name, granted) = offered.map_or((item.name(), granted), |name| (name, name));
        let ask = self.how_to_ask(caller, server, granted, missing);
        let mut details = json!({ "scopes": scopes, "name": name });
        let mut message = requires(name, &scopes);
        match ask {
            Some(ask) => details["ask"] = ask,
            None => message += ": a human must allow it",
        }
        if !has_digest {
            details["exact_arguments"] = json!(
                "they have a number that programs read differently, so no grant for exact \
                 arguments applies"
            );
        }
        let kind = CallErrorKind::PermissionRequired;
        Refusal::Call(CallError { kind, message, details: Some(details) })
    }

    /// The calls that ask for each of these scopes, by the tool's name at the caller's endpoint.
    /// `None` where the run has no tool for asking, has no principal, or may not ask.
    fn how_to_ask(
        &self,
        caller: &Caller,
        server: &str,
        name: &str,
        missing: &[ToolScope],
    ) -> Option<Value> {
        let tool = self.asking_tool(caller)?;
        let tools = &self.built_in.get()?.tools;
        let call = |scope| {
            let arguments = tools.ask(&caller.run, &Lacking { scope, server, name })?;
            Some(json!({ "name": tool, "arguments": arguments }))
        };
        let calls: Vec<_> = missing.iter().map(call).collect::<Option<_>>()?;
        Some(json!({ "server": Alias::built_in().as_str(), "calls": calls }))
    }
}

/// The text with the required scopes: as many names as fit.
fn requires(name: &str, scopes: &[&str]) -> String {
    let all = format!("`{name}` requires `{}`", scopes.join("` and `"));
    if all.len() <= MESSAGE_MAX {
        return all;
    }
    let of_scopes = format!("this requires `{}`", scopes.join("` and `"));
    match of_scopes.len() <= MESSAGE_MAX {
        true => of_scopes,
        false => format!("this requires {} tool scopes", scopes.len()),
    }
}
