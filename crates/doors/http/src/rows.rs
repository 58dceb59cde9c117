//! The registry's rows as the API shows them: without secrets and without arguments (E147).

use std::{
    borrow::Cow,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use narthex_control::{ClientOrigin, Control, FileStatus, GrantFacts, SignInVerbs};
use narthex_gateway::shown;
use narthex_model::{CallError, Pid, Reader, RowWarning, ServerDefinition, Target, Timestamp};
use narthex_policy::RunPolicy;
use narthex_registry::{ServerRow, Snapshot};
use narthex_vfs::MountName;
use narthex_wire::{Raw, Revision};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::{
    auth::Principal,
    shapes::{
        self, ClientIdOrigin, File, ListedTool, Nullable, RowWarnings, ServerBrief,
        ServerCapabilities, ServerDetails, ServerFailure, ServerSignIn, WordsForRuns,
    },
};

/// The characters that are percent-encoded in the part of a row's place that is a name.
const IN_PLACES: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_');

/// The rows that a principal may see (D5). No run can attach an entry without a usable alias, so
/// only principals that see every row see such an entry.
pub(crate) fn visible<'s>(
    snapshot: &'s Snapshot,
    principal: &'s Principal,
) -> impl Iterator<Item = &'s ServerRow> {
    snapshot.servers.iter().map(|row| &**row).filter(move |row| may_see(row, principal))
}

pub(crate) fn may_see(row: &ServerRow, principal: &Principal) -> bool {
    match (principal, &row.alias) {
        (Principal::Known(_) | Principal::Human(_) | Principal::LocalAdmin, _) => true,
        (Principal::Run(run), Some(alias)) => {
            run.policy.is_attached(alias) || run.is_built_in(alias)
        }
        (Principal::Run(run), None) => run.policy == RunPolicy::AllAttached,
    }
}

/// The rows that a principal may see, ordered by name. Each row has a place in this order that
/// stays the same when other rows are added or removed.
pub(crate) fn in_order<'s>(
    snapshot: &'s Snapshot,
    principal: &'s Principal,
) -> Vec<(String, &'s ServerRow)> {
    let mut rows: Vec<_> = visible(snapshot, principal).collect();
    rows.sort_by_key(|row| (&row.name, row.provenance.as_str()));
    let mut placed: Vec<(String, &ServerRow)> = Vec::with_capacity(rows.len());
    let mut same = 0;
    for row in rows {
        let is_same = placed
            .last()
            .is_some_and(|(_, last)| last.name == row.name && last.provenance == row.provenance);
        same = if is_same { same + 1 } else { 0 };
        // If a layer has a name twice, both rows are shown. No name can be confused with another
        // row's place.
        let name = utf8_percent_encode(&row.name, IN_PLACES);
        placed.push((format!("{name},{},{same}", row.provenance.as_str()), row));
    }
    placed.sort_by(|one, other| one.0.cmp(&other.0));
    placed
}

/// All rows that a principal may see.
pub(crate) fn all(
    snapshot: &Snapshot,
    principal: &Principal,
    control: Option<&Control>,
    has_tools: bool,
) -> Vec<shapes::ServerRow> {
    let (pid, reader) = (pid_of(principal), principal.reader());
    let shown =
        |row: &ServerRow| one(row, reader, pid, has_tools).with_sign_in(row, reader, control);
    visible(snapshot, principal).map(shown).collect()
}

/// The words of a row for a run's agent: only the kinds of failures, and no warnings about the
/// configuration (D28).
pub(crate) fn words_for_runs(row: &ServerRow) -> WordsForRuns {
    let warnings = row.warnings();
    let read = warnings.iter().filter_map(RowWarning::for_runs);
    WordsForRuns {
        error: row.error.as_ref().map(|failure| failure.read_by(Reader::Run).into()),
        last_failure: last_failure(row, Reader::Run),
        warnings: RowWarnings(read.map(|one| (&one).into()).collect()),
    }
}

/// The pid in the file paths of the rows, for a principal that is no run: the daemon's own pid.
/// `None` for a run.
///
/// A run knows its own pid, and lists the paths as its files.
pub(crate) fn pid_of(principal: &Principal) -> Option<Pid> {
    match principal {
        Principal::Known(_) | Principal::Human(_) | Principal::LocalAdmin => Some(Pid::OWN),
        Principal::Run(_) => None,
    }
}

/// One row for a reader, with the list of its tools if wanted.
pub(crate) fn one(
    row: &ServerRow,
    reader: Reader,
    pid: Option<Pid>,
    has_tools: bool,
) -> shapes::ServerRow {
    let tool = |raw: Raw<'_>, name: &str| {
        let description = raw.get("description").and_then(Raw::as_str);
        ListedTool { name: name.to_owned(), description: description.map(Cow::into_owned) }
    };
    let list = || match row.is_ready() {
        true => {
            let inventory = shown(row);
            let tools = inventory.tools.iter();
            tools.map(|entry| tool(Raw::new(&entry.raw), &entry.key)).collect()
        }
        false => Vec::new(),
    };
    shapes::ServerRow {
        name: row.name.clone(),
        server: details(row, reader, pid),
        auth_url: None,
        sign_in: None,
        tool_list: has_tools.then(list),
    }
}

impl shapes::ServerRow {
    /// The row with the sign-in to its server, for operators.
    pub(crate) fn with_sign_in(
        self,
        row: &ServerRow,
        reader: Reader,
        control: Option<&Control>,
    ) -> Self {
        let alias = row.alias.as_ref().filter(|_| !row.is_overridden && reader == Reader::Operator);
        let status =
            control.zip(alias).and_then(|(control, alias)| SignInVerbs::of(control).status(alias));
        let Some(status) = status else { return self };
        let auth_url = status.pending.as_ref().map(ToString::to_string);
        let shown = sign_in(&status.facts).map(|shown| of_client(shown, status.client));
        Self { auth_url, sign_in: shown, ..self }
    }
}

/// The stored facts of a sign-in. `None` before the first tokens.
pub(crate) fn sign_in(facts: &GrantFacts) -> Option<ServerSignIn> {
    let time = |seconds: Option<u64>| seconds.map(|seconds| at(seconds).into());
    (!facts.issuer.is_empty()).then(|| ServerSignIn {
        issuer: facts.issuer.clone(),
        scopes: facts.scopes.split_whitespace().map(str::to_owned).collect(),
        expires_at: time(facts.expires_at),
        can_renew: facts.can_renew,
        client_origin: None,
        client_setting: None,
        succeeded_at: time(facts.succeeded_at),
        failed_at: time(facts.failed_at),
        failure: facts.failure.clone(),
    })
}

/// The sign-in with the origin of its client.
fn of_client(shown: ServerSignIn, client: Option<ClientOrigin>) -> ServerSignIn {
    let (client_origin, client_setting) = match client {
        None => (None, None),
        Some(ClientOrigin::Entry) => (Some(ClientIdOrigin::Entry), None),
        Some(ClientOrigin::Settings(name)) => (Some(ClientIdOrigin::Settings), name),
        Some(ClientOrigin::Document) => (Some(ClientIdOrigin::Document), None),
        Some(ClientOrigin::Registration) => (Some(ClientIdOrigin::Registration), None),
    };
    ServerSignIn { client_origin, client_setting, ..shown }
}

/// The time of a number of seconds since 1970. A number beyond all times is the beginning.
pub(crate) fn at(seconds: u64) -> SystemTime {
    UNIX_EPOCH.checked_add(Duration::from_secs(seconds)).unwrap_or(UNIX_EPOCH)
}

/// A row without its name, for a reader, with its path in the files of a run (R-C1).
pub(crate) fn details(row: &ServerRow, reader: Reader, pid: Option<Pid>) -> ServerDetails {
    let revision = row.facts.as_ref().map(|facts| facts.revision);
    let details = ServerDetails {
        // Only a ready server has any tools or other definitions (E33, E72).
        brief: brief(row, revision, row.is_ready()),
        path: path(row, pid),
        auth: row.definition.as_deref().map(auth),
        provenance: row.provenance.into(),
        file: Some(Nullable(row.file.as_ref().map(|file| file.display().to_string()))),
        capabilities: capabilities(row),
        attempt: row.attempt,
        reconnects: row.reconnects,
        forced_kills: row.forced_kills,
        last_check: row.last_check.map(Into::into),
        is_probed: row.is_probed,
        is_asleep: row.is_asleep,
    };
    match reader {
        Reader::Operator => details,
        Reader::Run => details.for_runs(words_for_runs(row)),
    }
}

/// The short form of a row, for operators. If `is_listed` is false, the row's lists count as empty.
pub(crate) fn brief(row: &ServerRow, revision: Option<Revision>, is_listed: bool) -> ServerBrief {
    // Only the definitions that callers may see (D5).
    let inventory = if is_listed { shown(row) } else { Arc::default() };
    ServerBrief {
        state: row.state.into(),
        is_overridden: row.is_overridden,
        activity: row.activity,
        error: row.error.as_ref().map(|failure| failure.for_operators().into()),
        transport: row.definition.as_ref().map(|definition| definition.transport().into()),
        era: revision.map(|revision| revision.era().into()),
        revision: revision.map(Revision::as_str),
        tools: inventory.tools.len(),
        prompts: inventory.prompts.len(),
        resources: inventory.resources.len(),
        resource_templates: inventory.templates.len(),
        definitions_changed: row.changed,
        definitions_held_back: row.pinned.as_ref().map_or(0, |said| said.held().count()),
        gates_unmatched: Some(row.unmatched().iter().map(ToString::to_string).collect()),
        warnings: RowWarnings(row.warnings().iter().map(Into::into).collect()),
        last_success: row.health.last_success().map(Into::into),
        last_failure: last_failure(row, Reader::Operator),
        has_logs: row.log.has_output(),
    }
}

/// The last failure of a call or check. Later ones may have succeeded since (D30).
fn last_failure(row: &ServerRow, reader: Reader) -> Option<ServerFailure> {
    let failure = row.health.last_failure()?;
    let CallError { kind, message, details: _ } = failure.what.read_by(reader);
    Some(ServerFailure { at: failure.at.into(), kind: kind.as_str(), message })
}

pub(crate) fn time(time: SystemTime) -> String {
    Timestamp::new(time).to_string()
}

/// The path of a row's mount. `None` for an entry without a usable alias, or without a pid.
fn path(row: &ServerRow, pid: Option<Pid>) -> Option<String> {
    let (alias, pid) = (row.alias.clone()?, pid?);
    (!row.is_overridden).then(|| MountName { pid, alias }.path())
}

fn auth(definition: &ServerDefinition) -> &'static str {
    match &definition.target {
        Target::Stdio(_) => "none",
        Target::Http(target) => target.auth.mode(),
    }
}

/// The capabilities that a server declared (E70).
fn capabilities(row: &ServerRow) -> Option<ServerCapabilities> {
    let has = &row.facts.as_ref()?.capabilities;
    Some(ServerCapabilities {
        tools: has.tools,
        prompts: has.prompts,
        resources: has.resources,
        subscribe: has.subscribe,
        completions: has.completions,
        logging: has.logging,
        tasks: has.tasks,
        list_changed: has.list_changed,
    })
}

/// The status of a followed file.
pub(crate) fn file(status: &FileStatus) -> File {
    let FileStatus {
        file,
        provenance,
        is_present,
        applied_at,
        error,
        refused_since,
        gone_since,
        last_read,
    } = status;
    File {
        file: file.display().to_string(),
        provenance: (*provenance).into(),
        is_present: *is_present,
        error: error.clone(),
        applied_at: applied_at.map(Into::into),
        refused_since: refused_since.map(Into::into),
        gone_since: gone_since.map(Into::into),
        last_read: last_read.map(Into::into),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    /// E27: the row of a server shows the facts of its tokens, and a server without tokens none.
    #[test]
    fn e27_facts_of_a_sign_in_are_shown_once_there_are_tokens() {
        assert_eq!(sign_in(&GrantFacts::default()), None);
        let shown = sign_in(&GrantFacts {
            issuer: "https://as.example.com".to_owned(),
            scopes: "read  write".to_owned(),
            expires_at: Some(0),
            can_renew: true,
            ..GrantFacts::default()
        });
        let shown = serde_json::to_value(shown).unwrap();
        assert_eq!(shown["scopes"], serde_json::json!(["read", "write"]));
        assert_eq!(shown["expiresAt"], "1970-01-01T00:00:00.000Z");
        assert_eq!(at(u64::MAX), UNIX_EPOCH);
        assert_eq!((&shown["clientOrigin"], &shown["clientSetting"]), (&Value::Null, &Value::Null));
    }

    /// Q6: the row shows where the client id comes from.
    #[test]
    fn oauth_q6_the_origin_of_a_client_is_shown() {
        let facts = GrantFacts { issuer: "https://as.example".to_owned(), ..GrantFacts::default() };
        for (client, origin, name) in [
            (ClientOrigin::Entry, "entry", None),
            (ClientOrigin::Settings(Some("chat".to_owned())), "settings", Some("chat")),
            (ClientOrigin::Document, "document", None),
            (ClientOrigin::Registration, "registration", None),
        ] {
            let shown = of_client(sign_in(&facts).unwrap(), Some(client));
            let shown = serde_json::to_value(shown).unwrap();
            assert_eq!(
                (&shown["clientOrigin"], shown["clientSetting"].as_str()),
                (&origin.into(), name)
            );
        }
    }
}
