//! A text that cannot be printed by accident.

use std::fmt;

use zeroize::Zeroizing;

/// A secret value. Neither `Debug` nor any other trait shows it; [`Secret::expose`] is the one way.
/// Its memory is overwritten when it is dropped.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// Wraps a value.
    #[must_use]
    pub fn new(value: impl Into<String>) -> Self {
        Self(Zeroizing::new(value.into()))
    }

    /// The value, to be put on the wire and nowhere else.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s27_a_secret_never_prints() {
        assert!(!format!("{:?}", Secret::new("hunter2")).contains("hunter2"));
    }
}
