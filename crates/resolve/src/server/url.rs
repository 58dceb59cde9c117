//! A server's URL with placeholders: what a run says may fill in a part of it, and never lead
//! elsewhere (O3, O66, O69, S4).

use narthex_model::json::Place;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use url::Url;

use crate::{
    fault::FaultCode,
    reader::Reader,
    template::{Piece, Placeholder, Source, Template},
};

/// Everything but what means nothing anywhere in a URL.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Where in a URL the next piece stands.
#[derive(Clone, Copy, PartialEq)]
enum Spot {
    /// Before the scheme ends.
    Scheme,
    /// Inside user, host or port.
    Authority,
    /// After something that only operators set, and of which nobody knows where it ended.
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

/// Whether operators alone set the values of a source.
fn is_operators(source: Source) -> bool {
    matches!(source, Source::Env | Source::Runner)
}

/// What is wrong with a URL before anything is filled in.
pub(super) fn check(reader: &mut Reader, at: &Place, url: &Template) {
    let mut spot = Spot::Scheme;
    for piece in &url.0 {
        match piece {
            Piece::Text(text) => spot = spot.after(text),
            Piece::Placeholder(placeholder) => {
                if let Some(why) = misplaced(placeholder, spot) {
                    let message = format!("`${{{placeholder}}}` {why}");
                    let remedy = "write scheme and host themselves, or use `env`";
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
        reader.invalid(at, format!("no usable URL: {why}"), REMEDY);
    }
}

/// The longest value in a URL.
const PART_MAX: usize = 2048;

/// What to do about a URL that cannot be used.
pub(crate) const REMEDY: &str = "write one starting with `https://` or `http://`";

fn misplaced(placeholder: &Placeholder, spot: Spot) -> Option<&'static str> {
    match placeholder.source {
        Source::Params => Some("may not stand in a URL: the model would choose the destination"),
        Source::Env | Source::Runner => None,
        Source::Scope | Source::Runtime => match spot {
            Spot::Path | Spot::Authority => None,
            Spot::Scheme | Spot::Unknown => Some("stands where it would choose the destination"),
        },
    }
}

/// Why a whole URL cannot be used.
pub(crate) fn objection(text: &str) -> Option<&'static str> {
    match Url::parse(text) {
        _ if text.contains(|c: char| c.is_whitespace() || c.is_control()) => {
            Some("there is white space in it")
        }
        Err(_) => Some("it is not absolute or not well formed"),
        Ok(url) if !matches!(url.scheme(), "http" | "https") => Some("its scheme is another one"),
        Ok(url) if !url.has_host() => Some("it names no host"),
        Ok(_) => None,
    }
}

/// Fills in what a run says: each value stays within the part in which its placeholder stands.
/// `value` gives texts, and `None` where the placeholder stays for later.
///
/// # Errors
/// The placeholder whose value cannot stand there, with the reason.
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
        _ if text.is_empty() => Err("is empty, which no part of a URL may be"),
        _ if text.len() > PART_MAX => Err("is longer than 2048 bytes"),
        Spot::Authority if text.bytes().all(is_label) => Ok(text.to_owned()),
        Spot::Authority => Err("is no part of a host's name: use letters, digits and `-`"),
        Spot::Path if matches!(text, "." | "..") => Err("is a step in a path and no name"),
        Spot::Path => Ok(utf8_percent_encode(text, ENCODED).to_string()),
        Spot::Scheme | Spot::Unknown => Err("stands where it would choose the destination"),
    }
}
