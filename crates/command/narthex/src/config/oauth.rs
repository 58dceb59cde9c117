//! The settings of the door as an authorization server for its clients.

use std::net::SocketAddr;

use narthex_control::{DoorOptions, LocalConsent};
use narthex_login::PublicOrigin;
use narthex_oauth::server::{DocumentHosts, Door, RedirectRules};
use toml::Value;

use super::given::Given;

/// The names by which clients of this machine reach a listener on loopback.
const LOCAL_NAMES: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// The door as an authorization server, as set in the settings.
#[derive(Debug, Clone, Default)]
pub(crate) struct DoorGiven {
    mode: Mode,
    has_local_click: bool,
    redirects: Option<RedirectRules>,
    documents: DocumentHosts,
}

/// The condition on which the door gives tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Mode {
    /// It listens on loopback alone, or has a public address with https.
    #[default]
    Auto,
    On,
    Off,
}

impl DoorGiven {
    /// The options for a listener; `None` if the door gives no tokens. `is_public` is true if the
    /// settings name the address of the pages.
    pub(crate) fn options(
        &self,
        origin: &PublicOrigin,
        is_public: bool,
        listen: SocketAddr,
    ) -> Option<DoorOptions> {
        let is_local = listen.ip().is_loopback();
        let is_on = match self.mode {
            Mode::Auto => is_local || is_public && origin.is_https(),
            Mode::On => true,
            Mode::Off => false,
        };
        // An origin of pages is one of a door as well.
        let door = Door::new(origin.as_str()).ok().filter(|_| is_on)?;
        let door = match is_local {
            true => door.with_names(local_names(origin.is_https() && !is_public, listen.port())),
            false => door,
        };
        // Behind a public address, anyone could click.
        let has_click = self.has_local_click && is_local && !is_public;
        let consent = if has_click { LocalConsent::Click } else { LocalConsent::SignIn };
        let usual = DoorOptions::new(door);
        let redirects = self.redirects.clone().unwrap_or(usual.redirects);
        Some(DoorOptions { redirects, documents: self.documents.clone(), consent, ..usual })
    }
}

/// The origins of a listener on loopback.
fn local_names(is_tls: bool, port: u16) -> [String; 3] {
    let (scheme, usual_port) = if is_tls { ("https", 443) } else { ("http", 80) };
    let port = if port == usual_port { String::new() } else { format!(":{port}") };
    LOCAL_NAMES.map(|name| format!("{scheme}://{name}{port}"))
}

/// Reads the settings; all faults are added.
pub(crate) fn read<'g>(
    get: impl Fn(&str) -> Option<&'g Given>,
    faults: &mut Vec<String>,
) -> DoorGiven {
    let mut door = DoorGiven::default();
    if let Some(given) = get("oauth.door") {
        match given.value.as_str() {
            Some("auto") => door.mode = Mode::Auto,
            Some("on") => door.mode = Mode::On,
            Some("off") => door.mode = Mode::Off,
            _ => faults.push(format!("{} must be `auto`, `on` or `off`", given.source)),
        }
    }
    let click = get("oauth.local_click").and_then(|given| given.value.as_bool());
    door.has_local_click = click.unwrap_or_default();
    if let Some(given) = get("oauth.redirect_uris") {
        match RedirectRules::new(texts(given)) {
            Ok(rules) => door.redirects = Some(rules),
            Err(error) => faults.push(format!("{}: {error}", given.source)),
        }
    }
    if let Some(given) = get("oauth.document_hosts") {
        let hosts = texts(given).map(str::to_ascii_lowercase).collect();
        door.documents = DocumentHosts::Only(hosts);
    }
    door
}

fn texts(given: &Given) -> impl Iterator<Item = &str> {
    given.value.as_array().into_iter().flatten().filter_map(Value::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(value: impl Into<Value>) -> Given {
        Given { value: value.into(), source: "f".to_owned() }
    }

    fn options(door: &DoorGiven, url: &str, listen: &str, is_public: bool) -> Option<DoorOptions> {
        let origin = PublicOrigin::parse(url).unwrap();
        door.options(&origin, is_public, listen.parse().unwrap())
    }

    #[test]
    fn door_a1_the_door_gives_tokens_on_loopback_and_at_public_https_addresses() {
        let (auto, local) = (DoorGiven::default(), "127.0.0.1:7717");
        let is_on = |url, listen, is_public| options(&auto, url, listen, is_public).is_some();
        assert!(is_on("http://localhost:7717", local, false));
        assert!(is_on("https://narthex.example", "0.0.0.0:7717", true));
        assert!(!is_on("http://localhost:7717", "0.0.0.0:7717", false));
        assert!(!is_on("https://localhost:7717", "0.0.0.0:7717", false));
        let off = DoorGiven { mode: Mode::Off, ..DoorGiven::default() };
        assert!(options(&off, "http://localhost:7717", local, false).is_none());
    }

    #[test]
    fn door_r2_names_of_this_machine_are_names_of_the_door() {
        let here = options(&DoorGiven::default(), "http://localhost:7717", "127.0.0.1:7717", false);
        let door = here.unwrap().door;
        assert_eq!(door.issuer(), "http://localhost:7717");
        let canonical = door.aggregated();
        for name in ["http://127.0.0.1:7717/mcp", "http://[::1]:7717/mcp"] {
            assert_eq!(door.named(name), Ok(canonical.clone()), "{name}");
        }
    }

    /// A click proves nothing where others reach the daemon.
    #[test]
    fn door_a6_a_click_counts_on_loopback_alone() {
        let click = DoorGiven { has_local_click: true, mode: Mode::On, ..DoorGiven::default() };
        let consent =
            |url, listen, is_public| options(&click, url, listen, is_public).unwrap().consent;
        let (url, here) = ("http://localhost:7717", "127.0.0.1:7717");
        assert_eq!(consent(url, here, false), LocalConsent::Click);
        assert_eq!(consent(url, "0.0.0.0:7717", false), LocalConsent::SignIn);
        assert_eq!(consent("https://narthex.example", here, true), LocalConsent::SignIn);
        let usual = options(&DoorGiven::default(), url, here, false).unwrap();
        assert_eq!(usual.consent, LocalConsent::SignIn);
    }

    #[test]
    fn door_a5_all_faults_of_door_settings_are_reported() {
        let (mode, uris) = (given("maybe"), given(vec!["javascript:x"]));
        let get = |path: &str| match path {
            "oauth.door" => Some(&mode),
            "oauth.redirect_uris" => Some(&uris),
            _ => None,
        };
        let mut faults = Vec::new();
        read(get, &mut faults);
        assert_eq!(faults.len(), 2, "{faults:?}");
        assert!(faults[0].contains("`auto`, `on` or `off`"), "{faults:?}");
    }
}
