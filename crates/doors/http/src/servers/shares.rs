//! Shares of agents: lists, shows, downloads, comments and deletes them.

use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use narthex_control::FieldError;
use narthex_model::{ShareId, ThreadId, written};
use narthex_runs::{CommentOn, CommentRow, Commenter, SeenThread, ShareRow, SharedFileRow};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::de::DeserializeOwned;

use super::{Answered, Asked, access::created, ok};
use crate::{
    body::RequestBody,
    file::FileStream,
    problem::Problem,
    respond::{self, Response},
    shapes::{
        Page, Share, ShareComment, ShareCommentNew, ShareFile, ShareThread, ShareThreadChange,
        ShareWhole,
    },
};

/// The characters that are percent-encoded in a file name in a header (RFC 8187).
const NAME: &AsciiSet = &NON_ALPHANUMERIC.remove(b'.').remove(b'-').remove(b'_');

/// The target of a request about shares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ShareTarget {
    /// All shares of a workspace.
    All,
    /// One share.
    One,
    /// A file of a share.
    Content,
    /// The comments of a share.
    Comments,
    /// A thread of comments, which can be settled.
    Thread,
}

impl Asked<'_> {
    /// Handles shares, and the comments on them.
    pub(super) async fn of_shares(&self, target: ShareTarget, body: RequestBody) -> Answered {
        let is_read = !matches!(self.parts.method, Method::POST | Method::DELETE);
        match target {
            ShareTarget::All => self.list_shares().await,
            ShareTarget::One if is_read => self.show_share().await,
            ShareTarget::One => self.delete_share().await,
            ShareTarget::Content => self.share_content().await,
            ShareTarget::Comments if is_read => self.share_threads().await,
            ShareTarget::Comments => self.comment_share(body).await,
            ShareTarget::Thread => self.settle_thread(body).await,
        }
    }

    async fn list_shares(&self) -> Answered {
        let workspace = self.workspace()?;
        let query = self.query(&["after", "limit"])?;
        let page = self.known_runs()?.shares(&workspace, query.text("after"), query.limit()?);
        let page = page.await?;
        let items = page.items.iter().map(shown).collect();
        Ok(ok(&Page { items, next: page.next.map(ShareId::to_text) }))
    }

    async fn show_share(&self) -> Answered {
        self.query(&[])?;
        let (workspace, id) = (self.workspace()?, self.segment(1));
        let share = self.known_runs()?.share_get(&workspace, &id).await?;
        let files = share.files.iter().map(shown_file).collect();
        Ok(ok(&ShareWhole { share: shown(&share.row), files }))
    }

    async fn delete_share(&self) -> Answered {
        self.query(&[])?;
        let (workspace, id) = (self.workspace()?, self.segment(1));
        self.known_runs()?.share_delete(&workspace, &id, &self.by()).await?;
        Ok(respond::empty(StatusCode::NO_CONTENT))
    }

    /// Downloads a file of a share. The headers make browsers save it and never show it as a page
    /// of this daemon, since an agent wrote it.
    async fn share_content(&self) -> Answered {
        let (workspace, id) = (self.workspace()?, self.segment(1));
        let query = self.query(&["path"])?;
        let path = Some(query.text("path")).filter(|path| !path.is_empty());
        let (_, row, file) = self.known_runs()?.share_file(&workspace, &id, path).await?;
        let open = self.door.gateway.metrics().stream_opened();
        let mut response = Response::new(FileStream::new(file, row.size, open).into());
        add_headers(response.headers_mut(), &row);
        Ok(response)
    }

    async fn share_threads(&self) -> Answered {
        let query = self.query(&["after", "limit"])?;
        let (workspace, id) = (self.workspace()?, self.segment(1));
        let (runs, limit) = (self.known_runs()?, query.limit()?);
        let page = runs.share_threads(&workspace, &id, query.text("after"), limit).await?;
        let items = page.items.iter().map(shown_thread).collect();
        Ok(ok(&Page { items, next: page.next.map(ThreadId::to_text) }))
    }

    async fn comment_share(&self, body: RequestBody) -> Answered {
        self.query(&[])?;
        let (workspace, id) = (self.workspace()?, self.segment(1));
        let said: ShareCommentNew = read(&self.entry(body, &[]).await?)?;
        check(&said)?;
        let (runs, by) = (self.known_runs()?, Commenter::outside(&self.by(), self.speaker()));
        let on = match said.thread_id {
            Some(thread) => {
                runs.share_has_thread(&workspace, &id, &thread).await?;
                CommentOn::Thread(thread)
            }
            None => CommentOn::Share { id, anchor: said.anchor.unwrap_or_default() },
        };
        let thread = runs.share_comment(&workspace, by, on, said.text).await?;
        let place = format!("/api/workspaces/{workspace}/shares/{}/comments", thread.row.share);
        Ok(created(&shown_thread(&thread), &place))
    }

    async fn settle_thread(&self, body: RequestBody) -> Answered {
        self.query(&[])?;
        let (workspace, share, id) = (self.workspace()?, self.segment(1), self.segment(2));
        let ShareThreadChange { resolved } = read(&self.entry(body, &[]).await?)?;
        let (runs, by) = (self.known_runs()?, Commenter::outside(&self.by(), self.speaker()));
        runs.share_has_thread(&workspace, &share, &id).await?;
        let thread = runs.share_resolve(&workspace, by, &id, resolved).await?;
        Ok(ok(&shown_thread(&thread)))
    }
}

fn refused(faults: &[FieldError]) -> Problem {
    Problem::of_fields(written::faults("the request is not valid", faults), faults)
}

fn read<T: DeserializeOwned>(text: &str) -> Result<T, Problem> {
    serde_json::from_str(text).map_err(|error| {
        let remedy = "see `/api/openapi.json` for what this request takes";
        refused(&[FieldError::invalid("", error.to_string(), remedy)])
    })
}

fn check(said: &ShareCommentNew) -> Result<(), Problem> {
    let mut faults = Vec::new();
    let mut text = |name: &str, text: &str, most: usize| {
        let is_fit = !text.trim().is_empty() && text.chars().count() <= most;
        if !is_fit {
            let remedy = format!("write 1 to {most} characters");
            faults.push(FieldError::invalid(name, "it is empty or too long", remedy));
        }
    };
    text("text", &said.text, ShareCommentNew::TEXT_MAX);
    if let Some(anchor) = &said.anchor {
        text("anchor", anchor, ShareCommentNew::ANCHOR_MAX);
    }
    if said.anchor.is_some() && said.thread_id.is_some() {
        let remedy = "leave `anchor` out, or leave `thread_id` out to start another thread";
        faults.push(FieldError::invalid("anchor", "the thread has a passage already", remedy));
    }
    if faults.is_empty() { Ok(()) } else { Err(refused(&faults)) }
}

fn add_headers(headers: &mut HeaderMap, file: &SharedFileRow) {
    let name = file.path.rsplit('/').next().unwrap_or_default();
    let disposition = format!("attachment; filename*=UTF-8''{}", utf8_percent_encode(name, NAME));
    let unknown = HeaderValue::from_static("application/octet-stream");
    let content_type = HeaderValue::from_str(&file.content_type).unwrap_or(unknown);
    headers.insert(header::CONTENT_TYPE, content_type);
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(file.size));
    // All of the text is ASCII by now.
    let disposition = HeaderValue::from_str(&disposition);
    let plain = HeaderValue::from_static("attachment");
    headers.insert(header::CONTENT_DISPOSITION, disposition.unwrap_or(plain));
    let alone = HeaderValue::from_static("sandbox; default-src 'none'");
    headers.insert(header::CONTENT_SECURITY_POLICY, alone);
}

fn shown(row: &ShareRow) -> Share {
    Share {
        share_id: row.id.to_text().into(),
        session_id: row.session.to_text().into(),
        run_id: row.run.to_text().into(),
        title: row.title.clone(),
        share_type: row.kind.clone(),
        entry_point: row.entry_point.clone(),
        total_size: row.total_size,
        revision: row.revision,
        created_at: row.created_at.into(),
        updated_at: row.updated_at.into(),
    }
}

fn shown_file(file: &SharedFileRow) -> ShareFile {
    let SharedFileRow { path, size, content_type, hash } = file;
    ShareFile {
        path: path.clone(),
        size: *size,
        content_type: content_type.clone(),
        sha256: hash.clone(),
    }
}

fn shown_thread(thread: &SeenThread) -> ShareThread {
    let SeenThread { row, comments } = thread;
    ShareThread {
        thread_id: row.id.to_text().into(),
        share_id: row.share.to_text().into(),
        anchor: Some(row.anchor.clone()).filter(|anchor| !anchor.is_empty()),
        created_at: row.created_at.into(),
        resolved_at: row.resolved.as_ref().map(|(at, _)| (*at).into()),
        resolved_by: row.resolved.as_ref().map(|(_, by)| by.clone()),
        comments: comments.iter().map(shown_comment).collect(),
    }
}

fn shown_comment(comment: &CommentRow) -> ShareComment {
    let CommentRow { number, author, text, created_at } = comment;
    ShareComment {
        number: *number,
        author: author.clone(),
        text: text.clone(),
        created_at: (*created_at).into(),
    }
}
