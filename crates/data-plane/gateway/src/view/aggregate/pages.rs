//! Lists as bytes: pages of result objects for both eras.

use bytes::Bytes;
use narthex_wire::{Era, ListKind, meta_key};

/// Most entries on one page of a list.
const PAGE_ENTRIES: usize = 1000;
/// Time for which clients may keep a list (modern). Changes are announced at once to listeners.
const LIST_TTL_MS: u32 = 10_000;

/// The pages of one list for both eras: result objects, ready to be sent.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Pages {
    legacy: Vec<Bytes>,
    modern: Vec<Bytes>,
}

impl Pages {
    /// The pages of these entries, which may be written differently for the two eras.
    pub(super) fn of(
        kind: ListKind,
        legacy: &[Bytes],
        modern: &[Bytes],
        server_info: &[u8],
    ) -> Self {
        let tail = modern_tail(server_info);
        Self { legacy: paged(kind, legacy, b"}"), modern: paged(kind, modern, &tail) }
    }

    pub(super) fn page(&self, era: Era, index: usize) -> Option<&Bytes> {
        match era {
            Era::Legacy => self.legacy.get(index),
            Era::Modern => self.modern.get(index),
        }
    }
}

fn paged(kind: ListKind, entries: &[Bytes], tail: &[u8]) -> Vec<Bytes> {
    let count = entries.len().div_ceil(PAGE_ENTRIES).max(1);
    let page = |index: usize| {
        let from = index * PAGE_ENTRIES;
        let page = &entries[from..entries.len().min(from + PAGE_ENTRIES)];
        let mut text = format!(r#"{{"{}":["#, kind.member()).into_bytes();
        text.extend_from_slice(&page.join(&b","[..]));
        text.push(b']');
        if index + 1 < count {
            text.extend_from_slice(format!(r#","nextCursor":"p{}""#, index + 1).as_bytes());
        }
        text.extend_from_slice(tail);
        Bytes::from(text)
    };
    (0..count).map(page).collect()
}

/// The end of a modern list result.
fn modern_tail(server_info: &[u8]) -> Vec<u8> {
    let mut tail = format!(
        r#","resultType":"complete","ttlMs":{LIST_TTL_MS},"cacheScope":"private","_meta":{{"{}":"#,
        meta_key::SERVER_INFO
    )
    .into_bytes();
    tail.extend_from_slice(server_info);
    tail.extend_from_slice(b"}}");
    tail
}
