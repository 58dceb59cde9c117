//! The turn of a session.

use crate::PrincipalId;

/// The human whose message the runs of a session act on: only this human's grants count (X-E81).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum TurnOf {
    /// This human.
    User(PrincipalId),
    /// No known human: only grants of agents count.
    NoUser,
}

/// The stored word for no known human. It is no valid id of a human.
const NO_USER: &str = "nobody";

impl TurnOf {
    /// The turn of the given user, or of no known human.
    #[must_use]
    pub fn of(user: Option<PrincipalId>) -> Self {
        user.map_or(Self::NoUser, Self::User)
    }

    /// The human; `None` if there is no known one.
    #[must_use]
    pub fn user(&self) -> Option<&PrincipalId> {
        match self {
            Self::User(user) => Some(user),
            Self::NoUser => None,
        }
    }

    /// The stored form.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.user().map_or(NO_USER, PrincipalId::as_str)
    }

    /// Parses the stored form; `None` for any other text.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            NO_USER => Some(Self::NoUser),
            text => PrincipalId::new(text).ok().map(Self::User),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x_e81_turns_survive_a_round_trip() {
        for turn in [TurnOf::NoUser, TurnOf::of(Some(PrincipalId::local_admin()))] {
            assert_eq!(TurnOf::parse(turn.as_str()), Some(turn));
        }
        assert_eq!(TurnOf::of(None), TurnOf::NoUser);
        assert_eq!((TurnOf::parse(""), TurnOf::parse("ada")), (None, None));
    }
}
