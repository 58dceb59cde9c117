//! The registry's rows as pages show them: one projection for pages and events.

use narthex_console::{
    Told,
    pages::servers::{MendingLink, ServerRow as Shown},
    parts::{Action, Moment, State, Words},
};
use narthex_control::SignInVerbs;
use narthex_gateway::shown;
use narthex_model::{
    CallErrorKind, ErrorKind, SecretName, ServerAuth, ServerDefinition, ServerState, Target,
};
use narthex_registry::{ServerRow, Snapshot};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use sha2::{Digest, Sha256};

use super::viewer::Viewer;
use crate::{Access, problem::Problem, rows::in_order};

/// The filter of the list for servers that are neither ready nor disabled.
pub(super) const UNREADY: &str = "unready";
/// Number of bytes of the hash in the id of an element.
const ID_BYTES: usize = 8;

/// The parameter of an action that names the page it began on.
const BACK: &str = "back";
/// The value of that parameter for the page of the server.
const PAGE: &str = "server";

/// The rows that a human may see, each with its place in their order.
pub(super) fn seen<'s>(
    viewer: &'s Viewer<'_>,
    snapshot: &'s Snapshot,
) -> Vec<(String, &'s ServerRow)> {
    match viewer.sees_servers() {
        true => in_order(snapshot, &viewer.principal),
        false => Vec::new(),
    }
}

/// The path of an action or a page of a server.
pub(super) fn path(viewer: &Viewer<'_>, name: &str, rest: &str) -> String {
    let name = utf8_percent_encode(name, NON_ALPHANUMERIC);
    viewer.path(&format!("servers/{name}/{rest}"))
}

/// The path of the first page of a server.
pub(super) fn page(viewer: &Viewer<'_>, name: &str) -> String {
    viewer.path(&format!("servers/{}", utf8_percent_encode(name, NON_ALPHANUMERIC)))
}

/// The sentence for an action on a server that was done without the script.
pub(super) fn told(verb: &str, name: &str) -> Option<Told> {
    let sentence = match verb {
        "add" => format!("{name} is added, and connects now; its state is below."),
        "disable" => format!("{name} is disabled."),
        "enable" => format!("{name} is enabled; its row has the result."),
        "reload" => "The files were read again.".to_owned(),
        "reconnect" => format!("{name} was connected anew; its row has the result."),
        _ => return None,
    };
    Some(Told { sentence: Words::new(&sentence), is_failure: false })
}

/// The page that an action on a server leads back to without the script: that of the server if the
/// action began there, and the list otherwise.
pub(super) fn back(viewer: &Viewer<'_>, name: &str) -> Result<String, Problem> {
    let is_of_page = viewer.query(&[BACK])?.text(BACK) == PAGE;
    Ok(if is_of_page { page(viewer, name) } else { viewer.path("servers") })
}

/// The same row with buttons that lead back to the page of the server.
pub(super) fn on_its_page(row: Shown) -> Shown {
    let there = |action: Action| {
        let path = format!("{}?{BACK}={PAGE}", action.path);
        Action { path, ..action }
    };
    Shown { actions: row.actions.into_iter().map(there).collect(), ..row }
}

/// One row. `place` is its place in the order of rows.
pub(super) fn row(viewer: &Viewer<'_>, place: &str, row: &ServerRow) -> Shown {
    let signs_in = signs_in(viewer, row);
    let cause = (!row.is_ready()).then(|| row.cause()).flatten();
    let file = row.file.as_ref().map(|file| file.display().to_string());
    Shown {
        id: id(place),
        name: Words::new(&row.name),
        path: page(viewer, &row.name),
        state: State(row.state),
        activity: row.activity,
        reason: cause.map(|cause| Words::new(cause.operator_cause())),
        transport: row
            .definition
            .as_ref()
            .map_or("faulty entry", |definition| definition.transport().as_str()),
        auth: row
            .definition
            .as_deref()
            .map_or("unknown credentials", |definition| auth(definition, signs_in)),
        tools: row.is_ready().then(|| shown(row).tools.len()),
        tools_path: path(viewer, &row.name, "tools"),
        held_back: row.pinned.as_ref().map_or(0, |said| said.held().count()),
        warnings: row.warnings().iter().map(|warning| Words::new(&warning.message)).collect(),
        answered: row.health.last_success().map(Moment::new),
        origin: Words::new(&file.unwrap_or_else(|| "a program".to_owned())),
        is_overridden: row.is_overridden,
        actions: actions(viewer, row, signs_in),
        links: links(viewer, row, signs_in),
    }
}

/// The pages on which a broken server is mended: its missing secret, its log, and its entry.
fn links(viewer: &Viewer<'_>, row: &ServerRow, signs_in: bool) -> Vec<MendingLink> {
    if row.state != ServerState::Error || row.is_overridden {
        return Vec::new();
    }
    let link =
        |label: &str, href| MendingLink { label: Words::new(label), href, is_primary: false };
    let mut links = Vec::new();
    if let Some(secrets) = viewer.in_nav("secrets") {
        match unset_secret(row) {
            Some(name) => links.push(MendingLink {
                is_primary: true,
                ..link(&format!("Set {name}"), format!("{secrets}?q={name}"))
            }),
            None if !signs_in && needs_credentials(row) => links.push(link("Secrets", secrets)),
            None => {}
        }
    }
    let is_program = row.definition.as_deref().is_some_and(|definition| match &definition.target {
        Target::Stdio(_) => true,
        Target::Http(_) => false,
    });
    if is_program && viewer.may(Access::Operator) {
        links.push(link("Log", path(viewer, &row.name, "log")));
    }
    if row.file.is_some() {
        links.push(link("Entry", path(viewer, &row.name, "configuration")));
    }
    links
}

/// The secret without a value that keeps a server from working.
fn unset_secret(row: &ServerRow) -> Option<SecretName> {
    let cause = row.cause()?;
    let (_, rest) = cause.operator_cause().split_once("secret `")?;
    let (name, rest) = rest.split_once('`')?;
    let is_unset = rest.starts_with(" is not set");
    is_unset.then(|| SecretName::new(name).ok()).flatten()
}

/// True if the server has refused the credentials, or got none.
fn needs_credentials(row: &ServerRow) -> bool {
    row.error.as_ref().is_some_and(|error| error.kind == CallErrorKind::AuthUnavailable)
}

/// The refusal of a server that is absent for the human.
pub(super) fn absent(name: &str) -> Problem {
    let name = Words::within(name, 100);
    Problem::new(ErrorKind::NotFound, format!("there is no server `{name}`"))
}

/// The id of a row's element, which has no character with a meaning in selectors.
fn id(place: &str) -> String {
    let hash = Sha256::digest(place.as_bytes());
    let hash = hash.iter().take(ID_BYTES).map(|byte| format!("{byte:02x}"));
    format!("server-{}", hash.collect::<String>())
}

/// True if a person signs in to the server: its entry says so, or the server has asked for it.
fn signs_in(viewer: &Viewer<'_>, row: &ServerRow) -> bool {
    let is_said = row.definition.as_deref().is_some_and(|definition| match &definition.target {
        Target::Http(target) => target.auth.is_per_user(),
        Target::Stdio(_) => false,
    });
    let verbs = SignInVerbs::of(viewer.control());
    let status = row.alias.as_ref().and_then(|alias| verbs.status(alias));
    is_said || row.state == ServerState::Authenticating || status.is_some()
}

/// The credentials of the server, in words.
fn auth(definition: &ServerDefinition, signs_in: bool) -> &'static str {
    let auth = match &definition.target {
        Target::Stdio(_) => &ServerAuth::None,
        Target::Http(target) => &target.auth,
    };
    match auth {
        auth if auth.exchange().is_some() => "tokens of an exchange",
        _ if signs_in => "a person signs in",
        ServerAuth::None | ServerAuth::Unstated => "no sign-in",
        ServerAuth::ApiKey(_) => "a key of the configuration",
        ServerAuth::OAuth(_) => "tokens of this daemon",
    }
}

/// The buttons of a row. The first one mends the server, if something is to be mended.
fn actions(viewer: &Viewer<'_>, row: &ServerRow, signs_in: bool) -> Vec<Action> {
    if row.is_overridden {
        return Vec::new();
    }
    let name = &row.name;
    let act = |verb: &str, label, hint| Action::new(path(viewer, name, verb), label, hint);
    let test = act("test", "Test", "opens a connection beside the one in use, and reads its lists");
    let reconnect = act("reconnect", "Reconnect", "ends the connection, and opens a new one");
    let disable = act("disable", "Disable", "ends the connection until the server is enabled");
    let authorize =
        act("authorize", "Authorize", "leads to the sign-in of the server, in this browser").page();
    let again = act(
        "reauthorize",
        "Re-authorize",
        "forgets the tokens, and leads to the sign-in of the server",
    );
    let needs_sign_in = needs_credentials(row);
    let lacks_secret = row.state == ServerState::Error && unset_secret(row).is_some();
    match row.state {
        ServerState::Disabled => {
            vec![act("enable", "Enable", "connects to the server").primary(), test]
        }
        ServerState::Authenticating => vec![authorize.primary(), test, disable],
        ServerState::Error if signs_in && needs_sign_in => {
            vec![authorize.primary(), reconnect, test, disable]
        }
        ServerState::Error if signs_in => vec![reconnect.primary(), authorize, test, disable],
        // A new connection cannot give the secret a value.
        ServerState::Error if lacks_secret => vec![reconnect, test, disable],
        ServerState::Error => vec![reconnect.primary(), test, disable],
        ServerState::Connecting => {
            vec![test, reconnect.off("the server is connecting already"), disable]
        }
        ServerState::Ready if signs_in => vec![test, reconnect, again.page(), disable],
        ServerState::Ready => vec![test, reconnect, disable],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ids of elements stay plain, whatever a name has, and differ.
    #[test]
    fn ids_of_rows_are_plain_and_differ() {
        let ids: Vec<_> = ["a,settings,0", "a,workspace,0", "a%20,settings,0"].map(id).to_vec();
        for one in &ids {
            let digits = one.strip_prefix("server-").unwrap();
            assert!(digits.len() == 16 && digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
            assert_eq!(ids.iter().filter(|other| *other == one).count(), 1);
        }
    }
}
