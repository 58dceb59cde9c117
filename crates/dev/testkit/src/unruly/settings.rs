//! The settings: one word for each way of misbehaving.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// The server's behaviour; without a word it behaves well.
#[derive(Debug, Clone)]
pub struct Settings {
    /// `silent`: reads everything and answers nothing.
    pub(super) is_silent: bool,
    /// `deaf-after=METHOD`: reads nothing after it has answered this; `deaf`: nothing at all.
    pub(super) deaf_after: Option<String>,
    /// `garbage`: writes what is no message before the first one and between all others.
    pub(super) is_noisy: bool,
    /// `slow=MS`: waits so long before it reads.
    pub(super) start: Duration,
    /// `together=N`: waits until so many have started, by the notes.
    pub(super) together: usize,
    /// `fails=N`: the first so many starts end with code 3, by the notes.
    pub(super) failures: usize,
    /// `ignores-term`: lives on after SIGTERM and after the end of its input.
    pub(super) ignores_term: bool,
    /// `child`, `escaped-child`: starts another process that never ends by itself.
    pub(super) offspring: Option<Offspring>,
    /// `flood`: writes to standard error as fast as it can.
    pub(super) is_flooding: bool,
    /// `tools=N`: so many further tools.
    pub(super) tools: usize,
    /// `page=N`: so many tools a page.
    pub(super) page: usize,
    /// `revision=DATE`: the revision that it answers with, whatever it is asked for.
    pub(super) revision: String,
    /// `notes=FOLDER`: where each start leaves a file with its process id as name.
    pub(super) notes: Option<PathBuf>,
    /// `offspring`: this process is such another one.
    pub(super) is_offspring: bool,
}

/// The behaviour of another process when it starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Offspring {
    /// Stays in the group.
    Child,
    /// Leaves the session, and with it the group.
    Escaped,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            is_silent: false,
            deaf_after: None,
            is_noisy: false,
            start: Duration::ZERO,
            together: 0,
            failures: 0,
            ignores_term: false,
            offspring: None,
            is_flooding: false,
            tools: 0,
            page: usize::MAX,
            revision: "2025-11-25".to_owned(),
            notes: None,
            is_offspring: false,
        }
    }
}

impl FromStr for Settings {
    type Err = String;

    fn from_str(words: &str) -> Result<Self, String> {
        let mut settings = Self::default();
        for word in words.split(',').filter(|word| !word.is_empty()) {
            let (name, value) = word.split_once('=').unwrap_or((word, ""));
            settings.set(name, value).map_err(|why| format!("`{word}`: {why}"))?;
        }
        Ok(settings)
    }
}

impl Settings {
    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        match name {
            "silent" => self.is_silent = true,
            "deaf" => self.deaf_after = Some(String::new()),
            "deaf-after" => self.deaf_after = Some(value.to_owned()),
            "garbage" => self.is_noisy = true,
            "slow" => self.start = Duration::from_millis(number(value)? as u64),
            "together" => self.together = number(value)?,
            "fails" => self.failures = number(value)?,
            "ignores-term" => self.ignores_term = true,
            "child" => self.offspring = Some(Offspring::Child),
            "escaped-child" => self.offspring = Some(Offspring::Escaped),
            "flood" => self.is_flooding = true,
            "tools" => self.tools = number(value)?,
            "page" => self.page = number(value)?.max(1),
            "revision" => self.revision = value.to_owned(),
            "notes" => self.notes = Some(PathBuf::from(value)),
            "offspring" => self.is_offspring = true,
            _ => return Err("there is no such word".to_owned()),
        }
        Ok(())
    }
}

fn number(text: &str) -> Result<usize, String> {
    text.parse().map_err(|error| format!("not a number: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_settings_are_parsed_and_unknown_settings_refused() {
        let settings: Settings =
            "tools=12,page=5,ignores-term,deaf-after=tools/list".parse().unwrap();
        assert_eq!((settings.tools, settings.page), (12, 5));
        assert!(settings.ignores_term && !settings.is_silent);
        assert_eq!(settings.deaf_after.as_deref(), Some("tools/list"));
        assert!("nice".parse::<Settings>().unwrap_err().contains("no such word"));
        assert!("tools=many".parse::<Settings>().unwrap_err().contains("not a number"));
    }
}
