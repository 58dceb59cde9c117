//! Numbers and texts that fit the bounds of a schema.

use serde_json::Value;

/// Maximum number of elements or letters that an example repeats for a lower bound.
pub(super) const REPEATED: u64 = 64;
/// The numbers below it are whole where they are meant to be.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

pub(super) fn bound(schema: &Value, key: &str) -> Option<u64> {
    schema.get(key).and_then(Value::as_u64)
}

/// The number 1, or else one within the bounds; `None` if none is found.
pub(super) fn number(schema: &Value, is_whole: bool) -> Option<Value> {
    let bound = |key: &str| schema.get(key).and_then(Value::as_f64);
    let (least, above) = (bound("minimum"), bound("exclusiveMinimum"));
    let (most, below) = (bound("maximum"), bound("exclusiveMaximum"));
    let step = bound("multipleOf").filter(|step| *step > 0.0);
    let fits = |number: &f64| {
        number.abs() < EXACT_MAX
            && least.is_none_or(|least| *number >= least)
            && above.is_none_or(|above| *number > above)
            && most.is_none_or(|most| *number <= most)
            && below.is_none_or(|below| *number < below)
            && step.is_none_or(|step| *number % step == 0.0)
            && !(is_whole && number.fract() != 0.0)
    };
    let middle = least.or(above).zip(most.or(below));
    let middle = middle.map(|(low, high)| low + (high - low) / 2.0);
    let bounds = [least, above, most, below, middle].into_iter().flatten();
    let around = |number: f64| {
        [number, number.ceil(), number.floor(), number.floor() + 1.0, number.ceil() - 1.0]
    };
    let candidates = std::iter::once(1.0).chain(bounds.flat_map(around));
    let onto_step = |number: f64| match step {
        Some(step) => [(number / step).ceil() * step, (number / step).floor() * step],
        None => [number, number],
    };
    let number = candidates.flat_map(onto_step).find(fits)?;
    // A whole number has no fraction in this text.
    serde_json::from_str(&number.to_string()).ok()
}

/// A text of the format or within the bounds; false if it may not fit.
pub(super) fn text(schema: &Value) -> (String, bool) {
    let least = bound(schema, "minLength").unwrap_or(0);
    let most = bound(schema, "maxLength").unwrap_or(u64::MAX);
    let text = match schema.get("format").and_then(Value::as_str) {
        Some("uri" | "url") => "https://example.com/".to_owned(),
        Some("email") => "user@example.com".to_owned(),
        Some("date-time") => "2026-01-01T12:00:00Z".to_owned(),
        Some("date") => "2026-01-01".to_owned(),
        Some("time") => "12:00:00Z".to_owned(),
        Some("uuid") => "00000000-0000-4000-8000-000000000000".to_owned(),
        _ => {
            let count = 4_u64.max(least.min(REPEATED)).min(most);
            let letters = "text".chars().chain(std::iter::repeat('x'));
            letters.zip(0..count).map(|(letter, _)| letter).collect()
        }
    };
    let length = text.chars().count() as u64;
    let is_fitting = (least..=most).contains(&length) && schema.get("pattern").is_none();
    (text, is_fitting)
}
