//! Keys, facts and places of sign-ins, as the store and the vault know them.

use narthex_model::WorkspaceId;
use narthex_oauth_client::store::{ClientKey, GrantFacts, GrantKey, StoreFault};
use narthex_store::{OAuthClientKey, OAuthFacts, OAuthGrantKey};
use serde_json::json;

/// A workspace by its id.
///
/// # Errors
/// When the text is no id.
pub(super) fn workspace(text: &str) -> Result<WorkspaceId, StoreFault> {
    WorkspaceId::new(text).map_err(|error| StoreFault(error.to_string().into()))
}

/// The key of a grant in the store.
///
/// # Errors
/// When a part of the key is none.
pub(super) fn grant(key: &GrantKey) -> Result<OAuthGrantKey, StoreFault> {
    let GrantKey { workspace: of, server, user } = key;
    // The store has an empty user for shared grants: no human may be taken for that.
    if server.is_empty() || user.as_deref() == Some("") {
        return Err(StoreFault("a grant has no empty server and no empty user".into()));
    }
    Ok(OAuthGrantKey { workspace: workspace(of)?, server: server.clone(), user: user.clone() })
}

/// The key of a grant of the store.
pub(super) fn given(key: OAuthGrantKey) -> GrantKey {
    let OAuthGrantKey { workspace, server, user } = key;
    GrantKey { workspace: workspace.as_str().to_owned(), server, user }
}

/// The key of a client in the store.
///
/// # Errors
/// When a part of the key is none.
pub(super) fn client(key: &ClientKey) -> Result<OAuthClientKey, StoreFault> {
    let ClientKey { workspace: of, issuer, redirect_base } = key;
    let (issuer, redirect_base) = (issuer.clone(), redirect_base.clone());
    Ok(OAuthClientKey { workspace: workspace(of)?, issuer, redirect_base })
}

/// The facts to be stored.
pub(super) fn facts(facts: GrantFacts) -> OAuthFacts {
    let GrantFacts { issuer, scopes, expires_at, can_renew, succeeded_at, failed_at, failure } =
        facts;
    OAuthFacts { issuer, scopes, expires_at, can_renew, succeeded_at, failed_at, failure }
}

/// The facts that are stored.
pub(super) fn shown(facts: OAuthFacts) -> GrantFacts {
    let OAuthFacts { issuer, scopes, expires_at, can_renew, succeeded_at, failed_at, failure } =
        facts;
    GrantFacts { issuer, scopes, expires_at, can_renew, succeeded_at, failed_at, failure }
}

/// The place for which the vault seals a grant. The lists of these places differ for any two keys.
pub(super) fn grant_place(key: &OAuthGrantKey) -> String {
    let names: Vec<_> = [&key.server].into_iter().chain(&key.user).collect();
    format!("the sign-in {}", json!(names))
}

/// The place for which the vault seals a client.
pub(super) fn client_place(key: &OAuthClientKey) -> String {
    format!("the registered client {}", json!([key.issuer, key.redirect_base]))
}

/// The place for which the vault seals an attempt.
pub(super) fn attempt_place(state_hash: &str, key: &OAuthGrantKey) -> String {
    let hash = state_hash.to_owned();
    let names: Vec<_> = [&hash, &key.server].into_iter().chain(&key.user).collect();
    format!("the open sign-in {}", json!(names))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// X-M25: no two rows have one place, so that no value opens at another row.
    #[test]
    fn x_m25_each_sign_in_has_its_own_place() {
        let key = |server: &str, user: Option<&str>| OAuthGrantKey {
            workspace: WorkspaceId::default(),
            server: server.to_owned(),
            user: user.map(str::to_owned),
        };
        let all = [
            key("a", None),
            key("a", Some("b")),
            key("a\",\"b", None),
            key("a,b", None),
            key("b", Some("a")),
            key("a b", None),
        ];
        let mut places: Vec<_> = all.iter().map(grant_place).collect();
        places.extend(all.iter().map(|key| attempt_place("a", key)));
        places.sort_unstable();
        places.dedup();
        assert_eq!(places.len(), 2 * all.len(), "{places:?}");
    }

    #[test]
    fn a_grant_of_an_empty_name_is_refused() {
        let key = |workspace: &str, server: &str, user: Option<&str>| GrantKey {
            workspace: workspace.to_owned(),
            server: server.to_owned(),
            user: user.map(str::to_owned),
        };
        let whole = key("team", "docs", Some("prn_1"));
        assert_eq!(given(grant(&whole).unwrap()), whole);
        for bad in [key("", "docs", None), key("team", "", None), key("team", "docs", Some(""))] {
            assert!(grant(&bad).is_err(), "{bad:?}");
        }
    }
}
