//! Reports of the usage of a session.

use narthex_model::json::Node;

use crate::{
    fault::Faults,
    reader::{Object, Parsed, Reader, parse},
};

/// A report of used tokens and cost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CostRequest {
    /// The id by which a repeated report is recognized.
    pub id: String,
    /// The model.
    pub model: String,
    /// Number of tokens that the model read.
    pub input_tokens: u64,
    /// Number of tokens that the model wrote.
    pub output_tokens: u64,
    /// The cost, in millionths of the currency.
    pub cost: u64,
    /// The currency's three letters.
    pub currency: String,
}

/// The longest id and name of a model, in bytes.
const TEXT_MAX: usize = 200;
/// The largest amount: of ten thousand, the sum is still exact everywhere.
const AMOUNT_MAX: u64 = 900_000_000_000;

impl CostRequest {
    /// Reads a report.
    ///
    /// # Errors
    /// All faults at once, each with its place in the text.
    pub fn parse(text: &[u8]) -> Result<Parsed<Self>, Faults> {
        parse(text, read)
    }
}

fn read(reader: &mut Reader, object: &Object<'_>) -> Option<CostRequest> {
    let keys = ["id", "model", "input_tokens", "output_tokens", "cost_micros", "currency"];
    reader.only(object, &keys);
    let (id, model) = (needed(reader, object, "id"), needed(reader, object, "model"));
    let input_tokens = amount(reader, object, "input_tokens");
    let output_tokens = amount(reader, object, "output_tokens");
    let cost = amount(reader, object, "cost_micros");
    let currency = reader.owned(object, "currency").unwrap_or_else(|| "USD".to_owned());
    if currency.len() != 3 || !currency.bytes().all(|byte| byte.is_ascii_uppercase()) {
        let at = object.at.key("currency");
        reader.invalid(
            &at,
            "this is not a currency",
            "write its three capital letters, such as EUR",
        );
    }
    Some(CostRequest { id: id?, model: model?, input_tokens, output_tokens, cost, currency })
}

fn needed(reader: &mut Reader, object: &Object<'_>, key: &str) -> Option<String> {
    if object.get(key).is_none() {
        reader.missing(object, key, "a text");
        return None;
    }
    let text = reader.owned(object, key)?;
    if text.is_empty() || text.len() > TEXT_MAX || text.chars().any(char::is_control) {
        let remedy = format!("write 1 to {TEXT_MAX} bytes without control characters");
        reader.invalid(
            &object.at.key(key),
            "this text is empty, too long, or has control characters",
            &remedy,
        );
    }
    Some(text)
}

/// A whole number that is not negative; 0 if the key is absent.
fn amount(reader: &mut Reader, object: &Object<'_>, key: &str) -> u64 {
    let Some(node) = object.get(key) else { return 0 };
    let amount = match node {
        Node::Number(number) => number.as_u64().filter(|amount| *amount <= AMOUNT_MAX),
        _ => None,
    };
    amount.unwrap_or_else(|| {
        let wanted = format!("a whole number from 0 to {AMOUNT_MAX}");
        reader.wrong_type(&object.at.key(key), node, &wanted);
        0
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_faults_of_a_cost_report_are_reported_together() {
        let read = |text: &str| CostRequest::parse(text.as_bytes()).map(|parsed| parsed.value);
        let least = read(r#"{"id": "a", "model": "small"}"#).unwrap();
        assert_eq!((least.cost, least.currency.as_str()), (0, "USD"));
        let bad = r#"{"model": "", "cost_micros": -1, "input_tokens": 1.5, "currency": "euro"}"#;
        assert_eq!(read(bad).unwrap_err().iter().count(), 5);
        let most = read(r#"{"id": "a", "model": "m", "output_tokens": 900000000001}"#).unwrap_err();
        let places: Vec<_> = most.iter().map(|fault| fault.path.as_str()).collect();
        assert_eq!(places, ["output_tokens"]);
    }
}
