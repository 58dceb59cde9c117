//! Failures on the way to a registry or to a bundle: the cause once, and the remedies that exist.

use narthex_http_client::ClientError;
use narthex_model::{ErrorKind, command::narthex, with_causes};
use url::Url;

use super::address::RegistryAddress;
use crate::{Failure, output::harmless};

/// The failure for a registry that cannot be reached, or whose answer cannot be read.
pub(super) fn failure(registry: &RegistryAddress, error: &ClientError) -> Failure {
    let verb = if is_on_the_way(error) { "reached" } else { "read" };
    let reason = reason(registry.url(), error);
    with_remedies(registry, error.kind(), &format!("cannot be {verb}: {reason}"))
}

/// The failure for a registry that answers too slowly.
pub(super) fn late(registry: &RegistryAddress, reason: &str) -> Failure {
    with_remedies(registry, ErrorKind::Timeout, &format!("cannot be read: {reason}"))
}

fn with_remedies(registry: &RegistryAddress, kind: ErrorKind, what: &str) -> Failure {
    let remedy = match registry.is_plain() {
        true => "check that it runs, or name another with --registry URL",
        false => {
            "check the network, set HTTPS_PROXY if this machine needs a proxy, or name another \
             registry with --registry URL"
        }
    };
    let add = narthex("mcp add NAME -- COMMAND", &[]);
    Failure::new(
        kind,
        harmless(&format!(
            "the registry {registry} {what}; {remedy}; `{add}` adds a server whose command you know"
        )),
    )
}

/// True if no server at the address has answered.
fn is_on_the_way(error: &ClientError) -> bool {
    matches!(
        error,
        ClientError::Dns { .. }
            | ClientError::Refused { .. }
            | ClientError::Connect { .. }
            | ClientError::ConnectTimeout { .. }
            | ClientError::Proxy { .. }
            | ClientError::Tls { .. }
    )
}

/// The cause, for a sentence that has the address already.
pub(super) fn reason(url: &Url, error: &ClientError) -> String {
    match error {
        ClientError::Dns { host, cause } => {
            let whose = match url.host_str() == Some(host.as_str()) {
                true => "its host name".to_owned(),
                false => format!("the host name {host}"),
            };
            // The text of the system begins with the same in other words.
            let cause = cause.to_string();
            let cause = cause.rsplit(": ").next().unwrap_or_default();
            format!("{whose} cannot be resolved ({cause})")
        }
        ClientError::Refused { .. } => "the connection was refused".to_owned(),
        ClientError::Connect { cause, .. } => format!("the connection failed ({cause})"),
        ClientError::ConnectTimeout { waited_ms, .. } => {
            format!("no connection was made within {waited_ms} ms")
        }
        other => with_causes(other),
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    /// E203: a registry that is not reached is named once, with its cause once and the remedies.
    #[test]
    fn e203_a_registry_that_is_not_reached_is_told_once_with_its_remedies() {
        let official = RegistryAddress::new("https://registry.example", "--registry").unwrap();
        let text = "failed to lookup address information: Name or service not known";
        let cause = io::Error::other(text);
        let unknown = ClientError::Dns { host: "registry.example".to_owned(), cause };
        assert_eq!(
            failure(&official, &unknown).message,
            "the registry https://registry.example cannot be reached: its host name cannot be \
             resolved (Name or service not known); check the network, set HTTPS_PROXY if this \
             machine needs a proxy, or name another registry with --registry URL; `narthex mcp add \
             NAME -- COMMAND` adds a server whose command you know"
        );
        let local = RegistryAddress::new("http://127.0.0.1:9", "--registry").unwrap();
        let refused = ClientError::Refused { address: "127.0.0.1:9".to_owned() };
        assert_eq!(
            failure(&local, &refused).message,
            "the registry http://127.0.0.1:9 cannot be reached: the connection was refused; check \
             that it runs, or name another with --registry URL; `narthex mcp add NAME -- COMMAND` \
             adds a server whose command you know"
        );
        let cause = io::Error::other("no route");
        let other = ClientError::Dns { host: "proxy.example".to_owned(), cause };
        assert!(reason(official.url(), &other).contains("the host name proxy.example"));
        let late = late(&official, "it sent no whole answer within 30 s");
        assert!(late.message.contains("cannot be read: it sent no whole answer"), "{late}");
    }
}
