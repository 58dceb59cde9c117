//! Tools that report the costs of an agent, of its session, and of the session's descendants. The
//! run determines the agent and the session.

use std::{collections::BTreeMap, time::Duration};

use narthex_gateway::BuiltInResult;
use narthex_model::CallError;
use narthex_runs::{CostOf, CostSum};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{children::of_runs, object};
use crate::{Called, Effect, Tool, said};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

pub(super) fn tools() -> Vec<Tool> {
    vec![session(), tree(), agent()]
}

fn session() -> Tool {
    Tool {
        title: "Cost of this session",
        description: "What this session has used so far, as far as it was reported: tokens and \
                      cost in millionths of a currency, in all and by model.",
        schema: object(json!({}), &[]),
        ..Tool::new("get_session_cost", Effect::Reads, |called| Box::pin(of_session(called)))
    }
}

async fn of_session(called: Called<'_>) -> Result<BuiltInResult, CallError> {
    let own = called.session()?;
    told(&called, CostOf::Session(own)).await
}

fn tree() -> Tool {
    Tool {
        title: "Cost of this session and its children",
        description: "The same with all sessions that this one has started, and that these have.",
        schema: object(json!({}), &[]),
        ..Tool::new("get_session_tree_cost", Effect::Reads, |called| Box::pin(of_tree(called)))
    }
}

async fn of_tree(called: Called<'_>) -> Result<BuiltInResult, CallError> {
    let own = called.session()?;
    told(&called, CostOf::Tree(own)).await
}

async fn told(called: &Called<'_>, of: CostOf) -> Result<BuiltInResult, CallError> {
    let sums = called.platform.runs.cost(&called.run.workspace, of).await;
    let mut shown = shown(&sums.map_err(|error| of_runs(&error))?);
    shown["session_id"] = json!(called.session()?.to_text());
    Ok(said(shown["totals"].to_string(), shown))
}

fn agent() -> Tool {
    Tool {
        title: "Cost of this agent",
        description: "What all sessions of your agent have used in a time up to now.",
        schema: object(
            json!({"window": {"type": "string", "enum": ["24h", "7d", "30d", "all"],
                              "default": "7d"}}),
            &[],
        ),
        ..Tool::new("get_agent_cost", Effect::Reads, |called| Box::pin(of_agent(called)))
    }
}

#[derive(Deserialize)]
struct Window {
    window: Option<String>,
}

async fn of_agent(mut called: Called<'_>) -> Result<BuiltInResult, CallError> {
    let asked: Window = called.arguments()?;
    let word = asked.window.as_deref().unwrap_or("7d");
    let window = match word {
        "24h" => Some(DAY),
        "30d" => Some(30 * DAY),
        "all" => None,
        _ => Some(7 * DAY),
    };
    let sums = called.platform.runs.agent_cost(called.run, window).await;
    let mut shown = shown(&sums.map_err(|error| of_runs(&error))?);
    shown["agent_id"] = json!(called.run.authority.actors().agent);
    shown["window"] = json!(word);
    Ok(said(shown["totals"].to_string(), shown))
}

fn shown(sums: &[CostSum]) -> Value {
    let mut totals: BTreeMap<&str, [u64; 3]> = BTreeMap::new();
    for sum in sums {
        let total = totals.entry(&sum.currency).or_default();
        let amounts = [sum.cost, sum.input_tokens, sum.output_tokens];
        total.iter_mut().zip(amounts).for_each(|(all, one)| *all = all.saturating_add(one));
    }
    let one = |currency: &str, [cost, input, output]: [u64; 3]| {
        json!({ "currency": currency, "cost_micros": cost, "input_tokens": input,
                "output_tokens": output })
    };
    let models = sums.iter().map(|sum| {
        let mut shown = one(&sum.currency, [sum.cost, sum.input_tokens, sum.output_tokens]);
        shown["model"] = json!(sum.model);
        shown
    });
    let models: Vec<_> = models.collect();
    let totals: Vec<_> = totals.into_iter().map(|(currency, sums)| one(currency, sums)).collect();
    json!({ "totals": totals, "models": models })
}
