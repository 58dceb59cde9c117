//! The texts by which a person connects a client. None has a token in it.

use narthex_client_files::{
    clients::{Client, OwnEntry, Transport},
    connect::{OwnMachine, address_text, of_user, program_text},
};
use narthex_console::{
    pages::connect::{Text, Way},
    parts::Words,
};
use narthex_control::DoorDesk;
use narthex_model::command::narthex;

use crate::console::viewer::Viewer;

/// The choices that are no rows of the table of clients: id and name.
pub(super) const WITHOUT_FILE: [(&str, &str); 2] =
    [("claude-ai", "claude.ai"), ("other", "another client")];
/// The row whose entries other clients use, too.
const USUAL: &str = "claude-desktop";

/// The address of all servers that clients of the workspace get.
pub(super) fn url(viewer: &Viewer<'_>) -> String {
    let control = viewer.control();
    let path = match viewer.workspace == *control.home() {
        true => "/mcp".to_owned(),
        false => format!("/mcp/w/{}", viewer.workspace),
    };
    control.sign_in_origin().map_or_else(|| path.clone(), |origin| origin.at(&path))
}

/// The ways of a client of the table.
pub(super) fn of(
    viewer: &Viewer<'_>,
    client: &Client,
    url: &str,
    machine: Option<&OwnMachine>,
) -> Vec<Way> {
    let file = format!("into the file of {}, merged with what is there", client.name);
    let takes_address = client.transports.contains(&Transport::Http);
    let mut ways = Vec::new();
    if takes_address {
        let mut texts = commands(&client.id, url);
        if let Ok(Some(text)) = address_text(client, url) {
            texts.push(Text { label: Words::new(&file), text });
        }
        ways.extend(with_sign_in(viewer, texts));
    }
    let plain = OwnEntry { name: "narthex", program: "narthex", arguments: &[] };
    let own = machine.map_or(plain, OwnMachine::own);
    if let Ok(text) = program_text(client, &own) {
        ways.push(by_program(text, &file));
    }
    if takes_address {
        ways.push(with_token(viewer, &client.id));
    }
    ways
}

/// The ways of a client without a row.
pub(super) fn without_file(viewer: &Viewer<'_>, id: &str, url: &str) -> Vec<Way> {
    let text = Text { label: Words::new("the address"), text: url.to_owned() };
    if id != "other" {
        return vec![Way {
            title: "As a connector",
            sentence: Words::new(match url.starts_with("https://") {
                true => {
                    "Add a custom connector with this address in the settings of claude.ai. It \
                     opens a page of this daemon, where you sign in and choose the servers."
                }
                false => {
                    "claude.ai calls from the internet, and this daemon has no address with https. \
                     Give it one as docs/guides/one-url.md says; then add the address as a custom \
                     connector."
                }
            }),
            texts: vec![text],
        }];
    }
    let mut ways: Vec<_> = with_sign_in(viewer, vec![text]).into_iter().collect();
    let own = OwnEntry { name: "narthex", program: "narthex", arguments: &[] };
    let usual = of_user().find(|client| client.id == USUAL);
    if let Some(Ok(text)) = usual.map(|client| program_text(client, &own)) {
        ways.push(by_program(text, "into the file of the client, in its own form"));
    }
    ways.push(with_token(viewer, "desktop"));
    ways
}

/// The way by OAuth, if the door gives tokens.
fn with_sign_in(viewer: &Viewer<'_>, texts: Vec<Text>) -> Option<Way> {
    let desk = DoorDesk::of(viewer.control())?;
    desk.server().gives_tokens().then(|| Way {
        title: "With a sign-in",
        sentence: Words::new(
            "For clients that can sign you in. The client opens a page of this daemon, where you \
             choose the servers and let it in. To undo it, revoke the client on this console, and \
             take the entry out of the file.",
        ),
        texts,
    })
}

fn by_program(text: String, file: &str) -> Way {
    Way {
        title: "By a program on the machine of the daemon",
        sentence: Words::new(&format!(
            "The client starts `{}`, which needs no token and starts the daemon if none runs. To \
             undo it, take the entry out of the file.",
            narthex("connect", &[]),
        )),
        texts: vec![Text { label: Words::new(file), text }],
    }
}

/// The way with a token, which a command shows once and no page.
fn with_token(viewer: &Viewer<'_>, client: &str) -> Way {
    let name = Words::within(client, 60);
    let command = narthex("clients register {} --agent AGENT", &[&name.as_str()]);
    let command = command.in_workspace(viewer.workspace.as_str()).to_string();
    Way {
        title: "With a token",
        sentence: Words::new(
            "For clients that know no sign-in. The command shows the token once, in an entry for \
             the client's file; no page shows it. To undo it, revoke the client on this console.",
        ),
        texts: vec![Text { label: Words::new("in a terminal, as an admin"), text: command }],
    }
}

/// The commands of the client itself that add the address, as its page of the documentation has
/// them.
fn commands(id: &str, url: &str) -> Vec<Text> {
    let lines = match id {
        "claude-code" => vec![
            format!("claude mcp add --scope user --transport http narthex {url}"),
            "claude mcp login narthex".to_owned(),
        ],
        _ => Vec::new(),
    };
    let label = || Words::new("in a terminal");
    lines.into_iter().map(|text| Text { label: label(), text }).collect()
}
