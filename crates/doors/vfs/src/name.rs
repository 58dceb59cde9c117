//! Names of files: any name that a server gives its things, as one component of a path.
//!
//! Characters that a file's name cannot have are percent-encoded, and `%` too, so that decoding
//! once returns the name. A name that is longer than a file's may be is in no directory. Its path
//! can still be opened where paths are no files of the system.

use std::borrow::Cow;

use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// The longest name of a file, in bytes (`NAME_MAX` of Linux).
pub const FILE_NAME_MAX: usize = 255;

/// A name as one component of a path. Not for tools: see [`tool_file`].
#[must_use]
pub fn encoded(name: &str) -> Cow<'_, str> {
    match name {
        "." => Cow::Borrowed("%2E"),
        ".." => Cow::Borrowed("%2E%2E"),
        _ if name.contains(is_encoded) => {
            let mut file = String::with_capacity(name.len() + 8);
            for part in name.split_inclusive(is_encoded) {
                let end = part.chars().next_back().filter(|last| is_encoded(*last));
                let plain = &part[..part.len() - end.map_or(0, char::len_utf8)];
                file.push_str(plain);
                file.extend(utf8_percent_encode(&part[plain.len()..], NON_ALPHANUMERIC));
            }
            Cow::Owned(file)
        }
        _ => Cow::Borrowed(name),
    }
}

/// True if a character must be encoded: a slash, a backslash, a percent sign, or a control
/// character, which no terminal should receive.
fn is_encoded(one: char) -> bool {
    one.is_control() || matches!(one, '%' | '/' | '\\')
}

/// The name of a tool's file: one that looks like a schema or a description has its dot encoded.
#[must_use]
pub fn tool_file(tool: &str) -> Cow<'_, str> {
    let encoded = encoded(tool);
    for suffix in [".schema.json", ".md"] {
        let Some(stem) = encoded.strip_suffix(suffix) else { continue };
        return Cow::Owned(format!("{stem}%2E{}", &suffix[1..]));
    }
    encoded
}

/// The name behind a component of a path. A `%` that encodes nothing is itself.
#[must_use]
pub fn decoded(component: &str) -> String {
    percent_decode_str(component).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn plain_names_are_not_encoded() {
        for name in ["echo", "read_file", "a.b", "a b", "größe", "mcp__x__y", "a:b?c=d&e"] {
            assert_eq!(encoded(name), name);
            assert_eq!(tool_file(name), name);
        }
    }

    #[test]
    fn names_that_are_invalid_for_files_are_encoded() {
        for (name, file) in [
            (".", "%2E"),
            ("..", "%2E%2E"),
            ("a/b", "a%2Fb"),
            ("../x", "..%2Fx"),
            ("100%", "100%25"),
            ("a%2Fb", "a%252Fb"),
            ("a\nb\u{1b}", "a%0Ab%1B"),
        ] {
            assert_eq!(encoded(name), file);
            assert_eq!(decoded(file), name);
        }
        assert_eq!(tool_file("notes.md"), "notes%2Emd");
        assert_eq!(tool_file("x.schema.json"), "x%2Eschema.json");
    }

    proptest! {
        #[test]
        fn an_encoded_name_is_one_component_and_decodes_back(name in "\\PC*|[\\x00-\\x7f]{0,20}") {
            for file in [encoded(&name), tool_file(&name)] {
                prop_assert!(!file.contains('/') && !file.contains('\0'));
                prop_assert!(file != "." && file != "..");
                prop_assert_eq!(decoded(&file), name.clone());
            }
        }
    }
}
