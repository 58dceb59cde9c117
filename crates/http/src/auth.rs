//! Who calls: the bearer token of a request.

use std::{fmt, sync::Arc};

use http::{HeaderMap, header};
use narthex_control::{Actor, ActorKind};
use narthex_gateway::{Gateway, RunView};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::guard::single;

/// The hash of a token, which is all that is kept of it.
#[derive(Clone, Copy)]
pub struct TokenHash([u8; 32]);

impl TokenHash {
    /// The hash of this token.
    #[must_use]
    pub fn of(token: &str) -> Self {
        Self(Sha256::digest(token).into())
    }

    fn opens_for(&self, token: &str) -> bool {
        self.0.ct_eq(&Self::of(token).0).into()
    }
}

impl fmt::Debug for TokenHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenHash")
    }
}

/// Whose token was shown.
#[derive(Debug, Clone)]
pub(crate) enum Principal {
    /// A client's, which acts for a run.
    Run(Arc<RunView>),
    /// The operator's.
    Admin,
}

impl Principal {
    /// Finds out who calls; `None` without a token, or with one that proves nothing.
    pub(crate) async fn identify(
        gateway: &Gateway,
        admin: Option<&TokenHash>,
        headers: &HeaderMap,
    ) -> Option<Self> {
        let token = bearer(headers)?;
        if let Some(run) = gateway.runs().identify(token) {
            return Some(Self::Run(run));
        }
        if admin.is_some_and(|admin| admin.opens_for(token)) {
            return Some(Self::Admin);
        }
        // Boxed, as it is rare, so that calls stay small.
        Box::pin(gateway.find_run(token)).await.map(Self::Run)
    }
}

impl Principal {
    /// Who it is, for the audit.
    pub(crate) fn actor(&self) -> Actor<'static> {
        match self {
            Self::Run(run) => Actor::new(ActorKind::Run, run.id.to_text()),
            Self::Admin => Actor::new(ActorKind::LocalAdmin, "admin"),
        }
    }
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = single(headers, &header::AUTHORIZATION)??.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim_matches(' '))
}
