//! Writes with an idempotency key: each is done once, and a repeated request gets the same answer
//! (X-E104, X-E105).

use std::{
    fmt,
    time::{Duration, SystemTime},
};

use narthex_audit::{AuditEvent, kind};
use narthex_model::{ErrorKind, Secret, WorkspaceId};
use narthex_store::{KeptAnswer, KeptAnswers, NewRequest};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::{AccessError, By, Control, ControlError};

/// Time for which an answer is stored.
const KEPT: Duration = Duration::from_hours(24);
/// Time after which a claim without an answer counts as abandoned.
const ABANDONED: Duration = Duration::from_mins(15);
/// The longest body of a stored answer, in bytes.
const BODY_MAX: usize = 1024 * 1024;

/// A write with an idempotency key.
#[derive(Clone)]
pub struct KeyedRequest {
    /// The workspace of the write; `None` for a write outside of workspaces, or on a workspace
    /// itself.
    pub workspace: Option<WorkspaceId>,
    /// The actor. Each actor has its own keys.
    pub by: By,
    /// The key: 1 to 200 visible ASCII characters.
    pub key: String,
    /// The method and the path, for the audit.
    pub what: String,
    /// Digest of the whole request, by [`digest_of`].
    pub digest: [u8; 32],
}

/// The state of a request with a key.
#[derive(Debug)]
pub enum Keyed {
    /// The request is new: the caller has to carry it out now.
    First(KeyedClaim),
    /// The request was carried out before, with this answer.
    Done(KeptResponse),
}

/// The claim of the caller that carries the request out, to be passed back with the answer.
#[derive(Debug)]
pub struct KeyedClaim {
    id: String,
    claim: String,
    request: String,
    workspace: WorkspaceId,
}

/// A stored answer.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptResponse {
    /// The HTTP status.
    pub status: u16,
    /// Headers by name.
    pub headers: Vec<(String, String)>,
    /// The body. `None` if it was not stored.
    pub body: Option<String>,
}

/// Reasons why a request with an idempotency key is not carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KeyedError {
    /// The key was used for another request (X-E105).
    #[error(
        "this Idempotency-Key was used for another request; use a new key for each new request"
    )]
    Differs,
    /// The first request with this key is still running.
    #[error("the first request of this Idempotency-Key is not done yet; ask again in a second")]
    InProgress,
}

impl KeyedError {
    /// The code for programs.
    #[must_use]
    pub fn code(self) -> &'static str {
        match self {
            Self::Differs => "idempotency_conflict",
            Self::InProgress => "idempotency_in_progress",
        }
    }

    /// The kind of failure (D24).
    #[must_use]
    pub fn kind(self) -> ErrorKind {
        ErrorKind::Conflict
    }
}

/// The sealed part of a request.
#[derive(Serialize, Deserialize)]
struct Kept {
    /// The digest of the request, in hexadecimal.
    request: String,
    response: Option<KeptResponse>,
}

impl Control {
    /// Decides whether the caller must carry out a write, and blocks other writes with its key
    /// meanwhile.
    ///
    /// # Errors
    /// `Keyed` if the key was used for another request or is in use; when there is no store or no
    /// vault, or either fails; when a replay cannot be recorded.
    pub async fn keyed_begin(&self, request: &KeyedRequest) -> Result<Keyed, ControlError> {
        let rows = self.kept_answers()?;
        let home = request.workspace.clone().unwrap_or_default();
        let now = SystemTime::now();
        let new = KeyedClaim {
            id: id(request),
            claim: random()?,
            request: hex::encode(request.digest),
            workspace: home,
        };
        let sealed = self.keyed_seal(&new, None).await?;
        let row = NewRequest {
            id: &new.id,
            workspace: request.workspace.as_ref(),
            claim: &new.claim,
            sealed: &sealed,
            begun_at: now,
        };
        // Tried twice, in case the found row was removed in between.
        for _ in 0..2 {
            if rows.begin(row, now - KEPT).await.map_err(ControlError::Store)? {
                return Ok(Keyed::First(new));
            }
            if let Some(found) = rows.find(&new.id).await.map_err(ControlError::Store)? {
                return self.keyed_again(request, new, found).await;
            }
        }
        Err(KeyedError::InProgress.into())
    }

    /// Stores the answer to a request that was carried out.
    ///
    /// # Errors
    /// When the store or the vault fails. The request stays carried out.
    pub async fn keyed_done(
        &self,
        claim: &KeyedClaim,
        mut response: KeptResponse,
    ) -> Result<(), ControlError> {
        response.body = response.body.filter(|body| body.len() <= BODY_MAX);
        let sealed = self.keyed_seal(claim, Some(response)).await?;
        let rows = self.kept_answers()?;
        let finished = rows.finish(&claim.id, &claim.claim, &sealed).await;
        if !finished.map_err(ControlError::Store)? {
            tracing::warn!(
                "the answer to a request with an Idempotency-Key was not stored: the request took \
                 too long, or its workspace was deleted"
            );
        }
        Ok(())
    }

    /// Removes a request that was refused and so changed nothing: the client may repeat it.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn keyed_refused(&self, claim: &KeyedClaim) -> Result<(), ControlError> {
        let released = self.kept_answers()?.release(&claim.id, &claim.claim).await;
        released.map_err(ControlError::Store)
    }

    async fn keyed_again(
        &self,
        request: &KeyedRequest,
        new: KeyedClaim,
        found: KeptAnswer,
    ) -> Result<Keyed, ControlError> {
        let (workspace, place) = (&new.workspace, place(&new.id));
        let text = self.vault()?.open_document(workspace, &place, &found.sealed).await?;
        // The vault opens only documents that narthex sealed. A document of another form counts as
        // that of another request.
        let kept: Kept =
            serde_json::from_str(text.expose()).map_err(|_other_form| KeyedError::Differs)?;
        if kept.request != new.request {
            return Err(KeyedError::Differs.into());
        }
        if let Some(response) = kept.response {
            self.note_replay(request).await?;
            return Ok(Keyed::Done(response));
        }
        let now = SystemTime::now();
        let times = (now, now - ABANDONED);
        match self.kept_answers()?.reclaim(&new.id, &new.claim, times).await {
            Ok(true) => Ok(Keyed::First(new)),
            Ok(false) => Err(KeyedError::InProgress.into()),
            Err(error) => Err(ControlError::Store(error)),
        }
    }

    async fn note_replay(&self, request: &KeyedRequest) -> Result<(), ControlError> {
        let mut event = AuditEvent::new(kind::REQUEST_REPLAYED, request.by.clone());
        event.workspace = request.workspace.clone();
        self.note(event.on("request", request.what.clone())).await?.done().await;
        Ok(())
    }

    async fn keyed_seal(
        &self,
        claim: &KeyedClaim,
        response: Option<KeptResponse>,
    ) -> Result<String, ControlError> {
        let kept = Kept { request: claim.request.clone(), response };
        let text = serde_json::to_string(&kept).expect("texts and numbers can be written");
        let (workspace, place) = (&claim.workspace, place(&claim.id));
        Ok(self.vault()?.seal_document(workspace, &place, &Secret::new(text)).await?)
    }

    fn kept_answers(&self) -> Result<KeptAnswers<'_>, ControlError> {
        let store = self.shared.store.as_ref();
        store.map(narthex_store::Store::kept_answers).ok_or(ControlError::NoVault)
    }
}

/// The id of a request's row. It reveals neither keys nor principals.
fn id(request: &KeyedRequest) -> String {
    let workspace = request.workspace.as_ref().map_or("", WorkspaceId::as_str);
    let actor = &request.by;
    let parts = [workspace, actor.kind.as_str(), &actor.id, &request.key];
    hex::encode(digest_of(parts.map(str::as_bytes)))
}

/// The SHA-256 of several texts. The length of each text is included, so that different parts give
/// different digests.
#[must_use]
pub fn digest_of<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> [u8; 32] {
    let mut all = Sha256::new();
    for part in parts {
        all.update(part.len().to_be_bytes());
        all.update(part);
    }
    all.finalize().into()
}

/// The place for which the vault seals a request's answer.
fn place(id: &str) -> String {
    format!("request {id}")
}

fn random() -> Result<String, ControlError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(AccessError::Randomness)?;
    Ok(hex::encode(bytes))
}

impl fmt::Debug for KeyedRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyedRequest").field("what", &self.what).finish_non_exhaustive()
    }
}

impl fmt::Debug for KeptResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeptResponse").field("status", &self.status).finish_non_exhaustive()
    }
}
