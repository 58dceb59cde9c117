//! Reads the URL of a server; its place is shown without secret parts.

use std::{net::IpAddr, str::FromStr};

use sqlx::postgres::{PgConnectOptions, PgSslMode};
use thiserror::Error;
use url::Url;

/// Parameters that a URL may have behind its `?`.
const PARAMETERS: [&str; 7] =
    ["host", "port", "dbname", "user", "password", "sslmode", "sslrootcert"];

/// A fault of a URL. The error has no part of the URL, since any part may hold half of a password
/// whose `/`, `?` or `#` was not written as `%2F`, `%3F` or `%23`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum UrlFault {
    /// The text is no URL.
    #[error("is not a URL; write / ? # @ in a password as %2F %3F %23 %40")]
    Form,
    /// The scheme is that of another program.
    #[error("does not begin with postgres:// or postgresql://")]
    Scheme,
    /// The URL names no database.
    #[error("names no database, or more than one; write / ? # @ in a password as %2F %3F %23 %40")]
    Database,
    /// The URL has an unknown parameter.
    #[error(
        "has a parameter other than host, port, dbname, user, password, sslmode and sslrootcert; \
         write ? # in a password as %3F %23"
    )]
    Parameter,
    /// The URL asks for an unknown kind of encryption.
    #[error("has an sslmode other than disable, prefer, require, verify-ca and verify-full")]
    SslMode,
}

/// The address of a server, and the options to connect to it.
#[derive(Debug)]
pub(crate) struct Address {
    /// The options to connect.
    pub options: PgConnectOptions,
    /// Host, port and database.
    pub place: String,
}

impl Address {
    /// Reads a URL such as `postgres://user:password@host/database`.
    ///
    /// # Errors
    /// Returns the URL's fault.
    pub(crate) fn parse(text: &str) -> Result<Self, UrlFault> {
        let url = Url::parse(text).map_err(|_quotes| UrlFault::Form)?;
        if !matches!(url.scheme(), "postgres" | "postgresql") {
            return Err(UrlFault::Scheme);
        }
        if url.cannot_be_a_base() || url.fragment().is_some() {
            return Err(UrlFault::Form);
        }
        if url.path().trim_start_matches('/').contains(['/', '@', ':']) {
            return Err(UrlFault::Database);
        }
        // The library would log parameters that it does not know.
        if url.query_pairs().any(|(key, _)| !PARAMETERS.contains(&&*key)) {
            return Err(UrlFault::Parameter);
        }
        let sslmode = url.query_pairs().filter(|(key, _)| key == "sslmode").last();
        let sslmode = sslmode.map(|(_, value)| mode(&value)).transpose()?;
        let options = PgConnectOptions::from_str(text).map_err(|_quotes| UrlFault::Form)?;
        let database = options.get_database().filter(|name| !name.is_empty());
        let Some(database) = database.map(str::to_owned) else { return Err(UrlFault::Database) };
        let socket = options.get_socket().map(|path| path.display().to_string());
        let is_socket = socket.is_some() || options.get_host().starts_with('/');
        let host = socket.unwrap_or_else(|| options.get_host().to_owned());
        let place = format!("{host}:{}/{database}", options.get_port());
        let sslmode = sslmode.unwrap_or_else(|| usual_mode(is_socket, &host));
        Ok(Self { options: options.ssl_mode(sslmode), place })
    }
}

fn mode(text: &str) -> Result<PgSslMode, UrlFault> {
    match text {
        "disable" => Ok(PgSslMode::Disable),
        "prefer" => Ok(PgSslMode::Prefer),
        "require" => Ok(PgSslMode::Require),
        "verify-ca" => Ok(PgSslMode::VerifyCa),
        "verify-full" => Ok(PgSslMode::VerifyFull),
        // `allow` would be no TLS at all: the library has not built it.
        _ => Err(UrlFault::SslMode),
    }
}

/// The usual mode: traffic that leaves this machine is encrypted, and the server's identity is
/// verified.
fn usual_mode(is_socket: bool, host: &str) -> PgSslMode {
    let is_loopback =
        |host: &str| host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    if is_socket {
        PgSslMode::Disable
    } else if host == "localhost" || is_loopback(host.trim_matches(['[', ']'])) {
        PgSslMode::Prefer
    } else {
        PgSslMode::VerifyFull
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<(String, String), UrlFault> {
        let address = Address::parse(text)?;
        Ok((address.place, format!("{:?}", address.options.get_ssl_mode())))
    }

    #[test]
    fn a_url_sets_host_database_and_tls_mode() {
        let expected = [
            ("postgres://u:p@db.example/n", "db.example:5432/n", "VerifyFull"),
            ("postgresql://u@db.example:7/n?sslmode=require", "db.example:7/n", "Require"),
            ("postgres://u:p@127.0.0.1/n", "127.0.0.1:5432/n", "Prefer"),
            ("postgres://u:p@localhost/n?sslmode=verify-ca", "localhost:5432/n", "VerifyCa"),
            ("postgres://u:p%40%2F@10.0.0.1/n", "10.0.0.1:5432/n", "VerifyFull"),
            ("postgres://u@%2Frun%2Fpg/n", "/run/pg:5432/n", "Disable"),
            ("postgres:///n?host=/run/pg&user=u&port=6", "/run/pg:6/n", "Disable"),
            ("postgres://h?dbname=n&password=x", "h:5432/n", "VerifyFull"),
        ];
        for (text, place, mode) in expected {
            assert_eq!(parsed(text), Ok((place.to_owned(), mode.to_owned())), "{text}");
        }
    }

    /// S27: a password that was not encoded is not taken for a port, a database or a parameter
    /// that could be shown.
    #[test]
    fn s27_a_url_that_may_contain_an_unencoded_password_is_refused() {
        let expected = [
            ("", UrlFault::Form),
            ("hunter2", UrlFault::Form),
            ("mysql://u:hunter2@h/n", UrlFault::Scheme),
            ("postgres:hunter2", UrlFault::Form),
            ("postgres://u:12#hunter2@h/n", UrlFault::Form),
            ("postgres://u:12/hunter2@h/n", UrlFault::Database),
            ("postgres://u:hunter2/x@h/n", UrlFault::Form),
            ("postgres://u:12?hunter2@h/n", UrlFault::Parameter),
            ("postgres://u:p@h/n?pasword=hunter2", UrlFault::Parameter),
            ("postgres://u:p@h/n?sslmode=allow", UrlFault::SslMode),
            ("postgres://u:p@h/n?sslmode=hunter2", UrlFault::SslMode),
            ("postgres://u:p@h/n?port=hunter2", UrlFault::Form),
            ("postgres://u:p@h/a/b", UrlFault::Database),
        ];
        for (text, fault) in expected {
            assert_eq!(parsed(text), Err(fault), "{text}");
            assert!(!fault.to_string().contains("hunter2"));
        }
    }
}
