//! Finds the daemon and the token for an operator's commands.

use std::{io::Read, path::Path};

use fs_err as fs;
use narthex_model::{ErrorKind, Secret, command::narthex};
use url::Url;

use super::{DaemonClient, token::TokenSource, trust};
use crate::{
    DaemonOptions, Failure,
    data_dir::{DaemonState, DataDir, read_admin_token, read_client_token},
    environment,
    terminal::notice,
    web::is_loopback,
};

/// More than any token has.
const TOKEN_MAX: u64 = 4096;

impl DaemonClient {
    /// Finds the daemon, for requests as its operator. Sends no request yet.
    ///
    /// # Errors
    /// When no daemon is found, or a given daemon or token cannot be used.
    pub fn operator(options: &DaemonOptions) -> Result<Self, Failure> {
        Self::operator_if_up(options)?.ok_or_else(|| not_up(options))
    }

    /// As [`Self::operator`]; `None` if no daemon runs.
    ///
    /// # Errors
    /// When a given daemon or token cannot be used.
    pub fn operator_if_up(options: &DaemonOptions) -> Result<Option<Self>, Failure> {
        let remedy = "set it to a token, or unset it to use the admin token";
        Self::holder_if_up(options, remedy, admin_token)
    }

    /// As [`Self::of_data_if_up`], for a daemon that runs.
    ///
    /// # Errors
    /// When no daemon runs, or the data directory cannot be read.
    pub fn of_data(options: &DaemonOptions) -> Result<Self, Failure> {
        Self::of_data_if_up(options)?.ok_or_else(|| not_up(options))
    }

    /// The daemon of the data directory, for requests as its operator. Tokens and addresses that
    /// were given lead to other daemons and are not used. `None` if no daemon runs.
    ///
    /// # Errors
    /// When the data directory cannot be read.
    pub fn of_data_if_up(options: &DaemonOptions) -> Result<Option<Self>, Failure> {
        Self::with_data(options, admin_token)
    }

    /// The daemon of the data directory, for requests with this token. `None` if no daemon runs.
    fn with_data(
        options: &DaemonOptions,
        token: impl FnOnce(&DataDir) -> Result<Secret, Failure>,
    ) -> Result<Option<Self>, Failure> {
        let data = DataDir::at(&options.data);
        let Some(state) = data.running()? else { return Ok(None) };
        let token = token(&data)?;
        Self::with(options, state, token, trust::of_data(&data)).map(Some)
    }

    /// Finds the daemon, for requests as a run: the run of the given token, or the daemon's own.
    ///
    /// # Errors
    /// When no daemon is found, or a given daemon or token cannot be used.
    pub fn of_run(options: &DaemonOptions) -> Result<Self, Failure> {
        let remedy = "set it to the token of a run, or unset it to use the daemon's own run";
        let own = |data: &_| Ok(Secret::new(read_client_token(data)?.expose()));
        Self::holder_if_up(options, remedy, own)?.ok_or_else(|| not_up(options))
    }

    /// As [`Self::of_run`], for commands that can work without a daemon, by `--config`.
    ///
    /// # Errors
    /// When no daemon is found, or a given daemon or token cannot be used.
    pub fn of_run_or_file(options: &DaemonOptions) -> Result<Self, Failure> {
        if options.daemon_url.is_none() {
            DataDir::at(&options.data).daemon()?;
        }
        Self::of_run(options)
    }

    /// A client with the given token, or else with a token from the data directory. `None` if no
    /// daemon runs. `remedy` mends an empty token of the environment.
    fn holder_if_up(
        options: &DaemonOptions,
        remedy: &str,
        own: impl FnOnce(&DataDir) -> Result<Secret, Failure>,
    ) -> Result<Option<Self>, Failure> {
        // A script whose command for the token has failed wants another caller than the usual one.
        if options.token_file.is_none() && environment::is_token_empty() {
            return Err(Failure::usage(format!("NARTHEX_TOKEN is empty; {remedy}")));
        }
        let token = given_token(options)?;
        let source = token.as_ref().map(|_| TokenSource::of(options));
        if let Some(url) = &options.daemon_url {
            let Some(token) = token else {
                let text = format!(
                    "{} needs a token of that daemon; name its file with --token-file FILE, or set \
                     NARTHEX_TOKEN",
                    options.daemon_url_source
                );
                return Err(Failure::usage(text));
            };
            let state = remote(url, &options.daemon_url_source)?;
            let settings = trust::of_remote(options, &state.url)?;
            return Ok(Some(Self { source, ..Self::with(options, state, token, settings)? }));
        }
        let found = Self::with_data(options, |data| token.map_or_else(|| own(data), Ok))?;
        Ok(found.map(|client| Self { source, ..client }))
    }
}

fn admin_token(data: &DataDir) -> Result<Secret, Failure> {
    Ok(Secret::new(read_admin_token(data)?.expose()))
}

fn not_up(options: &DaemonOptions) -> Failure {
    Failure::daemon_down(format!(
        "no daemon runs with the data directory {}; start one with `{}`, or name another directory \
         with --data",
        options.data.display(),
        narthex("up --detach", &[])
    ))
}

/// The token of `--token-file` or of the environment; `None` if neither gives one.
///
/// # Errors
/// When the token cannot be read or used.
pub fn given_token(options: &DaemonOptions) -> Result<Option<Secret>, Failure> {
    match &options.token_file {
        Some(path) => read(path, &TokenSource::of(options)).map(Some),
        None => Ok(environment::token()),
    }
}

fn read(path: &Path, source: &TokenSource) -> Result<Secret, Failure> {
    let place = source.place();
    let unreadable = |failure: Failure| {
        let text = &failure.message;
        let message = format!(
            "the token of {place} cannot be read: {text}; name another file with --token-file"
        );
        Failure { message, ..failure }
    };
    narthex_private::check_secret(path).map_err(|error| unreadable(error.into()))?;
    let mut text = String::new();
    let read = fs::File::open(path).and_then(|file| file.take(TOKEN_MAX).read_to_string(&mut text));
    read.map_err(|error| unreadable(error.into()))?;
    let text = Secret::new(text);
    let token = text.expose().trim();
    if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        let text = format!(
            "the file {place} holds no token; write one into it, or name another file with \
             --token-file"
        );
        return Err(Failure::new(ErrorKind::Invalid, text));
    }
    Ok(Secret::new(token))
}

/// A daemon of which only the address is known, by the flag, variable or setting `source`.
fn remote(text: &str, source: &str) -> Result<DaemonState, Failure> {
    let wrong = |what: &str| {
        let text = format!("{source} `{text}` {what}; write it like https://narthex.example");
        Failure::usage(text)
    };
    let url = Url::parse(text).map_err(|error| wrong(&format!("is not an address: {error}")))?;
    let is_bare =
        matches!(url.path(), "" | "/") && url.query().is_none() && url.fragment().is_none();
    if !matches!(url.scheme(), "http" | "https") || !is_bare || !url.username().is_empty() {
        return Err(wrong("is not a plain http or https address of a host"));
    }
    if is_overheard(&url) {
        notice(&format!(
            "warning: {source} is plain HTTP, so anyone on the network can read the token"
        ));
    }
    Ok(DaemonState { url: text.trim_end_matches('/').to_owned(), ..DaemonState::default() })
}

/// True if others on the network can read the token: this address uses plain HTTP to another
/// machine.
fn is_overheard(url: &Url) -> bool {
    url.scheme() == "http" && !is_loopback(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_daemon_address_is_http_or_https_without_path_query_or_credentials() {
        for good in ["http://127.0.0.1:7717", "https://narthex.example", "http://[::1]:1/"] {
            assert!(remote(good, "--daemon-url").is_ok(), "{good}");
        }
        for bad in [
            "",
            "x",
            "ftp://a.example",
            "http://a.example/mcp",
            "http://u:p@a.example/",
            "https://a.example/?x",
            "https://a.example/#x",
        ] {
            for source in ["--daemon-url", "NARTHEX_DAEMON_URL"] {
                let message = remote(bad, source).unwrap_err().message;
                assert!(message.starts_with(&format!("{source} `{bad}` is not a")), "{message}");
            }
        }
    }

    #[test]
    fn plain_http_to_another_machine_is_overheard() {
        for near in ["http://127.0.0.1:7717", "http://[::1]:1", "http://localhost", "https://a.b"] {
            assert!(!is_overheard(&near.parse().unwrap()), "{near}");
        }
        for far in ["http://narthex.example", "http://10.0.0.1:7717"] {
            assert!(is_overheard(&far.parse().unwrap()), "{far}");
        }
    }
}
