//! Access of services in their own name (RFC 6749, 4.4).

use std::time::SystemTime;

use super::{
    account::{Account, IssueRules, NO_SCOPES},
    answer::{Answer, ErrorCode, OAuthError},
    door::Door,
    grant::{Grant, NewAccess},
    outcome::{Issue, Outcome, token_answer},
    token_request::ServiceRequest,
};
use crate::scopes::OFFLINE_ACCESS;

/// Gives an access token to a client in the name of its service account, and no refresh token: the
/// client proves itself again (RFC 6749, 4.4.3).
///
/// `account` is the one that an operator gave to the client, if there is one. A client that
/// registered itself has none, so no stranger gets access without a human. Without a named resource
/// the token is for the door for all servers.
#[must_use]
pub fn client_credentials(
    request: &ServiceRequest,
    rules: IssueRules<'_>,
    account: Option<Account>,
    door: &Door,
    now: SystemTime,
) -> Outcome {
    issued(request, rules, account, door, now).map_or_else(Outcome::Refuse, |access| {
        let answer = Answer::json(200, &token_answer(&access, None));
        let access = access.record;
        let issue = Issue { access, family: None, code: None, assertion: None, answer };
        Outcome::Issue(Box::new(issue))
    })
}

fn issued(
    request: &ServiceRequest,
    rules: IssueRules<'_>,
    account: Option<Account>,
    door: &Door,
    now: SystemTime,
) -> Result<NewAccess, OAuthError> {
    let refuse = |text| OAuthError::new(ErrorCode::UnauthorizedClient, text);
    if rules.client.is_public() {
        return Err(refuse("client_credentials are for clients with a secret or a key alone"));
    }
    let account = account.ok_or(refuse("no operator gave this client a service account"))?;
    let scopes = rules.given([request.scopes.as_ref(), None])?.without(OFFLINE_ACCESS);
    if scopes.is_empty() {
        return Err(NO_SCOPES);
    }
    let Account { user, workspace, agent } = account;
    let resource = request.resource.clone().unwrap_or_else(|| door.aggregated());
    let client_id = rules.client.id.clone();
    let grant = Grant { client_id, user, workspace, agent, resource, scopes };
    NewAccess::generate(grant, None, now)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::{
        scopes::Scopes,
        server::{
            client::Client,
            door::DoorPath,
            sample::{confidential_client, door, now, public_client, user},
        },
    };

    fn account() -> Account {
        Account { user: user(1), workspace: "default".to_owned(), agent: None }
    }

    fn ask(client: &Client, scopes: Option<&str>, account: Option<Account>) -> Outcome {
        let supported = Scopes::read("mcp mcp.write").unwrap();
        let scopes = scopes.map(|text| Scopes::read(text).unwrap());
        let request = ServiceRequest { scopes, resource: None };
        let rules = IssueRules { client, scopes: &supported };
        client_credentials(&request, rules, account, &door(), now())
    }

    fn body(outcome: &Outcome) -> Value {
        serde_json::from_str(outcome.answer().body.unwrap().expose()).unwrap()
    }

    #[test]
    fn door_a2_a_service_gets_an_access_token_of_its_account() {
        let (client, _) = confidential_client();
        let outcome = ask(&client, None, Some(account()));
        let found = body(&outcome);
        assert_eq!(found.get("refresh_token"), None);
        assert_eq!(found["scope"], "mcp mcp.write");
        let Outcome::Issue(issue) = outcome else { panic!("{outcome:?}") };
        assert!(issue.family.is_none() && issue.code.is_none());
        assert!(issue.access.hash.opens_for(found["access_token"].as_str().unwrap()));
        let Grant { user: found, resource, .. } = issue.access.grant;
        assert_eq!((found, resource), (user(1), door().aggregated()));
        assert_eq!(body(&ask(&client, Some("mcp other"), Some(account())))["scope"], "mcp");
    }

    #[test]
    fn door_a2_the_named_resource_is_that_of_the_token() {
        let (client, _) = confidential_client();
        let resource = door().resource(&DoorPath::parse("/mcp/git").unwrap());
        let request = ServiceRequest { scopes: None, resource: Some(resource.clone()) };
        let supported = Scopes::read("mcp").unwrap();
        let rules = IssueRules { client: &client, scopes: &supported };
        let outcome = client_credentials(&request, rules, Some(account()), &door(), now());
        let Outcome::Issue(issue) = outcome else { panic!("{outcome:?}") };
        assert_eq!(issue.access.grant.resource, resource);
    }

    #[test]
    fn door_a2_services_have_a_proof_an_account_and_a_scope() {
        let (client, _) = confidential_client();
        for (outcome, error) in [
            (ask(&public_client(), None, Some(account())), "unauthorized_client"),
            (ask(&client, None, None), "unauthorized_client"),
            (ask(&client, Some("other"), Some(account())), "invalid_scope"),
            (ask(&client, Some("offline_access"), Some(account())), "invalid_scope"),
        ] {
            assert_eq!(body(&outcome)["error"], error);
        }
    }
}
