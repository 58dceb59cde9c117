//! Remedies for a credential that a server refuses.

use std::path::Path;

use narthex_model::{
    Alias, HeaderSource, OAuth, ServerAuth, ServerDefinition, Target, basic_credentials,
    command::narthex, for_operators,
};

/// Names each header that holds a credential, the source of its value, and the commands that mend
/// it; `None` for a program. Models never read it (D28). `is_live`: the server is one of the live
/// configuration, and not a run's.
pub(super) fn of(definition: &ServerDefinition, is_live: bool) -> Option<String> {
    remedy(definition, is_live).map(for_operators)
}

fn remedy(definition: &ServerDefinition, is_live: bool) -> Option<String> {
    let Target::Http(target) = &definition.target else { return None };
    let approved = definition.approved_in.as_deref().filter(|_| is_live);
    let live = is_live.then_some(&definition.alias);
    if let ServerAuth::OAuth(oauth) = &target.auth {
        return Some(of_sign_in(oauth, live));
    }
    let sources = likely(&definition.header_sources);
    if sources.is_empty() {
        let sent = match basic_credentials(&target.url) {
            Some(_) => "the user and the password of its `url`",
            None => "no credential",
        };
        let set =
            format!("narthex sends {sent}: set a credential in its entry{}", approving(approved));
        return Some(format!("{set}, {}", taking_effect(live, approved.is_none())));
    }
    let named: Vec<_> = sources.iter().map(|source| named(source)).collect();
    let (secrets, variables, literals) = parts(&sources);
    let it = |count: usize| if count == 1 { "it" } else { "each" };
    let mut mend = Vec::new();
    if !secrets.is_empty() {
        mend.push(format!("set {} again with {}", it(secrets.len()), secrets.join(" and ")));
    }
    if variables > 0 {
        let up = narthex("up", &[]);
        let it = it(variables);
        mend.push(format!(
            "set {it} again where the daemon starts and restart the daemon with `{up}`"
        ));
    }
    if literals > 0 {
        mend.push(format!("correct {} there{}", it(literals), approving(approved)));
    }
    // A new value of a secret changes no file.
    let needs_approval = literals > 0 && approved.is_some();
    let then = taking_effect(live, variables == 0 && !needs_approval);
    Some(format!("{}: {}, {then}", named.join(" and "), mend.join(" and ")))
}

/// The remedy for a token that the server refuses although it is valid.
fn of_sign_in(oauth: &OAuth, live: Option<&Alias>) -> String {
    match (oauth, live) {
        (OAuth::ClientCredentials(_), _) => {
            "narthex sends the token that its client got: check the client, its `scopes` and its \
             `audience` at the authorization server"
                .to_owned()
        }
        (OAuth::AuthorizationCode(auth), _) if auth.exchange.is_some() => {
            "narthex sends the token that it got for the identity of a person: check the rights of \
             the person at the server, and the settings of `auth.exchange`"
                .to_owned()
        }
        (OAuth::AuthorizationCode(_), Some(alias)) => {
            let again = narthex("mcp reauthorize {}", &[alias]);
            format!("narthex sends the token of a sign-in: sign in again with `{again}`")
        }
        (OAuth::AuthorizationCode(_), None) => {
            "narthex sends the token of the human who drives the run: sign in to it again"
                .to_owned()
        }
    }
}

/// The headers whose values are not in the configuration, or all if there are none.
fn likely(sources: &[HeaderSource]) -> Vec<&HeaderSource> {
    let is_filled_in =
        |source: &&HeaderSource| source.secret.is_some() || !source.variables.is_empty();
    let filled_in: Vec<_> = sources.iter().filter(is_filled_in).collect();
    if filled_in.is_empty() { sources.iter().collect() } else { filled_in }
}

fn named(source: &HeaderSource) -> String {
    let HeaderSource { header, key, secret, variables, workspace: _ } = source;
    let from = match (secret, &variables[..]) {
        (Some(secret), _) => format!("the secret `{secret}` (`{key}`)"),
        (None, []) => format!("the value of `{key}`"),
        (None, [name]) => format!("the variable `{name}` (`{key}`)"),
        (None, names) => format!("the variables `{}` (`{key}`)", names.join("`, `")),
    };
    format!("the header `{header}` has {from}")
}

/// The commands that set the secrets, and the numbers of variables and of other values.
fn parts(sources: &[&HeaderSource]) -> (Vec<String>, usize, usize) {
    let (mut secrets, mut variables, mut literals) = (Vec::new(), 0, 0);
    for source in sources {
        match &source.secret {
            Some(secret) => {
                let set = narthex("secrets set {}", &[secret]);
                let set = match &source.workspace {
                    Some(workspace) => set.in_workspace(workspace.as_str()),
                    None => set,
                };
                secrets.push(format!("`{set}`"));
            }
            None if source.variables.is_empty() => literals += 1,
            None => variables += source.variables.len(),
        }
    }
    (secrets, variables, literals)
}

/// Names the command that approves a changed file, if the file needs an approval (D27).
fn approving(file: Option<&Path>) -> String {
    let command = file.map(|file| narthex("trust {}", &[&file.display()]));
    command.map(|command| format!(" and approve the change with `{command}`")).unwrap_or_default()
}

/// Describes the way in which the new value takes effect. The registry follows an entry of the live
/// configuration, but not the variables in it, and a file that needs approval only after that. A
/// run keeps the configuration of its creation (D10).
fn taking_effect(live: Option<&Alias>, is_by_itself: bool) -> String {
    let Some(alias) = live else { return "then create a new run".to_owned() };
    let reconnect = narthex("mcp reconnect {}", &[alias]);
    let by_itself = if is_by_itself { "which takes effect by itself, " } else { "" };
    format!("{by_itself}or run `{reconnect}` once the server accepts the same value")
}

#[cfg(test)]
mod tests {
    use narthex_model::{AuthorizationCodeAuth, HttpTarget, SecretName, WorkspaceId, for_models};

    use super::*;

    fn told(sources: Vec<HeaderSource>, is_live: bool) -> String {
        told_of(None, sources, is_live)
    }

    fn told_of(file: Option<&str>, sources: Vec<HeaderSource>, is_live: bool) -> String {
        let target = Target::Http(HttpTarget {
            url: "https://pay.example/mcp".to_owned(),
            is_sse: false,
            headers: [].into(),
            auth: ServerAuth::None,
        });
        let mut definition = ServerDefinition::new(Alias::new("pay").unwrap(), target);
        definition.header_sources = sources;
        definition.approved_in = file.map(|file| Path::new(file).into());
        let told = of(&definition, is_live).unwrap();
        let read = format!("the server refuses the credential (HTTP 401); {told}");
        assert_eq!(for_models(&read), "the server refuses the credential (HTTP 401)");
        told.strip_prefix("for operators: ").unwrap().to_owned()
    }

    fn source(header: &str, key: &str) -> HeaderSource {
        HeaderSource {
            header: header.to_owned(),
            key: key.to_owned(),
            secret: None,
            variables: Vec::new(),
            workspace: None,
        }
    }

    /// E88: the message names the header, the key, the secret and the command; a run keeps its own
    /// version.
    #[test]
    fn e88_a_secret_is_named_with_the_command_that_sets_it() {
        let mut key = source("Authorization", "config.api_key");
        key.secret = Some(SecretName::new("PAY_KEY").unwrap());
        key.workspace = Some(WorkspaceId::new("team").unwrap());
        let text = told(vec![source("x-tenant", "config.tenant"), key], false);
        let expected = "the header `Authorization` has the secret `PAY_KEY` (`config.api_key`): \
                        set it again with `narthex secrets set PAY_KEY --workspace team`, then \
                        create a new run";
        assert_eq!(text, expected);
    }

    /// E88: a variable, and any other value, is named with its remedy as well.
    #[test]
    fn e88_a_variable_needs_a_new_start_and_other_values_are_followed() {
        let mut key = source("Authorization", "servers.pay.auth.key");
        key.variables = vec!["PAY_KEY".to_owned()];
        let expected = "the header `Authorization` has the variable `PAY_KEY` \
                        (`servers.pay.auth.key`): set it again where the daemon starts and restart \
                        the daemon with `narthex up`, or run `narthex mcp reconnect pay` once the \
                        server accepts the same value";
        assert_eq!(told(vec![key], true), expected);
        let expected = "the header `X-Key` has the value of `servers.pay.headers.X-Key`: correct \
                        it there, which takes effect by itself, or run `narthex mcp reconnect \
                        pay` once the server accepts the same value";
        assert_eq!(told(vec![source("X-Key", "servers.pay.headers.X-Key")], true), expected);
        // A remedy for a run names no command.
        let text = told(vec![source("x-key", "config.key")], false);
        assert!(text.ends_with("correct it there, then create a new run"), "{text}");
        assert!(
            told(Vec::new(), true).starts_with("narthex sends no credential: set a credential in")
        );
    }

    /// E88, D27: a changed file that a human approves counts only after the command that approves
    /// it.
    #[test]
    fn e88_a_value_of_an_approved_file_needs_approval() {
        let file = Some("/my f/mcp.json");
        let expected = "the header `X-Key` has the value of `servers.pay.headers.X-Key`: correct \
                        it there and approve the change with `narthex trust '/my f/mcp.json'`, or \
                        run `narthex mcp reconnect pay` once the server accepts the same value";
        let key = || source("X-Key", "servers.pay.headers.X-Key");
        assert_eq!(told_of(file, vec![key()], true), expected);
        // A new value of a secret changes no file, so it needs no approval.
        let mut secret = key();
        secret.secret = Some(SecretName::new("PAY_KEY").unwrap());
        let told = told_of(file, vec![secret], true);
        assert!(told.contains("set it again with `narthex secrets set PAY_KEY`, which"), "{told}");
        assert!(told.contains("by itself") && !told.contains("trust"), "{told}");
        let none = told_of(file, Vec::new(), true);
        assert!(none.contains("in its entry and approve the change with `narthex trust"), "{none}");
        assert!(!none.contains("by itself"), "{none}");
        assert!(!told_of(file, vec![key()], false).contains("trust"), "a run keeps what it has");
    }

    /// E62: a refused token of a sign-in is mended by another sign-in, and not by a header.
    #[test]
    fn e62_a_refused_token_is_mended_by_a_sign_in() {
        let oauth = OAuth::AuthorizationCode(AuthorizationCodeAuth::default());
        let target = Target::Http(HttpTarget {
            url: "https://pay.example/mcp".to_owned(),
            is_sse: false,
            headers: [].into(),
            auth: ServerAuth::OAuth(Box::new(oauth)),
        });
        let definition = ServerDefinition::new(Alias::new("pay").unwrap(), target);
        let told = of(&definition, true).unwrap();
        assert!(told.contains("`narthex mcp reauthorize pay`"), "{told}");
        let told = of(&definition, false).unwrap();
        assert!(!told.contains("mcp reauthorize"), "a run has no part in the live server: {told}");
    }
}
