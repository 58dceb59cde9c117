//! Tokens of services and MCP clients, and their hashes.

use std::fmt;

use narthex_model::{McpClientId, Secret, ServiceTokenId};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// The prefix of every token of a service, so that secret scanners can find leaked ones.
const SERVICE: &str = "nxs_";
/// The prefix of every token of an MCP client.
const CLIENT: &str = "nxc_";
const ID_BYTES: usize = 8;
const RANDOM_BYTES: usize = 32;

/// A token that proves the identity of a service. It contains the token's id and 256 random bits.
#[derive(Debug, Clone)]
pub struct ServiceToken(Secret);

/// A token that proves the identity of an MCP client. It contains the client's id and 256 random
/// bits.
#[derive(Debug, Clone)]
pub struct McpClientToken(Secret);

/// The hash of a token. Only the hash is stored.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct BearerHash([u8; 32]);

impl ServiceToken {
    /// Generates a token; returns it with its id.
    ///
    /// # Errors
    /// When the operating system gives no random bytes.
    pub fn generate() -> Result<(Self, ServiceTokenId), getrandom::Error> {
        let token = generate(SERVICE)?;
        let id = service_of(token.expose()).expect("a token is written as it is read");
        Ok((Self(token), id))
    }

    /// The token as text, to be shown once.
    #[must_use]
    pub fn expose(&self) -> &str {
        self.0.expose()
    }
}

impl McpClientToken {
    /// Generates a token; returns it with its client's id.
    ///
    /// # Errors
    /// When the operating system gives no random bytes.
    pub fn generate() -> Result<(Self, McpClientId), getrandom::Error> {
        let token = generate(CLIENT)?;
        let id = client_of(token.expose()).expect("a token is written as it is read");
        Ok((Self(token), id))
    }

    /// The token as text, to be shown once.
    #[must_use]
    pub fn expose(&self) -> &str {
        self.0.expose()
    }
}

fn generate(prefix: &str) -> Result<Secret, getrandom::Error> {
    let mut bytes = [0; ID_BYTES + RANDOM_BYTES];
    getrandom::fill(&mut bytes)?;
    let digits = Secret::new(hex::encode(bytes));
    Ok(Secret::new(format!("{prefix}{}", digits.expose())))
}

/// The id in a token; `None` if the text is no token of a service.
#[must_use]
pub fn service_of(text: &str) -> Option<ServiceTokenId> {
    ServiceTokenId::new(&format!("tok_{}", digits(text, SERVICE)?)).ok()
}

/// The client's id in a token; `None` if the text is no token of a client.
#[must_use]
pub fn client_of(text: &str) -> Option<McpClientId> {
    McpClientId::new(&format!("cli_{}", digits(text, CLIENT)?)).ok()
}

/// The digits of the id in a token of this kind.
fn digits<'t>(text: &'t str, prefix: &str) -> Option<&'t str> {
    let digits = text.strip_prefix(prefix)?;
    let is_whole = digits.len() == 2 * (ID_BYTES + RANDOM_BYTES);
    // More than digits would not be cut where a character ends.
    let is_hex = digits.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    (is_whole && is_hex).then(|| &digits[..2 * ID_BYTES])
}

impl BearerHash {
    /// The hash of a caller's text, which may be no token.
    #[must_use]
    pub fn of(token: &str) -> Self {
        Self(Sha256::digest(token).into())
    }

    /// Parses a stored hash; `None` if the text is none.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut bytes = [0; 32];
        hex::decode_to_slice(text, &mut bytes).ok().map(|()| Self(bytes))
    }

    /// The stored form: 64 hexadecimal digits.
    #[must_use]
    pub fn to_text(self) -> String {
        hex::encode(self.0)
    }

    /// True if this is the hash of the token. Takes the same time for every token.
    #[must_use]
    pub fn opens_for(self, token: &str) -> bool {
        self.0.ct_eq(&Self::of(token).0).into()
    }
}

impl fmt::Debug for BearerHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BearerHash")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_carry_their_id_and_open_by_hash() {
        let (token, id) = ServiceToken::generate().unwrap();
        assert!(token.expose().starts_with("nxs_"));
        assert_eq!((service_of(token.expose()), client_of(token.expose())), (Some(id), None));
        let (client, id) = McpClientToken::generate().unwrap();
        assert!(client.expose().starts_with("nxc_"));
        assert_eq!((client_of(client.expose()), service_of(client.expose())), (Some(id), None));
        let hash = BearerHash::parse(&BearerHash::of(token.expose()).to_text()).unwrap();
        assert!(hash.opens_for(token.expose()));
        assert!(!hash.opens_for(ServiceToken::generate().unwrap().0.expose()));
        assert!(!format!("{token:?}{hash:?}").contains(&token.expose()[4..12]));
    }

    #[test]
    fn an_invalid_token_has_no_id() {
        let (token, _) = ServiceToken::generate().unwrap();
        let token = token.expose();
        let odd = format!("nxs_{}", "\u{e4}".repeat(40));
        for bad in ["", "nxs_", &token[1..], &token[..token.len() - 1], &format!("{token}0"), &odd]
        {
            assert_eq!(service_of(bad), None, "{bad}");
        }
        assert_eq!(service_of(&token.to_uppercase()), None);
        for bad in ["", "0", "zz", &"0".repeat(63), &"0".repeat(66)] {
            assert_eq!(BearerHash::parse(bad), None, "{bad}");
        }
    }
}
