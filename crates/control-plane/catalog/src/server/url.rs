//! A server's URL with placeholders: a run's values may fill in a part of it, but cannot change its
//! target (O3, O66, O69, S4).

use narthex_model::{CredentialAddressFault, check_credential_address, json::Place};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use url::Url;

use crate::{
    fault::FaultCode,
    reader::Reader,
    template::{Piece, Placeholder, Source, Template},
};

/// All characters but those without a meaning in any part of a URL.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The place of the next piece in a URL.
#[derive(Clone, Copy, PartialEq)]
enum Spot {
    /// Before the scheme ends.
    Scheme,
    /// Inside user, host or port.
    Authority,
    /// After a value that only operators set, and that may end in any part of the URL.
    Unknown,
    /// Inside path, query or fragment.
    Path,
}

impl Spot {
    fn after(self, text: &str) -> Self {
        let ends_authority = |text: &str| text.contains(['/', '?', '#', '\\']);
        match self {
            Self::Path => Self::Path,
            Self::Scheme | Self::Unknown => match text.split_once("://") {
                Some((_, rest)) => Self::Authority.after(rest),
                None if self == Self::Unknown && ends_authority(text) => Self::Path,
                None => self,
            },
            Self::Authority if ends_authority(text) => Self::Path,
            Self::Authority => Self::Authority,
        }
    }

    fn after_operators(self) -> Self {
        match self {
            Self::Path => Self::Path,
            Self::Scheme | Self::Authority | Self::Unknown => Self::Unknown,
        }
    }
}

/// True if operators alone set the values of a source.
fn is_operators(source: Source) -> bool {
    matches!(source, Source::Env | Source::Runner)
}

/// True if requests to a URL may carry tokens of people: by https, or by http on this machine. A
/// host that placeholders decide is not known, and passes.
pub(super) fn may_carry_tokens(url: &Template) -> bool {
    let written = url.written().to_ascii_lowercase();
    let Some(rest) = written.strip_prefix("http://") else { return true };
    let host = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    let checked = || check_credential_address(&format!("http://{host}/"));
    host.contains("${") || checked() != Err(CredentialAddressFault::NotHttps)
}

/// Checks a URL before any placeholder is filled in.
pub(super) fn check(reader: &mut Reader, at: &Place, url: &Template) {
    let mut spot = Spot::Scheme;
    for (index, piece) in url.0.iter().enumerate() {
        match piece {
            Piece::Text(text) => spot = spot.after(text),
            Piece::Placeholder(placeholder) => {
                let (before, after) = (&url.0[..index], &url.0[index + 1..]);
                let is_bound = || is_below_a_domain(before, after);
                if let Some(why) = misplaced(placeholder, spot, is_bound) {
                    let message = format!("`${{{placeholder}}}` {why}");
                    let remedy = "write the scheme and the host as plain text, or use `env`; a \
                                  value can be a part of a host name below your domain, as in \
                                  `${scope.tenant}.example.com`";
                    reader.fault(at, FaultCode::PlaceholderNotAllowed, message, remedy);
                }
                if is_operators(placeholder.source) {
                    spot = spot.after_operators();
                }
            }
        }
    }
    if let Some(text) = url.plain()
        && let Some(why) = objection(text)
    {
        reader.invalid(at, format!("the URL cannot be used: {why}"), REMEDY);
    }
    let has_password = |text: &str| Url::parse(text).is_ok_and(|url| url.password().is_some());
    if url.plain().is_some_and(has_password) {
        let remedy = "store the Base64 of `user:password` as a secret, and use it in `auth` of \
                      mode `apiKey` with the header `Authorization` and the prefix `Basic `";
        let message = "the URL holds a password, which readers of the catalog would see";
        reader.invalid(at, message, remedy);
    }
}

/// The longest value in a URL.
const PART_MAX: usize = 2048;

/// The remedy for a URL that cannot be used.
pub(crate) const REMEDY: &str = "write one starting with `https://` or `http://`";

fn misplaced(
    placeholder: &Placeholder,
    spot: Spot,
    is_bound: impl FnOnce() -> bool,
) -> Option<&'static str> {
    const CHOOSES: &str = "is at a place where its value would choose the destination";
    match placeholder.source {
        Source::Params => Some("is not possible in a URL: the model would choose the destination"),
        Source::Env | Source::Runner => None,
        Source::Scope | Source::Runtime => match spot {
            Spot::Path => None,
            Spot::Authority => (!is_bound()).then_some(CHOOSES),
            Spot::Scheme | Spot::Unknown => Some(CHOOSES),
        },
    }
}

/// Placeholder for a value that a run gives, which is a part of a host's name and nothing more.
const OF_RUN: char = '\0';
/// Placeholder for a value that operators give, who may choose the destination.
const OF_OPERATORS: &str = "operators.own";

/// True if a value between these pieces of a URL, inside user, host or port, leaves the destination
/// to the author of the URL: it is a part of a user, or of a host's name that ends in a domain.
fn is_below_a_domain(before: &[Piece], after: &[Piece]) -> bool {
    let (before, after) = (sketch(before), sketch(after));
    let authority = before.rsplit_once("://").map_or(before.as_str(), |(_, rest)| rest);
    let rest = after.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    if rest.contains('@') {
        return true;
    }
    let host = authority.rsplit('@').next().unwrap_or_default();
    let is_in_port = host.contains(':');
    let name = rest.split(':').next().unwrap_or_default();
    let fixed = name.rsplit(OF_RUN).next().unwrap_or_default();
    let domain = fixed.split_once('.').map_or("", |(_, domain)| domain.trim_end_matches('.'));
    let labels: Vec<&str> = domain.split('.').collect();
    let is_number = |label: &&str| label.bytes().all(|byte| byte.is_ascii_digit());
    // A single label would leave the domain itself open, as in `${scope.x}.com`.
    let is_domain = labels.len() > 1 && labels.iter().all(|label| !label.is_empty());
    let is_address = labels.last().is_some_and(is_number);
    !is_in_port && (is_domain && !is_address || domain == "localhost")
}

/// Pieces as one text, with marks where values will be.
fn sketch(pieces: &[Piece]) -> String {
    let mut text = String::new();
    for piece in pieces {
        match piece {
            Piece::Text(piece) => text.push_str(piece),
            Piece::Placeholder(one) if is_operators(one.source) => text.push_str(OF_OPERATORS),
            Piece::Placeholder(_) => text.push(OF_RUN),
        }
    }
    text
}

/// The reason why a whole URL cannot be used.
pub(crate) fn objection(text: &str) -> Option<&'static str> {
    match Url::parse(text) {
        _ if text.contains(|c: char| c.is_whitespace() || c.is_control()) => {
            Some("there is white space in it")
        }
        Err(_) => Some("it is not absolute or not well formed"),
        Ok(url) if !matches!(url.scheme(), "http" | "https") => {
            Some("its scheme is neither https nor http")
        }
        Ok(url) if !url.has_host() => Some("it names no host"),
        Ok(_) => None,
    }
}

/// Fills in the values of a run: each value stays within the part in which its placeholder is.
/// `value` gives texts, and `None` where the placeholder stays for later.
///
/// # Errors
/// The placeholder whose value is not allowed there, with the reason.
pub(crate) fn fill(
    url: &Template,
    value: &mut dyn FnMut(&Placeholder) -> Option<String>,
) -> Result<Template, (Placeholder, &'static str)> {
    let mut filled = Template::default();
    let mut spot = Spot::Scheme;
    for piece in &url.0 {
        match piece {
            Piece::Text(text) => {
                spot = spot.after(text);
                filled.push_text(text);
            }
            Piece::Placeholder(placeholder) => match value(placeholder) {
                None => {
                    spot = spot.after_operators();
                    filled.push(placeholder.clone());
                }
                Some(text) => {
                    let text = part(spot, &text).map_err(|why| (placeholder.clone(), why))?;
                    filled.push_text(&text);
                }
            },
        }
    }
    Ok(filled)
}

fn part(spot: Spot, text: &str) -> Result<String, &'static str> {
    let is_label = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    match spot {
        _ if text.is_empty() => Err("is empty, which a part of a URL cannot be"),
        _ if text.len() > PART_MAX => Err("is longer than 2048 bytes"),
        Spot::Authority if text.bytes().all(is_label) => Ok(text.to_owned()),
        Spot::Authority => Err("is not a part of a host name: use letters, digits and `-`"),
        Spot::Path if matches!(text, "." | "..") => Err("is `.` or `..`, not a name"),
        Spot::Path => Ok(utf8_percent_encode(text, ENCODED).to_string()),
        Spot::Scheme | Spot::Unknown => {
            Err("is at a place where its value would choose the destination")
        }
    }
}
