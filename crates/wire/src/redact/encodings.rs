//! The spellings in which a secret may come back.

use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD},
};

use crate::json::encode_string;

/// How much of a value must be left in base64 that begins or ends inside a group.
const CORE_MIN: usize = 8;

/// Adds every spelling of `value` that is looked for.
pub(super) fn add(value: &str, patterns: &mut Vec<String>) {
    let escaped = escape(value);
    patterns.push(escape(&escaped));
    patterns.push(escaped);
    patterns.push(escape_non_ascii(value));
    if value.contains('/') {
        patterns.push(escape(value).replace('/', "\\/"));
    }
    patterns.push(value.to_owned());
    // As in RFC 3986, as browsers do it, and as in forms.
    for kept in ["-._~", "-_.!~*'()", "-._* "] {
        let encoded = percent(value, kept).replace(' ', "+");
        patterns.push(lower_escapes(&encoded));
        patterns.push(encoded);
    }
    base64(value, patterns);
}

fn escape(text: &str) -> String {
    let quoted = String::from_utf8(encode_string(text)).unwrap_or_default();
    let inner = quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    inner.unwrap_or(text).to_owned()
}

/// As writers do it that keep JSON within ASCII.
fn escape_non_ascii(text: &str) -> String {
    let mut out = String::new();
    for c in escape(text).chars() {
        if c.is_ascii() {
            out.push(c);
        } else {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                out.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    out
}

fn percent(text: &str, kept: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b if b.is_ascii_alphanumeric() || kept.as_bytes().contains(&b) => out.push(b.into()),
            b => out.push_str(&format!("%{b:02X}")),
        }
    }
    out
}

/// The same with `%2f` for `%2F`.
fn lower_escapes(encoded: &str) -> String {
    let mut parts = encoded.split('%');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (digits, rest) = part.split_at(2);
        out.push('%');
        out.push_str(&digits.to_ascii_lowercase());
        out.push_str(rest);
    }
    out
}

/// The value alone, and what of it is the same whatever stands before and after it.
fn base64(value: &str, patterns: &mut Vec<String>) {
    for before in 0..3 {
        let bytes = [&vec![0; before], value.as_bytes()].concat();
        // Characters that other bytes have a part in.
        let first = (before * 8).div_ceil(6);
        let is_cut = !bytes.len().is_multiple_of(3);
        for engine in [STANDARD_NO_PAD, URL_SAFE_NO_PAD] {
            let encoded = engine.encode(&bytes);
            let core = &encoded[first..encoded.len() - usize::from(is_cut)];
            if core.len() >= CORE_MIN {
                patterns.push(core.to_owned());
            }
            if before == 0 {
                patterns.push(encoded);
            }
        }
    }
}
