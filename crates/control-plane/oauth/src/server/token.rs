//! Tokens that the authorization server gives out, and their stored forms.
//!
//! A token is shown once. Only its hash is stored, so that stored data gives no access.

use narthex_model::Secret;
use serde::{Deserialize, Serialize};

use crate::{TokenHash, random::random_text};

/// Number of random bytes of a token.
const RANDOM_BYTES: usize = 32;
/// Number of characters of them as base64url.
const RANDOM_TEXT: usize = 43;
/// Number of bytes of the id of a token family.
const FAMILY_BYTES: usize = 16;
/// Number of characters of an id as base64url.
const FAMILY_TEXT: usize = 22;

/// The use of a token. Each has its own prefix, so that secret scanners find leaked tokens and no
/// token is mistaken for one of another use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenKind {
    /// An authorization code, with the prefix `nxd_`.
    Code,
    /// An access token, with the prefix `nxa_`.
    Access,
    /// A refresh token, with the prefix `nxr_`. It also contains the id of its family.
    Refresh,
    /// The secret of a registered client, with the prefix `nxp_`.
    ClientSecret,
}

/// A token that no stranger can guess. Its text gives access to its holder.
#[derive(Debug, Clone)]
pub struct Token(Secret);

/// The id of a token family: 128 random bits as base64url. The refresh tokens of the family contain
/// it, so that also an old one leads to its family.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FamilyId(String);

impl TokenKind {
    const ALL: [Self; 4] = [Self::Code, Self::Access, Self::Refresh, Self::ClientSecret];

    /// The first characters of each token of this kind.
    #[must_use]
    pub fn prefix(self) -> &'static str {
        match self {
            Self::Code => "nxd_",
            Self::Access => "nxa_",
            Self::Refresh => "nxr_",
            Self::ClientSecret => "nxp_",
        }
    }

    /// The kind of a caller's text; `None` if the text has not the form of a token.
    #[must_use]
    pub fn of(text: &str) -> Option<Self> {
        let kind = Self::ALL.into_iter().find(|kind| text.starts_with(kind.prefix()))?;
        let length = match kind {
            Self::Refresh => FAMILY_TEXT + RANDOM_TEXT,
            Self::Code | Self::Access | Self::ClientSecret => RANDOM_TEXT,
        };
        let is_plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_');
        let rest = &text[kind.prefix().len()..];
        (rest.len() == length && rest.bytes().all(is_plain)).then_some(kind)
    }
}

impl Token {
    /// Generates an authorization code, an access token or a client's secret.
    ///
    /// # Errors
    /// When the operating system gives no random bytes.
    pub fn generate(kind: TokenKind) -> Result<Self, getrandom::Error> {
        Self::with(kind, "")
    }

    /// Generates a refresh token of a family.
    ///
    /// # Errors
    /// When the operating system gives no random bytes.
    pub(super) fn refresh(family: &FamilyId) -> Result<Self, getrandom::Error> {
        Self::with(TokenKind::Refresh, &family.0)
    }

    fn with(kind: TokenKind, id: &str) -> Result<Self, getrandom::Error> {
        let random = Secret::new(random_text::<RANDOM_BYTES>()?);
        Ok(Self(Secret::new(format!("{}{id}{}", kind.prefix(), random.expose()))))
    }

    /// The text, which is valid in a URL, a header and a form.
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

impl FamilyId {
    /// Generates an id.
    ///
    /// # Errors
    /// When the operating system gives no random bytes.
    pub(super) fn generate() -> Result<Self, getrandom::Error> {
        random_text::<FAMILY_BYTES>().map(Self)
    }

    /// The family of a refresh token; `None` if the text has not the form of one.
    #[must_use]
    pub fn of_refresh_token(text: &str) -> Option<Self> {
        TokenKind::of(text).filter(|kind| *kind == TokenKind::Refresh)?;
        let start = TokenKind::Refresh.prefix().len();
        Some(Self(text[start..start + FAMILY_TEXT].to_owned()))
    }

    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn tokens_differ_have_their_prefix_and_print_nothing() {
        let mut texts = BTreeSet::new();
        for kind in [TokenKind::Code, TokenKind::Access, TokenKind::ClientSecret] {
            for _ in 0..20 {
                let token = Token::generate(kind).unwrap();
                let text = token.expose();
                assert!(text.starts_with(kind.prefix()));
                assert_eq!(TokenKind::of(text), Some(kind));
                assert_eq!(FamilyId::of_refresh_token(text), None);
                assert!(token.hash().opens_for(text) && !token.hash().opens_for("other"));
                assert!(!format!("{token:?} {:?}", token.hash()).contains(&text[4..]));
                assert!(!serde_json::to_string(&token.hash()).unwrap().contains(&text[4..]));
                texts.insert(text.to_owned());
            }
        }
        assert_eq!(texts.len(), 60);
    }

    #[test]
    fn refresh_tokens_contain_their_family() {
        let family = FamilyId::generate().unwrap();
        let (one, other) = (Token::refresh(&family).unwrap(), Token::refresh(&family).unwrap());
        assert_ne!(one.expose(), other.expose());
        for token in [&one, &other] {
            assert_eq!(FamilyId::of_refresh_token(token.expose()), Some(family.clone()));
        }
        let text = one.expose();
        let odd = format!("nxr_{}", "\u{e4}".repeat(32));
        for bad in ["", "nxr_", &text[1..], &text[..text.len() - 1], &format!("{text}0"), &odd] {
            assert_eq!(FamilyId::of_refresh_token(bad), None, "{bad}");
        }
    }
}
