//! Comments on shares, and the sessions that receive them.

use std::{collections::BTreeSet, time::SystemTime};

use narthex_audit::{AuditEvent, kind};
use narthex_control::{By, Control, ControlError, Speaker};
use narthex_events::{EventKind, EventPlace};
use narthex_gateway::RunView;
use narthex_model::{RunId, SessionId, ShareId, ThreadId, WorkspaceId};
use narthex_store::{CommentBounds, CommentRow, ShareRow, ThreadRow};
use serde_json::{Value, json};

use super::{SharingError, by_run, read_id};
use crate::{RunError, Runs, create::creator::shown_actor};

/// The most threads and comments of a share.
const BOUNDS: CommentBounds = CommentBounds { threads: 500, of_thread: 500, of_share: 5000 };

/// A thread with its comments.
#[derive(Debug, Clone)]
pub struct SeenThread {
    /// The stored thread.
    pub row: ThreadRow,
    /// The comments, in the order of the thread.
    pub comments: Vec<CommentRow>,
}

/// One page of a share's threads.
#[derive(Debug)]
pub struct ThreadPage {
    /// The threads, the oldest first.
    pub items: Vec<SeenThread>,
    /// The thread after which the next page begins; `None` if there is no next page.
    pub next: Option<ThreadId>,
}

/// The place of a comment.
#[derive(Debug, Clone)]
pub enum CommentOn {
    /// An existing thread.
    Thread(String),
    /// A share, on which a new thread begins.
    Share {
        /// The share's id.
        id: String,
        /// The passage that the thread is about; empty for the whole share.
        anchor: String,
    },
}

/// The author of a comment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Commenter {
    by: By,
    run: Option<(RunId, SessionId)>,
    /// The user who gets the turn in the sessions that receive the comment.
    speaker: Speaker,
}

impl Commenter {
    /// A human or a service as the author.
    #[must_use]
    pub fn outside(by: &By, speaker: Speaker) -> Self {
        Self { by: by.clone(), run: None, speaker }
    }

    /// A run as the author. `None` if the run belongs to no session.
    #[must_use]
    pub fn run(run: &RunView) -> Option<Self> {
        let session = run.authority.actors().session?;
        Some(Self { by: by_run(run.id), run: Some((run.id, session)), speaker: Speaker::aside() })
    }
}

impl Runs {
    /// Adds a comment to a share of the workspace. The agent that shared it gets it as a message,
    /// and so do all authors in the thread, except the author of this comment.
    ///
    /// # Errors
    /// When there is no such share or thread, the limit of comments is reached, or the store fails.
    pub async fn share_comment(
        &self,
        workspace: &WorkspaceId,
        by: Commenter,
        on: CommentOn,
        text: String,
    ) -> Result<SeenThread, RunError> {
        self.control().catalog_store(workspace).await?;
        let (share, thread) = match &on {
            CommentOn::Thread(id) => {
                let thread = self.thread_of(workspace, id).await?;
                let share = self.share_row(workspace, thread.row.share).await?;
                (share, thread)
            }
            CommentOn::Share { id, anchor } => {
                let share = self.share_row(workspace, read_id(id)?).await?;
                let thread = new_thread(share.id, anchor)?;
                (share, thread)
            }
        };
        let (id, is_new) = (thread.row.id, thread.comments.is_empty());
        let runs = self.clone();
        let commenting = self.control().to_the_end(async move |control: Control| {
            let is_said = runs.comment(&control, &share, thread, (by, &text)).await?;
            Ok((is_said, share.id))
        });
        match commenting.await? {
            (true, _) => self.thread_of(workspace, &id.to_text()).await,
            (false, share) => Err(self.not_said(workspace, share, is_new).await?.into()),
        }
    }

    async fn comment(
        &self,
        control: &Control,
        share: &ShareRow,
        thread: SeenThread,
        (by, text): (Commenter, &str),
    ) -> Result<bool, ControlError> {
        let workspace = &share.workspace;
        let event = AuditEvent::new(kind::SHARE_COMMENTED, by.by.clone()).in_workspace(workspace);
        let event = event.of_session(share.session.to_text()).on("share", share.id.to_text());
        let noted = control.note(event.with("thread", thread.row.id.to_text())).await?;
        let store = control.catalog_store(workspace).await?.shares();
        let stored = match thread.comments.is_empty() {
            true => store.begin_thread(workspace, &thread.row, (&by.by.id, text), BOUNDS).await,
            false => store.comment(workspace, &thread.row, (&by.by.id, text), BOUNDS).await,
        };
        if !stored.map_err(ControlError::Store)? {
            return Ok(false);
        }
        noted.done().await;
        let mut payload = json!({
            "share_id": share.id.to_text(),
            "thread_id": thread.row.id.to_text(),
            "comment": text,
            "by": shown_actor(&by.by),
        });
        if !thread.row.anchor.is_empty() {
            payload["anchor"] = json!(thread.row.anchor);
        }
        if let Some((run, session)) = by.run {
            let told = (EventKind::AgentComment, payload.clone());
            self.tell(workspace, session, Some(run), told).await;
        }
        let about = format!("{} (thread {})", share.id, thread.row.id);
        payload["text"] = json!(format!("A comment on what is shared as {about}: {text}"));
        for session in self.hearers(share, &thread.comments, &by).await? {
            let place = EventPlace { workspace: workspace.clone(), session, run: None };
            control.session_note(&place, payload.clone(), &by.speaker).await;
        }
        Ok(true)
    }

    /// The error for a comment that the store refused: the limit that it would exceed.
    async fn not_said(
        &self,
        workspace: &WorkspaceId,
        share: ShareId,
        is_new: bool,
    ) -> Result<SharingError, RunError> {
        let store = self.store()?.shares();
        let counts = store.comment_counts(workspace, share).await.map_err(ControlError::Store)?;
        let (many, of) = match is_new {
            _ if counts.comments >= BOUNDS.of_share => (BOUNDS.of_share, "comments on this share"),
            true => (BOUNDS.threads, "threads on this share"),
            false => (BOUNDS.of_thread, "comments in this thread"),
        };
        Ok(SharingError::TooManyComments(many, of))
    }

    /// The sessions that receive a comment: never the author's own.
    async fn hearers(
        &self,
        share: &ShareRow,
        earlier: &[CommentRow],
        by: &Commenter,
    ) -> Result<Vec<SessionId>, ControlError> {
        let store = self.control().catalog_store(&share.workspace).await?;
        let mut sessions = BTreeSet::from([share.session]);
        let authors: BTreeSet<_> =
            earlier.iter().filter_map(|one| RunId::parse(&one.author)).collect();
        for run in authors {
            let row = store.runs().find(run).await.map_err(ControlError::Store)?;
            sessions.extend(row.map(|row| row.session));
        }
        if let Some((_, own)) = by.run {
            sessions.remove(&own);
        }
        let mut hearers = Vec::new();
        for id in sessions {
            let row = store.sessions().find(&share.workspace, id).await;
            if row.map_err(ControlError::Store)?.is_some_and(|row| row.ended_at.is_none()) {
                hearers.push(id);
            }
        }
        Ok(hearers)
    }

    /// Resolves a thread, or opens it again.
    ///
    /// # Errors
    /// When there is no such thread, or the store fails.
    pub async fn share_resolve(
        &self,
        workspace: &WorkspaceId,
        by: Commenter,
        thread: &str,
        is_resolved: bool,
    ) -> Result<SeenThread, RunError> {
        self.control().catalog_store(workspace).await?;
        let row = self.thread_of(workspace, thread).await?.row;
        let (runs, place) = (self.clone(), workspace.clone());
        let resolving = self.control().to_the_end(async move |control: Control| {
            let kind = if is_resolved { kind::THREAD_RESOLVED } else { kind::THREAD_REOPENED };
            let event = AuditEvent::new(kind, by.by.clone()).in_workspace(&place);
            let event = event.on("share", row.share.to_text());
            let noted = control.note(event.with("thread", row.id.to_text())).await?;
            let store = control.catalog_store(&place).await?.shares();
            let who = is_resolved.then_some(&*by.by.id);
            if store.resolve(&place, row.id, who).await.map_err(ControlError::Store)? {
                noted.done().await;
            }
            if let Some((run, session)) = by.run {
                let payload = resolved(&row, is_resolved, &by.by);
                runs.tell(&place, session, Some(run), (EventKind::AgentComment, payload)).await;
            }
            Ok(())
        });
        resolving.await?;
        self.thread_of(workspace, thread).await
    }

    /// The first `limit` threads of a share, the oldest first, that come after the thread `after`.
    ///
    /// # Errors
    /// When there is no such share, or the store fails.
    pub async fn share_threads(
        &self,
        workspace: &WorkspaceId,
        id: &str,
        after: &str,
        limit: u32,
    ) -> Result<ThreadPage, RunError> {
        let store = self.control().catalog_store(workspace).await?;
        let share = self.share_row(workspace, read_id(id)?).await?;
        let rows = store.shares().threads(workspace, share.id).await;
        let rows = rows.map_err(ControlError::Store)?;
        let seen = rows.iter().position(|row| row.id.to_text() == after).map_or(0, |at| at + 1);
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let has_more = rows.len() - seen > limit;
        let mut items = Vec::new();
        for row in rows.into_iter().skip(seen).take(limit) {
            let comments = store.shares().comments(workspace, row.id).await;
            items.push(SeenThread { row, comments: comments.map_err(ControlError::Store)? });
        }
        let next = items.last().filter(|_| has_more).map(|thread| thread.row.id);
        Ok(ThreadPage { items, next })
    }

    /// Checks that a thread belongs to a share.
    ///
    /// # Errors
    /// When there is no such share, the share has no such thread, or the store fails.
    pub async fn share_has_thread(
        &self,
        workspace: &WorkspaceId,
        share: &str,
        thread: &str,
    ) -> Result<(), RunError> {
        self.control().catalog_store(workspace).await?;
        let share = self.share_row(workspace, read_id(share)?).await?;
        let row = self.thread_of(workspace, thread).await?.row;
        match row.share == share.id {
            true => Ok(()),
            false => Err(SharingError::NoThread(row.id.to_text()).into()),
        }
    }

    async fn thread_of(&self, workspace: &WorkspaceId, id: &str) -> Result<SeenThread, RunError> {
        let unknown = || SharingError::NoThread(id.chars().take(100).collect());
        let thread = ThreadId::parse(id).ok_or_else(unknown)?;
        let store = self.store()?;
        let row = store.shares().thread(workspace, thread).await.map_err(ControlError::Store)?;
        let row = row.ok_or_else(unknown)?;
        let comments = store.shares().comments(workspace, thread).await;
        Ok(SeenThread { row, comments: comments.map_err(ControlError::Store)? })
    }
}

/// A thread that is not stored yet.
fn new_thread(share: ShareId, anchor: &str) -> Result<SeenThread, RunError> {
    let mut bytes = [0; ThreadId::BYTES];
    getrandom::fill(&mut bytes).map_err(RunError::Randomness)?;
    let row = ThreadRow {
        id: ThreadId::new(bytes),
        share,
        anchor: anchor.to_owned(),
        created_at: SystemTime::now(),
        resolved: None,
    };
    Ok(SeenThread { row, comments: Vec::new() })
}

fn resolved(thread: &ThreadRow, is_resolved: bool, by: &By) -> Value {
    json!({
        "share_id": thread.share.to_text(),
        "thread_id": thread.id.to_text(),
        "resolved": is_resolved,
        "by": shown_actor(by),
    })
}
