//! The choice of the requested scopes.

use crate::scopes::{OFFLINE_ACCESS, Scopes};

/// The largest number of consents to more scopes for one operation.
const STEP_UPS_MAX: u32 = 3;

/// Sources of scopes, from the strongest to the weakest.
#[derive(Debug, Clone, Copy, Default)]
pub struct ScopeSources<'a> {
    /// Scopes in the settings. They replace those of the server, and join those of a challenge.
    pub configured: Option<&'a Scopes>,
    /// Scopes in the challenge to a request.
    pub challenged: Option<&'a Scopes>,
    /// Scopes in the resource's metadata.
    pub resource: Option<&'a Scopes>,
    /// Scopes in the authorization server's metadata: they only show what may be asked for.
    pub server: Option<&'a Scopes>,
}

impl ScopeSources<'_> {
    /// The scopes to request. An empty set leaves the choice to the server.
    ///
    /// `offline_access` is added to other scopes if the authorization server lists it.
    #[must_use]
    pub fn choose(self) -> Scopes {
        let none = Scopes::default();
        let chosen = match (self.configured, self.challenged) {
            (Some(configured), challenged) => configured.union(challenged.unwrap_or(&none)),
            (None, Some(challenged)) => challenged.clone(),
            (None, None) => self.resource.unwrap_or(&none).clone(),
        };
        let is_offline = self.server.is_some_and(|known| known.contains(OFFLINE_ACCESS));
        match is_offline && !chosen.is_empty() {
            true => chosen.with(OFFLINE_ACCESS),
            false => chosen,
        }
    }
}

/// Consents to more scopes for one operation of one server, which are limited in number.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StepUp {
    tries: u32,
}

impl StepUp {
    /// The scopes to request after a challenge with `insufficient_scope`: those requested before,
    /// and those of the challenge. `None` after too many tries.
    pub fn next(&mut self, requested: &Scopes, challenged: &Scopes) -> Option<Scopes> {
        self.tries += 1;
        (self.tries <= STEP_UPS_MAX).then(|| requested.union(challenged))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn set(text: &str) -> Scopes {
        Scopes::parse(text)
    }

    #[test]
    fn oauth_c19_the_strongest_source_is_taken() {
        let (configured, challenged, resource) = (set("a"), set("b"), set("c d"));
        let all = ScopeSources {
            configured: Some(&configured),
            challenged: Some(&challenged),
            resource: Some(&resource),
            server: None,
        };
        assert_eq!(all.choose(), set("a b"));
        assert_eq!(ScopeSources { challenged: None, ..all }.choose(), set("a"));
        let unset = ScopeSources { configured: None, ..all };
        assert_eq!(unset.choose(), set("b"));
        assert_eq!(ScopeSources { challenged: None, ..unset }.choose(), set("c d"));
        assert!(ScopeSources::default().choose().is_empty());
    }

    #[test]
    fn oauth_c19_offline_access_is_added_only_if_it_is_listed() {
        let (resource, server) = (set("a"), set("a b offline_access"));
        let listed = ScopeSources {
            resource: Some(&resource),
            server: Some(&server),
            ..ScopeSources::default()
        };
        assert_eq!(listed.choose(), set("a offline_access"));
        let other = set("a b");
        assert_eq!(ScopeSources { server: Some(&other), ..listed }.choose(), set("a"));
        // The server's own default would be lost.
        assert!(ScopeSources { resource: None, ..listed }.choose().is_empty());
    }

    #[test]
    fn oauth_c22_consents_to_more_scopes_are_limited() {
        let mut step_up = StepUp::default();
        let mut requested = set("a");
        for more in ["b", "c", "d"] {
            let next = step_up.next(&requested, &set(more)).unwrap();
            assert!(next.contains_all(&requested) && next.contains(more));
            requested = next;
        }
        assert_eq!(requested, set("a b c d"));
        assert_eq!(step_up.next(&requested, &set("e")), None);
        assert_eq!(step_up.next(&requested, &set("e")), None);
    }

    proptest! {
        #[test]
        fn chosen_scopes_have_all_configured_and_challenged_ones(
            sets in prop::array::uniform4(prop::option::of("[a-e ]{0,6}")),
        ) {
            let sets = sets.map(|text| text.map(|text| set(&text)));
            let [configured, challenged, resource, server] = sets.each_ref().map(Option::as_ref);
            let chosen = ScopeSources { configured, challenged, resource, server }.choose();
            for scopes in [configured, challenged].into_iter().flatten() {
                prop_assert!(chosen.contains_all(scopes));
            }
            let known = |name: &str| {
                [configured, challenged, resource].iter().flatten().any(|one| one.contains(name))
            };
            prop_assert!(chosen.iter().all(known));
        }
    }
}
