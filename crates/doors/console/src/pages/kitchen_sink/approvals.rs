//! Samples of the pages of approvals and grants, whose texts end in another text.

use std::time::Duration;

use narthex_model::command::narthex;

use super::{empty, frame_of, words};
use crate::{
    pages::{
        approval::{
            ApprovalPage, Arguments, Asked, Call, Calls, Earlier, Fact, Forms, GrantLink, Lasting,
            Proof, ProofLink,
        },
        approvals::{
            ApprovalList, ApprovalsPage, Decided, OtherWait, OtherWaits, Outcome, RequestRow,
        },
        grants::{Ended, Find, GrantPage, GrantRow, GrantsPage, Losing, LosingRun},
    },
    parts::{
        Action, Filter, Moment,
        form::{Field, Input},
    },
};

const REQUEST: &str = "/w/default/approvals/grq_0a1b2c3d4e5f6071";
const GRANT: &str = "/w/default/grants/gra_0a1b2c3d4e5f6071";

/// The beginning of a text, for values that pages do not cut.
fn short(more: &str) -> String {
    more.chars().take(200).collect()
}

fn moment(minutes: u64) -> Moment {
    Moment::after_epoch(Duration::from_secs(1_790_000_000 + 60 * minutes))
}

fn filters(path: &str) -> Vec<Filter> {
    let filter = |label: &str, count, is_current| Filter {
        href: format!("/w/default/{path}?status=decided"),
        label: label.to_owned(),
        count,
        is_current,
    };
    vec![filter("waiting", Some(1), true), filter("decided", None, false)]
}

fn outcome(more: &str) -> Outcome {
    let decided = Decided { by: words("ada", more), at: moment(3), reason: words("go on", more) };
    Outcome { word: "approved", is_granted: true, decided: Some(decided) }
}

/// Two requests: one waits, and one was approved.
#[must_use]
pub fn requests_of(more: &str) -> Vec<RequestRow> {
    let row = |id: &str, outcome: Option<Outcome>| RequestRow {
        id: format!("request-{id}"),
        href: REQUEST.to_owned(),
        what: words("tool scope repo.write", more),
        who: words("reviewer", more),
        who_href: Some("/w/default/approvals?agent=reviewer".to_owned()),
        driver: Some(words("ada", more)),
        reason: words("to file the report", more),
        since: moment(0),
        until: moment(60),
        is_for_me: outcome.is_none(),
        outcome,
    };
    vec![row("1", None), row("2", Some(outcome(more)))]
}

/// The inbox.
#[must_use]
pub fn inbox_of(more: &str) -> ApprovalsPage {
    let other = OtherWait {
        name: words("git", more),
        sentence: words("2 definitions are under review.", more),
        href: "/w/default/servers?q=git".to_owned(),
        label: "The server",
        command: Some(format!("{}{}", narthex("servers definitions git", &[]), short(more))),
    };
    ApprovalsPage {
        frame: frame_of(more),
        others: OtherWaits { items: vec![other] },
        list: ApprovalList {
            filters: filters("approvals"),
            rows: requests_of(more),
            next: Some("/w/default/approvals?after=1".to_owned()),
            empty: empty(),
        },
    }
}

fn asked(more: &str) -> Asked {
    let fact = |name, value: &str, href: Option<&str>| Fact {
        name,
        value: words(value, more),
        href: href.map(str::to_owned),
    };
    Asked {
        facts: vec![
            fact("agent", "reviewer", Some("/w/default/approvals?agent=reviewer")),
            fact("driven by", "ada", None),
            fact("asks for", "tool scope repo.write", None),
        ],
        arguments: Some(Arguments {
            text: words("{\"title\":\"report\"}", more),
            is_whole: more.is_empty(),
            digest: words("sha256:00", more),
        }),
        reason: words("to file the report", more),
        warning: Some(words("`push` requires `repo.push`", more)),
        since: moment(0),
        until: moment(60),
    }
}

fn calls(more: &str) -> Calls {
    let call = |minutes, outcome: &str| Call {
        at: moment(minutes),
        tool: words("push of git", more),
        outcome: words(outcome, more),
    };
    Calls {
        refused: Some(call(0, "a grant was missing")),
        last: vec![call(0, "denied"), call(0, "ok")],
        command: format!("{}{}", narthex("audit list --run run_0a1b2c3d4e5f", &[]), short(more)),
    }
}

/// The page of a request that waits, for a human whose sign-in proves no human.
#[must_use]
pub fn request_of(more: &str) -> ApprovalPage {
    let lasting = |word, is_asked| Lasting {
        word,
        covers: words("the next call of the agent reviewer", more),
        is_asked,
    };
    let reason = |name: &str| Field::new(name, "Reason", Input::line(&short(more)));
    let link = ProofLink { href: format!("{REQUEST}/prove"), label: "Sign in with a passkey" };
    ApprovalPage {
        frame: frame_of(more),
        request: asked(more),
        outcome: None,
        grant: None,
        proof: Some(Proof { sentence: "You signed in with a link.", link: Some(link) }),
        forms: Some(Forms {
            path: format!("{REQUEST}/decide"),
            consent: "consent".to_owned(),
            durations: vec![lasting("once", true), lasting("run", false)],
            fault: Some(words("Choose the calls to allow", more)),
            within: Field::new("within", "At most for", Input::choice(&["", "1h"], "1h")),
            reason: reason("reason"),
            denial: reason("denial"),
            off: Some("your sign-in proves no human"),
        }),
        no_forms: None,
        calls: Some(calls(more)),
        earlier: vec![Earlier {
            href: REQUEST.to_owned(),
            what: words("tool scope repo.read", more),
            word: "denied",
            since: moment(0),
        }],
        back: "/w/default/approvals".to_owned(),
    }
}

/// The page of a request that was approved.
#[must_use]
pub fn decided_of(more: &str) -> ApprovalPage {
    let grant = GrantLink {
        href: GRANT.to_owned(),
        lasts: words("one call", more),
        ends: Some(moment(600)),
        proof: "A passkey or a provider has proved the human.",
    };
    ApprovalPage {
        outcome: Some(outcome(more)),
        grant: Some(grant),
        proof: None,
        forms: None,
        no_forms: Some("An admin of the workspace decides."),
        ..request_of(more)
    }
}

fn grant_row(more: &str, ended: Option<Ended>) -> GrantRow {
    GrantRow {
        href: GRANT.to_owned(),
        what: words("tool scope repo.write", more),
        kind: "agent",
        subject: words("reviewer", more),
        subject_href: "/w/default/grants?agent=reviewer".to_owned(),
        lasts: words("all calls until the run ends", more),
        ends: Some(moment(600)),
        by: words("ada", more),
        proof: "proved to be a human",
        at: moment(0),
        reason: words("go on", more),
        ended,
    }
}

/// The list of grants.
#[must_use]
pub fn grants_of(more: &str) -> GrantsPage {
    let ended = Ended { sentence: words("ada revoked it", more), at: Some(moment(9)) };
    GrantsPage {
        frame: frame_of(more),
        filters: filters("grants"),
        find: Find {
            path: "/w/default/grants".to_owned(),
            kept: vec![("agent", format!("reviewer{}", short(more)))],
            scope: Field::new("scope", "Tool scope", Input::line(&short(more))),
        },
        rows: vec![grant_row(more, None), grant_row(more, Some(ended))],
        next: Some("/w/default/grants?after=1".to_owned()),
        empty: empty(),
    }
}

/// The page of a grant that two runs may use.
#[must_use]
pub fn grant_of(more: &str) -> GrantPage {
    let run = || LosingRun {
        run: words("run_0a1b2c3d4e5f", more),
        href: Some("/w/default/runs/run_0a1b2c3d4e5f".to_owned()),
        agent: words("reviewer", more),
    };
    let hint = format!("stops the next call{more}");
    GrantPage {
        frame: frame_of(more),
        row: grant_row(more, None),
        details: vec![("digest of the arguments", words("sha256:00", more))],
        losing: Some(Losing { runs: vec![run(), run()], count: 3, is_part: true }),
        revoke: Some(Action::new(format!("{GRANT}/revoke"), "Revoke", &hint).page()),
        back: "/w/default/grants".to_owned(),
    }
}
