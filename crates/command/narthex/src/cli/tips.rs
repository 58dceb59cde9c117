//! Tips for words that people look for in another place of the command line.

use std::ffi::OsString;

use clap::{
    builder::StyledStr,
    error::{ContextKind, ContextValue},
};
use narthex_model::command::narthex;

/// Adds the tip for the refused word, if there is one, in place of clap's guess.
pub(super) fn with_tip(mut refusal: clap::Error, arguments: &[OsString]) -> clap::Error {
    let Some(tip) = tip(&refusal, arguments) else { return refusal };
    refusal.remove(ContextKind::SuggestedSubcommand);
    refusal.remove(ContextKind::SuggestedArg);
    let tips = vec![StyledStr::from(tip)];
    refusal.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
    refusal
}

fn tip(refusal: &clap::Error, arguments: &[OsString]) -> Option<String> {
    let word = |kind| match refusal.get(kind) {
        Some(ContextValue::String(word)) => Some(word.as_str()),
        _ => None,
    };
    let is_of = |command: &str| arguments.get(1).is_some_and(|first| first == command);
    if word(ContextKind::InvalidSubcommand) == Some("logs") && is_of("logs") {
        let (daemon, server) = (narthex("service logs", &[]), narthex("mcp logs NAME", &[]));
        return Some(format!(
            "`{daemon}` shows the log of the daemon, and `{server}` that of a server"
        ));
    }
    let is_refused =
        |flag: &str| word(ContextKind::InvalidArg).is_some_and(|word| word.starts_with(flag));
    if is_refused("--workspace") {
        let reason = match is_of("profiles") {
            true => "profiles are sets of the daemon's own servers, not of a workspace's",
            false => "the command is not about the objects of one workspace",
        };
        return Some(format!("leave out `--workspace`: {reason}"));
    }
    (is_refused("--from") && is_of("setup")).then(|| {
        let only = narthex("setup --only CLIENT", &[]);
        format!("`{only}` works with these clients alone")
    })
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    fn refused(line: &str) -> String {
        let words = std::iter::once("narthex").chain(line.split_whitespace());
        crate::cli::read(words.map(OsString::from)).unwrap_err().to_string()
    }

    #[test]
    fn words_of_other_commands_are_led_to_these() {
        for line in ["logs", "logs git"] {
            let text = refused(line);
            assert!(text.contains("tip: `narthex service logs` shows the log of the"), "{text}");
            assert!(text.contains("`narthex mcp logs NAME` that of a server"), "{text}");
        }
        for line in ["setup --from cursor", "setup --from=cursor"] {
            let text = refused(line);
            assert!(text.contains("tip: `narthex setup --only CLIENT` works with these"), "{text}");
        }
        for line in ["profiles show work --workspace team", "profiles list --workspace=team"] {
            let text = refused(line);
            assert!(text.contains("tip: leave out `--workspace`: profiles are sets of"), "{text}");
            assert!(!text.contains("as a value"), "{text}");
        }
        let text = refused("status --workspace team");
        assert!(text.contains("tip: leave out `--workspace`: the command is not about"), "{text}");
        let listed = ["narthex", "mcp", "list", "--workspace", "team"].map(OsString::from);
        assert_eq!(crate::cli::read(listed).unwrap().1.as_deref(), Some("team"));
        assert!(!refused("mcp nosuch").contains("narthex service logs"));
        assert!(!refused("setup --nosuch").contains("--only CLIENT"));
    }
}
