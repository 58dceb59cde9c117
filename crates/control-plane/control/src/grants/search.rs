//! Grants and requests as people look for them: by their state and their agent, in the order of
//! time.

use narthex_model::WorkspaceId;
use narthex_store::{
    GrantPlace, GrantRequestRow, GrantRow, GrantSearch, RequestPlace, RequestSearch,
};

use crate::{Control, ControlError};

/// Requests of one page.
#[derive(Debug, Clone)]
pub struct RequestsFound {
    /// The requests, in the order of their state.
    pub items: Vec<GrantRequestRow>,
    /// The place after which the next page begins; `None` if there is no next page.
    pub next: Option<RequestPlace>,
}

/// Grants of one page.
#[derive(Debug, Clone)]
pub struct GrantsFound {
    /// The grants, the newest first.
    pub items: Vec<GrantRow>,
    /// The place after which the next page begins; `None` if there is no next page.
    pub next: Option<GrantPlace>,
}

impl Control {
    /// The requests of a workspace that a person looks for.
    ///
    /// # Errors
    /// When there is no such workspace or no store, or the store fails.
    pub async fn grant_requests_search(
        &self,
        workspace: &WorkspaceId,
        search: &RequestSearch,
    ) -> Result<RequestsFound, ControlError> {
        let store = self.catalog_store(workspace).await?;
        let more = RequestSearch { limit: search.limit.saturating_add(1), ..search.clone() };
        let rows = store.grant_requests().search(workspace, &more).await;
        let mut items = rows.map_err(ControlError::Store)?;
        let has_more = cut(&mut items, search.limit);
        let place =
            |row: &GrantRequestRow| RequestPlace { requested_at: row.requested_at, id: row.id };
        let next = items.last().filter(|_| has_more).map(place);
        Ok(RequestsFound { items, next })
    }

    /// The grants of a workspace that a person looks for.
    ///
    /// # Errors
    /// When there is no such workspace or no store, or the store fails.
    pub async fn grants_search(
        &self,
        workspace: &WorkspaceId,
        search: &GrantSearch,
    ) -> Result<GrantsFound, ControlError> {
        let store = self.catalog_store(workspace).await?;
        let more = GrantSearch { limit: search.limit.saturating_add(1), ..search.clone() };
        let rows = store.grants().search(workspace, &more).await;
        let mut items = rows.map_err(ControlError::Store)?;
        let has_more = cut(&mut items, search.limit);
        let place = |row: &GrantRow| GrantPlace { granted_at: row.granted_at, id: row.grant.id };
        let next = items.last().filter(|_| has_more).map(place);
        Ok(GrantsFound { items, next })
    }
}

/// Cuts rows to a page. Returns true if there were more.
fn cut<T>(rows: &mut Vec<T>, limit: u32) -> bool {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let has_more = rows.len() > limit;
    rows.truncate(limit);
    has_more
}
