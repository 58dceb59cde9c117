//! The suite's scenarios for clients that sign in, by the revision that requires them.

/// The scenarios of one revision of the protocol.
pub(super) struct Revision {
    pub(super) name: &'static str,
    /// The suite's option `--spec-version`. Extensions belong to no revision.
    pub(super) version: Option<&'static str>,
    /// Names without the prefix `auth/`.
    pub(super) scenarios: &'static [&'static str],
    /// Least number of different checks that pass, over all scenarios.
    pub(super) floor: u64,
}

/// Number of revisions.
pub(super) const COUNT: usize = 4;

/// All scenarios that have to pass.
///
/// The floors are the numbers of the TypeScript SDK's client, with the two checks that it fails.
/// One check of 294 is less, since narthex refuses a foreign resource before it reads on.
pub(super) static REVISIONS: [Revision; COUNT] = [
    Revision { name: "2025-11-25", version: Some("2025-11-25"), scenarios: STABLE, floor: 183 },
    Revision { name: "2026-07-28", version: Some("2026-07-28"), scenarios: MODERN, floor: 293 },
    Revision {
        name: "2025-03-26",
        version: Some("2025-03-26"),
        scenarios: &["2025-03-26-oauth-metadata-backcompat", "2025-03-26-oauth-endpoint-fallback"],
        floor: 13,
    },
    Revision {
        name: "extensions",
        version: None,
        scenarios: &[
            "client-credentials-jwt",
            "client-credentials-basic",
            "enterprise-managed-authorization",
        ],
        floor: 16,
    },
];

/// Scenarios of extensions that narthex does not have, each with the reason.
pub(super) const NOT_BUILT: [(&str, &str); 3] = [
    ("dpop", "tokens are not bound to keys yet"),
    ("dpop-nonce", "tokens are not bound to keys yet"),
    ("wif-jwt-bearer", "workloads have no identity of their own yet"),
];

const STABLE: &[&str] = &[
    "metadata-default",
    "metadata-var1",
    "metadata-var2",
    "metadata-var3",
    "basic-cimd",
    "scope-from-www-authenticate",
    "scope-from-scopes-supported",
    "scope-omitted-when-undefined",
    "scope-step-up",
    "scope-retry-limit",
    "token-endpoint-auth-basic",
    "token-endpoint-auth-post",
    "token-endpoint-auth-none",
    "pre-registration",
];

/// All of `STABLE`, and those that are new.
const MODERN: &[&str] = &[
    "metadata-default",
    "metadata-var1",
    "metadata-var2",
    "metadata-var3",
    "basic-cimd",
    "scope-from-www-authenticate",
    "scope-from-scopes-supported",
    "scope-omitted-when-undefined",
    "scope-step-up",
    "scope-retry-limit",
    "token-endpoint-auth-basic",
    "token-endpoint-auth-post",
    "token-endpoint-auth-none",
    "pre-registration",
    "resource-mismatch",
    "offline-access-scope",
    "offline-access-not-supported",
    "authorization-server-migration",
    "iss-supported",
    "iss-not-advertised",
    "iss-supported-missing",
    "iss-wrong-issuer",
    "iss-unexpected",
    "iss-normalized",
    "metadata-issuer-mismatch",
];

#[cfg(test)]
mod tests {
    use super::{MODERN, NOT_BUILT, REVISIONS, STABLE};

    /// E213.
    #[test]
    fn each_revision_has_the_scenarios_that_it_requires() {
        assert_eq!((STABLE.len(), MODERN.len()), (14, 25));
        assert!(STABLE.iter().all(|name| MODERN.contains(name)));
        for revision in &REVISIONS {
            let names: std::collections::BTreeSet<_> = revision.scenarios.iter().copied().collect();
            assert_eq!(names.len(), revision.scenarios.len(), "{}", revision.name);
            let count = u64::try_from(names.len()).unwrap();
            assert!(revision.floor > count, "{}", revision.name);
            assert!(NOT_BUILT.iter().all(|(name, _)| !names.contains(name)), "{}", revision.name);
        }
    }
}
