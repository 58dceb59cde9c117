//! The books of the authorization servers: clients, codes, tokens, families, and counts.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::settings::ClientSettings;
use crate::canary::Canary;

/// Counts of events so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Clients that registered.
    pub registrations: usize,
    /// Codes that the authorization endpoint gave.
    pub codes: usize,
    /// Codes that were exchanged for tokens.
    pub exchanged_codes: usize,
    /// Refreshes that gave an access token.
    pub refreshes: usize,
    /// Refreshes that were refused.
    pub refused_refreshes: usize,
    /// Access tokens that were issued, in any way.
    pub access_tokens: usize,
    /// Families of tokens that ended because a code or a refresh token was used again.
    pub families_revoked: usize,
    /// Tokens that clients revoked.
    pub revocations: usize,
    /// Calls of tools that a live token was allowed.
    pub calls: usize,
}

/// The rights that a token or a code carries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// The number of the issuer.
    pub issuer: usize,
    /// The client id.
    pub client: String,
    /// The person, or the client itself.
    pub subject: String,
    /// The granted scopes.
    pub scopes: Vec<String>,
    /// The resources that may take the token.
    pub audience: Vec<String>,
    /// Number of the family; all tokens of one authorization have the same.
    pub family: u64,
}

/// A client that an issuer knows.
#[derive(Debug, Clone)]
pub(super) struct Client {
    pub(super) settings: ClientSettings,
    /// The time in milliseconds at which it is forgotten.
    pub(super) ends_ms: Option<u64>,
    /// The time in milliseconds at which its secret expires.
    pub(super) secret_ends_ms: Option<u64>,
}

#[derive(Debug, Clone)]
pub(super) struct Code {
    pub(super) grant: Grant,
    pub(super) redirect_uri: String,
    pub(super) challenge: String,
    /// The nonce for an ID token.
    pub(super) nonce: Option<String>,
    pub(super) ends_ms: u64,
    pub(super) is_used: bool,
}

#[derive(Debug, Clone)]
pub(super) struct Access {
    pub(super) grant: Grant,
    pub(super) ends_ms: u64,
}

#[derive(Debug, Clone)]
pub(super) struct Refresh {
    pub(super) grant: Grant,
    pub(super) ends_ms: Option<u64>,
    /// The time in milliseconds at which it was rotated.
    pub(super) used_ms: Option<u64>,
}

/// The answer of a person to a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Consent {
    Pending,
    Given,
    Denied,
}

#[derive(Debug, Clone)]
pub(super) struct Device {
    pub(super) grant: Grant,
    pub(super) user_code: String,
    pub(super) ends_ms: u64,
    pub(super) consent: Consent,
}

/// Everything that changes by requests.
#[derive(Debug, Default)]
pub(super) struct Books {
    pub(super) registered: Vec<Client>,
    pub(super) codes: BTreeMap<String, Code>,
    pub(super) access: BTreeMap<String, Access>,
    pub(super) refresh: BTreeMap<String, Refresh>,
    pub(super) devices: BTreeMap<String, Device>,
    /// Ids of assertions that were used.
    pub(super) assertions: BTreeSet<String>,
    pub(super) counts: Counts,
    families: u64,
    secrets: Vec<Made>,
}

/// A secret that the fixture made.
#[derive(Debug)]
struct Made {
    name: &'static str,
    value: String,
}

impl Books {
    /// A new secret of letters and digits.
    pub(super) fn token(&mut self, name: &'static str) -> String {
        self.noted(name, Canary::plain(name).value)
    }

    /// A new secret with characters that must be encoded.
    pub(super) fn secret(&mut self, name: &'static str) -> String {
        self.noted(name, Canary::new(name).value)
    }

    /// Notes a secret that was made elsewhere.
    pub(super) fn noted(&mut self, name: &'static str, value: String) -> String {
        self.secrets.push(Made { name, value: value.clone() });
        value
    }

    pub(super) fn canaries(&self) -> Vec<Canary> {
        self.secrets.iter().map(|made| Canary::of(made.name, &made.value)).collect()
    }

    pub(super) fn new_family(&mut self) -> u64 {
        self.families += 1;
        self.families
    }

    /// Ends all tokens of a family.
    pub(super) fn end_family(&mut self, family: u64) {
        self.access.retain(|_, access| access.grant.family != family);
        self.refresh.retain(|_, refresh| refresh.grant.family != family);
    }

    /// Ends a family because of a second use.
    pub(super) fn punish(&mut self, family: u64) {
        self.end_family(family);
        self.counts.families_revoked += 1;
    }

    /// The rights of a live opaque access token.
    pub(super) fn live(&self, token: &str, now_ms: u64) -> Option<&Grant> {
        let access = self.access.get(token)?;
        (now_ms < access.ends_ms).then_some(&access.grant)
    }

    /// Notes the id of an assertion; false if it was used before.
    pub(super) fn is_first_use(&mut self, claims: &Value) -> bool {
        let id = format!("{} {}", claims["iss"], claims["jti"]);
        claims["jti"].is_string() && self.assertions.insert(id)
    }
}
