//! Limits of the connections to servers.

use std::{sync::Arc, time::Duration};

use narthex_http_client::Proxies;
use narthex_upstream::Deadlines;

use super::layers::Layers;

/// Limits of the connections to servers.
#[derive(Debug, Clone)]
pub struct ConnectionOptions {
    /// Time limits on the steps of connecting.
    pub deadlines: Deadlines,
    /// Time limit of mounting a server of a run, from its start to its last list.
    pub mount: Duration,
    /// Time without a call after which a program is stopped until the next call; `None` for never.
    pub idle_stop: Option<Duration>,
    /// Maximum number of processes of one server at a time.
    pub processes_max: usize,
    /// True if programs without a confinement in their entry are confined strictly.
    pub is_strict: bool,
    /// The proxies for servers, providers of sign-ins and webhooks.
    pub proxies: Arc<Proxies>,
}

impl Default for ConnectionOptions {
    fn default() -> Self {
        Self {
            deadlines: Deadlines::default(),
            mount: Duration::from_secs(5),
            idle_stop: None,
            processes_max: 64,
            is_strict: false,
            proxies: Arc::default(),
        }
    }
}

/// Reads them.
pub(crate) fn read(layers: &Layers, proxies: Proxies) -> ConnectionOptions {
    let text = |path: &str| layers.get(path)?.value.as_str();
    let duration = |path: &str| narthex_client::cli::duration(text(path)?).ok();
    let processes = layers.get("limits.processes").and_then(|given| given.value.as_integer());
    let usual = ConnectionOptions::default();
    let Deadlines { probe, connect, list, install, mount } = usual.deadlines;
    ConnectionOptions {
        deadlines: Deadlines {
            probe: duration("timeouts.probe").unwrap_or(probe),
            connect: duration("timeouts.connect").unwrap_or(connect),
            list: duration("timeouts.list").unwrap_or(list),
            install: duration("timeouts.install").unwrap_or(install),
            mount,
        },
        mount: duration("timeouts.mount").unwrap_or(usual.mount),
        idle_stop: duration("timeouts.idle_stop"),
        processes_max: processes
            .and_then(|most| usize::try_from(most).ok())
            .unwrap_or(usual.processes_max),
        is_strict: text("confinement") == Some("strict"),
        proxies: proxies.into(),
    }
}

/// The proxies of the settings, or else those of the variables that other programs read as well,
/// in small letters first.
///
/// # Errors
/// The setting or variable that names no proxy.
pub(crate) fn proxies(
    layers: &Layers,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<Proxies, String> {
    let given = |path: &str| {
        let given = layers.get(path)?;
        Some((given.value.as_str()?.to_owned(), given.source.clone()))
    };
    let variable = |name: &str| {
        let spellings = [name.to_ascii_lowercase(), name.to_owned()];
        let found = spellings.into_iter().find_map(|name| Some((env(&name)?, name)));
        found.filter(|(value, _)| !value.trim().is_empty())
    };
    let all = || variable("ALL_PROXY").filter(|(value, _)| !value.starts_with("socks"));
    let http = given("proxy.http").or_else(|| variable("HTTP_PROXY")).or_else(all);
    let https = given("proxy.https").or_else(|| variable("HTTPS_PROXY")).or_else(all);
    let listed = layers.get("proxy.direct").and_then(|given| given.value.as_array());
    let direct = match listed {
        Some(items) => items.iter().filter_map(|item| item.as_str()).collect::<Vec<_>>().join(","),
        None => variable("NO_PROXY").map(|(value, _)| value).unwrap_or_default(),
    };
    for (value, source) in [&http, &https].into_iter().flatten() {
        Proxies::new(Some(value), None, "").map_err(|fault| format!("{source}: {fault}"))?;
    }
    let text = |given: &Option<(String, String)>| given.as_ref().map(|(value, _)| value.clone());
    Proxies::new(text(&http).as_deref(), text(&https).as_deref(), &direct)
        .map_err(|fault| fault.to_string())
}

#[cfg(test)]
mod tests {
    use narthex_http_client::Proxies;
    use toml::Table;

    use super::proxies;
    use crate::config::layers::Layers;

    /// The proxies of a file and of variables.
    fn read(file: &str, variables: &[(&str, &str)]) -> Result<Proxies, String> {
        let value = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        let mut layers = Layers::default();
        layers.add_file("narthex.toml", &file.parse::<Table>().unwrap());
        layers.add_environment(&value);
        match layers.faults.is_empty() {
            true => proxies(&layers, &value),
            false => Err(layers.faults.join("\n")),
        }
    }

    /// E169: settings win over the variables of other programs, of which small letters win, and the
    /// one for all is the last.
    #[test]
    fn e169_proxies_come_from_settings_and_then_from_variables() {
        let shown = |file: &str, variables: &[(&str, &str)]| {
            format!("{:?}", read(file, variables).unwrap())
        };
        let all = [
            ("NARTHEX_PROXY_HTTP", "own:1"),
            ("http_proxy", "small:2"),
            ("HTTP_PROXY", "large:3"),
            ("ALL_PROXY", "all:4"),
        ];
        let file = "[proxy]\nhttp = \"file:5\"";
        for (from, file, found) in
            [(0, file, "own:1"), (1, file, "file:5"), (1, "", "small:2"), (2, "", "large:3")]
        {
            let shown = shown(file, &all[from..]);
            assert!(shown.contains(found) && shown.contains("all:4"), "{found}: {shown}");
        }
        let socks = [("ALL_PROXY", "socks5://x:1"), ("https_proxy", " ")];
        assert!(!shown("", &socks).contains("address"), "SOCKS is passed over");
        let direct = shown("[proxy]\ndirect = [\"a.test\"]", &[("NO_PROXY", "b.test")]);
        assert!(direct.contains("a.test") && !direct.contains("b.test"), "{direct}");
        assert!(shown("", &[("no_proxy", "c.test")]).contains("c.test"));
    }

    /// E169: a bad proxy is refused by the name of its setting or variable, without its password.
    #[test]
    fn e169_a_bad_proxy_is_refused_with_the_name_of_its_setting() {
        for (file, variables, place) in [
            ("[proxy]\nhttp = \"ftp://me:hush@x\"", &[][..], "narthex.toml: `proxy.http`: "),
            ("[proxy]\nhttps = \"http://\"", &[], "narthex.toml: `proxy.https`: "),
            ("", &[("NARTHEX_PROXY_HTTPS", "socks5://me:hush@x")], "NARTHEX_PROXY_HTTPS: "),
            ("", &[("NARTHEX_PROXY_HTTP", "http://me:hush@")], "NARTHEX_PROXY_HTTP: "),
            ("", &[("https_proxy", "ftp://me:hush@x")], "https_proxy: "),
            ("", &[("HTTP_PROXY", "ftp://me:hush@x")], "HTTP_PROXY: "),
            ("", &[("all_proxy", "ftp://me:hush@x")], "all_proxy: "),
        ] {
            let fault = read(file, variables).unwrap_err();
            assert!(fault.starts_with(place) && !fault.contains("hush"), "{fault}");
            assert!(fault.contains("such as http://user:password@proxy.example:3128"), "{fault}");
        }
        for (file, wanted) in [
            ("[proxy]\nhttp = 3128", "`proxy.http` must be a text"),
            ("[proxy]\ndirect = \"a.test\"", "`proxy.direct` must be a list of texts"),
            (
                "[proxy]\nhtttp = \"x:1\"",
                "`proxy.htttp` is not a setting; did you mean `proxy.http`?",
            ),
        ] {
            let fault = read(file, &[]).unwrap_err();
            assert!(fault.contains(wanted), "{fault}");
        }
    }
}
