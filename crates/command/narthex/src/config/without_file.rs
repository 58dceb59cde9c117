//! Settings for a command that works also while the settings file cannot be used.

use std::path::PathBuf;

use toml::{Table, Value};

use super::settings::{Flags, Settings, load, read_file};
use crate::Failure;

/// The settings of the flags and the environment. Of the file only the data directory and the file
/// of servers count, if it is TOML at all.
///
/// # Errors
/// When the flags or the environment are faulty as well.
pub(super) fn load_without_file(
    flags: &Flags,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<Settings, Failure> {
    let text = read_file(flags, env).ok().flatten().map(|(_path, text)| text);
    let table = text.and_then(|text| text.parse::<Table>().ok()).unwrap_or_default();
    let place = |key: &str, variable: &str| {
        let path = table.get(key).and_then(Value::as_str);
        // An empty variable counts as absent.
        let is_set = env(variable).is_some_and(|text| !text.is_empty());
        path.filter(|_| !is_set).map(PathBuf::from)
    };
    let flags = Flags {
        data: flags.data.clone().or_else(|| place("data", "NARTHEX_DATA")),
        servers: flags.servers.clone().or_else(|| place("servers", "NARTHEX_SERVERS")),
        ignores_file: true,
        ..flags.clone()
    };
    load(&flags, env)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn only_the_places_of_a_broken_file_count() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("narthex.toml");
        let loaded = |text: &str, variable: Option<&str>| {
            fs_err::write(&file, text).unwrap();
            let env = |name: &str| match name {
                "HOME" => Some("/home/ada".to_owned()),
                "NARTHEX_DATA" => variable.map(str::to_owned),
                _ => None,
            };
            let flags = Flags { settings: Some(file.clone()), ..Flags::default() };
            assert!(load(&flags, &env).is_err(), "{text}");
            load_without_file(&flags, &env).unwrap()
        };
        let faulty = "data = '/srv/data'\nservers = '/srv/settings.json'\nnosuch = 1\n";
        let settings = loaded(faulty, None);
        assert_eq!(settings.daemon.data, Path::new("/srv/data"));
        assert_eq!(settings.servers.as_deref(), Some(Path::new("/srv/settings.json")));
        assert_eq!(loaded(faulty, Some("/srv/other")).daemon.data, Path::new("/srv/other"));
        let usual = loaded("data = '/srv/data'\n[", None).daemon.data;
        assert!(usual.starts_with("/home/ada"), "{usual:?}");
    }
}
