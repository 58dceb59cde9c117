//! Changes of tools, the words for them, and the rows that cannot be changed.

use narthex_console::{Told, parts::Words};
use narthex_model::Provenance;
use narthex_registry::ServerRow;

/// A change of tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Act {
    Hide,
    Show,
    Require,
    Free,
}

impl Act {
    pub(super) const ALL: [Self; 4] = [Self::Hide, Self::Show, Self::Require, Self::Free];

    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Hide => "hide",
            Self::Show => "show",
            Self::Require => "require",
            Self::Free => "free",
        }
    }

    pub(super) fn label(self) -> &'static str {
        match self {
            Self::Hide => "hide them from callers",
            Self::Show => "show them to callers",
            Self::Require => "require a scope",
            Self::Free => "require no scope",
        }
    }

    pub(super) fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|act| act.word() == word)
    }
}

/// The reason why the tools of a server cannot be changed here, if there is one.
pub(super) fn fixed(row: &ServerRow) -> Option<String> {
    match (row.provenance, &row.file) {
        (Provenance::Settings, _) => None,
        (_, Some(file)) => Some(format!("changed in {}", file.display())),
        (_, None) => Some("changed by the program that added it".to_owned()),
    }
}

/// The result of the last change, as the address has it.
pub(super) fn told(done: &str, count: &str) -> Option<Told> {
    let (act, count) = (Act::of(done)?, count.parse::<u64>().ok()?);
    let tools = if count == 1 { "1 tool is".to_owned() } else { format!("{count} tools are") };
    let sentence = match act {
        Act::Hide => format!("{tools} hidden now."),
        Act::Show => format!("{tools} visible now."),
        Act::Require => format!("{tools} gated now."),
        Act::Free => format!("{tools} without a scope now."),
    };
    Some(Told { sentence: Words::new(&sentence), is_failure: false })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_told_with_their_number() {
        assert_eq!(told("hide", "1").unwrap().sentence.as_str(), "1 tool is hidden now.");
        assert_eq!(
            told("free", "2").unwrap().sentence.as_str(),
            "2 tools are without a scope now."
        );
        assert!(told("other", "1").is_none() && told("hide", "x").is_none());
    }
}
