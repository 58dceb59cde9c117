//! Grants: when they are due, how they are renewed, and how they are stored.

use narthex_model::Secret;
use proptest::prelude::*;

use super::{Freshness, Grant, Reaction};
use crate::{
    challenge::Bearer,
    client::{TokenGrant, Tokens},
    scopes::Scopes,
};

const NOW: u64 = 2_000_000_000;

fn tokens(life: u64) -> Tokens {
    Tokens {
        access_token: Secret::new("s3cret-a"),
        refresh_token: Some(Secret::new("s3cret-r")),
        id_token: None,
        token_type: "bearer".to_owned(),
        scopes: Scopes::parse("a"),
        obtained_at: NOW,
        expires_at: NOW + life,
        is_expiry_guessed: false,
    }
}

fn grant(tokens: Tokens) -> Grant {
    Grant {
        issuer: "https://as.example".to_owned(),
        client_id: "c".to_owned(),
        resource: Some("https://mcp.example".to_owned()),
        requested: Scopes::parse("a b"),
        origin: TokenGrant::Code,
        tokens,
        generation: 0,
        key: None,
    }
}

fn states(grant: &Grant, times: impl IntoIterator<Item = u64>) -> Vec<Freshness> {
    times.into_iter().map(|after| grant.freshness(NOW + after)).collect()
}

/// X-E46: a token that lives less than a minute is renewed after half of its life.
#[test]
fn oauth_c24_a_token_is_due_30_seconds_before_its_end() {
    use Freshness::{Due, Ended, Fresh};
    let hour = grant(tokens(3600));
    assert_eq!(states(&hour, [0, 3569, 3570, 3599, 3600]), [Fresh, Fresh, Due, Due, Ended]);
    // A short token is used for half of its life at least.
    let short = grant(tokens(20));
    assert_eq!(states(&short, [0, 9, 10, 19, 20]), [Fresh, Fresh, Due, Due, Ended]);
    assert_eq!(states(&grant(tokens(0)), [0]), [Ended]);
}

#[test]
fn oauth_c24_a_guessed_end_is_only_a_reason_to_renew() {
    let guessed = grant(Tokens { is_expiry_guessed: true, ..tokens(3600) });
    let wanted = [Freshness::Fresh, Freshness::Due, Freshness::Due];
    assert_eq!(states(&guessed, [0, 3570, 99_999]), wanted);
}

#[test]
fn oauth_q7_a_token_without_expiry_and_refresh_token_is_used_until_it_is_refused() {
    let github = grant(Tokens { is_expiry_guessed: true, refresh_token: None, ..tokens(3600) });
    assert_eq!(states(&github, [0, 3600, 99_999]), [Freshness::Fresh; 3]);
    let ending = grant(Tokens { refresh_token: None, ..tokens(3600) });
    let wanted = [Freshness::Fresh, Freshness::Fresh, Freshness::Ended];
    assert_eq!(states(&ending, [0, 3599, 3600]), wanted);
}

#[test]
fn oauth_e97_a_client_s_token_is_asked_for_again() {
    let mut own = grant(Tokens { refresh_token: None, ..tokens(300) });
    own.origin = TokenGrant::ClientCredentials;
    let wanted = [Freshness::Fresh, Freshness::Due, Freshness::Ended];
    assert_eq!(states(&own, [269, 270, 300]), wanted);
}

#[test]
fn oauth_c23_an_answer_without_a_refresh_token_keeps_the_old_one() {
    let old = grant(tokens(60));
    let answer = Tokens {
        access_token: Secret::new("new"),
        refresh_token: None,
        obtained_at: NOW + 50,
        ..tokens(90)
    };
    let kept = old.renewed(answer.clone());
    assert_eq!(kept.tokens.access_token.expose(), "new");
    assert_eq!(kept.tokens.refresh_token, old.tokens.refresh_token);
    assert_eq!((kept.generation, kept.requested.clone()), (1, old.requested.clone()));
    let rotated = Tokens { refresh_token: Some(Secret::new("r2")), ..answer };
    let rotated = kept.renewed(rotated);
    assert_eq!(rotated.tokens.refresh_token.unwrap().expose(), "r2");
    assert_eq!(rotated.generation, 2);
}

#[test]
fn oauth_c24_a_refused_token_is_renewed_once() {
    let renewable = grant(tokens(60));
    let invalid = Bearer::find(["Bearer error=\"invalid_token\""]);
    for challenge in [invalid.as_ref(), None] {
        assert_eq!(renewable.after_refusal(challenge, false), Reaction::Renew);
        assert_eq!(renewable.after_refusal(challenge, true), Reaction::SignIn);
    }
    let without = grant(Tokens { refresh_token: None, ..tokens(60) });
    assert_eq!(without.after_refusal(None, false), Reaction::SignIn);
}

#[test]
fn oauth_c22_a_lack_of_scopes_leads_to_the_union() {
    let challenge = Bearer::find(["Bearer error=\"insufficient_scope\", scope=\"c\""]);
    let wanted = Reaction::AskForScopes(Scopes::parse("a b c"));
    assert_eq!(grant(tokens(60)).after_refusal(challenge.as_ref(), false), wanted);
}

#[test]
fn oauth_c21_and_q10_a_grant_is_for_its_issuer_and_client_only() {
    let grant = grant(tokens(60));
    assert!(grant.belongs_to("https://as.example", "c"));
    for (issuer, client) in [("https://as.example/", "c"), ("https://as.example", "c2"), ("", "c")]
    {
        assert!(!grant.belongs_to(issuer, client));
    }
}

#[test]
fn a_stored_grant_is_read_back_and_prints_no_secret() {
    let mut grant = grant(tokens(60));
    grant.key = Some(Secret::new("s3cret-k"));
    let stored = grant.to_stored();
    assert_eq!(Grant::from_stored(&stored).unwrap(), grant);
    assert!(!format!("{grant:?} {stored:?}").contains("s3cret"));
    let error = Grant::from_stored(&Secret::new("{\"issuer\":\"s3cret\"}")).unwrap_err();
    assert!(!error.to_string().contains("s3cret"));
}

proptest! {
    #[test]
    fn a_grant_only_ages(life in 0_u64..9000, times in prop::array::uniform2(0_u64..10_000)) {
        let rank = |state| match state {
            Freshness::Fresh => 0,
            Freshness::Due => 1,
            Freshness::Ended => 2,
        };
        let grant = grant(tokens(life));
        let [one, other] = times;
        let (early, late) = (one.min(other), one.max(other));
        let ranks = states(&grant, [early, late]).into_iter().map(rank).collect::<Vec<_>>();
        prop_assert!(ranks[0] <= ranks[1]);
        // A new token is never renewed at once.
        prop_assert!(life == 0 || rank(grant.freshness(NOW)) == 0);
    }
}
