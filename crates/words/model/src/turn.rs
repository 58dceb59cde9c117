//! The turn of a session.

use crate::PrincipalId;

/// The author of the message that the runs of a session act on: only their grants count (X-E81).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum TurnOf {
    /// This human.
    User(PrincipalId),
    /// No known human: grants of agents count alone.
    Nobody,
}

/// The stored word for no known human; no id of a human.
const NOBODY: &str = "nobody";

impl TurnOf {
    /// The turn of the given user, or of no known human.
    #[must_use]
    pub fn of(user: Option<PrincipalId>) -> Self {
        user.map_or(Self::Nobody, Self::User)
    }

    /// The human.
    #[must_use]
    pub fn user(&self) -> Option<&PrincipalId> {
        match self {
            Self::User(user) => Some(user),
            Self::Nobody => None,
        }
    }

    /// The stored form.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.user().map_or(NOBODY, PrincipalId::as_str)
    }

    /// Reads what [`TurnOf::as_str`] has written; `None` for anything else.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            NOBODY => Some(Self::Nobody),
            text => PrincipalId::new(text).ok().map(Self::User),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x_e81_turns_are_read_as_they_are_written() {
        for turn in [TurnOf::Nobody, TurnOf::of(Some(PrincipalId::local_admin()))] {
            assert_eq!(TurnOf::parse(turn.as_str()), Some(turn));
        }
        assert_eq!(TurnOf::of(None), TurnOf::Nobody);
        assert_eq!((TurnOf::parse(""), TurnOf::parse("ada")), (None, None));
    }
}
