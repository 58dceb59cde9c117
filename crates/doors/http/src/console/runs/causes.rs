//! The reason of a failed call in words, and the way to mend it.

use std::time::{Duration, SystemTime};

use narthex_console::{
    pages::runs::{Link, trace::Cause},
    parts::Words,
};
use narthex_model::{
    CallErrorKind,
    command::{CommandLine, narthex},
};

use super::{one::One, places::path};
use crate::{
    Access,
    console::{rows, viewer::Viewer},
    routes::SEE_CATALOG,
};

/// Longest time after a call at which its server still notes the failure.
const NOTED_WITHIN: Duration = Duration::from_secs(1);

/// The facts about a call that may have failed.
pub(super) struct Failed<'f> {
    pub(super) outcome: &'f str,
    /// The check that refused it.
    pub(super) refused_by: Option<&'f str>,
    pub(super) rule: Option<&'f str>,
    /// The code of an error of JSON-RPC.
    pub(super) code: Option<i64>,
    pub(super) server: Option<&'f str>,
    /// The name of the tool.
    pub(super) name: &'f str,
    /// The recorded answer.
    pub(super) answer: Option<Words>,
    /// The times of the start and of the end.
    pub(super) span: (SystemTime, SystemTime),
}

/// The place on which a failure is mended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// The row of the server.
    Server,
    /// The lines that the server has written.
    Logs,
    /// The requests that wait for a decision.
    Approvals,
    /// The grants of the run.
    Grants,
    /// The definitions of the server under review.
    Definitions,
    /// The tools of the run.
    Tools,
    /// The secrets of the workspace.
    Secrets,
    /// The limits of the workspace.
    Usage,
    /// The rules of the workspace.
    Rules,
    /// The switch that records the content of calls.
    Contents,
    Nowhere,
}

/// The reason of a failure; `None` for a call that has not failed.
pub(super) fn cause(viewer: &Viewer<'_>, one: &One, failed: &Failed<'_>) -> Option<Cause> {
    let (sentence, remedy, place) = words(failed)?;
    let (page, command) = place_of(viewer, one, failed, place);
    let said = failed.answer.clone().or_else(|| said_by_server(viewer, one, failed));
    Some(Cause {
        sentence: Words::new(&sentence),
        said,
        remedy: Words::new(remedy),
        page,
        command: command.map(|command| Words::new(&command)),
    })
}

/// The reason, the remedy and its place.
fn words(failed: &Failed<'_>) -> Option<(String, &'static str, Place)> {
    if let Some(found) = of_check(failed) {
        return Some(found);
    }
    let Failed { outcome, code, .. } = failed;
    let server = failed.server.unwrap_or("the server");
    Some(match *outcome {
        "ok" => return None,
        "tool_error" => (
            format!("The tool {} itself reported a failure.", failed.name),
            "Its answer to the agent has the reason. To see answers here, have the content of \
             calls recorded, and let the agent try again.",
            Place::Contents,
        ),
        "rpc_error" => (
            match code {
                Some(code) => format!("{server} answered with the error {code} of JSON-RPC."),
                None => format!("{server} answered with an error of JSON-RPC."),
            },
            "Look into the lines that the server has written.",
            Place::Logs,
        ),
        "denied" => (
            format!("The call of {} was not allowed.", failed.name),
            "Look at what the run may do, and grant what it needs.",
            Place::Grants,
        ),
        "cancelled" => (
            "The client gave the call up.".to_owned(),
            "Nothing is to be mended here. If calls take too long, look at the server.",
            Place::Server,
        ),
        "abandoned" => (
            "No caller waited for the end: the client's session, the run or the daemon ended."
                .to_owned(),
            "Nothing is to be mended here.",
            Place::Nowhere,
        ),
        word => return of_kind(word, server, failed.name),
    })
}

/// The reason where a check refused the call.
fn of_check(failed: &Failed<'_>) -> Option<(String, &'static str, Place)> {
    let (name, server) = (failed.name, failed.server.unwrap_or("this name"));
    Some(match failed.refused_by? {
        "grants" => (
            format!("{name} requires a grant, and the run has none that fits."),
            "If the agent has asked, decide its request under Approvals. Otherwise grant the scope \
             that the tool requires.",
            Place::Approvals,
        ),
        "rules" => (
            match failed.rule {
                Some(rule) => format!("The rule {rule} of the workspace forbids this call."),
                None => "A rule of the workspace forbids this call.".to_owned(),
            },
            "No grant helps. Change the rule, if the call is to be possible.",
            Place::Rules,
        ),
        "attached" => (
            format!("The run has no server {server}."),
            "Attach the server to the agent, and create another run: this one keeps the servers \
             that it began with.",
            Place::Tools,
        ),
        "exposed" => (
            format!("{name} does not exist for this run, or is hidden by the entry of its server."),
            "Compare the name with the tools that the run sees.",
            Place::Tools,
        ),
        "definitions" => (
            format!("The definition of {name} is under review: no human has accepted it yet."),
            "Review the definition, then create another run.",
            Place::Definitions,
        ),
        _ => return None,
    })
}

/// The reason by the kind of the failure (D16).
fn of_kind(word: &str, server: &str, name: &str) -> Option<(String, &'static str, Place)> {
    let kind = CallErrorKind::ALL.into_iter().find(|kind| kind.as_str() == word);
    let Some(kind) = kind else {
        let sentence = format!("The operation failed with {word}.");
        return Some((sentence, "Look at the state of the server.", Place::Server));
    };
    Some(match kind {
        CallErrorKind::PermissionRequired => (
            format!("{name} requires a permission that the run does not have."),
            "Decide the request of the agent under Approvals, or grant the scope.",
            Place::Approvals,
        ),
        CallErrorKind::AuthUnavailable => (
            format!("{server} has no usable credential, or waits for a person to sign in."),
            "Sign in to the server: its row has the button.",
            Place::Server,
        ),
        CallErrorKind::TransportError => (
            format!("{server} could not be reached, or its connection broke."),
            "Its row has the cause and the button that connects it again.",
            Place::Server,
        ),
        CallErrorKind::Timeout => (
            format!("{server} did not answer in time, and its call was cancelled."),
            "Look into the lines that the server has written, or give it more time by `timeoutMs` \
             in its entry.",
            Place::Logs,
        ),
        CallErrorKind::ServerError => (
            format!("{server} answered that the call failed."),
            "Look into the lines that the server has written.",
            Place::Logs,
        ),
        CallErrorKind::ToolNotFound => (
            format!("{name} does not exist for this run, or its server is not ready."),
            "Compare the name with the tools that the run sees.",
            Place::Tools,
        ),
        CallErrorKind::ServerDisabled => {
            (format!("{server} is disabled."), "Enable it: its row has the button.", Place::Server)
        }
        CallErrorKind::SecretCleared => (
            format!("A human cleared a secret that {server} needs."),
            "Set the secret, and create another run.",
            Place::Secrets,
        ),
        CallErrorKind::LimitExceeded => (
            "A limit was reached.".to_owned(),
            "Try again later, or raise the limit.",
            Place::Usage,
        ),
        CallErrorKind::InvalidArguments => (
            format!("The arguments do not fit {name}."),
            "The agent must send them as the schema of the tool requires.",
            Place::Tools,
        ),
        CallErrorKind::DefinitionChanged => (
            format!("The definition of {name} has changed, or was flagged, and is under review."),
            "Review the definition, then create another run.",
            Place::Definitions,
        ),
    })
}

/// The page on which a failure is mended, and the command for the same.
fn place_of(
    viewer: &Viewer<'_>,
    one: &One,
    failed: &Failed<'_>,
    place: Place,
) -> (Option<Link>, Option<String>) {
    let here = viewer.workspace.as_str();
    let server = failed.server.unwrap_or_default();
    let link = |href: String, label: &str| Some(Link { href, label: Words::new(label) });
    let row = || {
        let mut written = form_urlencoded::Serializer::new(String::new());
        written.append_pair("q", server);
        let href = viewer.path(&format!("servers?{}", written.finish()));
        let is_shown = viewer.sees_servers() && !server.is_empty();
        is_shown.then(|| Link { href, label: Words::new("Open its row") })
    };
    let in_nav = |page: &str, label: &str| link(viewer.in_nav(page)?, label);
    let command = |line: CommandLine| Some(line.in_workspace(here).to_string());
    match place {
        Place::Nowhere => (None, None),
        Place::Server => (row(), command(narthex("mcp logs {}", &[&server]))),
        Place::Logs => {
            let is_shown = viewer.may(Access::Operator) && row().is_some();
            let log = is_shown.then(|| rows::path(viewer, server, "log"));
            let log = log.and_then(|href| link(href, "Its log"));
            (log.or_else(row), command(narthex("mcp logs {}", &[&server])))
        }
        Place::Approvals => {
            (link(viewer.path("approvals"), "Approvals"), command(narthex("grants pending", &[])))
        }
        Place::Grants => {
            let grants = path(viewer, one.id, "grants");
            (link(grants, "Grants of the run"), command(narthex("grants pending", &[])))
        }
        Place::Tools => (link(path(viewer, one.id, "tools"), "What it could see"), None),
        Place::Definitions if viewer.may(Access::Member(SEE_CATALOG)) => {
            let line = narthex("servers definitions {} --quarantined", &[&server]);
            let page =
                row().and_then(|_| link(rows::path(viewer, server, "definitions"), "Review"));
            (page, command(line))
        }
        Place::Definitions => (None, None),
        Place::Secrets => (in_nav("secrets", "Secrets"), command(narthex("secrets list", &[]))),
        Place::Usage => (None, command(narthex("usage", &[]))),
        Place::Rules => (in_nav("policy", "Policy"), command(narthex("policy show", &[]))),
        Place::Contents => {
            let line = narthex("workspaces change {} --audit-contents on", &[&here]);
            (row(), failed.answer.is_none().then(|| line.to_string()))
        }
    }
}

/// The words of the server's own last failure, if it is the one of this call: of the same kind, and
/// noted while the call was open.
fn said_by_server(viewer: &Viewer<'_>, one: &One, failed: &Failed<'_>) -> Option<Words> {
    let view = one.run.view.as_ref()?;
    let snapshot = viewer.door.gateway.snapshot(view);
    let failure = snapshot.get(failed.server?)?.health.last_failure()?;
    let said = failure.what.read_by(viewer.principal.reader());
    let (began, end) = failed.span;
    let is_it = said.kind.as_str() == failed.outcome
        && failure.at >= began
        && failure.at <= end + NOTED_WITHIN;
    is_it.then(|| Words::new(&said.message))
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;

    fn failed(outcome: &'static str, refused_by: Option<&'static str>) -> Failed<'static> {
        Failed {
            outcome,
            refused_by,
            rule: Some("no-pushes"),
            code: Some(-32602),
            server: Some("git"),
            name: "push",
            answer: None,
            span: (UNIX_EPOCH, UNIX_EPOCH),
        }
    }

    /// Each outcome of a failed call has a reason and a remedy in words of its own.
    #[test]
    fn each_failure_has_a_reason_and_a_remedy() {
        let others = ["tool_error", "rpc_error", "denied", "cancelled", "abandoned", "NOT_FOUND"];
        let kinds = CallErrorKind::ALL.map(CallErrorKind::as_str);
        let mut sentences = std::collections::BTreeSet::new();
        for outcome in others.into_iter().chain(kinds) {
            let (sentence, remedy, _) = words(&failed(outcome, None)).unwrap();
            assert!(sentence.ends_with('.') && remedy.ends_with('.'), "{outcome}");
            assert!(sentences.insert(sentence), "{outcome}");
        }
        assert!(words(&failed("ok", None)).is_none());
    }

    /// The check that refused a call says more than its kind.
    #[test]
    fn a_check_is_named_before_the_kind() {
        for check in narthex_policy::CHECKS {
            let (sentence, ..) = words(&failed("permission_required", Some(check))).unwrap();
            let (kind, ..) = words(&failed("permission_required", None)).unwrap();
            assert_ne!(sentence, kind, "{check}");
        }
        let (sentence, ..) = words(&failed("permission_required", Some("rules"))).unwrap();
        assert!(sentence.contains("no-pushes"));
    }
}
