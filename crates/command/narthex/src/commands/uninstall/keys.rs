//! The note about master keys that outlive an uninstallation, since they are not in the data
//! directory.

use std::path::Path;

use narthex_model::command::quoted;
use narthex_vault::Keychain;

use crate::config::KeyPlace;

/// A line about master keys that are not in the data directory.
pub(super) fn line(keys: &KeyPlace, data: &Path) -> Option<String> {
    let data = data.to_string_lossy();
    let data = quoted(&data);
    let (place, command) = match keys {
        KeyPlace::File => return None,
        KeyPlace::Command { .. } => {
            return Some(
                "The master keys that `vault.key_command` has stored stay; remove them with the \
                 tools of that store."
                    .to_owned(),
            );
        }
        KeyPlace::Keychain(Keychain::SecretService) => {
            ("the Secret Service", format!("secret-tool clear application narthex data-dir {data}"))
        }
        KeyPlace::Keychain(Keychain::MacOs) => (
            "the keychain of macOS",
            format!("security delete-generic-password -s narthex -a {data}"),
        ),
    };
    Some(format!("The master keys in {place} stay; remove them with `{command}`."))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each place of keys has the command that removes them there, ready for a shell.
    #[test]
    fn keys_outside_of_the_data_directory_are_named() {
        let data = Path::new("/home/ada/my data");
        let of = |keys: &KeyPlace| line(keys, data);
        assert_eq!(of(&KeyPlace::File), None);
        assert_eq!(
            of(&KeyPlace::Keychain(Keychain::SecretService)).unwrap(),
            "The master keys in the Secret Service stay; remove them with `secret-tool clear \
             application narthex data-dir '/home/ada/my data'`."
        );
        assert_eq!(
            of(&KeyPlace::Keychain(Keychain::MacOs)).unwrap(),
            "The master keys in the keychain of macOS stay; remove them with `security \
             delete-generic-password -s narthex -a '/home/ada/my data'`."
        );
        let words = vec!["pass".to_owned()];
        assert_eq!(
            of(&KeyPlace::Command { load: words.clone(), store: words }).unwrap(),
            "The master keys that `vault.key_command` has stored stay; remove them with the tools \
             of that store."
        );
    }
}
