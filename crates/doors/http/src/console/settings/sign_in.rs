//! The ways to sign in, which the operator sets in the configuration of the daemon.

use narthex_console::{
    pages::settings::{Card, Cell, Piece, Table},
    parts::{Empty, Words},
};
use narthex_model::command::narthex;

use super::tab::{self, Made};
use crate::console::{answer::Answered, viewer::Viewer};

const TAB: &str = "settings/sign-in";

pub(super) async fn show(viewer: &Viewer<'_>) -> Answered {
    viewer.query(&[])?;
    let head = tab::head(
        viewer,
        "Ways to sign in",
        "How people get in. The operator sets it for all workspaces.",
        narthex("whoami", &[]),
        "GET /api/me",
    );
    let cards = vec![providers(viewer), rest(viewer)];
    Made::new(head, TAB, cards).answer(viewer).await
}

/// The providers as the page of the sign-in names them.
fn providers(viewer: &Viewer<'_>) -> Card {
    let names = viewer.control().sign_in_providers();
    let row = |name: &&str| {
        let callback = viewer
            .control()
            .sign_in_origin()
            .map(|origin| origin.at(&format!("/signin/oidc/{name}/callback")));
        vec![
            Cell::new(name),
            Cell::new(&callback.unwrap_or_default()),
            Cell::new(&format!("table signin.oidc.{name}")),
        ]
    };
    let pieces = match names.is_empty() {
        true => vec![Piece::Empty(Empty {
            title: "No company provider",
            sentence: "With one, people sign in with the account of their company. The operator \
                       adds it to narthex.toml of the daemon, as the table signin.oidc.NAME."
                .to_owned(),
            example: Some("[signin.oidc.company]".to_owned()),
            page: Some("docs/guides/company-sign-in.md"),
        })],
        false => vec![
            Piece::Table(Table {
                caption: "Providers of the settings",
                head: vec![
                    ("Name", false),
                    ("Redirect address", false),
                    ("Key in narthex.toml", false),
                ],
                rows: names.iter().map(row).collect(),
            }),
            Piece::Note(Words::new(
                "Issuer, admitted people and their roles are in that table, and are not shown \
                 here. A change counts after a restart of the daemon.",
            )),
        ],
    };
    let sentence = "OpenID providers at which people sign in. Set in narthex.toml of the daemon.";
    Card::new("providers", "Company providers", sentence, pieces)
}

fn rest(viewer: &Viewer<'_>) -> Card {
    let control = viewer.control();
    let origin = control.sign_in_origin().map_or("none".to_owned(), ToString::to_string);
    let passkeys = match control.has_passkeys() {
        true => "yes",
        false => "no: browsers take no passkey at this numeric address",
    };
    let proof = match control.needs_proof() {
        true => "yes: a passkey or a provider has to prove the human",
        false => "no: a link is enough",
    };
    let pairs = vec![
        ("address for browsers (http.public_url)", Cell::new(&origin)),
        ("passkeys", Cell::new(passkeys)),
        ("grants need proof (grants.require_proof)", Cell::new(proof)),
    ];
    let sentence = "What counts now, with the key of narthex.toml that sets it.";
    Card::new("ways", "Passkeys and proof", sentence, vec![Piece::Pairs(pairs)])
}
