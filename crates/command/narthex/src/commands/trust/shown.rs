//! The servers of a file as a person reads them before the approval. Values of secrets are not
//! shown; each text that decides what runs is (D27).

use std::{borrow::Cow, collections::BTreeSet, path::PathBuf};

use narthex_client_files::servers::{hidden_args, hides_variable};
use narthex_model::{
    AuthorizationCodeAuth, ClientCredentialsAuth, ClientProof, Confinement, ExchangeFallback,
    ExchangeIdentity, HttpTarget, NetworkAccess, OAuth, OAuthExchange, OAuthResource, OAuthScopes,
    Secret, ServerAuth, ServerDefinition, Target,
};
use narthex_registry::config::Entry;
use serde_json::{Value, json};
use url::Url;

use crate::commands::packages::{self, FailedStarts};

const HIDDEN: &str = "[hidden]";
/// The beginning of a placeholder.
const OPEN: &str = "${";

pub(in crate::commands) fn shown(entry: &Entry, failed: &FailedStarts) -> Value {
    match entry {
        Entry::Fault(fault) => json!({
            "alias": fault.name,
            "starts": format!("nothing: {}", fault.error.message),
        }),
        Entry::Server(definition) => definition_shown(definition, failed),
    }
}

fn definition_shown(definition: &ServerDefinition, failed: &FailedStarts) -> Value {
    let alias = definition.alias.as_str();
    if definition.is_disabled {
        return json!({ "alias": alias, "starts": "nothing: it is disabled" });
    }
    match &definition.target {
        Target::Stdio(target) => {
            let args: Vec<_> = target.args.iter().map(String::as_str).collect();
            let env = target
                .env
                .iter()
                .map(|(name, value)| (name.clone(), Value::from(variable(name, value.expose()))));
            let confinement = target.confinement.as_ref().filter(|all| !all.is_none());
            json!({
                "alias": alias,
                "starts": started(&target.command, &args),
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
                "variables": sent_variables(target),
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

/// The names of the variables whose values are sent to the server, or to the authorization server
/// that it names. Those of an address are in the address.
fn sent_variables(target: &HttpTarget) -> BTreeSet<&str> {
    let headers = target.headers.values().map(Secret::expose);
    let texts = match &target.auth {
        ServerAuth::None | ServerAuth::Unstated => Vec::new(),
        ServerAuth::ApiKey(key) => {
            let secret = key.key.iter().map(Secret::expose);
            std::iter::once(key.value_prefix.as_str()).chain(secret).collect()
        }
        ServerAuth::OAuth(oauth) => match &**oauth {
            OAuth::ClientCredentials(auth) => sent_by_client(auth),
            OAuth::AuthorizationCode(auth) => sent_by_sign_in(auth),
        },
    };
    variables(headers.chain(texts))
}

fn sent_by_client(auth: &ClientCredentialsAuth) -> Vec<&str> {
    let texts = [auth.client_id.as_str(), auth.proof.secret().expose()];
    let scopes = auth.scopes.iter().map(String::as_str);
    texts.into_iter().chain(scopes).chain(auth.audience.as_deref()).collect()
}

fn sent_by_sign_in(auth: &AuthorizationCodeAuth) -> Vec<&str> {
    let client = auth.client.iter().flat_map(|client| {
        std::iter::once(client.id.as_str()).chain(client.secret.as_ref().map(Secret::expose))
    });
    let tokens = auth.tokens.iter().flat_map(|tokens| {
        std::iter::once(&tokens.access_token).chain(&tokens.refresh_token).map(Secret::expose)
    });
    let exchange = auth.exchange.iter().flat_map(|exchange| sent_in_exchange(exchange));
    let scopes = auth.scopes.iter().map(String::as_str);
    let client = client.chain(tokens).chain(exchange);
    client.chain(scopes).chain(auth.client_name.as_deref()).collect()
}

fn sent_in_exchange(exchange: &OAuthExchange) -> Vec<&str> {
    let given = exchange.given().into_iter().flat_map(|given| {
        let secrets = given.client.secret.iter().chain(&given.id_token).chain(&given.refresh_token);
        std::iter::once(given.client.id.as_str()).chain(secrets.map(Secret::expose))
    });
    given.chain(exchange.audience.as_deref()).collect()
}

/// The names of the variables in texts as they are written.
pub(super) fn variables<'t>(texts: impl IntoIterator<Item = &'t str>) -> BTreeSet<&'t str> {
    let after = texts.into_iter().flat_map(|text| text.split("${env:").skip(1));
    after.map(|rest| rest.split([':', '}']).next().unwrap_or_default()).collect()
}

/// The words of a start, without those that are certainly secrets of the server.
pub(super) fn started(command: &str, args: &[&str]) -> String {
    let hidden = hidden_args(command, args).into_iter();
    let args = args.iter().zip(hidden).map(|(arg, is_hidden)| match is_hidden {
        true => HIDDEN.to_owned(),
        false => quoted(arg),
    });
    std::iter::once(quoted(command)).chain(args).collect::<Vec<_>>().join(" ")
}

/// The value of a variable, unless it certainly is a secret.
pub(super) fn variable<'v>(name: &str, value: &'v str) -> &'v str {
    match hides_variable(name, value) {
        true => HIDDEN,
        false => value,
    }
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
        ServerAuth::None | ServerAuth::Unstated => None,
        ServerAuth::ApiKey(key) => Some(format!("a key in the header {}", key.header_name)),
        ServerAuth::OAuth(oauth) => {
            let settings = match &**oauth {
                OAuth::ClientCredentials(auth) => client_settings(auth),
                OAuth::AuthorizationCode(auth) => sign_in_settings(auth),
            };
            Some(format!("{} {}", oauth.mode(), settings.join(", ")))
        }
    }
}

/// The receivers of a client's proof, and the tokens that it asks for.
fn client_settings(auth: &ClientCredentialsAuth) -> Vec<String> {
    let issuer = auth.authorization_server.as_deref();
    let mut all = match &auth.token_url {
        Some(url) => vec![format!("at {}", address(url))],
        None => vec![at_issuer(issuer)],
    };
    if auth.token_url.is_some() {
        all.extend(issuer.map(|issuer| format!("of {}", address(issuer))));
    }
    if matches!(auth.proof, ClientProof::Key { .. }) {
        all.push("with a private key".to_owned());
    }
    all.extend(scopes(&auth.scopes));
    all.extend(auth.audience.as_deref().map(|one| format!("for the audience {}", quoted(one))));
    all.extend(auth.resource.as_deref().map(|one| format!("for the resource {}", address(one))));
    all
}

/// The receivers of codes and tokens of a person, and the checks that are left out.
fn sign_in_settings(auth: &AuthorizationCodeAuth) -> Vec<String> {
    let mut all = vec![at_issuer(auth.authorization_server.as_deref())];
    all.extend(auth.client.as_ref().map(|one| format!("as the client {}", quoted(&one.id))));
    all.extend(auth.redirect_uri.as_deref().map(|one| format!("back to {}", address(one))));
    all.extend(scopes(&auth.scopes));
    all.extend(auth.resource.as_ref().map(|resource| match resource {
        OAuthResource::Omit => "for any resource".to_owned(),
        OAuthResource::Url(url) => format!("for the resource {}", address(url)),
    }));
    all.extend(auth.registration.map(|way| format!("registration {}", way.word())));
    all.extend(auth.pkce.map(|rule| format!("pkce {}", rule.word())));
    if auth.legacy {
        all.push("legacy".to_owned());
    }
    if auth.tokens.is_some() {
        all.push("with tokens of this file".to_owned());
    }
    all.extend(auth.exchange.as_ref().map(|exchange| exchanged(exchange)));
    all
}

/// The receiver of a person's identity, and the result that the receiver gives.
fn exchanged(exchange: &OAuthExchange) -> String {
    let from = match &exchange.identity {
        ExchangeIdentity::Login(provider) => {
            format!("the sign-in of each human with {}", quoted(provider))
        }
        ExchangeIdentity::Given(given) => {
            format!("the identity of a person, sent to {}", address(&given.token_url))
        }
    };
    let or = match exchange.fallback {
        Some(ExchangeFallback::SignIn) => ", or else a sign-in",
        None => "",
    };
    format!("exchange {} for {from}{or}", exchange.kind.word())
}

fn at_issuer(issuer: Option<&str>) -> String {
    match issuer {
        Some(issuer) => format!("at the authorization server {}", address(issuer)),
        None => "at the authorization server that the server names".to_owned(),
    }
}

fn scopes(scopes: &OAuthScopes) -> Option<String> {
    let all: Vec<_> = scopes.iter().map(|scope| quoted(scope)).collect();
    (!all.is_empty()).then(|| format!("with the scopes {}", all.join(" ")))
}

/// An address without parts that may be secret: it shows only the names of parameters. The host is
/// the one that narthex connects to, in ASCII.
pub(super) fn address(text: &str) -> String {
    if text.contains(OPEN) {
        return quoted_ascii(&open_address(text));
    }
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

/// The host of an address whose other parts may be secret. It is the address as of [`address`] if a
/// placeholder decides the host.
pub(super) fn host_alone(text: &str) -> String {
    let known = match written_host(text) {
        Some((scheme, rest, end)) => Cow::Owned(format!("{scheme}://{}", &rest[..end])),
        None if text.contains(OPEN) => return address(text),
        None => Cow::Borrowed(text),
    };
    let Ok(url) = Url::parse(&known) else { return address(text) };
    let Some(host) = url.host_str() else { return address(text) };
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    format!("{}://{host}{port}/{HIDDEN}", url.scheme())
}

/// An address with placeholders, as it is written, since the daemon fills them in. Only text that
/// cannot name the host is hidden: values of parameters, and a user behind whom a host is written
/// out.
fn open_address(text: &str) -> String {
    let (mut out, text) = match written_host(text) {
        Some((scheme, rest, end)) => match Url::parse(&format!("{scheme}://{}", &rest[..end])) {
            Ok(url) if url.has_host() => {
                let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
                let host = url.host_str().unwrap_or_default();
                (format!("{}://{host}{port}", url.scheme()), &rest[end..])
            }
            Ok(_) | Err(_) => (String::new(), text),
        },
        None => (String::new(), text),
    };
    let mut part = Part::Place;
    for (piece, is_open) in pieces(text) {
        if is_open {
            out.push_str(piece);
            continue;
        }
        for c in piece.chars() {
            let before = part;
            part = match (part, c) {
                (_, '#') => Part::Fragment,
                (Part::Place, '?') | (Part::Name | Part::Value, '&') => Part::Name,
                (Part::Name, '=') => Part::Value,
                (part, _) => part,
            };
            match (before, part) {
                (_, Part::Place | Part::Name) => out.push(c),
                (Part::Name, Part::Value) => out.push_str("=…"),
                (_, Part::Value | Part::Fragment) => {}
            }
        }
    }
    out
}

/// A part of an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// The host and the path.
    Place,
    /// The name of a parameter.
    Name,
    /// The value of a parameter.
    Value,
    Fragment,
}

/// The scheme of an address, the rest, and the end of the host in it; `None` if a placeholder can
/// change the host.
///
/// An address without a host between its slashes has none here: the next step of its path is the
/// host.
fn written_host(text: &str) -> Option<(&str, &str, usize)> {
    let (scheme, rest) = text.split_once("://")?;
    let end = rest.find(['/', '?', '#', '\\'])?;
    let is_written = !scheme.contains(OPEN) && !rest[..end].contains(OPEN);
    let is_host = |host: &str| !host.trim_matches(|c: char| c.is_control() || c == ' ').is_empty();
    (is_written && is_host(&rest[..end])).then_some((scheme, rest, end))
}

/// The pieces of a text, each with `true` for a placeholder.
fn pieces(text: &str) -> Vec<(&str, bool)> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find(OPEN) {
        let (before, from) = rest.split_at(at);
        let end = from.find('}').map_or(from.len(), |at| at + 1);
        pieces.extend([(before, false), (&from[..end], true)]);
        rest = &from[end..];
    }
    pieces.push((rest, false));
    pieces
}

/// A word that is distinct from its neighbours and cannot play tricks with a terminal.
pub(super) fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@,+%${}".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("{word:?}")
    }
}

/// A text as of [`quoted`], with escapes for letters that look like those of other hosts.
fn quoted_ascii(text: &str) -> String {
    let escaped = |c: char| match c.is_ascii() || c == '…' {
        true => c.to_string(),
        false => c.escape_unicode().to_string(),
    };
    quoted(text).chars().map(escaped).collect()
}

#[cfg(test)]
mod tests;
