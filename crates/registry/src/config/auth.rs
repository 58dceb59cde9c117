//! The `auth` block of an entry: four modes, each checked in full.

use narthex_model::{ApiKeyAuth, Secret, ServerAuth, header};

use super::{
    node::{Node, Place, field, shortened},
    placeholder::{Dialect, Expanded},
    problem::EntryProblem,
    reader::{Fields, Reader},
    secrets,
};

/// Fields of an older form, and what replaces each (E111).
const REFERENCES: [(&str, &str); 3] =
    [("valueRef", "key"), ("clientIdRef", "clientId"), ("clientSecretRef", "clientSecret")];

const CLIENT_CREDENTIALS: &str = "clientCredentials";
const AUTHORIZATION_CODE: &str = "authorizationCode";

/// Reads the block; none means no authentication (E112). `None` after a fault.
pub(super) fn read(reader: &mut Reader<'_>, fields: &Fields, entry: &Place) -> Option<ServerAuth> {
    references(reader, fields, entry);
    let at = entry.key("auth");
    let auth = match field(fields, "auth") {
        None => return Some(ServerAuth::None),
        Some(Node::Object(auth)) => auth,
        Some(node) => {
            reader.wrong_type(&at, node, "an object");
            return None;
        }
    };
    if reader.dialect == Dialect::Tolerant && field(auth, "mode").is_none() {
        reader.warn(&at, "ignored: another program's form; `auth` here starts with `mode`");
        return Some(ServerAuth::None);
    }
    references(reader, auth, &at);
    let Some(mode) = reader.filled(auth, &at, "mode") else {
        if !reader.has_fault_at(&at.key("mode")) {
            reader.fault(&at, EntryProblem::NoAuthMode);
        }
        return None;
    };
    match mode.value.as_str() {
        "none" => {
            reader.unknown_keys(auth, &at, &["mode"]);
            Some(ServerAuth::None)
        }
        "apiKey" => api_key(reader, auth, &at),
        CLIENT_CREDENTIALS => Some(client_credentials(reader, auth, &at)),
        AUTHORIZATION_CODE => Some(authorization_code(reader, auth, &at)),
        _ => {
            let found = as_written(auth, "mode");
            reader.fault(&at.key("mode"), EntryProblem::UnknownAuthMode { found });
            None
        }
    }
}

/// A text as the file has it: what was filled in must not be told.
fn as_written(fields: &Fields, key: &str) -> String {
    match field(fields, key) {
        Some(Node::Text(text)) => shortened(text),
        Some(_) | None => String::new(),
    }
}

fn references(reader: &mut Reader<'_>, fields: &Fields, at: &Place) {
    for (key, instead) in REFERENCES {
        if fields.iter().any(|(name, _)| name == key) {
            reader.fault(&at.key(key), EntryProblem::Reference { key, instead });
        }
    }
}

fn api_key(reader: &mut Reader<'_>, auth: &Fields, at: &Place) -> Option<ServerAuth> {
    let known =
        ["mode", "key", "headerName", "valuePrefix", "valueRef", "clientIdRef", "clientSecretRef"];
    reader.unknown_keys(auth, at, &known);
    let header_name = reader.filled(auth, at, "headerName");
    let header_name = header_name.map_or_else(|| "Authorization".to_owned(), |name| name.value);
    if !header::is_name(&header_name) {
        let name = as_written(auth, "headerName");
        reader.fault(&at.key("headerName"), EntryProblem::BadHeaderName { name });
    }
    let prefix = reader.text(auth, at, "valuePrefix").map(|prefix| prefix.value);
    let prefix = reader.header_value(&at.key("valuePrefix"), prefix.unwrap_or_default());
    let key = reader.secret(auth, at, "key");
    let key = match key {
        Some(key) => Some(reader.header_value(&at.key("key"), key)?),
        None => None,
    };
    Some(ServerAuth::ApiKey(ApiKeyAuth {
        header_name,
        value_prefix: prefix?,
        key: key.map(Secret::new),
    }))
}

fn client_credentials(reader: &mut Reader<'_>, auth: &Fields, at: &Place) -> ServerAuth {
    let known = [
        "mode",
        "tokenUrl",
        "clientId",
        "clientSecret",
        "scopes",
        "audience",
        "resource",
        "clientIdRef",
        "clientSecretRef",
        "valueRef",
    ];
    reader.unknown_keys(auth, at, &known);
    if let Some(url) = reader.required(auth, at, "tokenUrl", CLIENT_CREDENTIALS) {
        reader.url(&at.key("tokenUrl"), &url.value);
    }
    reader.required(auth, at, "clientId", CLIENT_CREDENTIALS);
    if reader.secret(auth, at, "clientSecret").is_none() {
        reader.absent(at, "clientSecret", CLIENT_CREDENTIALS);
    }
    reader.optional_url(auth, at, "resource");
    reader.text(auth, at, "audience");
    scopes(reader, auth, at);
    ServerAuth::NotYet { mode: CLIENT_CREDENTIALS }
}

fn authorization_code(reader: &mut Reader<'_>, auth: &Fields, at: &Place) -> ServerAuth {
    let known = [
        "mode",
        "scopes",
        "client",
        "tokens",
        "redirectUri",
        "resource",
        "flow",
        "valueRef",
        "clientIdRef",
        "clientSecretRef",
    ];
    reader.unknown_keys(auth, at, &known);
    if let Some((client, at)) = reader.object(auth, at, "client") {
        references(reader, client, &at);
        reader.required(client, &at, "clientId", AUTHORIZATION_CODE);
        reader.secret(client, &at, "clientSecret");
    }
    if let Some((tokens, at)) = reader.object(auth, at, "tokens") {
        if reader.secret(tokens, &at, "accessToken").is_none() {
            reader.absent(&at, "accessToken", AUTHORIZATION_CODE);
        }
        reader.secret(tokens, &at, "refreshToken");
        if let Some(node) = field(tokens, "expiresAt")
            && !matches!(node, Node::Number(_))
        {
            reader.wrong_type(&at.key("expiresAt"), node, "a number of seconds since 1970");
        }
    }
    reader.optional_url(auth, at, "redirectUri");
    reader.optional_url(auth, at, "resource");
    scopes(reader, auth, at);
    ServerAuth::NotYet { mode: AUTHORIZATION_CODE }
}

fn scopes(reader: &mut Reader<'_>, auth: &Fields, at: &Place) {
    let place = at.key("scopes");
    match field(auth, "scopes") {
        None => {}
        Some(Node::List(nodes)) => {
            for (index, node) in nodes.iter().enumerate() {
                let place = place.index(index);
                match node {
                    Node::Text(text) => {
                        reader.expand(&place, text);
                    }
                    _ => reader.wrong_type(&place, node, "a string"),
                }
            }
        }
        Some(node) => reader.wrong_type(&place, node, "an array of strings"),
    }
}

impl Reader<'_> {
    /// A string that should come from the environment (C1).
    fn secret(&mut self, fields: &Fields, at: &Place, key: &str) -> Option<String> {
        let text = self.filled(fields, at, key)?;
        if !text.is_from_env {
            self.warn(&at.key(key), secrets::ADVICE);
        }
        Some(text.value)
    }

    fn required(
        &mut self,
        fields: &Fields,
        at: &Place,
        key: &'static str,
        mode: &'static str,
    ) -> Option<Expanded> {
        let text = self.filled(fields, at, key);
        if text.is_none() {
            self.absent(at, key, mode);
        }
        text
    }

    /// Tells of a missing field, unless its fault has been told.
    fn absent(&mut self, at: &Place, key: &'static str, mode: &'static str) {
        if !self.has_fault_at(&at.key(key)) {
            self.fault(at, EntryProblem::NoAuthField { key, mode });
        }
    }

    fn optional_url(&mut self, fields: &Fields, at: &Place, key: &str) {
        if let Some(text) = self.filled(fields, at, key) {
            self.url(&at.key(key), &text.value);
        }
    }

    fn object<'n>(
        &mut self,
        fields: &'n Fields,
        at: &Place,
        key: &str,
    ) -> Option<(&'n Fields, Place)> {
        let place = at.key(key);
        match field(fields, key)? {
            Node::Object(fields) => Some((fields, place)),
            node => {
                self.wrong_type(&place, node, "an object");
                None
            }
        }
    }
}
