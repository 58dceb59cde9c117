//! Contents of calls: arguments and answers, recorded only for workspaces with this setting
//! (X-M64).

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::tool_set::DefinitionDigest;

/// Maximum size of the recorded text of each side of a call, in bytes.
pub const EXCERPT_BYTES: usize = 16 * 1024;
/// The member of an event's `details` with the contents of a call.
pub const CONTENTS: &str = "contents";

/// The current setting of one workspace for recording the contents of calls. Clones share one
/// switch.
#[derive(Debug, Clone, Default)]
pub struct ContentsSwitch(Arc<AtomicBool>);

/// The recorded part of one side of a call: its request, or its answer. Known secrets are removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Excerpt {
    text: String,
    /// Length of the whole text in bytes.
    bytes: usize,
    is_cut: bool,
    is_redacted: bool,
    digest: Option<DefinitionDigest>,
}

/// Both sides of a call.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    pub(crate) request: Option<Excerpt>,
    pub(crate) answer: Option<Excerpt>,
}

impl ContentsSwitch {
    /// True if the switch is on.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn set(&self, is_on: bool) {
        self.0.store(is_on, Ordering::Relaxed);
    }

    /// True if the switch has a user besides the table.
    pub(crate) fn is_used(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }
}

impl Excerpt {
    /// An excerpt of a text of `bytes` bytes: `text` without secrets, cut at [`EXCERPT_BYTES`].
    /// `is_part` is true if `text` is only the beginning.
    #[must_use]
    pub fn new(mut text: String, bytes: usize, is_part: bool) -> Self {
        let is_cut = is_part || text.len() > EXCERPT_BYTES;
        text.truncate(text.floor_char_boundary(EXCERPT_BYTES));
        text.shrink_to_fit();
        Self { text, bytes, is_cut, is_redacted: false, digest: None }
    }

    /// Sets whether secrets were removed from the text.
    #[must_use]
    pub fn redacted(self, is_redacted: bool) -> Self {
        Self { is_redacted, ..self }
    }

    /// True if the text is only a part of the whole.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Adds the SHA-256 of the whole text, given in pieces. Not for a text with secrets: a reader
    /// who knows the rest of it could guess them.
    #[must_use]
    pub fn with_digest<'p>(self, whole: impl IntoIterator<Item = &'p [u8]>) -> Self {
        let mut digest = Sha256::new();
        whole.into_iter().for_each(|piece| digest.update(piece));
        Self { digest: Some(DefinitionDigest::new(digest.finalize().into())), ..self }
    }

    /// Removes the text where there is no room for it.
    pub(crate) fn without_text(self) -> Self {
        Self { text: String::new(), is_cut: true, ..self }
    }

    pub(crate) fn held(&self) -> usize {
        self.text.len()
    }

    /// The excerpt as the member `request` or `answer` of [`CONTENTS`].
    #[must_use]
    pub fn shown(&self) -> Value {
        let Self { text, bytes, is_cut, is_redacted, digest } = self;
        let mut shown = json!({ "text": text, "bytes": bytes });
        if *is_cut {
            shown["truncated"] = true.into();
        }
        if *is_redacted {
            shown["redacted"] = true.into();
        }
        if let Some(digest) = digest {
            shown["digest"] = digest.to_string().into();
        }
        shown
    }
}

impl Contents {
    pub(crate) fn held(&self) -> usize {
        self.request.iter().chain(&self.answer).map(Excerpt::held).sum()
    }

    pub(crate) fn shown(&self) -> Value {
        let sides = [("request", &self.request), ("answer", &self.answer)];
        let sides = sides.into_iter().filter_map(|(name, side)| {
            let side = side.as_ref()?;
            Some((name.to_owned(), side.shown()))
        });
        Value::Object(sides.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// X-M64: the stored part of one side is bounded, is cut between characters, and has the size
    /// of the whole.
    #[test]
    fn x_m64_an_excerpt_is_bounded() {
        let text = format!("{}ä{}", "a".repeat(EXCERPT_BYTES - 1), "b".repeat(10));
        let (bytes, whole) = (text.len(), text.clone());
        let excerpt = Excerpt::new(text, bytes, false).with_digest([whole.as_bytes()]);
        let shown = excerpt.shown();
        assert_eq!(shown["text"].as_str().unwrap(), "a".repeat(EXCERPT_BYTES - 1));
        assert_eq!((&shown["bytes"], &shown["truncated"]), (&bytes.into(), &true.into()));
        let digest = DefinitionDigest::new(Sha256::digest(&whole).into()).to_string();
        assert_eq!(shown["digest"], digest);
        let small = Excerpt::new("{}".to_owned(), 2, false).shown();
        assert_eq!(small, json!({ "text": "{}", "bytes": 2 }));
        let part = Excerpt::new("{".to_owned(), 70_000, true).redacted(true).shown();
        assert_eq!((&part["truncated"], &part["redacted"]), (&true.into(), &true.into()));
        assert_eq!(part.get("digest"), None);
    }
}
