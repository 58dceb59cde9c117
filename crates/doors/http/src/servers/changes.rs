//! Changes entries in the user's settings, and the state of a running server.

use bytes::Bytes;
use http::{Method, StatusCode};
use narthex_control::{ControlError, Precondition, Saved};
use narthex_gateway::Full;
use narthex_model::{ErrorKind, Provenance};
use narthex_registry::{ServerResult, layers::EditError};

use super::{Answered, Asked, as_read, document, ok};
use crate::{
    body::{self, BodyFault, RequestBody, Room},
    post::{is_json, is_of_type},
    problem::Problem,
    respond,
    shapes::{self, FileEntrySaved, VerbDone},
};

/// The longest entry that the API accepts, in bytes.
const ENTRY_MAX: usize = 1024 * 1024;

impl Asked<'_> {
    pub(super) async fn change_entry(&self, body: RequestBody) -> Answered {
        self.query(&[])?;
        let name = self.name()?;
        let (control, by) = (self.control()?, self.by());
        match self.parts.method {
            Method::PUT => {
                let is_new = self.is_for_new_only()?;
                let entry = self.entry(body, &[]).await?;
                let saved = match is_new {
                    true => control.add_server(&name, &entry, &by).await.map_err(refused)?,
                    false => control.put_server(&name, &entry, &by).await?,
                };
                Ok(self.saved(&saved))
            }
            Method::PATCH => {
                let changes = self.entry(body, &["application/merge-patch+json"]).await?;
                Ok(self.saved(&control.patch_server(&name, &changes, &by).await?))
            }
            _ => {
                control.remove_server(&name, &by).await?;
                Ok(respond::empty(StatusCode::NO_CONTENT))
            }
        }
    }

    pub(super) async fn disable(&self) -> Answered {
        self.query(&[])?;
        self.control()?.disable(&self.name()?, &self.by()).await?;
        Ok(self.done(None))
    }

    pub(super) async fn enable(&self) -> Answered {
        self.query(&[])?;
        let result = self.control()?.enable(&self.name()?, &self.by()).await?;
        Ok(self.done(Some(result)))
    }

    pub(super) async fn reconnect(&self) -> Answered {
        self.query(&[])?;
        let result = self.control()?.reconnect(&self.name()?).await?;
        Ok(self.done(Some(result)))
    }

    /// Answers with the result of the change and the current row. Another change may have modified
    /// or removed that row by then.
    pub(super) fn done(&self, result: Option<ServerResult>) -> respond::Response {
        let result = result.map(shown);
        ok(&VerbDone { result, server: self.row(false).ok() })
    }

    fn saved(&self, saved: &Saved) -> respond::Response {
        let Saved { name, was_there, warnings } = saved;
        let mut warnings: Vec<_> = warnings.iter().map(ToString::to_string).collect();
        let row = self.door.gateway.registry().get(name);
        if let Some(row) = row.filter(|row| row.provenance != Provenance::Settings) {
            let place = row.file.as_ref().map(|file| file.display().to_string());
            let place = place.unwrap_or_else(|| "the program that added it".to_owned());
            let text = format!("stored, but the server `{name}` of {place} is used instead");
            warnings.push(text);
        }
        let status = if *was_there { StatusCode::OK } else { StatusCode::CREATED };
        let server = self.row(false).ok();
        let (name, created) = (name.clone(), !was_there);
        document(status, &FileEntrySaved { name, created, warnings, server })
    }

    /// True for `If-None-Match: *`, which asks not to overwrite an entry (E142).
    fn is_for_new_only(&self) -> Result<bool, Problem> {
        match self.precondition()? {
            Precondition::None => Ok(false),
            Precondition::New => Ok(true),
            Precondition::Exists | Precondition::Tags(_) => {
                let text = "an entry has no ETag: only `If-None-Match: *` is possible";
                Err(Problem::new(ErrorKind::Invalid, text))
            }
        }
    }

    /// Reads the body as the text of one object. In a PUT, members that are only shown are removed.
    pub(super) async fn entry(
        &self,
        body: RequestBody,
        further_types: &[&str],
    ) -> Result<String, Problem> {
        let text = self.text(body, further_types, ENTRY_MAX).await?;
        Ok(match self.parts.method {
            Method::PUT => as_read::to_be_stored(self.target, text),
            _ => text,
        })
    }

    /// Reads the body, of at most `most` bytes. The body reserves bytes of its principal until the
    /// request is answered.
    pub(super) async fn read(&self, body: RequestBody, most: usize) -> Result<Bytes, BodyFault> {
        let places = &self.door.api_bodies;
        let room = self.held.is_empty().then(|| Room::Api(places, self.principal.holder()));
        let within = self.door.options.body_timeout;
        let (bytes, taken) = body::read_and_hold(body, most, within, room).await?;
        self.held.add(taken);
        Ok(bytes)
    }

    /// Reads the body as text, of at most `most` bytes.
    pub(super) async fn text(
        &self,
        body: RequestBody,
        further_types: &[&str],
        most: usize,
    ) -> Result<String, Problem> {
        let headers = &self.parts.headers;
        if !is_json(headers) && !further_types.iter().any(|one| is_of_type(headers, one)) {
            let problem = Problem::new(
                ErrorKind::Invalid,
                "the content type must be application/json, and the body one entry",
            );
            return Err(problem.with_status(StatusCode::UNSUPPORTED_MEDIA_TYPE));
        }
        let bytes = self.read(body, most).await;
        let bytes = bytes.map_err(|fault| of_body(fault, "the text", most))?;
        String::from_utf8(bytes.into()).map_err(|error| {
            Problem::new(ErrorKind::Invalid, format!("the body is not UTF-8 text: {error}"))
        })
    }
}

fn shown(result: ServerResult) -> shapes::ServerResult {
    match result {
        ServerResult::Ready { id, tool_count } => shapes::ServerResult::Ready { id, tool_count },
        ServerResult::Authenticating { id, auth_url } => {
            shapes::ServerResult::Authenticating { id, auth_url }
        }
        ServerResult::Error { id, error } => {
            shapes::ServerResult::Error { id, error: error.into() }
        }
    }
}

/// The problem for a refused body. `what` names the body, and `most` is its limit in bytes.
pub(crate) fn of_body(fault: BodyFault, what: &str, most: usize) -> Problem {
    match fault {
        BodyFault::TooLarge => {
            let text = format!("{what} can have at most {most} bytes");
            let status = StatusCode::PAYLOAD_TOO_LARGE;
            Problem::new(ErrorKind::Exhausted, text).with_status(status)
        }
        BodyFault::TooSlow => {
            let problem = Problem::new(ErrorKind::Timeout, "the body took too long");
            problem.with_status(StatusCode::REQUEST_TIMEOUT)
        }
        BodyFault::Broken => Problem::new(ErrorKind::Invalid, "the body ended too early"),
        BodyFault::NoRoom(full) => {
            Problem::new(ErrorKind::Exhausted, no_room(full)).with_status(status_of_full(full))
        }
    }
}

/// The text for a body that could reserve no bytes.
pub(crate) fn no_room(full: Full) -> String {
    format!("{}; try again when other requests have ended", full.told("bytes in request bodies"))
}

/// The status for a full buffer. It depends on who used too much: one run or principal, or all
/// together.
pub(crate) fn status_of_full(full: Full) -> StatusCode {
    match full {
        Full::Run(_) | Full::Principal(_) => StatusCode::TOO_MANY_REQUESTS,
        Full::Workspace(_) | Full::Total(_) => StatusCode::SERVICE_UNAVAILABLE,
    }
}

/// A taken name does not fulfil the condition of the request, which was that the server is new.
fn refused(error: ControlError) -> Problem {
    let is_taken = matches!(error, ControlError::Edit(EditError::Exists { .. }));
    let problem = Problem::from(error);
    if is_taken { problem.with_status(StatusCode::PRECONDITION_FAILED) } else { problem }
}
