//! The request to carry out a waiting run.

use std::time::Duration;

use crate::{
    fault::{FaultCode, Faults},
    reader::{Object, Parsed, Reader, parse},
};

/// The request of a runner that claims a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimRequest {
    /// The claim to extend; `None` for a new claim.
    pub claim: Option<String>,
    /// Time from now on for which no other runner may claim the run.
    pub lasts: Duration,
    /// True if the caller wants the resolved servers with all values, to start them itself.
    pub is_direct: bool,
}

/// Duration of a claim in seconds: the default, and the maximum.
const LASTS: u64 = 300;
const LASTS_MAX: u64 = 24 * 60 * 60;

impl ClaimRequest {
    /// Reads a request.
    ///
    /// # Errors
    /// All faults at once, each with its place in the text.
    pub fn parse(text: &[u8]) -> Result<Parsed<Self>, Faults> {
        parse(text, read)
    }
}

fn read(reader: &mut Reader, object: &Object<'_>) -> Option<ClaimRequest> {
    reader.only(object, &["claim", "lease_seconds", "direct"]);
    let claim = reader.owned(object, "claim");
    let seconds = reader.amount(object, "lease_seconds").unwrap_or(LASTS);
    if seconds > LASTS_MAX {
        let at = object.at.key("lease_seconds");
        let message = format!("a claim lasts {LASTS_MAX} seconds at most");
        reader.invalid(&at, message, "ask for less, and claim again before the claim ends");
    }
    let is_direct = reader.flag(object, "direct").unwrap_or(false);
    if is_direct && claim.is_some() {
        let at = object.at.key("direct");
        let message = "values of servers are given only with a new claim";
        reader.fault(&at, FaultCode::FieldsExclude, message, "leave one of the two out");
    }
    Some(ClaimRequest { claim, lasts: Duration::from_secs(seconds), is_direct })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_request_sets_the_length_of_the_lease() {
        let read = |text: &str| ClaimRequest::parse(text.as_bytes()).map(|parsed| parsed.value);
        let plain = read("{}").unwrap();
        assert_eq!((plain.claim, plain.lasts), (None, Duration::from_secs(300)));
        assert!(!plain.is_direct && read(r#"{"direct": true}"#).unwrap().is_direct);
        let again = read(r#"{"claim": "clm_1", "lease_seconds": 60}"#).unwrap();
        assert_eq!((again.claim.as_deref(), again.lasts), (Some("clm_1"), Duration::from_secs(60)));
        for bad in [
            r#"{"lease_seconds": 0}"#,
            r#"{"lease_seconds": 86401}"#,
            r#"{"more": 1}"#,
            r#"{"claim": "clm_1", "direct": true}"#,
        ] {
            assert_eq!(read(bad).unwrap_err().iter().count(), 1, "{bad}");
        }
    }
}
