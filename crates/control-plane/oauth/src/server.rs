//! The door's side of OAuth 2.1: narthex as a protected resource, and as its authorization server.
//!
//! Each request is a value that leads to the next: an [`AuthorizeRequest`] to a [`PendingConsent`],
//! that to a code, a [`TokenRequest`] to an [`Outcome`] with what the caller stores and answers.
//! The caller passes the records that it found and the time, and stores the new ones in one step
//! with the check that the old ones did not change. Tokens leave as texts and are stored as hashes.
//!
//! All texts of clients are hostile: redirects lead to verified addresses alone, names are cleaned,
//! and errors repeat nothing of a request.

mod account;
mod answer;
mod assertion;
mod authorize;
mod bearer;
mod client;
mod client_assertion;
mod client_keys;
mod code;
mod consent;
mod credentials;
mod document;
mod door;
mod exchange;
mod family;
mod grant;
mod introspection;
mod issuer;
mod key_cache;
mod metadata;
mod outcome;
mod params;
mod redirect;
mod registration;
mod resource_metadata;
mod revocation;
mod service;
mod text;
mod time;
mod token;
mod token_request;

#[cfg(test)]
mod sample;
#[cfg(test)]
mod signer;
#[cfg(test)]
mod tests;

pub use account::{Account, IssueRules};
pub use answer::{Answer, ErrorCode, Header, OAuthError};
pub use assertion::{AssertionIssuer, CheckedAssertion, admit_assertions_of, check_assertion};
pub use authorize::{
    AuthorizeRefusal, AuthorizeRequest, AuthorizeRules, Checked, PageError, Prompt, ResourceRule,
};
pub use bearer::{CHALLENGE_HEADERS, ChallengeAnswer, Refusal, bearer_token};
pub use client::{BadClientId, Client, ClientId, ClientOrigin, ClientProof, UNUSED_LIFE};
pub use client_assertion::{CheckedProof, JtiUse, ProofFault};
pub use client_keys::ClientKeys;
pub use code::{CODE_LIFE, CodeRecord, CodeState, USED_CODE_LIFE};
pub use consent::{
    Approval, Approved, Consent, ConsentWarning, PENDING_LIFE, PendingConsent, Redirect,
};
pub use credentials::Credentials;
pub use document::{
    CachedDocument, DocumentError, DocumentHosts, DocumentUse, FETCH, FetchLimits, FetchedDocument,
};
pub use door::{Door, DoorError, DoorPath, Resource, UnknownResource, WellKnown};
pub use exchange::{redeem_code, refresh};
pub use family::{Family, GRACE, REFRESH_LIFE};
pub use grant::{ACCESS_LIFE, AccessRecord, Grant, NewAccess};
pub use introspection::{Asker, IntrospectionRequest, introspection};
pub use issuer::{ForeignAccess, TrustedIssuer};
pub use key_cache::KeyCache;
pub use metadata::{
    AUTHORIZE_PATH, Feature, INTROSPECT_PATH, REGISTER_PATH, REVOKE_PATH, ServerFeatures,
    TOKEN_PATH, server_metadata,
};
pub use outcome::{ASSERTION_USED, Issue, Outcome, UsedAssertion};
pub use params::{PARAMS_MAX, Params, ParamsError};
pub use redirect::{BadRule, RedirectError, RedirectKind, RedirectRules, RedirectUri};
pub use registration::{
    REGISTRATION_MAX, Registered, RegistrationCounts, RegistrationLimits, RegistrationRules,
    register,
};
pub use resource_metadata::{AuthorizationServers, METADATA_HEADERS, resource_metadata};
pub use revocation::{FoundToken, Revocation, RevocationRequest};
pub use service::client_credentials;
pub use text::{ClientName, NAME_MAX, client_link};
pub use time::StoredTime;
pub use token::{FamilyId, Token, TokenKind};

pub use crate::TokenHash;
pub use token_request::{
    AssertionRequest, AssertionWay, CodeRequest, GrantRequest, RefreshRequest, ServiceRequest,
    TokenRequest,
};
