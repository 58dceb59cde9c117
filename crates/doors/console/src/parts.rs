//! The parts of pages that several pages show: texts, times, states, buttons, commands.

pub mod form;
pub mod item;

use std::{
    fmt,
    time::{Duration, SystemTime},
};

use narthex_model::{ServerState, Timestamp, harmless};

/// The names of all icons.
pub const ICONS: [&str; 20] = [
    "home", "plug", "search", "bell", "person", "check", "cross", "clock", "key", "pause", "down",
    "warning", "layers", "shield", "play", "list", "lock", "gear", "out", "mark",
];

/// Maximum number of characters of a text of others in a row.
const WORDS_MAX: usize = 500;

/// A text of one line by anyone, cut to a length that a page can show.
///
/// Invisible characters in it are written out. Pages escape it like any other text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Words(String);

impl Words {
    /// Makes a text harmless, and cuts it to the usual length.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self::within(text, WORDS_MAX)
    }

    /// Makes a text harmless, and cuts it to at most this many characters.
    #[must_use]
    pub fn within(text: &str, most: usize) -> Self {
        Self(harmless(text, most))
    }

    /// The text. It is not escaped.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// True for an empty text.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A point in time. Pages show it exactly, and a script shows it in words beside that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moment(String);

impl Moment {
    /// The moment of a time.
    #[must_use]
    pub fn new(at: SystemTime) -> Self {
        Self(Timestamp::new(at).to_string())
    }

    /// The moment some time after 1970, for samples.
    #[must_use]
    pub fn after_epoch(since: Duration) -> Self {
        Self::new(SystemTime::UNIX_EPOCH + since)
    }

    /// The time for programs.
    #[must_use]
    pub fn exact(&self) -> &str {
        &self.0
    }

    /// The time for people: to the minute, in UTC.
    #[must_use]
    pub fn shown(&self) -> String {
        let (day, clock) = self.0.split_once('T').unwrap_or((&self.0, ""));
        format!("{day} {} UTC", clock.get(..5).unwrap_or(clock))
    }
}

/// The state of a server with its icon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct State(pub ServerState);

impl State {
    /// The word, as in the API and on the command line.
    #[must_use]
    pub fn word(self) -> &'static str {
        self.0.as_str()
    }

    /// The icon.
    #[must_use]
    pub fn icon(self) -> &'static str {
        match self.0 {
            ServerState::Connecting => "clock",
            ServerState::Authenticating => "key",
            ServerState::Ready => "check",
            ServerState::Error => "warning",
            ServerState::Disabled => "pause",
        }
    }
}

/// A button that does something to one object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Action {
    /// The path that the form is sent to.
    pub path: String,
    /// The words on the button.
    pub label: &'static str,
    /// The effect of the button, as its title.
    pub hint: Words,
    /// True for the button that mends the object, or the only one that matters.
    pub is_primary: bool,
    /// The reason why the button does nothing now.
    pub off: Option<&'static str>,
    /// True if the answer is a page of its own, as for a sign-in elsewhere.
    pub is_page: bool,
}

impl Action {
    /// A plain button.
    #[must_use]
    pub fn new(path: String, label: &'static str, hint: &str) -> Self {
        let hint = Words::new(hint);
        Self { path, label, hint, is_primary: false, off: None, is_page: false }
    }

    /// The same button as the one that matters.
    #[must_use]
    pub fn primary(self) -> Self {
        Self { is_primary: true, ..self }
    }

    /// The same button, whose answer is a page.
    #[must_use]
    pub fn page(self) -> Self {
        Self { is_page: true, ..self }
    }

    /// The same button, which does nothing now.
    #[must_use]
    pub fn off(self, why: &'static str) -> Self {
        Self { off: Some(why), ..self }
    }
}

/// A page or an action as a command and as a request of the API.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Same {
    /// The command line.
    pub command: Words,
    /// The request: a method and a path.
    pub request: Words,
}

impl Same {
    /// A command and a request.
    #[must_use]
    pub fn new(command: &str, request: &str) -> Self {
        Self { command: Words::new(command), request: Words::new(request) }
    }
}

/// A list without rows: what the thing is, and how to begin.
#[derive(Debug, Clone)]
pub struct Empty {
    /// The heading.
    pub title: &'static str,
    /// The purpose of the thing.
    pub sentence: String,
    /// An example to copy.
    pub example: Option<String>,
    /// The page of the documentation, as a file of the repository.
    pub page: Option<&'static str>,
}

/// A filter of a list, as a link. The filters are in the address.
#[derive(Debug, Clone)]
pub struct Filter {
    /// The address of the list with this filter.
    pub href: String,
    /// The words.
    pub label: String,
    /// The number of rows, where it is known.
    pub count: Option<usize>,
    /// True if the filter is set.
    pub is_current: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut_between_characters() {
        assert_eq!(Words::within("größe", 4).as_str(), "größ…");
        assert_eq!(Words::within("größe", 5).as_str(), "größe");
        assert_eq!(Words::new(&"x".repeat(5_000_000)).as_str().len(), WORDS_MAX + '…'.len_utf8());
    }

    #[test]
    fn times_are_exact_for_programs_and_short_for_people() {
        let moment = Moment::after_epoch(Duration::from_millis(86_400_123));
        assert_eq!(moment.exact(), "1970-01-02T00:00:00.123Z");
        assert_eq!(moment.shown(), "1970-01-02 00:00 UTC");
    }
}
