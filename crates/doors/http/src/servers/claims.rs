//! Runs that wait for an executor, and the usage that their executor reports.

use narthex_runs::{Brief, Claimed, Claiming};

use super::{
    Answered, Asked, ok,
    once::ToldOnce,
    runs::{head, stored},
};
use crate::{
    body::RequestBody,
    problem::Problem,
    shapes::{ClaimedRun, RunBrief, RunClaimed, SessionUsage},
};

impl Asked<'_> {
    /// Gives a run to the executor that claims it, or extends an earlier claim.
    pub(super) async fn claim_run(&self, body: RequestBody) -> Answered {
        let (workspace, id) = (self.workspace()?, self.segment(1));
        self.query(&[])?;
        let text = self.entry(body, &[]).await?;
        let runs = self.known_runs()?;
        let claimed = match runs.claim(&workspace, &id, text.as_bytes(), &self.creator()).await? {
            Claiming::Held { claim, until } => {
                return Ok(ok(&RunClaimed { claim, claimed_until: until.into(), new: None }));
            }
            Claiming::New(claimed) => claimed,
        };
        let brief = self.brief(&claimed)?;
        let is_once = brief.resolved_mcp_servers.is_some();
        let (claim, claimed_until) = (claimed.claim, claimed.until.into());
        let mut response = ok(&RunClaimed { claim, claimed_until, new: Some(brief) });
        if is_once {
            response.extensions_mut().insert(ToldOnce);
        }
        Ok(response)
    }

    /// The members of a new claim.
    fn brief(&self, claimed: &Claimed) -> Result<RunBrief, Problem> {
        let Brief { prompt, params, system_prompt, direct } = &claimed.brief;
        let waiting = claimed.row.waiting.as_ref();
        let text = |text: &String| (!text.is_empty()).then(|| text.clone());
        let (row, token) = (&claimed.row, claimed.token.expose());
        Ok(RunBrief {
            prompt: prompt.clone(),
            params: params.clone(),
            system_prompt: system_prompt.clone(),
            model: waiting.and_then(|waiting| text(&waiting.model)),
            runtime_type: waiting.and_then(|waiting| text(&waiting.runtime)),
            resolved_mcp_servers: direct.as_ref().map(|direct| direct.expose().clone()),
            run: ClaimedRun {
                head: head(row),
                stored: stored(row),
                live: self.live(&claimed.run, row.pid, false)?,
                entries: self.entries(&claimed.run, token, token, |endpoints| endpoints)?,
            },
        })
    }

    /// Stores the reported usage of a session.
    pub(super) async fn report_cost(&self, body: RequestBody) -> Answered {
        let (workspace, id) = (self.workspace()?, self.segment(1));
        self.query(&[])?;
        let text = self.entry(body, &[]).await?;
        let runs = self.known_runs()?;
        let kept = runs.cost_report(&workspace, &id, text.as_bytes(), &self.by()).await?;
        Ok(ok(&SessionUsage {
            id: kept.id,
            model: kept.model,
            input_tokens: Some(kept.input_tokens),
            output_tokens: Some(kept.output_tokens),
            cost_micros: Some(kept.cost),
            currency: Some(kept.currency),
        }))
    }
}
