//! Random tokens: 256 bits, shown once, stored as a hash.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use narthex_model::Secret;
use narthex_oauth::TokenHash;

const RANDOM_BYTES: usize = 32;

/// A token that no stranger can guess. Its text gives access to its holder.
#[derive(Debug, Clone)]
pub struct Token(Secret);

impl Token {
    /// Generates a token.
    ///
    /// # Errors
    /// When the operating system gives no random bytes.
    pub fn generate() -> Result<Self, getrandom::Error> {
        let mut bytes = [0; RANDOM_BYTES];
        getrandom::fill(&mut bytes)?;
        Ok(Self(Secret::new(URL_SAFE_NO_PAD.encode(bytes))))
    }

    /// The text: 43 characters that are valid in a URL, a cookie and a form.
    #[must_use]
    pub fn expose(&self) -> &str {
        self.0.expose()
    }

    /// The stored form of the token.
    #[must_use]
    pub fn hash(&self) -> TokenHash {
        TokenHash::of(self.expose())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn tokens_differ_have_256_bits_and_print_nothing() {
        let tokens: Vec<_> = (0..100).map(|_| Token::generate().unwrap()).collect();
        let texts: BTreeSet<_> = tokens.iter().map(Token::expose).collect();
        assert_eq!(texts.len(), 100);
        for token in &tokens {
            assert_eq!(URL_SAFE_NO_PAD.decode(token.expose()).unwrap().len(), 32);
            assert!(!format!("{token:?} {:?}", token.hash()).contains(token.expose()));
            assert_ne!(token.hash().as_str(), token.expose());
            assert_eq!(token.hash(), TokenHash::from_stored(token.hash().as_str().to_owned()));
        }
    }

    #[test]
    fn hashes_for_different_purposes_differ() {
        let all = [
            TokenHash::of("t"),
            TokenHash::for_purpose("form", "t"),
            TokenHash::for_purpose("form", "u"),
            TokenHash::for_purpose("other", "t"),
        ];
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), 4);
    }
}
