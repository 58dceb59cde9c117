//! Warnings about the entries of an import: one for each kind, with the servers that it is about.

use std::path::Path;

use narthex_model::{Alias, command::narthex, package::UnpinnedPackage};
use narthex_registry::layers::Edited;

/// The warnings of all entries.
#[derive(Debug, Default)]
pub(super) struct Advice {
    /// Servers whose package has no fixed version, each with the package.
    unpinned: Vec<(String, UnpinnedPackage)>,
    /// Other messages, each with the places that it is about.
    others: Vec<(String, Vec<String>)>,
}

impl Advice {
    /// Adds the warnings of a stored entry, without those of these places.
    pub(super) fn add(&mut self, alias: &Alias, edited: Edited, places: &[String]) {
        let Edited { warnings, unpinned } = edited;
        let packages: Vec<_> = unpinned.iter().map(ToString::to_string).collect();
        for warning in warnings {
            let is_known = places.iter().any(|place| warning.path.ends_with(place.as_str()))
                || packages.contains(&warning.message);
            if !is_known {
                self.note(warning.message, warning.path);
            }
        }
        self.unpinned.extend(unpinned.into_iter().map(|package| (alias.to_string(), package)));
    }

    fn note(&mut self, message: String, place: String) {
        match self.others.iter_mut().find(|(known, _)| *known == message) {
            Some((_, places)) => places.push(place),
            None => self.others.push((message, vec![place])),
        }
    }

    /// The sentences for a person.
    pub(super) fn sentences(self, file: &Path) -> Vec<String> {
        let file = file.display();
        let unpinned = match &self.unpinned[..] {
            [] => None,
            [(name, package)] => Some(format!("{file}: {name}: {package}")),
            [(_, first), ..] => {
                let each = self.unpinned.iter();
                let each: Vec<_> =
                    each.map(|(name, package)| format!("{name} (`{}`)", package.spec)).collect();
                Some(format!(
                    "{file}: {} packages have no fixed version, so each start may run other code: \
                     {}. Write each with its version, such as `{}`; `{}` has the command that \
                     finds each version",
                    each.len(),
                    each.join(", "),
                    first.pin,
                    narthex("check mcp", &[])
                ))
            }
        };
        let others = self.others.into_iter();
        let others =
            others.map(|(message, places)| format!("{file}: {}: {message}", places.join(", ")));
        unpinned.into_iter().chain(others).collect()
    }
}

#[cfg(test)]
mod tests {
    use narthex_model::package::unpinned;
    use narthex_registry::config::ConfigWarning;

    use super::*;

    /// Three servers of one kind of fault are one sentence with their names.
    #[test]
    fn servers_with_the_same_fault_share_a_warning() {
        let mut advice = Advice::default();
        let file = Path::new("/settings.json");
        let mut add = |name: &str, package: &str, places: &[String]| {
            let unpinned = unpinned("npx", &["-y", package]);
            let told = |path: &str, message: String| ConfigWarning {
                file: file.to_owned(),
                path: format!("mcp.servers.{name}.{path}"),
                message,
            };
            let mut warnings = vec![told("url", "it is odd".to_owned())];
            warnings.push(told("env.KEY", "it is a secret".to_owned()));
            warnings.extend(unpinned.iter().map(|package| told("args", package.to_string())));
            advice.add(&Alias::new(name).unwrap(), Edited { warnings, unpinned }, places);
        };
        let secret = ["env.KEY".to_owned()];
        add("git", "git-server", &secret);
        add("files", "@x/files", &secret);
        let told = advice.sentences(file);
        assert_eq!(
            told,
            [
                "/settings.json: 2 packages have no fixed version, so each start may run other \
                 code: git (`git-server`), files (`@x/files`). Write each with its version, such \
                 as `git-server@VERSION`; `narthex check mcp` has the command that finds each \
                 version",
                "/settings.json: mcp.servers.git.url, mcp.servers.files.url: it is odd",
            ]
        );
    }

    #[test]
    fn one_package_without_a_version_has_the_command_that_finds_it() {
        let mut advice = Advice::default();
        let unpinned = unpinned("npx", &["-y", "git-server"]);
        let package = unpinned[0].to_string();
        let edited = Edited { warnings: Vec::new(), unpinned };
        advice.add(&Alias::new("git").unwrap(), edited, &[]);
        let told = advice.sentences(Path::new("/settings.json"));
        assert_eq!(told, [format!("/settings.json: git: {package}")]);
    }
}
