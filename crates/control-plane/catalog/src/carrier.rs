//! The carrier of a config key to its server: a header, or a variable of its environment (D8).

use std::fmt;

use narthex_model::header;

use crate::{
    fault::FaultCode,
    layer::Objection,
    server::{EntryAuth, ServerEntry},
    template::is_variable,
};

/// The carrier of a value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Carrier {
    /// An HTTP header, on every request.
    Header(String),
    /// A variable of the program's environment.
    Env(String),
}

/// Headers that belong to a connection or to proxies, in lower case; no configuration sets them.
const RESERVED: [&str; 9] = [
    "expect",
    "forwarded",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "trailer",
    "upgrade",
    "via",
];

impl Carrier {
    /// Name of the header or the variable.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Header(name) | Self::Env(name) => name,
        }
    }

    /// A text that is equal for two equal carriers: headers are equal in any case (O87).
    pub(crate) fn identity(&self) -> String {
        match self {
            Self::Header(name) => name.to_ascii_lowercase(),
            Self::Env(name) => name.clone(),
        }
    }
}

impl fmt::Display for Carrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Header(name) => write!(f, "the header `{name}`"),
            Self::Env(name) => write!(f, "the variable `{name}`"),
        }
    }
}

/// The carrier of a server's key.
pub(crate) fn carrier_of(entry: &ServerEntry, key: &str) -> Result<Carrier, Objection> {
    let schema = entry.config_schema.as_ref().and_then(|schema| schema.get(key));
    if !entry.shape.is_http() {
        let name = schema.and_then(|schema| schema.env.as_deref()).unwrap_or(key);
        return match is_variable(name) {
            true => Ok(Carrier::Env(name.to_owned())),
            false => Err(Objection {
                code: FaultCode::CarrierInvalid,
                message: format!("`{key}` is not a valid name of a variable"),
                remedy: "give the key's variable as `env` in `config_schema`".to_owned(),
            }),
        };
    }
    let own = schema.and_then(|schema| schema.header.clone());
    let name = own.unwrap_or_else(|| match key.contains('-') || entry.verbatim_headers {
        true => key.to_owned(),
        false => format!("x-{}", key.to_ascii_lowercase().replace('_', "-")),
    });
    match reserved(entry, &name) {
        None => Ok(Carrier::Header(name)),
        Some(why) => Err(Objection {
            code: FaultCode::CarrierInvalid,
            message: format!("`{key}` is sent as the header `{name}`, which {why}"),
            remedy: "choose another `header` in `config_schema`, or another key".to_owned(),
        }),
    }
}

/// Headers in one word that people mean when they write it, in lower case.
const MEANT: [&str; 5] = ["authorization", "cookie", "origin", "prefer", "referer"];

/// The warning for a key that has the name of a header and travels as another one.
pub(crate) fn mistaken(entry: &ServerEntry, key: &str) -> Option<String> {
    let is_meant = MEANT.iter().any(|name| name.eq_ignore_ascii_case(key));
    match carrier_of(entry, key) {
        Ok(Carrier::Header(name)) if is_meant && name.starts_with("x-") => Some(format!(
            "`{key}` is sent as the header `{name}`; for the header `{key}` itself, declare the \
             key in the server's `config_schema` with `\"header\": \"{key}\"`, or let `auth` set it"
        )),
        Ok(_) | Err(_) => None,
    }
}

/// The reason why configuration may not set a header (O88).
fn reserved(entry: &ServerEntry, name: &str) -> Option<&'static str> {
    let lower = name.to_ascii_lowercase();
    if header::is_own(&lower) || lower.starts_with("mcp-") {
        return Some("narthex sets itself");
    }
    if RESERVED.contains(&lower.as_str()) {
        return Some("belongs to the connection");
    }
    let is_of_auth = match &entry.auth {
        EntryAuth::None => false,
        EntryAuth::ApiKey { header_name, .. } => header_name.eq_ignore_ascii_case(&lower),
        EntryAuth::ClientCredentials(_) | EntryAuth::AuthorizationCode(_) => {
            lower == "authorization"
        }
    };
    is_of_auth.then_some("`auth` sets")
}
