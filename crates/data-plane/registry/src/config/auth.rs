//! The `auth` block of an entry: four modes, each checked in full.

mod oauth;

use narthex_model::{ApiKeyAuth, AuthSecret, Secret, ServerAuth, header};

use super::{
    node::{Node, Place, field, shortened},
    placeholder::Dialect,
    problem::EntryProblem,
    reader::{Fields, Reader},
};

/// Reads the block. An absent block means no authentication until the server asks for it (E112).
/// `None` after a fault.
pub(super) fn read(reader: &mut Reader<'_>, fields: &Fields, entry: &Place) -> Option<ServerAuth> {
    reader.references(fields, entry);
    let at = entry.key("auth");
    let auth = match field(fields, "auth") {
        None => return Some(ServerAuth::Unstated),
        Some(Node::Object(auth)) => auth,
        Some(node) => {
            reader.wrong_type(&at, node, "an object");
            return None;
        }
    };
    if reader.dialect == Dialect::Tolerant && field(auth, "mode").is_none() {
        reader.warn(&at, "ignored: another program's form; `auth` here starts with `mode`");
        return Some(ServerAuth::Unstated);
    }
    reader.references(auth, &at);
    // The mode decides who gets which credential. It is the word itself, as the transport is, so
    // that it is known before the file is approved (D27).
    let mode = match field(auth, "mode") {
        Some(Node::Text(mode)) if !mode.is_empty() => mode.as_str(),
        Some(Node::Text(_)) | None => {
            reader.fault(&at, EntryProblem::NoAuthMode);
            return None;
        }
        Some(node) => {
            reader.wrong_type(&at.key("mode"), node, "a string");
            return None;
        }
    };
    match mode {
        "none" => {
            reader.unknown_keys(auth, &at, &["mode"]);
            Some(ServerAuth::None)
        }
        "apiKey" => api_key(reader, auth, &at),
        oauth::CLIENT_CREDENTIALS => oauth::client_credentials(reader, auth, &at),
        oauth::AUTHORIZATION_CODE => Some(oauth::authorization_code(reader, auth, &at)),
        other => {
            let found = shortened(other);
            reader.fault(&at.key("mode"), EntryProblem::UnknownAuthMode { found });
            None
        }
    }
}

/// A text as written in the file: a message must not contain filled-in values.
fn as_written(fields: &Fields, key: &str) -> String {
    match field(fields, key) {
        Some(Node::Text(text)) => shortened(text),
        Some(_) | None => String::new(),
    }
}

fn api_key(reader: &mut Reader<'_>, auth: &Fields, at: &Place) -> Option<ServerAuth> {
    reader.unknown_keys(auth, at, &["mode", "key", "headerName", "valuePrefix"]);
    let header_name = reader.filled(auth, at, "headerName");
    let header_name = header_name.map_or_else(|| "Authorization".to_owned(), |name| name.value);
    if !header::is_name(&header_name) && !reader.is_open(&header_name) {
        let name = as_written(auth, "headerName");
        reader.fault(&at.key("headerName"), EntryProblem::BadHeaderName { name });
    }
    let prefix = reader.text(auth, at, "valuePrefix").map(|prefix| prefix.value);
    let prefix = reader.header_value(&at.key("valuePrefix"), prefix.unwrap_or_default());
    let key = match reader.auth_text(auth, at, AuthSecret::Key) {
        Some(key) => {
            let place = at.key("key");
            reader.header_from(&header_name, &place, &key);
            Some(reader.header_value(&place, key.value)?)
        }
        None => None,
    };
    Some(ServerAuth::ApiKey(ApiKeyAuth {
        header_name,
        value_prefix: prefix?,
        key: key.map(Secret::new),
    }))
}
