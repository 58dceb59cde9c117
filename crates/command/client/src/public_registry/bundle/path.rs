//! The names of an archive's entries, as paths below the folder of a bundle.

use std::path::PathBuf;

/// The longest name of an entry, in bytes.
const NAME_MAX: usize = 1024;

/// The path of an entry, relative to the folder: one name after the other, and nothing that leads
/// elsewhere on any system. A folder's name may end with `/`.
///
/// # Errors
/// The reason, as the end of a sentence.
pub(super) fn inside(name: &str) -> Result<PathBuf, &'static str> {
    if name.len() > NAME_MAX {
        return Err("has a name of more than 1024 bytes");
    }
    if name.starts_with('/') {
        return Err("has an absolute path");
    }
    if name.contains('\\') {
        return Err("has a backslash in its name, which is a separator on other systems");
    }
    if name.contains(char::is_control) {
        return Err("has a control character in its name");
    }
    let bytes = name.as_bytes();
    if bytes.len() > 1 && bytes[0].is_ascii_alphabetic() && bytes[1] == b':' {
        return Err("has the name of a drive");
    }
    let mut path = PathBuf::new();
    for part in name.strip_suffix('/').unwrap_or(name).split('/') {
        match part {
            "" => return Err("has an empty name"),
            "." | ".." => return Err("has `.` or `..` in its path, which leads out of the folder"),
            part => path.push(part),
        }
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use std::path::{Component, Path};

    use proptest::prelude::*;

    use super::*;

    /// E210: no name leads out of the folder.
    #[test]
    fn e210_names_that_lead_out_of_the_folder_are_refused() {
        let good = ["a", "a/b.js", "a/b/", ".hidden", "a..b/..c", "c/ä b", "...", "server/a:b"];
        for name in good {
            assert_eq!(inside(name).unwrap(), Path::new(name.trim_end_matches('/')), "{name}");
        }
        let long = "a/".repeat(513);
        for name in [
            "",
            "/",
            "//",
            "/etc/passwd",
            "..",
            "../a",
            "a/..",
            "a/../../b",
            "a/../b",
            ".",
            "./a",
            "a//b",
            "a\\b",
            "..\\a",
            "\\\\host\\x",
            "C:",
            "c:/x",
            "C:\\x",
            "a\0b",
            "a\nb",
            "a\u{7f}",
            "a/b//",
            &long,
        ] {
            assert!(inside(name).is_err(), "{name:?}");
        }
    }

    proptest! {
        /// E210: an accepted name has plain parts alone, whatever the name is.
        #[test]
        fn e210_accepted_names_stay_below_the_folder(
            name in prop_oneof![
                any::<String>(),
                "[./\\\\:a-cC\u{0}\n ~]{0,12}",
                "(\\.\\./|\\./|/|a|\\\\|C:){0,6}",
            ]
        ) {
            if let Ok(path) = inside(&name) {
                let is_plain = |part| matches!(part, Component::Normal(_));
                prop_assert!(path.components().all(is_plain), "{:?}", name);
                prop_assert!(path.components().next().is_some());
                let whole = Path::new("/data/bundles/x").join(&path);
                prop_assert!(whole.starts_with("/data/bundles/x"));
                prop_assert_eq!(path.to_str().unwrap(), name.strip_suffix('/').unwrap_or(&name));
            }
        }
    }
}
