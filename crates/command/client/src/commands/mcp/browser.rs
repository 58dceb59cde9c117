//! Opens an address in the browser of this machine.

use std::process::Stdio;

use tokio::process::Command;
use url::Url;

use crate::environment;

/// The program that opens addresses with the user's browser.
const OPENER: &str = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
/// The variables of a session with a screen, of which Linux has one.
const SCREENS: [&str; 2] = ["WAYLAND_DISPLAY", "DISPLAY"];

/// Opens a page; false if this machine shows none. Only addresses of the web are opened: another
/// server has made this one (S1).
pub(crate) fn open(url: &Url) -> bool {
    if !is_of_the_web(url) || !has_screen() {
        return false;
    }
    let mut command = Command::new(OPENER);
    command.arg(url.as_str()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // A signal to this command does not end the browser.
    command.process_group(0);
    // The token and the keys of this program are nothing to a browser.
    for name in environment::names().filter(|name| name.starts_with("NARTHEX_")) {
        command.env_remove(name);
    }
    match command.spawn() {
        Ok(_opener) => true,
        Err(error) => {
            tracing::debug!("the browser cannot be opened with `{OPENER}`: {error}");
            false
        }
    }
}

fn is_of_the_web(url: &Url) -> bool {
    matches!(url.scheme(), "http" | "https")
}

fn has_screen() -> bool {
    let is_set = |name: &&str| environment::variable(name).is_some_and(|value| !value.is_empty());
    cfg!(target_os = "macos") || SCREENS.iter().any(is_set)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S1: an address that a server chose starts no other program than the browser.
    #[test]
    fn s1_only_addresses_of_the_web_are_opened() {
        for url in ["file:///etc/passwd", "javascript:alert(1)", "vscode://x", "data:text/html,x"] {
            let url = Url::parse(url).unwrap();
            assert!(!is_of_the_web(&url) && !open(&url), "{url}");
        }
        // Without a screen no address is opened, so that the others prove nothing by themselves.
        for url in ["https://as.example/authorize", "http://127.0.0.1:1/authorize"] {
            assert!(is_of_the_web(&Url::parse(url).unwrap()), "{url}");
        }
    }
}
