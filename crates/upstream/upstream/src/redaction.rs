//! Removes from all that comes from a server the secrets of its definition, and the tokens that the
//! server got.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicUsize, Ordering},
};

use arc_swap::ArcSwap;
use http::HeaderValue;
use narthex_model::Secret;
use narthex_wire::Redactor;

/// The redactor of one link. Clones share what they have learned.
#[derive(Debug, Clone)]
pub(crate) struct Redaction {
    /// Finds the secrets of the definition; `None` if there are none.
    fixed: Option<Arc<Redactor>>,
    /// Finds the tokens as well; `None` if the credential cannot change.
    tokens: Option<Arc<Tokens>>,
}

#[derive(Debug)]
struct Tokens {
    /// The secrets of the definition.
    secrets: Vec<Secret>,
    /// The tokens, which answers are compared with.
    known: ArcSwap<Known>,
    /// The address of the last token's bytes, which `known` has: a request with the same bytes has
    /// nothing to add. 0 before the first one.
    last: AtomicUsize,
    /// Tokens are added one after another, so that `known` has the token of `last` at any time.
    adding: Mutex<()>,
}

#[derive(Debug)]
struct Known {
    /// The last credential, and the one before, which a late answer may still repeat.
    headers: [Option<HeaderValue>; 2],
    redactor: Option<Arc<Redactor>>,
}

impl Redaction {
    /// Finds these secrets. `changes`: tokens will be added.
    pub(crate) fn new(secrets: Vec<Secret>, changes: bool) -> Self {
        let fixed = redactor(&secrets);
        let known = Known { headers: [None, None], redactor: fixed.clone() };
        let (last, adding) = (AtomicUsize::new(0), Mutex::new(()));
        let tokens = Tokens { secrets, known: ArcSwap::from_pointee(known), last, adding };
        Self { fixed, tokens: changes.then(|| Arc::new(tokens)) }
    }

    /// The redactor for the secrets of the definition.
    pub(crate) fn fixed(&self) -> Option<&Arc<Redactor>> {
        self.fixed.as_ref()
    }

    /// Adds the token of a request, which the answer may repeat. A clone of the last one costs a
    /// comparison of addresses.
    pub(crate) fn learn(&self, value: &HeaderValue) {
        let Some(tokens) = &self.tokens else { return };
        if tokens.last.load(Ordering::Acquire) != address(value) {
            tokens.add(value);
        }
    }

    /// Calls `clean` with the present redactor; `None` if there is no secret.
    pub(crate) fn with<T>(&self, clean: impl FnOnce(Option<&Redactor>) -> T) -> T {
        match &self.tokens {
            None => clean(self.fixed.as_deref()),
            Some(tokens) => clean(tokens.known.load().redactor.as_deref()),
        }
    }
}

impl Tokens {
    /// Adds a token, or the other bytes of a known one.
    fn add(&self, value: &HeaderValue) {
        let _one = self.adding.lock().unwrap_or_else(PoisonError::into_inner);
        let mut value = value.clone();
        // The value is not to be shown with this one.
        value.set_sensitive(true);
        let last = address(&value);
        let known = self.known.load().after(value, &self.secrets);
        // Bytes that `known` gives up may become those of another token.
        self.last.store(0, Ordering::Release);
        self.known.store(Arc::new(known));
        self.last.store(last, Ordering::Release);
    }
}

impl Known {
    /// The known tokens with this one as the last.
    fn after(&self, value: HeaderValue, secrets: &[Secret]) -> Self {
        let [last, before] = &self.headers;
        let is_last = last.as_ref() == Some(&value);
        let is_known = is_last || before.as_ref() == Some(&value);
        let other = if is_last { before } else { last };
        let headers = [Some(value), other.clone()];
        if is_known {
            return Self { headers, redactor: self.redactor.clone() };
        }
        let mut all = secrets.to_vec();
        all.extend(headers.iter().flatten().filter_map(token));
        Self { headers, redactor: redactor(&all) }
    }
}

/// The address of a value's bytes. Clones share the bytes.
fn address(value: &HeaderValue) -> usize {
    value.as_bytes().as_ptr().addr()
}

fn redactor(secrets: &[Secret]) -> Option<Arc<Redactor>> {
    let redactor = Redactor::new(secrets);
    (!redactor.is_empty()).then(|| Arc::new(redactor))
}

/// The credential without the name of its scheme.
fn token(header: &HeaderValue) -> Option<Secret> {
    let text = header.to_str().ok()?;
    Some(Secret::new(text.split_once(' ').map_or(text, |(_scheme, token)| token)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(redaction: &Redaction, text: &str) -> String {
        redaction.with(|redactor| match redactor {
            Some(redactor) => redactor.text(text).into_owned(),
            None => text.to_owned(),
        })
    }

    /// S27: the present token and the one before are removed, and the secrets of the definition.
    #[test]
    fn s27_tokens_are_removed_as_they_change() {
        let redaction = Redaction::new(vec![Secret::new("key-123456")], true);
        let said = "key-123456, token-one-1, token-two-2, token-three-3";
        assert_eq!(text(&redaction, said), "[redacted], token-one-1, token-two-2, token-three-3");
        for token in ["Bearer token-one-1", "Bearer token-two-2", "Bearer token-two-2"] {
            redaction.clone().learn(&HeaderValue::from_static(token));
        }
        assert_eq!(text(&redaction, said), "[redacted], [redacted], [redacted], token-three-3");
        redaction.learn(&HeaderValue::from_static("Bearer token-three-3"));
        assert_eq!(text(&redaction, said), "[redacted], token-one-1, [redacted], [redacted]");
        assert!(!format!("{redaction:?}").contains("token-"));
    }

    /// S27: the last token may come in other bytes, and the one before may come again. Neither is
    /// forgotten for it.
    #[test]
    fn s27_a_known_token_in_other_bytes_replaces_no_other_one() {
        let redaction = Redaction::new(Vec::new(), true);
        let said = "token-one-1 token-two-2";
        for token in ["token-one-1", "token-two-2", "token-two-2", "token-one-1"] {
            let value = HeaderValue::from_str(&format!("Bearer {token}")).unwrap();
            redaction.learn(&value);
            let tokens = redaction.tokens.as_ref().unwrap();
            assert_eq!(tokens.last.load(Ordering::Acquire), address(&value.clone()));
        }
        assert_eq!(text(&redaction, said), "[redacted] [redacted]");
    }

    /// S27: of tokens that come at one time, none is lost but by two later ones.
    #[test]
    fn s27_tokens_that_come_at_one_time_are_all_removed() {
        let redaction = Redaction::new(Vec::new(), true);
        std::thread::scope(|scope| {
            for token in ["Bearer token-one-1", "Bearer token-two-2"] {
                let redaction = redaction.clone();
                scope.spawn(move || redaction.learn(&HeaderValue::from_static(token)));
            }
        });
        assert_eq!(text(&redaction, "token-one-1 token-two-2"), "[redacted] [redacted]");
    }

    /// A link whose credential cannot change learns nothing.
    #[test]
    fn s27_a_fixed_credential_is_a_secret_of_the_definition() {
        let redaction = Redaction::new(Vec::new(), false);
        redaction.learn(&HeaderValue::from_static("Bearer token-one-1"));
        assert_eq!(text(&redaction, "token-one-1"), "token-one-1");
        assert!(redaction.fixed().is_none());
    }
}
