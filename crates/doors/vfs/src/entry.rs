//! The facts about a path, and the entries of a directory.

use crate::{
    Kind,
    name::{self, FILE_NAME_MAX},
};

/// The facts about a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stat {
    /// The path below its mount, such as `/tools/echo`.
    pub name: String,
    /// The path of the mount; [`ROOT`](crate::ROOT) for that itself.
    pub device: String,
    /// True if the path has entries.
    pub is_directory: bool,
    /// True if the path can be written to.
    pub is_writable: bool,
}

/// One entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The entry's name: one component of a path.
    pub name: String,
    /// True if the entry is a directory.
    pub is_directory: bool,
}

impl Entry {
    pub(crate) fn directory(name: &str) -> Self {
        Self { name: name.to_owned(), is_directory: true }
    }

    pub(crate) fn file(name: &str) -> Self {
        Self { name: name.to_owned(), is_directory: false }
    }
}

/// The files of one item of a list, without files whose names no directory can have.
pub(crate) fn entries(kind: Kind, name: &str) -> Vec<Entry> {
    let files = match kind {
        Kind::Tools => {
            let file = name::tool_file(name);
            ["", ".schema.json", ".md"].map(|end| format!("{file}{end}")).into()
        }
        Kind::Resources | Kind::Prompts => vec![name::encoded(name).into_owned()],
    };
    files.iter().filter(|file| file.len() <= FILE_NAME_MAX).map(|file| Entry::file(file)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_too_long_for_a_directory_are_not_listed() {
        let listed = |kind, name: &str| {
            let entries = entries(kind, name);
            entries.iter().map(|entry| entry.name.len()).collect::<Vec<_>>()
        };
        assert_eq!(listed(Kind::Tools, "echo"), [4, 16, 7]);
        assert_eq!(listed(Kind::Tools, &"x".repeat(250)), [250, 253], "the schema does not fit");
        assert_eq!(listed(Kind::Resources, &"x".repeat(255)), [255]);
        assert!(listed(Kind::Resources, &"/".repeat(86)).is_empty(), "each is three bytes");
    }
}
