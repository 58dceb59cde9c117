//! A known answer of another program, and the laws of sealing.

use proptest::prelude::*;

use super::*;
use crate::KeyRing;

const KEY: &str = "feffe9928665731c6d6a8f9467308308e0d1c2b3a49586776859403122130475";
/// Computed with OpenSSL, by way of Python's `cryptography`, over the bytes of `KNOWN_PLACE`.
const KNOWN: &str = "yv66vvrO263eyviIx5cZk64-PS-G2vs_mVNuonbCgIdSxhAfAJK6T3dKwQ";
const KNOWN_PLACE: &[u8] = b"narthex secret 1\n\0\0\0\0\0\0\0\x06team-1\
    \0\0\0\0\0\0\0\x0eLINEAR_API_KEY\0\0\0\0\0\0\0\x03";
const KNOWN_NONCE: [u8; 12] =
    [0xca, 0xfe, 0xba, 0xbe, 0xfa, 0xce, 0xdb, 0xad, 0xde, 0xca, 0xf8, 0x88];

fn key() -> MasterKey {
    KeyRing::parse(KEY).unwrap().current().clone()
}

/// A place made of its parts.
#[derive(Debug, Clone, PartialEq)]
struct Somewhere(WorkspaceId, SecretName, SecretVersion);

impl Somewhere {
    fn new(workspace: &str, name: &str, version: u64) -> Self {
        let version = SecretVersion::new(version).unwrap();
        Self(WorkspaceId::new(workspace).unwrap(), SecretName::new(name).unwrap(), version)
    }

    fn place(&self) -> Place<'_> {
        Place { workspace: &self.0, name: &self.1, version: self.2 }
    }
}

prop_compose! {
    /// Chosen from so few that two places are often nearly the same.
    fn somewhere()(
        workspace in "[a1]{1,3}",
        name in "[A_]{1,3}",
        version in 1_u64..4,
    ) -> Somewhere {
        Somewhere::new(&workspace, &name, version)
    }
}

/// X-M25: another program seals to the same bytes, and its sealed texts open here.
#[test]
fn x_m25_sealing_matches_another_implementation() {
    let there = Somewhere::new("team-1", "LINEAR_API_KEY", 3);
    assert_eq!(there.place().bytes(), KNOWN_PLACE);
    let value = Secret::new("hunter2 größe");
    assert_eq!(there.place().seal_with(&key(), KNOWN_NONCE, &value), KNOWN);
    assert_eq!(there.place().open(&key(), KNOWN).unwrap(), value);
}

/// X-E69: every byte and every length is tried, not only random ones.
#[test]
fn s27_no_changed_or_missing_byte_opens() {
    let there = Somewhere::new("team-1", "LINEAR_API_KEY", 3);
    let bytes = URL_SAFE_NO_PAD.decode(KNOWN).unwrap();
    for at in 0..bytes.len() {
        for bit in 0..8 {
            let mut changed = bytes.clone();
            changed[at] ^= 1 << bit;
            let text = URL_SAFE_NO_PAD.encode(changed);
            assert_eq!(there.place().open(&key(), &text), Err(Closed), "byte {at} bit {bit}");
        }
        let text = URL_SAFE_NO_PAD.encode(&bytes[..at]);
        assert_eq!(there.place().open(&key(), &text), Err(Closed), "{at} bytes");
    }
    // A content has exactly one text: the last letter has four bits that must be zero.
    let other_bits = format!("{}R", KNOWN.strip_suffix('Q').unwrap());
    let others = [format!("{KNOWN}="), format!("{KNOWN} "), other_bits];
    for text in others.iter().chain([&String::new()]) {
        assert_eq!(there.place().open(&key(), text), Err(Closed), "{text}");
    }
}

proptest! {
    /// X-M25.
    #[test]
    fn a_sealed_value_opens_at_its_place(there in somewhere(), value in any::<String>()) {
        let (key, value) = (key(), Secret::new(value));
        let sealed = there.place().seal(&key, &value).unwrap();
        prop_assert_eq!(Place::of(&sealed).open(&key, &sealed.sealed).unwrap(), value);
        prop_assert_eq!(&sealed.key, key.id());
    }

    /// S18, S27, X-E69: a row that is moved to another workspace, name or version does not open.
    #[test]
    fn s18_a_moved_row_does_not_open(here in somewhere(), there in somewhere(), value in ".*") {
        let sealed = here.place().seal(&key(), &Secret::new(value)).unwrap();
        let opened = there.place().open(&key(), &sealed.sealed);
        prop_assert_eq!(opened.is_ok(), here == there);
    }

    /// X-M25, X-E69.
    #[test]
    fn a_sealed_value_does_not_open_with_another_key(there in somewhere(), value in ".*") {
        let sealed = there.place().seal(&key(), &Secret::new(value)).unwrap();
        let other = MasterKey::generate().unwrap();
        prop_assert_eq!(there.place().open(&other, &sealed.sealed), Err(Closed));
    }

    /// X-M25, X-E70: a nonce that came twice would give both values away.
    #[test]
    fn equal_values_are_sealed_differently(there in somewhere(), value in ".*") {
        let value = Secret::new(value);
        let seal = || there.place().seal(&key(), &value).unwrap().sealed;
        let (one, two) = (seal(), seal());
        prop_assert_ne!(&one[..16], &two[..16]);
        prop_assert_ne!(one, two);
    }

    #[test]
    fn any_unsealed_text_is_refused_without_a_panic(text in any::<String>()) {
        let there = Somewhere::new("a", "A", 1);
        prop_assert_eq!(there.place().open(&key(), &text), Err(Closed));
    }
}
