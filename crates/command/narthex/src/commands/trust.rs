//! `narthex trust`: shows the programs and addresses that a file would start, asks for approval,
//! and stores it.

use std::{
    collections::BTreeSet,
    io::{self, IsTerminal, Write, stderr, stdin, stdout},
    path::PathBuf,
    process::ExitCode,
};

use narthex_client::cli::TrustArgs;
use narthex_model::{
    Confinement, ErrorKind, NetworkAccess, OAuth, ServerAuth, ServerDefinition, Target,
    command::narthex,
};
use narthex_registry::config::{ConfigWarning, Entry};
use rustix::termios::{QueueSelector, tcflush};
use serde_json::{Value, json};
use url::Url;

use super::{
    packages::{self, FailedStarts},
    source,
};
use crate::{
    Failure,
    cli::Context,
    config,
    data_dir::DataDir,
    output::{self, harmless},
    stored::StorePlace,
    trust::{Folder, Standing},
};

const HIDDEN: &str = "[hidden]";

pub(crate) async fn run(args: TrustArgs, context: Context) -> Result<ExitCode, Failure> {
    let path = args.file.unwrap_or_else(source::usual);
    if !path.exists() {
        let file = path.display();
        let text = format!("there is no file {file} here; give the path of the file to approve");
        return Err(Failure::new(ErrorKind::NotFound, text));
    }
    let folder = Folder::read(&path)?;
    let loaded = source::unfilled_text(&folder, &path)?;
    let failed = FailedStarts::of(&context.settings).await;
    let servers: Vec<_> =
        loaded.entries.iter().map(|entry| shown(entry, &loaded.warnings, &failed)).collect();
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
    let standing = source::standing_of(&folder, &context.settings).await;
    if matches!(standing, Ok(Standing::Approved)) && !args.yes {
        return already(&name, &data, &context);
    }
    // Without a terminal that shows the programs, the user gets no question.
    let is_approved = args.yes || (is_text && is_seen() && asked(&question(&name)).await?);
    if !is_approved {
        let text = format!(
            "{name} is not approved, and nothing has changed; read what it would start and answer \
             `y` on a terminal, or add --yes"
        );
        return Err(Failure::new(ErrorKind::Denied, text).with_details(Some(data)));
    }
    let data_dir = DataDir::open(&context.settings.daemon.data)?;
    let place = StorePlace::of(&data_dir, &context.settings);
    let store = place.open().await?;
    let approved = folder.approve(store.trusted_files()).await;
    store.close().await;
    approved?;
    place.note_approval(&folder.hash())?;
    if context.format.is_json() {
        output::json(&data)?;
    } else if is_text {
        let then = harmless(&taking_effect(&data_dir, &folder));
        output::line(&format!("\ntrusted {name} as it is now; {then}"))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// A content that is approved needs no second answer: nothing changes.
fn already(name: &str, data: &Value, context: &Context) -> Result<ExitCode, Failure> {
    if context.format.is_json() {
        output::json(data)?;
    } else if !context.format.is_quiet() {
        output::line(&format!(
            "\nthe present content of {name} is trusted already; nothing has changed"
        ))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Names the daemon that follows the approved file, or the command that starts such a daemon.
fn taking_effect(place: &DataDir, folder: &Folder) -> String {
    // Without a daemon that can be seen, there is one to be started.
    if let Ok(Some(daemon)) = place.running()
        && folder.is_at(&daemon.config)
    {
        return "the running daemon uses it from now on".to_owned();
    }
    let up = narthex("up", &[]);
    match config::workspace_root().is_ok_and(|root| root == folder.root()) {
        true => format!("`{up}` starts it here"),
        false => format!("`{up}` starts it, in the folder {}", folder.root().display()),
    }
}

fn question(name: &str) -> String {
    let up = narthex("up", &[]);
    format!("Approve {name}, so that `{up}` may start this?")
}

/// True if a person sees the output and can answer.
pub(super) fn is_seen() -> bool {
    stdin().is_terminal() && stdout().is_terminal()
}

/// Asks on the terminal. Anything but a clear yes is a no.
pub(super) async fn asked(question: &str) -> Result<bool, Failure> {
    // Text that was typed before the question is no answer.
    tcflush(stdin(), QueueSelector::IFlush).map_err(io::Error::from)?;
    let mut terminal = stderr();
    write!(terminal, "\n{question} [y/N] ")?;
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
        // The file is not trusted yet, and the person decides by this output whether it will be.
        let text = |key: &str| harmless(server[key].as_str().unwrap_or_default());
        output::line(&format!("{:<16} {}", text("alias"), text("starts")))?;
        if !text("folder").is_empty() {
            output::line(&format!("{:<16} in {}", "", quoted(&text("folder"))))?;
        }
        for (name, value) in server["environment"].as_object().into_iter().flatten() {
            let value = value.as_str().unwrap_or_default();
            let pair = format!("{}={}", harmless(name), quoted(value));
            output::line(&format!("{:<16} with environment {pair}", ""))?;
        }
        for (note, key) in [("with headers", "headers"), ("gets your stored secrets", "secrets")] {
            let names = server[key].as_array().into_iter().flatten().filter_map(Value::as_str);
            let names: Vec<_> = names.map(harmless).collect();
            if !names.is_empty() {
                output::line(&format!("{:<16} {note} {}", "", names.join(", ")))?;
            }
        }
        for (note, text) in [("confined to", "confinement"), ("signs in by", "auth")] {
            if let Some(text) = server[text].as_str() {
                output::line(&format!("{:<16} {note} {}", "", harmless(text)))?;
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

fn shown(entry: &Entry, warnings: &[ConfigWarning], failed: &FailedStarts) -> Value {
    match entry {
        Entry::Fault(fault) => json!({
            "alias": fault.name,
            "starts": format!("nothing: {}", fault.error.message),
        }),
        Entry::Server(definition) => definition_shown(definition, warnings, failed),
    }
}

fn definition_shown(
    definition: &ServerDefinition,
    warnings: &[ConfigWarning],
    failed: &FailedStarts,
) -> Value {
    let alias = definition.alias.as_str();
    if definition.is_disabled {
        return json!({ "alias": alias, "starts": "nothing: it is disabled" });
    }
    match &definition.target {
        Target::Stdio(target) => {
            let mut words = vec![quoted(&target.command)];
            words.extend(target.args.iter().enumerate().map(|(index, arg)| {
                // The reader of the file has warned about values that look like secrets, by their
                // places.
                let place = format!("{alias}.args[{index}]");
                let is_warned = warnings.iter().any(|warning| warning.path.ends_with(&place));
                // A program may take any argument for code, but not one word.
                match is_warned && is_one_word(arg) {
                    true => HIDDEN.to_owned(),
                    false => quoted(arg),
                }
            }));
            let env = target.env.iter().map(|(name, value)| {
                let place = format!("{alias}.env.{name}");
                let is_warned = warnings.iter().any(|warning| warning.path.ends_with(&place));
                let value = match is_warned && is_one_word(&value.expose().replace(' ', "")) {
                    true => HIDDEN,
                    false => value.expose(),
                };
                (name.clone(), Value::from(value))
            });
            let confinement = target.confinement.as_ref().filter(|all| !all.is_none());
            json!({
                "alias": alias,
                "starts": words.join(" "),
                // The folder from which a relative command is looked up.
                "folder": target.working_dir.as_ref().map(|folder| folder.display().to_string()),
                "confinement": confinement.map(|all| confined(all)),
                "environment": Value::Object(env.collect()),
                "secrets": secrets(definition),
                "unpinned": packages::unpinned(definition, failed),
            })
        }
        Target::Http(target) => {
            let names: Vec<_> = target.headers.keys().collect();
            json!({
                "alias": alias,
                "starts": address(&target.url),
                "headers": names,
                "secrets": secrets(definition),
                "auth": auth(&target.auth),
            })
        }
    }
}

/// The names of the secrets that a server gets, each once.
fn secrets(definition: &ServerDefinition) -> BTreeSet<&str> {
    definition.named_secrets.iter().map(|named| named.name.as_str()).collect()
}

/// True if a text is one word as keys are, which no shell takes for more.
fn is_one_word(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_alphanumeric() || "-_.+=~:@!#%*,".contains(c))
}

/// The files, network and limits of a program's confinement, in words.
fn confined(confinement: &Confinement) -> String {
    let Confinement { files, network, filters_system_calls, limits, has_namespaces } = confinement;
    let mut all = Vec::new();
    if let Some(files) = files {
        let paths = |paths: &[PathBuf]| match paths {
            [] => "nothing".to_owned(),
            paths => {
                let paths = paths.iter().map(|path| quoted(&path.to_string_lossy()));
                paths.collect::<Vec<_>>().join(" ")
            }
        };
        all.push(format!("reading {}", paths(&files.read)));
        all.push(format!("writing {}", paths(&files.write)));
    }
    match network {
        NetworkAccess::All => {}
        NetworkAccess::None => all.push("no network".to_owned()),
        NetworkAccess::Connect(ports) => {
            let ports: Vec<_> = ports.iter().map(ToString::to_string).collect();
            all.push(format!("the ports {}", ports.join(" ")));
        }
    }
    if *filters_system_calls {
        all.push("ordinary system calls".to_owned());
    }
    if *has_namespaces {
        all.push("namespaces of its own".to_owned());
    }
    let limits = [
        (limits.memory_mb, "MiB of memory"),
        (limits.processes, "processes"),
        (limits.open_files, "open files"),
        (limits.cpu_seconds, "seconds of CPU time"),
    ];
    all.extend(limits.iter().filter_map(|(most, what)| Some(format!("{} {what}", (*most)?))));
    all.join(", ")
}

/// The authentication of requests, and where a credential is sent besides the server.
fn auth(auth: &ServerAuth) -> Option<String> {
    match auth {
        ServerAuth::None => None,
        ServerAuth::ApiKey(key) => Some(format!("a key in the header {}", key.header_name)),
        ServerAuth::NotYet(oauth) => Some(match &**oauth {
            OAuth::ClientCredentials(client) => {
                format!("{} at {}", oauth.mode(), address(&client.token_url))
            }
            OAuth::AuthorizationCode(_) => oauth.mode().to_owned(),
        }),
    }
}

/// An address without parts that may be secret: it shows only the names of parameters.
fn address(text: &str) -> String {
    let Ok(mut url) = Url::parse(text) else { return HIDDEN.to_owned() };
    let names: Vec<_> = url.query_pairs().map(|(name, _)| format!("{name}=…")).collect();
    let is_plain = url.set_username("").is_ok() && url.set_password(None).is_ok();
    url.set_query(None);
    url.set_fragment(None);
    match (is_plain, &names[..]) {
        (true, []) => url.to_string(),
        (true, names) => format!("{url}?{}", names.join("&")),
        (false, _) => HIDDEN.to_owned(),
    }
}

/// A word that is distinct from its neighbours and cannot play tricks with a terminal.
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

    /// D27: code in an argument is shown, also where it begins as a key does.
    #[test]
    fn d27_code_for_a_shell_is_never_hidden() {
        for one in ["ghp_0123456789abcdefghij", "sk-abc_DEF.1", "hidden-two"] {
            assert!(is_one_word(one), "{one}");
        }
        for code in ["Basic 1; curl x", "sk-a|sh", "ghp_$(id)", "eyJ\n", "sk-`id`", "sk-a&b", "a/b"]
        {
            assert!(!is_one_word(code), "{code}");
        }
    }

    #[test]
    fn secrets_and_control_characters_are_not_shown() {
        assert_eq!(address("https://me:pw@a.example/x?key=1#f"), "https://a.example/x?key=…");
        assert_eq!(quoted("a\u{1b}[2K\u{202e}b"), r#""a\u{1b}[2K\u{202e}b""#);
        assert_eq!(quoted("a b"), r#""a b""#);
        assert_eq!(quoted("${env:X}"), "${env:X}");
    }
}
