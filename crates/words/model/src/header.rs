//! The rules for names and values of HTTP headers that a configuration sets.

/// Headers that narthex sets itself, in lower case.
const OWN: [&str; 10] = [
    "accept",
    "connection",
    "content-length",
    "content-type",
    "host",
    "last-event-id",
    "mcp-protocol-version",
    "mcp-session-id",
    "te",
    "transfer-encoding",
];

/// True if narthex sets a header of this name itself, in any case of letters.
#[must_use]
pub fn is_own(name: &str) -> bool {
    OWN.iter().any(|own| own.eq_ignore_ascii_case(name))
}

/// True if HTTP allows all of these characters in a header's name.
#[must_use]
pub fn is_name(name: &str) -> bool {
    !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

/// True if a text can be sent as a header's value: tabs and printable ASCII, so no line breaks.
#[must_use]
pub fn is_value(value: &str) -> bool {
    value.bytes().all(|byte| byte == b'\t' || (b' '..=b'~').contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s4_no_name_or_value_breaks_out_of_its_header() {
        assert!(is_name("X-Api-Key") && is_name("x_y"));
        for name in ["", "a b", "a:b", "a\r\nb", "ä", "a\0"] {
            assert!(!is_name(name), "{name:?}");
        }
        assert!(is_value("") && is_value("Bearer a\tb"));
        for value in ["a\r\nb", "a\nb", "\0", "\u{7f}", "ä"] {
            assert!(!is_value(value), "{value:?}");
        }
        assert!(is_own("Host") && is_own("MCP-SESSION-ID") && !is_own("authorization"));
    }
}
