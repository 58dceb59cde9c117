//! `narthex trust`: shows what a file would start, asks, and approves its content.

use std::{
    io::{self, IsTerminal, Write, stderr, stdin, stdout},
    path::Path,
    process::ExitCode,
};

use narthex_cli::TrustArgs;
use narthex_model::{ErrorKind, ServerDefinition, Target};
use narthex_registry::config::{ConfigWarning, Entry, LoadContext, LoadedConfig, parse};
use rustix::termios::{QueueSelector, tcflush};
use serde_json::{Value, json};
use url::Url;

use super::{packages, source};
use crate::{
    Failure,
    cli::Context,
    config,
    data_dir::DataDir,
    output::{self, harmless},
    trust::Folder,
};

const HIDDEN: &str = "[hidden]";

pub(crate) async fn run(args: TrustArgs, context: Context) -> Result<ExitCode, Failure> {
    let path = args.file.unwrap_or_else(source::usual);
    let folder = Folder::read(&path)?;
    let loaded = unfilled(&folder, &path)?;
    let servers: Vec<_> =
        loaded.entries.iter().map(|entry| shown(entry, &loaded.warnings)).collect();
    let data = json!({
        "file": std::path::absolute(&path)?,
        "sha256": folder.hash(),
        "servers": servers,
    });
    let is_text = !context.format.is_json() && !context.format.is_quiet();
    if is_text {
        show(&servers)?;
    }
    let name = harmless(&path.display().to_string());
    // Who is shown nothing, or not here, is not asked.
    let is_approved = args.yes || (is_text && is_seen() && asked(&name).await?);
    if !is_approved {
        let text = format!(
            "{name} is not approved, and nothing has changed; read what it would start and answer \
             `y` on a terminal, or add --yes"
        );
        return Err(Failure { details: Some(data), ..Failure::new(ErrorKind::Denied, text) });
    }
    let place =
        DataDir::open(&context.settings.data)?.with_store(context.settings.store_url.clone());
    let store = place.store().await?;
    let approved = folder.approve(store.trusted_files()).await;
    store.close().await;
    approved?;
    place.note_approval(&folder.hash())?;
    if context.format.is_json() {
        output::json(&data)?;
    } else if is_text {
        output::line(&format!("\ntrusted {name} as it is now; `narthex up` starts it here"))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Whether somebody reads what is printed, and can answer.
fn is_seen() -> bool {
    stdin().is_terminal() && stdout().is_terminal()
}

/// Asks on the terminal. Anything but a clear yes is a no.
async fn asked(name: &str) -> Result<bool, Failure> {
    // What was typed before it was asked for is no answer.
    tcflush(stdin(), QueueSelector::IFlush).map_err(io::Error::from)?;
    let mut terminal = stderr();
    write!(terminal, "\nApprove {name}, so that `narthex up` may start this? [y/N] ")?;
    terminal.flush()?;
    let answer = tokio::task::spawn_blocking(|| {
        let mut answer = String::new();
        stdin().read_line(&mut answer).map(|_count| answer)
    });
    let answer =
        answer.await.map_err(|error| Failure::new(ErrorKind::Bug, error.to_string()))??;
    Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}

fn show(servers: &[Value]) -> Result<(), Failure> {
    for server in servers {
        // The file is not trusted yet, and what is read here decides whether it will be.
        let text = |key: &str| harmless(server[key].as_str().unwrap_or_default());
        output::line(&format!("{:<16} {}", text("alias"), text("starts")))?;
        if !text("folder").is_empty() {
            output::line(&format!("{:<16} in {}", "", quoted(&text("folder"))))?;
        }
        if server["is_confined"] == Value::Bool(true) {
            output::line(&format!("{:<16} confined as its entry says", ""))?;
        }
        for note in ["environment", "headers"] {
            let names = server[note].as_array().into_iter().flatten().filter_map(Value::as_str);
            let names: Vec<_> = names.map(harmless).collect();
            if !names.is_empty() {
                output::line(&format!("{:<16} with {note} {}", "", names.join(", ")))?;
            }
        }
        let unpinned = server["unpinned"].as_array().into_iter().flatten();
        for package in unpinned.filter_map(Value::as_str) {
            output::line(&format!("{:<16} warning: {}", "", harmless(package)))?;
        }
    }
    if servers.is_empty() {
        output::line("no servers")?;
    }
    Ok(())
}

/// The file with its placeholders left as they are written, so that no value is shown.
fn unfilled(folder: &Folder, path: &Path) -> Result<LoadedConfig, Failure> {
    let root = config::workspace_root()?;
    let env = |name: &str| Some(format!("${{env:{name}}}"));
    let context = LoadContext { file: path, workspace_root: &root, env: &env };
    Ok(parse(&folder.text, &context)?)
}

fn shown(entry: &Entry, warnings: &[ConfigWarning]) -> Value {
    match entry {
        Entry::Fault(fault) => json!({
            "alias": fault.name,
            "starts": format!("nothing: {}", fault.error.message),
        }),
        Entry::Server(definition) => definition_shown(definition, warnings),
    }
}

fn definition_shown(definition: &ServerDefinition, warnings: &[ConfigWarning]) -> Value {
    let alias = definition.alias.as_str();
    if definition.is_disabled {
        return json!({ "alias": alias, "starts": "nothing: it is disabled" });
    }
    match &definition.target {
        Target::Stdio(target) => {
            let mut words = vec![quoted(&target.command)];
            words.extend(target.args.iter().enumerate().map(|(index, arg)| {
                // The reader of the file has found what looks like a secret, by its place.
                let place = format!("{alias}.args[{index}]");
                let is_hidden = warnings.iter().any(|warning| warning.path.ends_with(&place));
                if is_hidden { HIDDEN.to_owned() } else { quoted(arg) }
            }));
            let names: Vec<_> = target.env.keys().collect();
            json!({
                "alias": alias,
                "starts": words.join(" "),
                // What a relative command is looked up from.
                "folder": target.working_dir.as_ref().map(|folder| folder.display().to_string()),
                "is_confined": target.confinement.as_ref().is_some_and(|all| !all.is_none()),
                "environment": names,
                "unpinned": packages::unpinned(definition),
            })
        }
        Target::Http(target) => {
            let names: Vec<_> = target.headers.keys().collect();
            json!({ "alias": alias, "starts": address(&target.url), "headers": names })
        }
    }
}

/// An address without what may be secret in it.
fn address(text: &str) -> String {
    let Ok(mut url) = Url::parse(text) else { return HIDDEN.to_owned() };
    let has_query = url.query().is_some();
    let is_plain = url.set_username("").is_ok() && url.set_password(None).is_ok();
    url.set_query(None);
    url.set_fragment(None);
    match (is_plain, has_query) {
        (true, false) => url.to_string(),
        (true, true) => format!("{url}?…"),
        (false, _) => HIDDEN.to_owned(),
    }
}

/// A word that can be told from its neighbours and cannot play tricks with a terminal.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@,+%${}".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("{word:?}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_secret_and_no_control_character_is_shown() {
        assert_eq!(address("https://me:pw@a.example/x?key=1#f"), "https://a.example/x?…");
        assert_eq!(quoted("a\u{1b}[2K\u{202e}b"), r#""a\u{1b}[2K\u{202e}b""#);
        assert_eq!(quoted("a b"), r#""a b""#);
        assert_eq!(quoted("${env:X}"), "${env:X}");
    }
}
