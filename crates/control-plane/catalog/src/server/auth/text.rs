//! Texts and addresses of an authentication.

use narthex_model::{CredentialAddressFault, check_credential_address};
use serde::Serialize;
use url::Url;

use crate::{
    fault::FaultCode,
    reader::{Object, Reader},
    template::{ConfigValue, Source, Tree},
};

/// Keys of texts that are no secrets.
const IDS: [&str; 2] = ["clientId", "client_id"];

/// A text of authentication: a secret's reference, or a text with variables of the daemon.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(transparent)]
pub struct AuthText(pub(crate) ConfigValue);

pub(super) fn required(
    reader: &mut Reader,
    object: &Object<'_>,
    key: &str,
    what: &str,
) -> Option<AuthText> {
    if object.get(key).is_none() {
        reader.missing(object, key, &format!("the {what} as `{{\"$secret\": \"NAME\"}}`"));
    }
    text(reader, object, key)
}

/// A secret's reference, or a text in which only the daemon's environment may be filled in.
pub(super) fn text(reader: &mut Reader, object: &Object<'_>, key: &str) -> Option<AuthText> {
    let at = object.at.key(key);
    let node = object.get(key)?;
    let value = reader.config_value(node, &at)?;
    let tree = match &value {
        ConfigValue::Secret(_) => return Some(AuthText(value)),
        ConfigValue::Tree(tree @ (Tree::Text(_) | Tree::Plain(serde_json::Value::String(_)))) => {
            tree
        }
        ConfigValue::Tree(_) | ConfigValue::Removed => {
            reader.wrong_type(&at, node, "a string or `{\"$secret\": \"NAME\"}`");
            return None;
        }
    };
    for placeholder in tree.placeholders().iter().filter(|p| p.source != Source::Env) {
        let message = format!("`${{{placeholder}}}` is not possible in `auth`");
        let remedy = "refer to a secret, or set a header in `default_config`";
        reader.fault(&at, FaultCode::PlaceholderNotAllowed, message, remedy);
    }
    if !IDS.contains(&key) && matches!(tree, Tree::Plain(_)) {
        reader.warn(
            &at,
            "every reader of the server can see a literal credential; store it as a secret and \
             refer to the secret",
        );
    }
    Some(AuthText(value))
}

/// An absolute URL.
pub(super) fn url(reader: &mut Reader, object: &Object<'_>, key: &str) -> Option<String> {
    let text = reader.text(object, key)?;
    let is_fine = |url: Url| matches!(url.scheme(), "http" | "https") && url.has_host();
    if text.contains("${") || !Url::parse(text).is_ok_and(is_fine) {
        let message = "this is not an absolute URL";
        reader.invalid(&object.at.key(key), message, "write one starting with `https://`");
    }
    Some(text.to_owned())
}

/// An address that gets credentials: https, or http on this machine (X-E32).
pub(super) fn credential_url(
    reader: &mut Reader,
    object: &Object<'_>,
    key: &str,
) -> Option<String> {
    let text = url(reader, object, key)?;
    if let Err(CredentialAddressFault::NotHttps | CredentialAddressFault::NotPlain) =
        check_credential_address(&text)
    {
        let message = "credentials cannot be sent to this address";
        let remedy = "write one with `https://`, without a user name, a password or a fragment";
        reader.invalid(&object.at.key(key), message, remedy);
    }
    Some(text)
}
