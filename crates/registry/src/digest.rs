//! Whether two configurations of a server are the same, without keeping secrets to compare (E52).

use std::time::Duration;

use hmac::{Hmac, KeyInit as _, Mac as _};
use narthex_model::{ApiKeyAuth, HttpTarget, ServerAuth, ServerDefinition, StdioTarget, Target};
use sha2::Sha256;

/// A configuration's fingerprint under a key that only this process has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Digest([u8; 32]);

/// The key, made anew by each registry and kept nowhere else.
pub(crate) struct DigestKey(Hmac<Sha256>);

impl DigestKey {
    pub(crate) fn new(key: &[u8; 32]) -> Self {
        let mac = Hmac::<Sha256>::new_from_slice(key);
        Self(mac.expect("HMAC takes keys of any length"))
    }

    /// Covers everything of a definition that a connection depends on. Destructured in full, so
    /// that a field that is added cannot be forgotten here. Whether the configuration switches the
    /// server off is no property of its connection.
    pub(crate) fn of(&self, definition: &ServerDefinition) -> Digest {
        let ServerDefinition {
            alias,
            target,
            timeout,
            mount_timeout,
            is_disabled: _,
            filled_in,
            // What callers see and how much of it is the gateway's part, which reads the row.
            output: _,
            exposed: _,
        } = definition;
        let mut fields = Fields(self.0.clone());
        fields.text(alias.as_str());
        fields.duration(*timeout);
        fields.duration(*mount_timeout);
        match target {
            Target::Stdio(target) => fields.stdio(target),
            Target::Http(target) => fields.http(target),
        }
        fields.many(filled_in.iter().map(narthex_model::Secret::expose));
        Digest(fields.0.finalize().into_bytes().into())
    }
}

/// Each field goes in with its length, so that no two lists look alike (E53).
struct Fields(Hmac<Sha256>);

impl Fields {
    fn number(&mut self, number: u64) {
        self.0.update(&number.to_be_bytes());
    }

    fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.0.update(text.as_bytes());
    }

    fn flag(&mut self, is_set: bool) {
        self.0.update(&[u8::from(is_set)]);
    }

    fn optional(&mut self, text: Option<&str>) {
        self.flag(text.is_some());
        self.text(text.unwrap_or_default());
    }

    fn duration(&mut self, duration: Option<Duration>) {
        self.flag(duration.is_some());
        let millis = duration.unwrap_or_default().as_millis();
        self.number(u64::try_from(millis).unwrap_or(u64::MAX));
    }

    fn many<'t>(&mut self, texts: impl ExactSizeIterator<Item = &'t str>) {
        self.number(texts.len() as u64);
        texts.for_each(|text| self.text(text));
    }

    fn stdio(&mut self, target: &StdioTarget) {
        let StdioTarget { command, args, env, working_dir, confinement } = target;
        self.text("stdio");
        self.text(command);
        self.many(args.iter().map(String::as_str));
        self.many(env.keys().map(String::as_str));
        self.many(env.values().map(narthex_model::Secret::expose));
        let folder = working_dir.as_ref().map(|folder| folder.to_string_lossy());
        self.optional(folder.as_deref());
        let confinement = confinement.as_ref().map(|limits| format!("{limits:?}"));
        self.optional(confinement.as_deref());
    }

    fn http(&mut self, target: &HttpTarget) {
        let HttpTarget { url, is_sse, headers, auth } = target;
        self.text("http");
        self.text(url);
        self.flag(*is_sse);
        self.many(headers.keys().map(String::as_str));
        self.many(headers.values().map(narthex_model::Secret::expose));
        match auth {
            ServerAuth::None => self.text("none"),
            ServerAuth::ApiKey(ApiKeyAuth { header_name, value_prefix, key }) => {
                self.text("apiKey");
                self.text(header_name);
                self.text(value_prefix);
                self.optional(key.as_ref().map(narthex_model::Secret::expose));
            }
            ServerAuth::NotYet { mode } => self.text(mode),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, path::PathBuf};

    use narthex_model::{Alias, Secret};

    use super::*;

    fn stdio(args: &[&str]) -> ServerDefinition {
        let target = StdioTarget {
            command: "tool".to_owned(),
            args: args.iter().map(|arg| (*arg).to_owned()).collect(),
            env: BTreeMap::from([("KEY".to_owned(), Secret::new("one"))]),
            working_dir: None,
            confinement: None,
        };
        define(Target::Stdio(target))
    }

    fn http() -> ServerDefinition {
        let target = HttpTarget {
            url: "http://localhost/mcp".to_owned(),
            is_sse: false,
            headers: BTreeMap::from([("X-Team".to_owned(), Secret::new("a"))]),
            auth: ServerAuth::ApiKey(ApiKeyAuth {
                header_name: "Authorization".to_owned(),
                value_prefix: "Bearer ".to_owned(),
                key: Some(Secret::new("key")),
            }),
        };
        define(Target::Http(target))
    }

    fn define(target: Target) -> ServerDefinition {
        let alias = Alias::new("x").unwrap();
        ServerDefinition::new(alias, target)
    }

    fn digest(definition: &ServerDefinition) -> Digest {
        DigestKey::new(&[7; 32]).of(definition)
    }

    type Change = (&'static str, fn(&mut ServerDefinition));

    fn assert_all_differ(of: fn() -> ServerDefinition, changes: &[Change]) {
        let mut seen = vec![("unchanged", digest(&of()))];
        for (what, change) in changes {
            let mut changed = of();
            change(&mut changed);
            let found = digest(&changed);
            for (other, digest) in &seen {
                assert_ne!(*digest, found, "{what} looks like {other}");
            }
            seen.push((what, found));
        }
    }

    fn child(definition: &mut ServerDefinition) -> &mut StdioTarget {
        let Target::Stdio(target) = &mut definition.target else { panic!("not stdio") };
        target
    }

    fn remote(definition: &mut ServerDefinition) -> &mut HttpTarget {
        let Target::Http(target) = &mut definition.target else { panic!("not http") };
        target
    }

    fn api_key(definition: &mut ServerDefinition) -> &mut ApiKeyAuth {
        let ServerAuth::ApiKey(auth) = &mut remote(definition).auth else { panic!("no key") };
        auth
    }

    /// E42, E50, E52: everything that a child depends on counts, and nothing is mistaken for
    /// something else.
    #[test]
    fn e52_each_field_of_a_program_counts() {
        assert_all_differ(
            || stdio(&["a"]),
            &[
                ("command", |d| child(d).command.push('x')),
                ("argument", |d| child(d).args[0].push('b')),
                ("another argument", |d| child(d).args.push("b".to_owned())),
                ("value", |d| {
                    child(d).env.insert("KEY".to_owned(), Secret::new("two"));
                }),
                ("variable", |d| {
                    child(d).env.insert("KEY2".to_owned(), Secret::new("one"));
                }),
                ("folder", |d| child(d).working_dir = Some(PathBuf::from("/tmp"))),
                ("confinement", |d| {
                    let strict = narthex_model::Confinement::strict(PathBuf::from("/tmp"));
                    child(d).confinement = Some(Box::new(strict));
                }),
                ("mount timeout", |d| d.mount_timeout = Some(Duration::from_secs(1))),
                ("timeout", |d| d.timeout = Some(Duration::from_secs(1))),
                ("alias", |d| d.alias = Alias::new("y").unwrap()),
                ("filled in", |d| d.filled_in.push(Secret::new("s"))),
            ],
        );
    }

    /// E23, E52: the same for a server over HTTP, keys and headers included.
    #[test]
    fn e52_each_field_of_a_url_counts() {
        assert_all_differ(
            http,
            &[
                ("url", |d| remote(d).url.push('2')),
                ("transport", |d| remote(d).is_sse = true),
                ("header", |d| {
                    remote(d).headers.insert("X-Team".to_owned(), Secret::new("b"));
                }),
                ("key", |d| api_key(d).key = Some(Secret::new("key2"))),
                ("no key", |d| api_key(d).key = None),
                ("header name", |d| api_key(d).header_name = "X-Key".to_owned()),
                ("prefix", |d| api_key(d).value_prefix.clear()),
                ("mode", |d| remote(d).auth = ServerAuth::None),
            ],
        );
    }

    /// E53: arguments are compared one by one.
    #[test]
    fn e53_arguments_are_compared_one_by_one() {
        assert_ne!(digest(&stdio(&["a b"])), digest(&stdio(&["a", "b"])));
        assert_ne!(digest(&stdio(&["a", "bc"])), digest(&stdio(&["ab", "c"])));
    }

    /// E52: a digest tells nothing to who has not the key.
    #[test]
    fn e52_digests_are_keyed() {
        assert_ne!(DigestKey::new(&[1; 32]).of(&http()), DigestKey::new(&[2; 32]).of(&http()));
    }
}
