//! The place of the master keys, as set by the user.

use narthex_vault::Keychain;
use toml::Value;

use super::layers::Layers;

const KEYCHAIN: &str = "vault.keychain";
pub(super) const LOAD: &str = "vault.key_command.load";
pub(super) const STORE: &str = "vault.key_command.store";

/// The place of master keys that no variable gives.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum KeyPlace {
    /// In the data directory.
    #[default]
    File,
    /// In a keychain of the system.
    Keychain(Keychain),
    /// The user's own programs, with their arguments.
    Command {
        /// The program that prints the keys.
        load: Vec<String>,
        /// The program that stores the keys from its standard input.
        store: Vec<String>,
    },
}

/// Reads the place of the keys; an error names the fault.
pub(crate) fn read(layers: &Layers) -> Result<KeyPlace, String> {
    let keychain = match layers.get(KEYCHAIN) {
        None => None,
        Some(given) => match &given.value {
            Value::Boolean(is_wanted) => is_wanted.then(Keychain::usual),
            Value::String(word) if word == "secret-service" => Some(Keychain::SecretService),
            Value::String(word) if word == "macos" => Some(Keychain::MacOs),
            _ => {
                let source = &given.source;
                return Err(format!("{source} must be true, false, `secret-service` or `macos`"));
            }
        },
    };
    let source = |path: &str| layers.get(path).map(|given| given.source.as_str());
    match (keychain, words(layers, LOAD), words(layers, STORE)) {
        (None, None, None) => Ok(KeyPlace::File),
        (Some(keychain), None, None) => Ok(KeyPlace::Keychain(keychain)),
        (Some(_), _, _) => {
            let commands = [LOAD, STORE].into_iter().filter_map(source).collect::<Vec<_>>();
            Err(format!(
                "{} and {} are both set; leave one of them out",
                source(KEYCHAIN).unwrap_or(KEYCHAIN),
                commands.join(", ")
            ))
        }
        (None, Some(load), Some(store)) if !load.is_empty() && !store.is_empty() => {
            Ok(KeyPlace::Command { load, store })
        }
        (None, _, _) => {
            let given = [LOAD, STORE].into_iter().filter_map(source).collect::<Vec<_>>();
            Err(format!(
                "{}: `{LOAD}` and `{STORE}` must both name a program, such as \
                 [\"pass\", \"show\", \"narthex\"]",
                given.join(", ")
            ))
        }
    }
}

fn words(layers: &Layers, path: &str) -> Option<Vec<String>> {
    let items = layers.get(path)?.value.as_array()?;
    Some(items.iter().filter_map(Value::as_str).map(str::to_owned).collect())
}
