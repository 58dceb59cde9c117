//! Changing single members of a message and writing the rest verbatim (decision D2).

use std::borrow::Cow;

use smallvec::SmallVec;

use crate::{
    Message, MessageKind, Payload, PayloadBuilder,
    json::{Member, Object, encode_string, key_is},
};

/// A member's name and its new value as JSON.
type NewMember<'a> = (Cow<'a, str>, Cow<'a, [u8]>);

/// Changes to the members of one object: new values, and removals.
///
/// Most patches have one change or none, so one change is stored in place: every call carries
/// several patches through its futures.
#[derive(Debug, Clone, Default)]
pub struct Patch<'a> {
    set: SmallVec<[NewMember<'a>; 1]>,
    remove: Vec<Cow<'a, str>>,
}

impl<'a> Patch<'a> {
    /// Puts `raw` (valid JSON) at `key`: in place if the key is there, at the end otherwise.
    pub fn set(&mut self, key: impl Into<Cow<'a, str>>, raw: impl Into<Cow<'a, [u8]>>) {
        let key = key.into();
        self.set.retain(|(earlier, _)| *earlier != key);
        self.set.push((key, raw.into()));
    }

    /// The value that this patch sets at `key`, if it sets one.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&[u8]> {
        self.set.iter().find(|(name, _)| name == key).map(|(_, raw)| &raw[..])
    }

    /// Removes `key` if it is there.
    pub fn remove(&mut self, key: impl Into<Cow<'a, str>>) {
        self.remove.push(key.into());
    }

    /// Adds the changes of another patch. Where both set a key, the other patch's value counts.
    pub fn append(&mut self, other: Self) {
        for (key, raw) in other.set {
            self.set(key, raw);
        }
        self.remove.extend(other.remove);
    }

    /// True if the patch changes nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.set.is_empty() && self.remove.is_empty()
    }

    fn size(&self) -> usize {
        self.set.iter().map(|(key, raw)| key.len() + raw.len() + 6).sum()
    }
}

/// All changes to one message.
#[derive(Debug, Clone, Default)]
pub struct Rewrite<'a> {
    /// The new id, as JSON.
    pub id: Option<Cow<'a, [u8]>>,
    /// Changes in `params`, `result` or `error`.
    pub body: Patch<'a>,
    /// Changes in the body's `_meta`.
    pub meta: Patch<'a>,
}

impl Rewrite<'_> {
    /// True if the rewrite changes nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.id.is_none() && self.body.is_empty() && self.meta.is_empty()
    }

    /// The error's code after the changes; `None` if the message is no error.
    #[must_use]
    pub fn error_code(&self, message: &Message) -> Option<i64> {
        let before = message.error_code()?;
        let changed = self.body.get("code").and_then(|code| std::str::from_utf8(code).ok());
        Some(changed.and_then(|code| code.parse().ok()).unwrap_or(before))
    }

    /// Writes `message` with the changes. Members without a change stay byte for byte. A comma
    /// without white space joins the neighbours of a removed member.
    #[must_use]
    pub fn apply(&self, message: &Message) -> Payload {
        if self.is_empty() {
            return message.bytes().clone().into();
        }
        let extra = self.body.size() + self.meta.size() + 64;
        let mut writer =
            Writer { message, rewrite: self, out: PayloadBuilder::new(message.bytes(), extra) };
        writer.envelope();
        writer.out.build()
    }
}

struct Writer<'m, 'r, 'p> {
    message: &'m Message,
    rewrite: &'r Rewrite<'p>,
    out: PayloadBuilder<'m>,
}

/// The treatment of one member.
enum Fate<'r> {
    Keep,
    Remove,
    Replace(&'r [u8]),
    RewriteMeta,
}

impl<'r, 'p> Writer<'_, 'r, 'p> {
    fn envelope(&mut self) {
        let message = self.message;
        let mut from = message.envelope().span.range().start;
        let changes_body = !self.rewrite.body.is_empty() || !self.rewrite.meta.is_empty();
        let body_span = message.body().map(|body| body.span);
        for member in &message.envelope().members {
            let value = member.value.range();
            if message.id_span() == Some(member.value)
                && let Some(id) = &self.rewrite.id
            {
                self.out.copy(from..value.start);
                self.out.push(id);
                from = value.end;
            } else if body_span == Some(member.value) && changes_body {
                self.out.copy(from..value.start);
                self.body();
                from = value.end;
            }
        }
        let end = message.envelope().span.range().end;
        self.out.copy(from..end - 1);
        let is_call = matches!(message.kind(), MessageKind::Request | MessageKind::Notification);
        if changes_body && message.body_raw().is_none() && is_call {
            self.out.push(br#","params":{"#);
            let is_first = self.additions(&self.rewrite.body, None, true);
            self.new_meta(is_first);
            self.out.push(b"}");
        }
        self.out.push(b"}");
    }

    fn body(&mut self) {
        let Some(body) = self.message.body() else { return };
        let meta = self.message.meta();
        let changes_meta = !self.rewrite.meta.is_empty();
        let drops_meta = changes_meta && meta.is_some_and(|meta| self.empties(meta));
        let rewrite = self.rewrite;
        let fate = |writer: &Self, member: &Member| {
            if changes_meta && meta.is_some_and(|meta| meta.span == member.value) {
                return if drops_meta { Fate::Remove } else { Fate::RewriteMeta };
            }
            writer.fate(&rewrite.body, member)
        };
        self.object(body, &rewrite.body, fate, changes_meta && meta.is_none());
    }

    fn meta(&mut self) {
        let Some(meta) = self.message.meta() else { return };
        let patch = &self.rewrite.meta;
        self.object(meta, patch, |writer, member| writer.fate(patch, member), false);
    }

    fn fate(&self, patch: &'r Patch<'p>, member: &Member) -> Fate<'r> {
        let key = member.key.of(self.message.bytes());
        if patch.remove.iter().any(|name| key_is(key, name)) {
            return Fate::Remove;
        }
        match patch.set.iter().find(|(name, _)| key_is(key, name)) {
            Some((_, raw)) => Fate::Replace(raw),
            None => Fate::Keep,
        }
    }

    /// True if `meta` has members and the changes remove all of them.
    fn empties(&self, meta: &Object) -> bool {
        let patch = &self.rewrite.meta;
        let is_removed = |member: &Member| matches!(self.fate(patch, member), Fate::Remove);
        patch.set.is_empty() && !meta.members.is_empty() && meta.members.iter().all(is_removed)
    }

    /// Writes one object. Without removals the text around members stays, too.
    fn object(
        &mut self,
        object: &Object,
        patch: &'r Patch<'p>,
        fate: impl Fn(&Self, &Member) -> Fate<'r>,
        adds_meta: bool,
    ) {
        let removes = object.members.iter().any(|m| matches!(fate(self, m), Fate::Remove));
        let range = object.span.range();
        let mut from = range.start;
        let mut is_first = true;
        for member in &object.members {
            let fate = fate(self, member);
            if matches!(fate, Fate::Remove) {
                continue;
            }
            if removes {
                self.out.push(if is_first { b"{" } else { b"," });
                from = member.key.range().start;
            }
            is_first = false;
            match fate {
                Fate::Keep if !removes => {}
                Fate::Keep | Fate::Remove => self.out.copy(from..member.value.range().end),
                Fate::Replace(raw) => {
                    self.out.copy(from..member.value.range().start);
                    self.out.push(raw);
                }
                Fate::RewriteMeta => {
                    self.out.copy(from..member.value.range().start);
                    self.meta();
                }
            }
            if removes || !matches!(fate, Fate::Keep) {
                from = member.value.range().end;
            }
        }
        if !removes {
            // Includes the brace that opens an empty object, and blanks before the closing one.
            self.out.copy(from..range.end - 1);
        } else if is_first {
            self.out.push(b"{");
        }
        is_first = self.additions(patch, Some(object), is_first);
        if adds_meta {
            self.new_meta(is_first);
        }
        self.out.push(b"}");
    }

    /// Writes the members that `patch` sets and `object` lacks; returns whether none was written.
    fn additions(
        &mut self,
        patch: &Patch<'_>,
        object: Option<&Object>,
        mut is_first: bool,
    ) -> bool {
        for (name, raw) in &patch.set {
            if object.is_some_and(|object| object.find(self.message.bytes(), name).is_some()) {
                continue;
            }
            if !is_first {
                self.out.push(b",");
            }
            is_first = false;
            self.out.push(&encode_string(name));
            self.out.push(b":");
            self.out.push(raw);
        }
        is_first
    }

    fn new_meta(&mut self, is_first: bool) {
        if !self.rewrite.meta.set.is_empty() {
            self.out.push(if is_first { br#""_meta":{"# } else { br#","_meta":{"# });
            self.additions(&self.rewrite.meta, None, true);
            self.out.push(b"}");
        }
    }
}

#[cfg(test)]
mod tests;
