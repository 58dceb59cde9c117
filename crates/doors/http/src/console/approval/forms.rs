//! The forms of a decision, and the proof that it needs.

use narthex_console::{
    pages::approval::{Forms, Lasting, Proof, ProofLink},
    parts::{
        Words,
        form::{Choice, Field, Input},
    },
};
use narthex_control::GrantRequestRow;
use narthex_model::GrantDuration;

use crate::{
    console::{answer, asked, viewer::Viewer},
    deciding::{Deciding, approval_path, is_proved},
    problem::Problem,
    shapes::GrantLife,
};

/// The parts of a form that was refused.
#[derive(Debug, Default)]
pub(super) struct Kept {
    pub(super) fault: Option<Fault>,
    pub(super) within: String,
    pub(super) reason: String,
    pub(super) denial: String,
}

/// The reason why nothing was decided.
#[derive(Debug)]
pub(super) enum Fault {
    /// The calls to allow are missing, or are not possible.
    Duration(String),
    /// The page can be answered no more.
    Used(String),
}

/// The human of a request in the login session of this token, and the request that they decide.
pub(super) fn deciding<'a>(viewer: &'a Viewer<'_>, token: &'a str, id: &'a str) -> Deciding<'a> {
    Deciding {
        control: viewer.control(),
        token,
        signed_in: &viewer.signed_in,
        workspace: &viewer.workspace,
        id,
    }
}

/// The token of the login session.
pub(super) fn session<'a>(viewer: &'a Viewer<'_>) -> Result<&'a str, Problem> {
    let (token, _) = viewer.browser.session()?.ok_or_else(answer::nothing)?;
    Ok(token)
}

/// The proof that an approval needs, or would have; `None` if the sign-in proves the human.
pub(super) async fn proof(viewer: &Viewer<'_>) -> Result<Option<Proof>, Problem> {
    let (control, signed_in) = (viewer.control(), &viewer.signed_in);
    if is_proved(signed_in) {
        return Ok(None);
    }
    let has_way = match control.sign_in_providers().is_empty() {
        false => true,
        true => {
            control.has_passkeys() && !control.passkeys(&signed_in.account.id).await?.is_empty()
        }
    };
    let adds = !has_way && control.has_passkeys() && control.adds_passkeys(signed_in).await?;
    let sentence = match (control.needs_proof(), has_way, adds) {
        (true, true, _) => {
            "You signed in with a link, which proves no human. To approve, sign in with a passkey \
             or at a provider: you come back to this page. You can always deny."
        }
        (true, false, true) => {
            "You signed in with a link, which proves no human. To approve, make a passkey, and \
             sign in with it. You can always deny."
        }
        (true, false, false) => {
            "You signed in with a link, which proves no human, and it adds no passkey. To approve, \
             ask an operator who signs in with a passkey or at a provider for a link that adds \
             one. You can always deny."
        }
        (false, true, _) => {
            "You signed in with a link, which proves no human: your approval counts, and is marked \
             as advisory. To approve with proof, sign in with a passkey or at a provider."
        }
        (false, false, _) => {
            "You signed in with a link, which proves no human: your approval counts, and is marked \
             as advisory. With a passkey your approvals prove a human."
        }
    };
    let link = match (has_way, adds) {
        (true, _) => Some(ProofLink {
            href: format!("{}/prove", approval_path(&viewer.workspace, &viewer.segment(0))),
            label: "Sign in with proof",
        }),
        (false, true) => Some(ProofLink { href: "/signin".to_owned(), label: "Make a passkey" }),
        (false, false) => None,
    };
    Ok(Some(Proof { sentence, link }))
}

/// The forms of a decision, with the token for one answer.
pub(super) fn forms(
    viewer: &Viewer<'_>,
    row: &GrantRequestRow,
    kept: &Kept,
) -> Result<Forms, Problem> {
    let id = row.id.to_text();
    let needs_proof = viewer.control().needs_proof() && !is_proved(&viewer.signed_in);
    let reason = |name: &str, value: &str| {
        let field = Field::new(name, "Reason", Input::line(value));
        field.help("The agent reads it. It may stay empty.")
    };
    Ok(Forms {
        path: format!("{}/decide", approval_path(&viewer.workspace, &id)),
        consent: deciding(viewer, session(viewer)?, &id).consent(row)?,
        durations: durations(viewer, row),
        fault: match &kept.fault {
            Some(Fault::Duration(text)) => Some(Words::new(text)),
            Some(Fault::Used(_)) | None => None,
        },
        within: within(&kept.within),
        reason: reason("reason", &kept.reason),
        denial: reason("denial", &kept.denial),
        off: needs_proof.then_some("your sign-in proves no human, as the note above says"),
    })
}

/// The choice of the time at which the grant ends in any case.
fn within(chosen: &str) -> Field {
    let none = ("", "no further limit");
    let lives = GrantLife::ALL.map(|life| (life.word(), life.label()));
    let options = std::iter::once(none).chain(lives).map(|(value, label)| Choice {
        value: value.to_owned(),
        label: Words::new(label),
        is_chosen: value == chosen,
    });
    let input = Input::Choice { options: options.collect() };
    Field::new("within", "At most for", input).help("After this time the grant allows nothing.")
}

/// The durations that a decision may choose from, and the calls to which each would apply.
fn durations(viewer: &Viewer<'_>, row: &GrantRequestRow) -> Vec<Lasting> {
    let (of, when) = match (&row.agent, &row.user) {
        (Some(agent), _) => {
            (format!(" of the agent {agent}"), ", whichever user has the turn".to_owned())
        }
        (None, Some(user)) => {
            (String::new(), format!(" while it is the turn of {}", asked::driver(viewer, user)))
        }
        (None, None) => (String::new(), String::new()),
    };
    let words = GrantDuration::WORDS.into_iter();
    let words = words.filter(|word| row.session.is_some() || *word != "session");
    let lasting = |word| {
        let covers = match (word, row.session) {
            ("once", Some(_)) => format!("the next call{of} in this session that needs it{when}"),
            ("once", None) => format!("the next call{of} in the workspace that needs it{when}"),
            ("run", _) => format!("all calls{of} in this run{when}"),
            ("session", _) => format!("all calls{of} in this session and all its runs{when}"),
            _ => format!("all calls{of} in the workspace{when}, until the grant is revoked"),
        };
        Lasting { word, covers: Words::new(&covers), is_asked: word == row.duration }
    };
    words.map(lasting).collect()
}
