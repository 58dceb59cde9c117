//! The limits of a workspace, and its usage today (O100, X-E115).

use http::Method;

use super::{Answered, Asked, access::page_of, ok};
use crate::{
    body::RequestBody,
    routes::Target,
    shapes::{UsagePage, UsageRow},
};

impl Asked<'_> {
    /// Handles the limits of a workspace, or shows its usage.
    pub(super) async fn traffic(&self, body: RequestBody) -> Answered {
        if self.target == Target::Usage { self.usage().await } else { self.limits(body).await }
    }

    /// Shows or replaces the limits of a workspace.
    async fn limits(&self, body: RequestBody) -> Answered {
        let (workspace, control) = (self.workspace()?, self.control()?);
        self.query(&[])?;
        let limits = match self.parts.method {
            Method::PUT => {
                let text = self.entry(body, &[]).await?.into_bytes();
                control.set_workspace_limits(&workspace, &text, self.by()).await?
            }
            _ => control.workspace_limits(&workspace).await?,
        };
        Ok(ok(&limits))
    }

    /// Shows the usage of a workspace today, and its limits.
    async fn usage(&self) -> Answered {
        let query = self.query(&["after", "limit"])?;
        let usage = self.control()?.usage(&self.workspace()?).await?;
        // No kind contains a comma.
        let key =
            |row: narthex_control::UsageRow| (format!("{},{}", row.kind.as_str(), row.name), row);
        let mut rows: Vec<_> = usage.rows.into_iter().map(key).collect();
        rows.sort_unstable_by(|one, other| one.0.cmp(&other.0));
        let page = page_of(&query, rows, |(key, _)| key, |(_, row)| shown(row))?;
        Ok(ok(&UsagePage { resets_in_ms: usage.day_left_ms, page }))
    }
}

fn shown(row: &narthex_control::UsageRow) -> UsageRow {
    let narthex_control::UsageRow { kind, name, calls, open, limits } = row;
    UsageRow {
        kind: kind.as_str(),
        name: name.clone(),
        calls_today: *calls,
        open_calls: (*open).into(),
        limits: *limits,
    }
}
