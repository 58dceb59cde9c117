//! Runs that wait for an executor, and what their executor reports of them.

use std::{fmt, time::SystemTime};

use bytes::Bytes;
use http_body::Body;
use narthex_model::Timestamp;
use narthex_runs::{Brief, Claiming, SeenRun};
use serde_json::{Value, json};

use super::{Answered, Asked, ok, once::ToldOnce};

impl Asked<'_> {
    /// Gives a run to the executor that claims it, or extends a claim.
    pub(super) async fn claim_run<B>(&self, body: B) -> Answered
    where
        B: Body<Data = Bytes, Error: fmt::Display> + Unpin,
    {
        let (workspace, id) = (self.workspace()?, self.segment(1));
        self.query(&[])?;
        let text = self.entry(body, &[]).await?;
        let runs = self.known_runs()?;
        let claimed = match runs.claim(&workspace, &id, text.as_bytes(), &self.creator()).await? {
            Claiming::Held { claim, until } => return Ok(ok(&lease(&claim, until))),
            Claiming::New(claimed) => claimed,
        };
        let seen = SeenRun { row: Some(claimed.row), view: Some(claimed.run.clone()) };
        let mut shown = lease(&claimed.claim, claimed.until);
        let Brief { prompt, params, system_prompt, direct } = &claimed.brief;
        let waiting = seen.row.as_ref().and_then(|row| row.waiting.as_ref());
        let text = |text: &String| (!text.is_empty()).then(|| text.clone());
        shown["prompt"] = json!(prompt);
        shown["params"] = json!(params);
        shown["system_prompt"] = json!(system_prompt);
        shown["model"] = json!(waiting.and_then(|waiting| text(&waiting.model)));
        shown["runtime_type"] = json!(waiting.and_then(|waiting| text(&waiting.runtime)));
        if let Some(direct) = direct {
            shown["resolved_mcp_servers"] = json!(direct.expose());
        }
        let mut run = self.shown_run(&seen, false)?;
        self.add_entries(&claimed.run, &claimed.token, &mut run)?;
        shown["run"] = run;
        let mut response = ok(&shown);
        if direct.is_some() {
            response.extensions_mut().insert(ToldOnce);
        }
        Ok(response)
    }

    /// Keeps what a session has used.
    pub(super) async fn report_cost<B>(&self, body: B) -> Answered
    where
        B: Body<Data = Bytes, Error: fmt::Display> + Unpin,
    {
        let (workspace, id) = (self.workspace()?, self.segment(1));
        self.query(&[])?;
        let text = self.entry(body, &[]).await?;
        let runs = self.known_runs()?;
        let kept = runs.cost_report(&workspace, &id, text.as_bytes(), &self.by()).await?;
        Ok(ok(&json!({
            "id": kept.id,
            "model": kept.model,
            "input_tokens": kept.input_tokens,
            "output_tokens": kept.output_tokens,
            "cost_micros": kept.cost,
            "currency": kept.currency,
        })))
    }
}

fn lease(claim: &str, until: SystemTime) -> Value {
    json!({ "claim": claim, "claimed_until": Timestamp::new(until).to_string() })
}
