//! Removes from all that comes from a server the secrets of its definition, and the tokens that the
//! server got.

use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicBool, Ordering},
};

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
    /// True once there was a token. Most servers never get one.
    has_any: AtomicBool,
    known: Mutex<Known>,
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
        let (has_any, known) = (AtomicBool::new(false), Mutex::new(known));
        let tokens = Tokens { secrets, has_any, known };
        Self { fixed, tokens: changes.then(|| Arc::new(tokens)) }
    }

    /// The redactor for the secrets of the definition.
    pub(crate) fn fixed(&self) -> Option<&Arc<Redactor>> {
        self.fixed.as_ref()
    }

    /// Adds the token of a request, which the answer may repeat.
    pub(crate) fn learn(&self, value: &HeaderValue) {
        let Some(tokens) = &self.tokens else { return };
        let mut known = tokens.known();
        if known.headers.iter().flatten().any(|header| header == value) {
            return;
        }
        let mut value = value.clone();
        // The value is not to be shown with this one.
        value.set_sensitive(true);
        let [last, _] = std::mem::take(&mut known.headers);
        known.headers = [Some(value), last];
        let mut all = tokens.secrets.clone();
        all.extend(known.headers.iter().flatten().filter_map(token));
        known.redactor = redactor(&all);
        tokens.has_any.store(true, Ordering::Release);
    }

    /// Calls `clean` with the present redactor; `None` if there is no secret.
    pub(crate) fn with<T>(&self, clean: impl FnOnce(Option<&Redactor>) -> T) -> T {
        match self.tokens.as_ref().filter(|tokens| tokens.has_any.load(Ordering::Acquire)) {
            None => clean(self.fixed.as_deref()),
            Some(tokens) => {
                let redactor = tokens.known().redactor.clone();
                clean(redactor.as_deref())
            }
        }
    }
}

impl Tokens {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
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

    /// A link whose credential cannot change learns nothing.
    #[test]
    fn s27_a_fixed_credential_is_a_secret_of_the_definition() {
        let redaction = Redaction::new(Vec::new(), false);
        redaction.learn(&HeaderValue::from_static("Bearer token-one-1"));
        assert_eq!(text(&redaction, "token-one-1"), "token-one-1");
        assert!(redaction.fixed().is_none());
    }
}
