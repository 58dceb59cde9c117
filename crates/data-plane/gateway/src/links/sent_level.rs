//! The log level that a link has been sent.

use narthex_wire::LogLevel;

/// The lowest log level that was sent on a link; `None` before the first one.
#[derive(Debug, Default)]
pub(crate) struct SentLevel {
    lowest: Option<LogLevel>,
    /// The level before the lowest, which the server has if it refuses the lowest.
    before: Option<LogLevel>,
}

impl SentLevel {
    /// The level to send so that a caller gets messages from `level` on; `None` if a level as low
    /// was sent before.
    pub(crate) fn lower_to(&mut self, level: LogLevel) -> Option<LogLevel> {
        if self.lowest.is_some_and(|lowest| lowest <= level) {
            return None;
        }
        *self = Self { lowest: Some(level), before: self.lowest };
        Some(level)
    }

    /// Forgets a level that could not be set: the server keeps the level before it, and the next
    /// caller who wants the level sends it.
    pub(crate) fn forget(&mut self, level: LogLevel) {
        if self.lowest == Some(level) {
            *self = Self { lowest: self.before, before: None };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_as_low_as_the_last_one_is_not_sent() {
        let mut sent = SentLevel::default();
        assert_eq!(sent.lower_to(LogLevel::Warning), Some(LogLevel::Warning));
        assert_eq!(sent.lower_to(LogLevel::Warning), None);
        assert_eq!(sent.lower_to(LogLevel::Error), None);
        assert_eq!(sent.lower_to(LogLevel::Debug), Some(LogLevel::Debug));
    }

    /// A later, higher level would take messages from callers that got them before.
    #[test]
    fn a_refused_level_leaves_the_level_before_it() {
        let mut sent = SentLevel::default();
        sent.lower_to(LogLevel::Warning);
        sent.lower_to(LogLevel::Debug);
        sent.forget(LogLevel::Debug);
        assert_eq!(sent.lower_to(LogLevel::Error), None);
        assert_eq!(sent.lower_to(LogLevel::Debug), Some(LogLevel::Debug));
    }
}
