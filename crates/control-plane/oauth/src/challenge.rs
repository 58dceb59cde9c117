//! Challenges in the header `WWW-Authenticate` (RFC 9110, 11.6.1), and the Bearer one among them
//! (RFC 6750, 3; RFC 9728, 5.1): read as a client, written as a resource.
//!
//! Reading never fails: parts that are no challenge are skipped, since a server that answers 401
//! can still be asked for its metadata at the known places.

use std::collections::BTreeMap;

use crate::scopes::Scopes;

/// The largest number of challenges that is read.
const CHALLENGES_MAX: usize = 32;
/// The largest number of parameters of one challenge that is read.
const PARAMETERS_MAX: usize = 32;

/// One challenge of a server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Challenge {
    /// The scheme, in lower case.
    pub scheme: String,
    /// The text after the scheme, in schemes such as `Negotiate`.
    pub token68: Option<String>,
    /// The parameters, by name in lower case. The first of several with one name counts.
    pub parameters: BTreeMap<String, String>,
}

/// The Bearer challenge of a server. All of its texts are chosen by the server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bearer {
    /// Address of the resource's metadata (RFC 9728).
    pub resource_metadata: Option<String>,
    /// Scopes that the refused request needs.
    pub scope: Option<Scopes>,
    /// Error code, such as `invalid_token` or `insufficient_scope`.
    pub error: Option<String>,
}

impl Bearer {
    /// Finds the Bearer challenge in the values of all `WWW-Authenticate` headers of an answer. Of
    /// several it is the first that names the resource's metadata, or else the first.
    pub fn find<'h>(headers: impl IntoIterator<Item = &'h str>) -> Option<Self> {
        let is_bearer = |challenge: &Challenge| challenge.scheme == "bearer";
        let mut all: Vec<_> = parse(headers).into_iter().filter(is_bearer).map(Self::of).collect();
        let named = all.iter().position(|bearer| bearer.resource_metadata.is_some());
        (!all.is_empty()).then(|| all.swap_remove(named.unwrap_or(0)))
    }

    fn of(mut challenge: Challenge) -> Self {
        let mut take =
            |name: &str| challenge.parameters.remove(name).filter(|value| !value.is_empty());
        let scope = take("scope").map(|text| Scopes::parse(&text));
        Self {
            resource_metadata: take("resource_metadata"),
            scope: scope.filter(|scopes| !scopes.is_empty()),
            error: take("error"),
        }
    }

    /// The value of the header `WWW-Authenticate`. `description` is for people, and is written with
    /// an error only.
    #[must_use]
    pub fn header(&self, description: Option<&str>) -> String {
        let scope = self.scope.as_ref().filter(|scopes| !scopes.is_empty());
        let parameters = [
            ("resource_metadata", self.resource_metadata.clone()),
            ("scope", scope.map(Scopes::to_string)),
            ("error", self.error.clone()),
            ("error_description", self.error.as_ref().and(description).map(str::to_owned)),
        ];
        let written = parameters
            .into_iter()
            .filter_map(|(name, value)| value.map(|value| format!(" {name}={}", quoted(&value))));
        format!("Bearer{}", written.collect::<Vec<_>>().join(","))
    }

    /// True if the request was refused because its token lacks a scope.
    #[must_use]
    pub fn is_insufficient_scope(&self) -> bool {
        self.error.as_deref() == Some("insufficient_scope")
    }

    /// True if the request was refused because its token is expired, revoked or malformed.
    #[must_use]
    pub fn is_invalid_token(&self) -> bool {
        self.error.as_deref() == Some("invalid_token")
    }
}

/// Reads the challenges in the values of all `WWW-Authenticate` headers of an answer.
pub fn parse<'h>(headers: impl IntoIterator<Item = &'h str>) -> Vec<Challenge> {
    let mut all = Vec::new();
    for header in headers {
        read_header(Reader { rest: header }, &mut all);
    }
    all
}

fn read_header(mut reader: Reader<'_>, all: &mut Vec<Challenge>) {
    let mut current: Option<Challenge> = None;
    while all.len() < CHALLENGES_MAX {
        reader.skip(|c| is_blank(c) || c == ',');
        if reader.rest.is_empty() {
            break;
        }
        let name = reader.take(is_token).to_ascii_lowercase();
        if name.is_empty() {
            reader.skip_item();
            continue;
        }
        // A parameter belongs to a challenge: the first name is always a scheme.
        if let Some(challenge) = &mut current
            && let Some(value) = reader.value()
        {
            if challenge.parameters.len() < PARAMETERS_MAX {
                challenge.parameters.entry(name).or_insert(value);
            }
            continue;
        }
        all.extend(current.take());
        let token68 = reader.token68();
        current = Some(Challenge { scheme: name, token68, parameters: BTreeMap::new() });
    }
    all.extend(current);
}

/// The unread rest of a header.
struct Reader<'h> {
    rest: &'h str,
}

impl<'h> Reader<'h> {
    fn take(&mut self, is_part: impl Fn(char) -> bool) -> &'h str {
        let end = self.rest.find(|c| !is_part(c)).unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at(end);
        self.rest = rest;
        taken
    }

    fn skip(&mut self, is_part: impl Fn(char) -> bool) {
        self.rest = self.rest.trim_start_matches(is_part);
    }

    /// Skips unreadable text up to the next comma outside of quotes.
    fn skip_item(&mut self) {
        while let Some(first) = self.rest.chars().next().filter(|first| *first != ',') {
            match first {
                '"' => drop(self.quoted()),
                _ => self.rest = &self.rest[first.len_utf8()..],
            }
        }
    }

    /// The value of a parameter, if its name was read; `None` if that was a scheme.
    fn value(&mut self) -> Option<String> {
        let after = self.rest.trim_start_matches(is_blank).strip_prefix('=')?;
        self.rest = after.trim_start_matches(is_blank);
        match self.rest.starts_with('"') {
            true => Some(self.quoted()),
            // More than a token: many servers do not quote addresses.
            false => Some(self.take(|c| !is_blank(c) && c != ',' && c != '"').to_owned()),
        }
    }

    /// The text of a quoted string, which begins here. One without an end takes the whole rest.
    fn quoted(&mut self) -> String {
        let mut text = String::new();
        let mut rest = self.rest.char_indices().skip(1);
        while let Some((at, c)) = rest.next() {
            match c {
                '"' => {
                    self.rest = &self.rest[at + 1..];
                    return text;
                }
                '\\' => text.extend(rest.next().map(|(_, escaped)| escaped)),
                _ => text.push(c),
            }
        }
        self.rest = "";
        text
    }

    /// The token68 of a scheme, which must be all of its text.
    fn token68(&mut self) -> Option<String> {
        let text = self.rest.strip_prefix(is_blank)?.trim_start_matches(is_blank);
        let is_part = |c: char| c.is_ascii_alphanumeric() || "-._~+/".contains(c);
        let body = text.find(|c| !is_part(c)).unwrap_or(text.len());
        let end = body + text[body..].len() - text[body..].trim_start_matches('=').len();
        let after = text[end..].trim_start_matches(is_blank);
        let is_whole = body > 0 && (after.is_empty() || after.starts_with(','));
        is_whole.then(|| {
            self.rest = after;
            text[..end].to_owned()
        })
    }
}

/// A text as a quoted string (RFC 9110, 5.6.4). Characters that no header can have are left out.
fn quoted(text: &str) -> String {
    let visible = text.chars().filter(|c| matches!(c, ' '..='~'));
    let escaped =
        visible.flat_map(|c| matches!(c, '"' | '\\').then_some('\\').into_iter().chain([c]));
    format!("\"{}\"", escaped.collect::<String>())
}

fn is_blank(c: char) -> bool {
    c == ' ' || c == '\t'
}

/// True for a character of a token (RFC 9110, 5.6.2).
fn is_token(c: char) -> bool {
    c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bearer(header: &str) -> Bearer {
        Bearer::find([header]).unwrap_or_else(|| panic!("no Bearer challenge in {header:?}"))
    }

    #[test]
    fn oauth_c2_the_bearer_challenge_is_found_among_several() {
        let metadata = "https://mcp.example/.well-known/oauth-protected-resource";
        for headers in [
            vec![format!("Bearer resource_metadata=\"{metadata}\", scope=\"b a\"")],
            vec![format!("Negotiate, bearer resource_metadata=\"{metadata}\",scope=\"a,b\"")],
            vec![format!("Negotiate YII==, Bearer resource_metadata={metadata} , scope = \"a b\"")],
            vec![
                "Negotiate".into(),
                format!("BEARER Resource_Metadata=\"{metadata}\" scope=\"a b\""),
            ],
            vec![format!(
                "Basic realm=\"a, Bearer b=\\\"c\\\"\", charset=\"UTF-8\", Bearer realm=\"x\", \
                 resource_metadata=\"{metadata}\", scope=\"a b\""
            )],
            vec![
                "Bearer realm=\"first\"".into(),
                format!("Bearer scope=\"a b\", resource_metadata=\"{metadata}\""),
            ],
        ] {
            let found = Bearer::find(headers.iter().map(String::as_str)).unwrap();
            assert_eq!(found.resource_metadata.as_deref(), Some(metadata), "{headers:?}");
            assert_eq!(found.scope.unwrap().to_string(), "a b", "{headers:?}");
        }
        for none in
            ["", ",", "Negotiate", "Basic realm=\"Bearer\"", "resource_metadata=\"x\"", "\""]
        {
            assert_eq!(Bearer::find([none]), None, "{none:?}");
        }
    }

    #[test]
    fn oauth_c2_a_bearer_challenge_may_name_nothing() {
        assert_eq!(bearer("Bearer"), Bearer::default());
        assert_eq!(bearer("Bearer error=\"\", scope=\"\", realm=\"\""), Bearer::default());
        let refused = bearer("Bearer error=\"insufficient_scope\", error_description=\"<b>\"");
        assert!(refused.is_insufficient_scope() && !refused.is_invalid_token());
        assert!(bearer("Bearer error=invalid_token").is_invalid_token());
    }

    #[test]
    fn oauth_c2_parameters_and_token68_are_told_apart() {
        let all = parse(["Negotiate abc/+9==, Digest a=b, c=\"d\\\\e\", NTLM, X y=\"open"]);
        let shown: Vec<_> = all
            .iter()
            .map(|one| (one.scheme.as_str(), one.token68.as_deref(), one.parameters.len()))
            .collect();
        let wanted = [
            ("negotiate", Some("abc/+9=="), 0),
            ("digest", None, 2),
            ("ntlm", None, 0),
            ("x", None, 1),
        ];
        assert_eq!(shown, wanted);
        assert_eq!(all[1].parameters["c"], "d\\e");
        assert_eq!(all[3].parameters["y"], "open");
        let twice = parse(["Bearer a=1, a=2"]);
        assert_eq!(twice[0].parameters["a"], "1");
    }

    #[test]
    fn oauth_c2_unreadable_parts_are_skipped() {
        let read = bearer("@@ \"a, b\" ;;, Bearer ==, scope=\"a\", =x, error=e");
        assert_eq!(
            (read.scope.unwrap().to_string().as_str(), read.error.as_deref()),
            ("a", Some("e"))
        );
        let many = "Bearer ".repeat(1000) + &", x".repeat(1000);
        assert!(parse([many.as_str()]).len() <= CHALLENGES_MAX + 1);
    }

    fn challenge() -> impl Strategy<Value = Challenge> {
        let parameters = prop::collection::btree_map("[a-z_]{1,8}", "[ -~]{0,12}", 0..4);
        let token68 = prop::option::of("[A-Za-z0-9+/]{1,8}={0,2}");
        ("[a-z]{1,8}", token68, parameters).prop_map(
            |(scheme, token68, parameters)| match token68 {
                Some(_) => Challenge { scheme, token68, parameters: BTreeMap::new() },
                None => Challenge { scheme, token68, parameters },
            },
        )
    }

    proptest! {
        #[test]
        fn printed_challenges_are_read_back(all in prop::collection::vec(challenge(), 0..5)) {
            let printed = all.iter().map(|one| {
                let token68 = one.token68.iter().map(|token| format!(" {token}"));
                let parameters: Vec<_> = one
                    .parameters
                    .iter()
                    .map(|(name, value)| format!(" {name}={}", quoted(value)))
                    .collect();
                format!("{}{}{}", one.scheme, token68.collect::<String>(), parameters.join(","))
            });
            let printed: Vec<_> = printed.collect();
            prop_assert_eq!(parse([printed.join(", ").as_str()]), all.clone());
            prop_assert_eq!(parse(printed.iter().map(String::as_str)), all);
        }

        #[test]
        fn a_written_bearer_challenge_is_read_back(
            resource_metadata in prop::option::of("[!-~]{1,12}"),
            scope in prop::option::of("[a-z]{1,3}( [a-z]{1,3}){0,2}"),
            error in prop::option::of("[a-z_\"\\\\]{1,9}"),
            description in prop::option::of("\\PC{0,12}"),
        ) {
            let scope = scope.map(|text| Scopes::parse(&text));
            let written = Bearer { resource_metadata, scope, error };
            let header = written.header(description.as_deref());
            prop_assert!(header.bytes().all(|b| (b' '..=b'~').contains(&b)), "{}", header);
            prop_assert_eq!(Bearer::find([header.as_str()]), Some(written));
        }

        #[test]
        fn any_text_is_read(
            headers in prop::collection::vec("\\PC{0,60}|[ ,=\"\\\\a]{0,30}", 0..4),
        ) {
            parse(headers.iter().map(String::as_str));
        }
    }
}
