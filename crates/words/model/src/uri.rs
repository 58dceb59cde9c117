//! The spellings of a URI: the texts that servers may take for the same one. A rule about URIs
//! looks at all of them, so that no other spelling evades it (D5).

use std::borrow::Cow;

use url::Url;

/// The texts that a server may take a URI for, each once, and first the URI as it is written.
///
/// The others are the URI percent-decoded, and the result of the URL Standard of WHATWG for both,
/// which many servers read URIs by. That result has a scheme and a host in small letters, no
/// default port, no steps such as `..`, no tabs and line ends, and no blanks around it. All of
/// these also occur without a fragment after `#`, which no server receives (RFC 3986 §3.5). A
/// file's URI also occurs without a query, and without its host: many servers open the path after
/// the host.
#[must_use]
pub fn spellings(uri: &str) -> Vec<Cow<'_, str>> {
    let mut all = written(uri);
    for one in shortened(uri) {
        add(&mut all, one.into());
    }
    all
}

/// The spellings of parts of a URI: without a fragment, a query or a host.
pub(crate) fn shortened(uri: &str) -> Vec<String> {
    let mut all = Vec::new();
    for whole in [Some(uri.to_owned()), normal(uri)].into_iter().flatten() {
        let ends: &[char] = if is_file(&whole) { &['#', '?'] } else { &['#'] };
        if let Some((start, _)) = whole.split_once(ends) {
            for one in written(start) {
                add(&mut all, one.into_owned());
            }
        }
    }
    let whole = written(uri).into_iter().map(Cow::into_owned).chain(all.clone());
    for local in whole.filter_map(|one| without_host(&one)) {
        for one in written(&local) {
            add(&mut all, one.into_owned());
        }
    }
    all
}

/// The URI that a server opens for a file with a host if it ignores the host.
fn without_host(uri: &str) -> Option<String> {
    const SLASHES: [char; 2] = ['/', '\\'];
    let rest = uri.get(5..).filter(|_| is_file(uri))?;
    let rest = rest.strip_prefix(SLASHES)?.strip_prefix(SLASHES)?;
    let path = rest.get(rest.find(SLASHES)?..)?.trim_start_matches(SLASHES);
    Some(format!("file:///{path}")).filter(|local| local != uri)
}

fn is_file(uri: &str) -> bool {
    uri.get(..5).is_some_and(|scheme| scheme.eq_ignore_ascii_case("file:"))
}

/// The spellings of the whole URI.
pub(crate) fn written(uri: &str) -> Vec<Cow<'_, str>> {
    let mut all = vec![Cow::Borrowed(uri)];
    add(&mut all, percent_decoded(uri));
    for index in 0..all.len() {
        if let Some(normal) = normal(&all[index]) {
            let decoded = percent_decoded(&normal).into_owned();
            add(&mut all, normal.into());
            add(&mut all, decoded.into());
        }
    }
    all
}

/// True if a text can be a URI at all: none has control characters, or blanks around it. Readers do
/// not agree on the meaning of such a text.
#[must_use]
pub fn is_plain(uri: &str) -> bool {
    let is_blank = |one: char| one.is_whitespace() || one == '\u{feff}';
    !uri.contains(char::is_control) && !uri.starts_with(is_blank) && !uri.ends_with(is_blank)
}

/// True if a text has steps such as `..`, which lead elsewhere than the text shows.
pub(crate) fn has_steps(uri: &str) -> bool {
    uri.split(['/', '\\', '?', '#']).any(|part| matches!(part, "." | ".."))
}

/// The patterns that a denied pattern of URIs becomes, in all spellings. A template also covers the
/// resources that it expands to.
pub(crate) fn closing(pattern: &str) -> Vec<String> {
    let mut all = written_alike(pattern);
    for one in written_alike(&covered(pattern)) {
        add(&mut all, one);
    }
    all
}

/// The patterns that an allowed pattern of URIs becomes: the spellings that cover no more than the
/// text itself.
pub(crate) fn opening(pattern: &str) -> Vec<String> {
    let wild = |text: &str| text.matches('*').count();
    // A `?` is one character in a pattern, and the beginning of a query in a URI.
    if pattern.contains('?') || has_steps(&percent_decoded(pattern)) {
        return vec![pattern.to_owned()];
    }
    let mut all = written_alike(pattern);
    all.retain(|one| wild(one) == wild(pattern) && !one.contains('?'));
    all
}

/// A pattern in all spellings.
fn written_alike(pattern: &str) -> Vec<String> {
    let mut all = vec![pattern.to_owned()];
    for one in written(pattern) {
        // A host with any ending has no end to which a path could be added.
        let grown = one.strip_suffix("*/").filter(|_| pattern.ends_with('*'));
        add(&mut all, grown.map_or_else(|| one.to_string(), |start| format!("{start}*")));
    }
    // A scheme is one also where the rest is none of a URL, such as for `HTTP://*:8080/`.
    if let Some((scheme, rest)) = pattern.split_once(':')
        && !scheme.contains(['/', '*', '?'])
    {
        add(&mut all, format!("{}:{rest}", scheme.to_ascii_lowercase()));
    }
    all
}

/// The pattern of what a template covers: each of its expressions is anything.
fn covered(template: &str) -> String {
    let mut pattern = String::with_capacity(template.len());
    let mut rest = template;
    while let Some((literal, after)) = rest.split_once('{') {
        pattern.push_str(literal);
        pattern.push('*');
        rest = after.split_once('}').map_or("", |(_, tail)| tail);
    }
    pattern + rest
}

fn normal(uri: &str) -> Option<String> {
    Url::parse(uri).ok().map(String::from)
}

fn add<T: PartialEq>(all: &mut Vec<T>, one: T) {
    if !all.contains(&one) {
        all.push(one);
    }
}

pub(crate) fn percent_decoded(uri: &str) -> Cow<'_, str> {
    if !uri.contains('%') {
        return Cow::Borrowed(uri);
    }
    let mut bytes = Vec::with_capacity(uri.len());
    let mut rest = uri.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let code = after.get(..2).filter(|code| first == b'%' && code.is_ascii());
        let code = code.and_then(|code| std::str::from_utf8(code).ok());
        match code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned().into()
}

#[cfg(test)]
mod tests;
