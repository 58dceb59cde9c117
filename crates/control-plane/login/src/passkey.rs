//! Passkeys (WebAuthn): the ceremonies of registration and of sign-in.
//!
//! Passkeys are discoverable, so a user types no name and strangers cannot learn who has one. User
//! verification is required: a passkey is two factors by itself.

use std::fmt;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use narthex_model::ErrorKind;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use url::Url;
use webauthn_rs::prelude::{
    CredentialID, DiscoverableAuthentication, PasskeyRegistration, PublicKeyCredential,
    RegisterPublicKeyCredential, Uuid, Webauthn, WebauthnBuilder, WebauthnError,
};

/// The address at which browsers reach the daemon: scheme, host and port, as browsers write them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicOrigin {
    url: Url,
    text: String,
}

/// The reason why a text is no public origin.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PublicOriginError {
    /// The text is no URL of a web page.
    #[error(
        "it must be https://HOST or http://HOST, with a port if there is one, and nothing else"
    )]
    NoOrigin,
    /// The page is not secure, so that browsers offer no passkeys.
    #[error(
        "http is allowed only for `localhost` and loopback addresses; use https, for example with \
         a proxy"
    )]
    NotSecure,
}

impl PublicOrigin {
    /// Parses an origin, such as `https://narthex.example` or `http://localhost:7717`.
    ///
    /// # Errors
    /// When the text is no origin, or not a secure one.
    pub fn parse(text: &str) -> Result<Self, PublicOriginError> {
        let url = Url::parse(text).map_err(|_error| PublicOriginError::NoOrigin)?;
        let is_bare = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
        let has_nobody = url.username().is_empty() && url.password().is_none();
        if !matches!(url.scheme(), "http" | "https") || !is_bare || !has_nobody {
            return Err(PublicOriginError::NoOrigin);
        }
        if url.scheme() == "http" && !is_loopback(&url) {
            return Err(PublicOriginError::NotSecure);
        }
        let text = url.origin().ascii_serialization();
        Ok(Self { url, text })
    }

    /// The origin as browsers send it in `Origin`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Host and port, as browsers send them in `Host`.
    #[must_use]
    pub fn authority(&self) -> &str {
        self.url.authority()
    }

    /// True if pages are encrypted.
    #[must_use]
    pub fn is_https(&self) -> bool {
        self.url.scheme() == "https"
    }

    /// The URL of a path at this origin.
    #[must_use]
    pub fn at(&self, path: &str) -> String {
        format!("{}{path}", self.text)
    }
}

impl fmt::Display for PublicOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// True if a URL stays on this machine.
pub(crate) fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(url::Host::Domain(name)) => name == "localhost",
        Some(url::Host::Ipv4(ip)) => ip.is_loopback(),
        Some(url::Host::Ipv6(ip)) => ip.is_loopback(),
        None => false,
    }
}

/// The reason why a ceremony failed. A browser gets the same text for all reasons.
#[derive(Debug, thiserror::Error)]
pub enum PasskeyError {
    /// The host is an IP address: passkeys belong to names.
    #[error("passkeys need a name, such as localhost, instead of an IP address")]
    NoName,
    /// The body is no answer of an authenticator.
    #[error("this is not an answer of a passkey")]
    Unreadable,
    /// The answer has another challenge, origin, user, key or signature.
    #[error("this passkey does not prove who you are")]
    Refused(#[source] WebauthnError),
    /// The passkey belongs to another user than the answer says.
    #[error("this passkey does not prove who you are")]
    WrongUser,
    /// The passkey was copied, or an older state of it was restored.
    #[error(
        "this passkey may have been copied, so it is not accepted any more; remove it, and add a \
         new one"
    )]
    Copied,
    /// The stored passkey cannot be read.
    #[error("the stored data of this passkey cannot be read")]
    Damaged(#[source] serde_json::Error),
    /// A fault of narthex.
    #[error("the passkey ceremony cannot be started")]
    Bug(#[source] WebauthnError),
}

impl PasskeyError {
    /// Returns the error's kind.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::NoName => ErrorKind::Conflict,
            Self::Unreadable => ErrorKind::Invalid,
            Self::Refused(_) | Self::WrongUser | Self::Copied => ErrorKind::Unauthenticated,
            Self::Damaged(_) => ErrorKind::Unavailable,
            Self::Bug(_) => ErrorKind::Bug,
        }
    }
}

/// The handle by which authenticators know a user. It reveals nothing about the person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UserHandle(Uuid);

impl UserHandle {
    /// The handle of a principal.
    #[must_use]
    pub fn of(principal: &str) -> Self {
        let hash = Sha256::digest(format!("narthex user handle\n{principal}"));
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&hash[..16]);
        Self(Uuid::from_bytes(bytes))
    }
}

/// A stored passkey: its public half and its counter.
#[derive(Debug, Clone)]
pub struct Passkey(webauthn_rs::prelude::Passkey);

impl Passkey {
    /// Reads a stored passkey.
    ///
    /// # Errors
    /// When the text cannot be read.
    pub fn from_stored(text: &str) -> Result<Self, PasskeyError> {
        serde_json::from_str(text).map(Self).map_err(PasskeyError::Damaged)
    }

    /// The stored form.
    ///
    /// # Errors
    /// When the passkey cannot be written.
    pub fn to_stored(&self) -> Result<String, PasskeyError> {
        serde_json::to_string(&self.0).map_err(PasskeyError::Damaged)
    }

    /// The passkey's id.
    #[must_use]
    pub fn id(&self) -> String {
        URL_SAFE_NO_PAD.encode(self.0.cred_id())
    }
}

/// A started registration.
#[derive(Debug, Clone)]
pub struct Registration(PasskeyRegistration);

/// A started sign-in.
#[derive(Debug, Clone)]
pub struct SignIn(DiscoverableAuthentication);

/// The ceremonies at one origin.
#[derive(Debug, Clone)]
pub struct Passkeys(Webauthn);

impl Passkeys {
    /// Ceremonies for the pages of an origin. The origin's host is the relying party id.
    ///
    /// # Errors
    /// When the host is an IP address, to which no passkey can belong.
    pub fn new(origin: &PublicOrigin) -> Result<Self, PasskeyError> {
        let host = origin.url.domain().ok_or(PasskeyError::NoName)?;
        let builder = WebauthnBuilder::new(host, &origin.url).map_err(PasskeyError::Bug)?;
        builder.rp_name("narthex").build().map(Self).map_err(PasskeyError::Bug)
    }

    /// Starts a registration: returns the options for the browser, and the state for checking the
    /// answer. `known` are the user's passkeys; no second passkey is made on their devices.
    ///
    /// # Errors
    /// When the library fails.
    pub fn begin_registration(
        &self,
        user: UserHandle,
        name: &str,
        known: &[Passkey],
    ) -> Result<(Value, Registration), PasskeyError> {
        let known: Vec<CredentialID> = known.iter().map(|one| one.0.cred_id().clone()).collect();
        let (options, state) = self
            .0
            .start_passkey_registration(user.0, name, name, Some(known))
            .map_err(PasskeyError::Bug)?;
        let mut options = as_json(&options)?;
        // The library asks for passkeys that are found by a typed name, but the sign-in page takes
        // no name.
        let selection = &mut options["publicKey"]["authenticatorSelection"];
        selection["residentKey"] = json!("required");
        selection["requireResidentKey"] = json!(true);
        Ok((options, Registration(state)))
    }

    /// Checks the browser's answer: challenge, origin, relying party, user verification, form.
    ///
    /// # Errors
    /// When a check fails.
    pub fn finish_registration(
        &self,
        registration: &Registration,
        answer: &[u8],
    ) -> Result<Passkey, PasskeyError> {
        let answer: RegisterPublicKeyCredential = read(answer)?;
        let made = self.0.finish_passkey_registration(&answer, &registration.0);
        made.map(Passkey).map_err(PasskeyError::Refused)
    }

    /// Starts a sign-in of any user.
    ///
    /// # Errors
    /// When the library fails.
    pub fn begin_sign_in(&self) -> Result<(Value, SignIn), PasskeyError> {
        let (mut options, state) =
            self.0.start_discoverable_authentication().map_err(PasskeyError::Bug)?;
        // A button is pressed, so that the browser shows its own dialog.
        options.mediation = None;
        Ok((as_json(&options)?, SignIn(state)))
    }

    /// The id of the passkey in an answer, for the lookup of the passkey.
    ///
    /// # Errors
    /// When the answer cannot be read.
    pub fn answering(answer: &[u8]) -> Result<String, PasskeyError> {
        let answer: PublicKeyCredential = read(answer)?;
        Ok(URL_SAFE_NO_PAD.encode(answer.get_credential_id()))
    }

    /// Checks the browser's answer with the passkey that was found by its id, and its owner.
    /// Returns the passkey to be stored from now on. If several sign-ins race, the store lets only
    /// one of them replace the found passkey.
    ///
    /// # Errors
    /// When a check fails, also that of the owner.
    pub fn finish_sign_in(
        &self,
        sign_in: SignIn,
        answer: &[u8],
        found: &Passkey,
        owner: UserHandle,
    ) -> Result<Passkey, PasskeyError> {
        let answer: PublicKeyCredential = read(answer)?;
        let named = self.0.identify_discoverable_authentication(&answer);
        let (named, _id) = named.map_err(PasskeyError::Refused)?;
        if named != owner.0 {
            return Err(PasskeyError::WrongUser);
        }
        let done = self.0.finish_discoverable_authentication_v2(&answer, sign_in.0, &found.0);
        let done = done.map_err(|error| match error {
            WebauthnError::CredentialPossibleCompromise => PasskeyError::Copied,
            error => PasskeyError::Refused(error),
        })?;
        let mut used = found.clone();
        used.0.update_credential(&done).ok_or(PasskeyError::WrongUser)?;
        Ok(used)
    }
}

fn as_json(options: &impl serde::Serialize) -> Result<Value, PasskeyError> {
    serde_json::to_value(options).map_err(PasskeyError::Damaged)
}

fn read<T: serde::de::DeserializeOwned>(answer: &[u8]) -> Result<T, PasskeyError> {
    // The parser's error may quote the answer, and helps no user.
    serde_json::from_slice(answer).map_err(|_error| PasskeyError::Unreadable)
}
