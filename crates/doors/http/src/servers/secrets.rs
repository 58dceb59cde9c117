//! Secrets: lists, sets and clears them, but never reads their values (X-M21).
//!
//! The body of a `PUT` is the only place where a value comes in. It goes straight into a `Secret`,
//! and a fault in it is reported without repeating any of it (X-M24).

use http::{Method, StatusCode};
use narthex_control::SecretUses;
use narthex_model::{ErrorKind, Secret, SecretName, VersionSummary, WorkspaceId};
use narthex_wire::is_redactable;
use percent_encoding::percent_decode_str;
use serde_json::value::RawValue;

use super::{Answered, Asked, document, ok};
use crate::{
    body::RequestBody,
    post::is_json,
    problem::Problem,
    respond,
    secret_users::{SecretUsers, TOLD, TOO_SHORT, uses},
    servers::changes::of_body,
    shapes::{KeyRotation, SecretCleared, SecretRun, SecretStored, SecretSummary, SecretVersion},
};

/// Enough bytes for the longest value with every byte escaped.
const BODY_MAX: usize = 512 * 1024;

impl Asked<'_> {
    pub(super) async fn secrets(&self) -> Answered {
        let workspace = self.workspace()?;
        let all = self.control()?.secrets(&workspace).await?;
        // The places contain names of the catalog.
        let uses = match self.principal.may_read_catalog(&workspace) {
            true => Some(uses(self.door, self.control()?, &workspace).await?),
            false => None,
        };
        let shown = |one: &narthex_model::SecretSummary| match &uses {
            Some(uses) => summary(one, uses),
            None => summary(one, &SecretUses::default()).without_catalog(),
        };
        self.page(all, |one| one.name.as_str(), shown)
    }

    pub(super) async fn change_secret(&self, body: RequestBody) -> Answered {
        self.query(&[])?;
        let (workspace, name) = (self.workspace()?, self.secret_name()?);
        let control = self.control()?;
        if self.parts.method == Method::DELETE {
            return self.clear_secret(&workspace, &name).await;
        }
        let value = self.secret_value(body).await?;
        let is_redactable = is_redactable(&value);
        let stored = control.secret_put(&workspace, &name, value, &self.by()).await?;
        let status = if stored.was_set { StatusCode::OK } else { StatusCode::CREATED };
        let shown = SecretStored {
            name: name.into(),
            version: stored.version.get(),
            replaced: stored.was_set,
            is_redactable,
            warning: (!is_redactable).then(|| TOO_SHORT.to_owned()),
        };
        Ok(document(status, &shown))
    }

    /// Clears a secret, and answers with its users and the live runs that held it.
    async fn clear_secret(&self, workspace: &WorkspaceId, name: &SecretName) -> Answered {
        let (control, by) = (self.control()?, self.by());
        let users = SecretUsers::clear(self.door, control, workspace, name, &by).await?;
        if users.are_none() {
            return Ok(respond::empty(StatusCode::NO_CONTENT));
        }
        let keeps = users.keep_the_value();
        let SecretUsers { places, runs, bound } = users;
        Ok(ok(&SecretCleared {
            name: name.into(),
            used_by: places,
            runs: runs.iter().map(holder).collect(),
            env_bindings: (!bound.is_empty()).then(|| bound.into_iter().map(Into::into).collect()),
            warning: keeps.then(|| TOLD.to_owned()),
        }))
    }

    pub(super) async fn rotate_key(&self) -> Answered {
        self.query(&[])?;
        let rotation = self.control()?.secret_rotate_key(&self.by()).await?;
        let ids = |keys: &[narthex_model::KeyId]| {
            keys.iter().map(|key| key.as_str().to_owned()).collect::<Vec<_>>()
        };
        Ok(ok(&KeyRotation {
            key: rotation.key.as_str().to_owned(),
            resealed: rotation.resealed,
            resumed: rotation.is_resumed,
            dropped: ids(&rotation.dropped),
            unused: ids(&rotation.unused),
        }))
    }

    async fn secret_value(&self, body: RequestBody) -> Result<Secret, Problem> {
        if !is_json(&self.parts.headers) {
            let problem =
                Problem::new(ErrorKind::Invalid, "the content type must be application/json");
            return Err(problem.with_status(StatusCode::UNSUPPORTED_MEDIA_TYPE));
        }
        let bytes = self.read(body, BODY_MAX).await;
        value(&bytes.map_err(|fault| of_body(fault, "a secret", BODY_MAX))?)
    }

    fn secret_name(&self) -> Result<SecretName, Problem> {
        let text = percent_decode_str(self.segments[1]).decode_utf8_lossy();
        SecretName::new(&text)
            .map_err(|error| Problem::new(ErrorKind::Invalid, format!("name: {error}")))
    }
}

/// Reads the value from `{"value": "…"}`.
fn value(body: &[u8]) -> Result<Secret, Problem> {
    // The parser's message may quote the text, so only its line and column are used.
    let wrong = |at: Option<(usize, usize)>| {
        let at = at.map_or_else(String::new, |(line, column)| {
            format!(" (it differs in line {line}, column {column})")
        });
        let text = format!("value: the body must be {{\"value\": \"…\"}} and nothing else{at}");
        Problem::new(ErrorKind::Invalid, text)
    };
    // The parser would also accept an array of the members.
    if body.trim_ascii_start().first() != Some(&b'{') {
        return Err(wrong(None));
    }
    let put: PutBody<'_> = serde_json::from_slice(body)
        .map_err(|error| wrong(Some((error.line(), error.column()))))?;
    let text: String = serde_json::from_str(put.value.get()).map_err(|_no_text| wrong(None))?;
    Ok(Secret::new(text))
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct PutBody<'b> {
    #[serde(borrow)]
    value: &'b RawValue,
}

/// A live run that held a secret which was cleared.
fn holder(run: &narthex_runs::SecretRun) -> SecretRun {
    let narthex_runs::SecretRun { id, pid, session, agent, servers, env } = run;
    SecretRun {
        run_id: id.to_text().into(),
        pid: pid.get(),
        session_id: session.to_text().into(),
        agent_name: agent.into(),
        servers: servers.iter().map(Into::into).collect(),
        agent_env_names: env.iter().map(|name| name.as_str().to_owned()).collect(),
    }
}

/// All facts of a secret that the API ever shows (X-M22).
fn summary(secret: &narthex_model::SecretSummary, uses: &SecretUses) -> SecretSummary {
    let narthex_model::SecretSummary { name, created_at, updated_at, updated_by, versions } =
        secret;
    let version = |one: &VersionSummary| {
        let VersionSummary { version, created_at, key } = one;
        SecretVersion {
            version: version.get(),
            created_at: (*created_at).into(),
            key: key.as_ref().map(|key| key.as_str().to_owned()),
        }
    };
    SecretSummary {
        name: name.into(),
        is_set: secret.is_set(),
        created_at: (*created_at).into(),
        updated_at: (*updated_at).into(),
        updated_by: updated_by.clone(),
        versions: versions.iter().map(version).collect(),
        used_by: Some(uses.get(name.as_str()).cloned().unwrap_or_default()),
    }
}
