//! Measures the cost of one decision: `decision_bench [DECISIONS]` prints one line of JSON.
//!
//! Each is a whole decision of policy on an allowed call, in a workspace with ten thousand grants.
//! The workspace has no rules, or a hundred of which none or one matches.

#![expect(clippy::print_stdout, reason = "printing is its purpose")]

use std::{error::Error, fmt::Write, hint::black_box, sync::Arc, time::SystemTime};

use narthex_cedar::RuleSet;
use narthex_model::{
    AgentName, Alias, EVERYTHING, Gates, Grant, GrantDuration, GrantId, GrantOf, GrantSubject,
    NO_GATES, ToolScope, ToolScopeGrant,
};
use narthex_policy::{
    Actors, Attempt, Authority, Item, Request, RunPolicy, ServerRules, WorkspaceRules,
};
use narthex_wire::{Limits, Message};

type Outcome<T> = Result<T, Box<dyn Error>>;

const GRANTS: u64 = 10_000;
const RULES: usize = 100;
/// Number of measurements of each case; the median counts.
const ROUNDS: usize = 9;

fn main() -> Outcome<()> {
    let decisions = std::env::args().nth(1).map_or(Ok(2_000), |text| text.parse::<u32>())?;
    let plain =
        |at: usize| format!("resource.name == \"other_{at}\" && principal.name == \"writer\"");
    let asking = |at: usize| {
        format!("context.arguments has path && context.arguments.path like \"/etc/{at}/*\"")
    };
    let named = |at: usize| format!("resource.name == \"other_{at}\"");
    // The tool scope that the rule requires is granted.
    let last = format!("forbid(principal, action, resource ) when {{ {} }};", plain(RULES - 1));
    let matching = format!("@approval(\"files.write7\") {}", last.replace("other_99", "write"));
    let cases = [
        ("nothing is gated, no rules", false, String::new()),
        ("a gated tool, no rules", true, String::new()),
        ("100 rules about servers of their own", true, rules("in Server::\"s{}\"", named)),
        ("100 rules about names and agents", true, rules("", plain)),
        ("100 rules about an argument", true, rules("", asking)),
        ("100 rules, one of which matches", true, rules("", plain).replacen(&last, &matching, 1)),
    ];
    let mut measured = Vec::new();
    for (name, is_gated, text) in cases {
        let ns = measure(is_gated, &text, decisions)?;
        let rules = RuleSet::compile(&text)?.len();
        measured.push(format!(
            r#"{{"name":"{name}","grants":{GRANTS},"rules":{rules},"decision_ns":{ns:.0}}}"#
        ));
    }
    println!("[{}]", measured.join(","));
    Ok(())
}

/// The measured number of rules; `resource` follows the word `resource` at the head, with its
/// number.
fn rules(resource: &str, condition: impl Fn(usize) -> String) -> String {
    let mut text = String::new();
    for at in 0..RULES {
        let (resource, condition) = (resource.replace("{}", &at.to_string()), condition(at));
        let rule =
            format!("forbid(principal, action, resource {resource}) when {{ {condition} }};");
        // A text takes whatever is written.
        let _written = writeln!(text, "{rule}");
    }
    text
}

fn request() -> Outcome<Request> {
    let text = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"write",
        "arguments":{"path":"/home/a/notes.txt","text":"hello","mode":384}}}"#;
    let message = Message::parse(text.into(), &Limits::default())?;
    Ok(Request::new(Alias::new("files")?, message, Item::Tool("write".into())))
}

/// Median duration of a decision in nanoseconds.
fn measure(is_gated: bool, rules: &str, decisions: u32) -> Outcome<f64> {
    let agent = AgentName::new("writer").ok();
    let actors = Actors { agent: agent.clone(), ..Actors::default() };
    let authority = Authority::new(actors, Arc::default(), Arc::default());
    for number in 0..GRANTS {
        authority.grants.add(grant(number)?);
    }
    set(&authority.rules, rules)?;
    let scopes = [ToolScope::new("files.write7")?].into();
    let gated = Gates::new([("write".to_owned(), scopes)].into(), &[].into(), [].into());
    let gates = if is_gated { &gated } else { &NO_GATES };
    let server = ServerRules { exposed: &EVERYTHING, gates, id: None };
    let request = request()?;
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        let since = SystemTime::now();
        for _ in 0..decisions {
            let attempt = Attempt::first(SystemTime::now);
            let asked = black_box(request.clone());
            let verdict = RunPolicy::AllAttached.authorize(asked, server, &authority, attempt);
            drop(black_box(verdict?));
        }
        rounds.push(since.elapsed()?.as_secs_f64() * 1e9 / f64::from(decisions));
    }
    rounds.sort_by(f64::total_cmp);
    Ok(rounds[ROUNDS / 2])
}

fn set(rules: &WorkspaceRules, text: &str) -> Outcome<()> {
    let set = RuleSet::compile(text)?;
    if !set.is_empty() {
        rules.set(Some(Box::new(set)));
    }
    Ok(())
}

/// A grant: one of a hundred agents with a hundred scopes each.
fn grant(number: u64) -> Outcome<Grant> {
    let agent = match number / 100 {
        0 => "writer".to_owned(),
        other => format!("agent-{other}"),
    };
    let of = ToolScopeGrant {
        scope: ToolScope::new(&format!("files.write{}", number % 100))?,
        server: None,
        tool: None,
        arguments: None,
    };
    Ok(Grant {
        id: GrantId::new(number.to_be_bytes()),
        subject: GrantSubject::Agent(AgentName::new(&agent)?),
        of: GrantOf::ToolScope(of),
        duration: GrantDuration::Persistent,
        expires_at: None,
    })
}
