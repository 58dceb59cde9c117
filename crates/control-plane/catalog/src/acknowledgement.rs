//! The acknowledgement by which the executor of a session reports the messages that it has read.

use crate::{
    fault::Faults,
    reader::{Object, Parsed, Reader, parse},
};

/// The acknowledgement of all messages up to a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Acknowledgement {
    /// Number of an event of the session, from 1.
    pub sequence: u64,
}

impl Acknowledgement {
    /// Reads an acknowledgement.
    ///
    /// # Errors
    /// All faults at once, each with its place in the text.
    pub fn parse(text: &[u8]) -> Result<Parsed<Self>, Faults> {
        parse(text, read)
    }
}

fn read(reader: &mut Reader, object: &Object<'_>) -> Option<Acknowledgement> {
    reader.only(object, &["sequence"]);
    if object.get("sequence").is_none() {
        reader.missing(
            object,
            "sequence",
            "the number of the last message that the agent has read",
        );
    }
    Some(Acknowledgement { sequence: reader.amount(object, "sequence")? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_acknowledgement_names_an_event() {
        let read = |text: &str| Acknowledgement::parse(text.as_bytes()).map(|read| read.value);
        assert_eq!(read(r#"{"sequence": 7}"#).unwrap().sequence, 7);
        for bad in ["{}", r#"{"sequence": 0}"#, r#"{"sequence": "7"}"#, "[]"] {
            assert_eq!(read(bad).unwrap_err().iter().count(), 1, "{bad}");
        }
    }
}
