//! One text file of the repository.

/// A file's path from the root, with slashes, and its text.
pub(super) struct Source {
    pub(super) path: String,
    pub(super) text: String,
}

impl Source {
    pub(super) fn is_rust(&self) -> bool {
        self.has_extension(&["rs"])
    }

    /// True if the file is our code in any language, as opposed to prose, settings, data, and code
    /// of others.
    pub(super) fn is_code(&self) -> bool {
        let is_ours = !self.path.contains("/vendor/");
        is_ours && self.has_extension(&["rs", "mjs", "js", "py", "sh"]) || self.path == ".ci/run"
    }

    fn has_extension(&self, extensions: &[&str]) -> bool {
        let name = self.path.rsplit('/').next().unwrap_or(&self.path);
        name.rsplit_once('.').is_some_and(|(_, end)| extensions.contains(&end))
    }

    /// True if the whole file is tests: `x/tests.rs` and everything under a folder `tests`.
    pub(super) fn is_test(&self) -> bool {
        self.path.ends_with("/tests.rs") || self.path.contains("/tests/")
    }

    /// The folder of the crate: `crates/FOLDER/NAME` or `xtask`.
    pub(super) fn crate_dir(&self) -> Option<&str> {
        if self.path.starts_with("xtask/") {
            return Some("xtask");
        }
        let (folder, rest) = self.path.strip_prefix("crates/")?.split_once('/')?;
        let (name, _) = rest.split_once('/')?;
        Some(&self.path[.."crates/".len() + folder.len() + 1 + name.len()])
    }

    /// The lines with their numbers, from 1.
    pub(super) fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.lines().enumerate().map(|(index, line)| (index + 1, line))
    }
}

#[cfg(test)]
mod tests {
    use super::Source;

    #[test]
    fn knows_tests_code_and_crates_by_path() {
        let source = |path: &str| Source { path: path.to_owned(), text: String::new() };
        assert!(source("crates/words/wire/tests/it/main.rs").is_test());
        assert!(source("crates/words/wire/src/sse/tests.rs").is_test());
        assert!(!source("crates/words/wire/src/sse.rs").is_test());
        assert!(source("e2e/clients/common.py").is_code());
        assert!(!source("README.md").is_code());
        assert!(!source("crates/doors/console/assets/vendor/a.min.js").is_code());
        assert_eq!(source("crates/words/wire/src/sse.rs").crate_dir(), Some("crates/words/wire"));
        assert_eq!(source("e2e/clients/common.py").crate_dir(), None);
    }
}
