//! Limits of traffic: a rate, calls at one time, calls a day (O100).

use std::num::{NonZeroU32, NonZeroU64};

use serde::Serialize;

use crate::{
    UnknownKey,
    json::{Node, Place, field},
};

/// The traffic that a workspace, an agent or a server may have. `None` is not limited.
///
/// Serializes to its one normal form, which [`TrafficLimits::read`] reads as the same.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct TrafficLimits {
    #[serde(skip_serializing_if = "Option::is_none")]
    calls_per_second: Option<NonZeroU32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    calls_per_minute: Option<NonZeroU32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    burst: Option<NonZeroU32>,
    /// The most calls that are open at one time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concurrent_calls: Option<NonZeroU32>,
    /// The most calls of one day, in UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calls_per_day: Option<NonZeroU64>,
}

/// The rate of calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallRate {
    /// Number of calls of a period in the long run.
    pub calls: NonZeroU32,
    /// The name of the period: `second` or `minute`.
    pub period: &'static str,
    /// The time that each call takes up, in nanoseconds: above zero, rounded up, so that no more
    /// than `calls` fit into a period.
    pub interval_ns: u64,
    /// Number of calls that may come at once after a pause.
    pub burst: NonZeroU32,
}

/// The fault of written limits.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LimitProblem {
    /// The whole is no object.
    #[error("expected an object, found {0}")]
    NotAnObject(&'static str),
    /// A key that nothing reads.
    #[error("{}", .0.message())]
    Unknown(UnknownKey),
    /// A limit that is no whole number, or out of range.
    #[error("expected a whole number from 1 to {most}, found {found}")]
    NotAnAmount {
        /// The type of the found value.
        found: &'static str,
        /// The largest allowed number.
        most: u64,
    },
    /// Two rates.
    #[error("`calls_per_second` and `calls_per_minute` are both given")]
    TwoRates,
    /// A burst of no rate.
    #[error("`burst` needs a rate, and there is none")]
    BurstAlone,
    /// A key that is given twice.
    #[error("the key is given twice")]
    Twice,
}

/// The keys of limits, each with the largest number that it takes.
const KEYS: [(&str, u64); 5] = [
    ("calls_per_second", COUNT_MAX),
    ("calls_per_minute", COUNT_MAX),
    ("burst", COUNT_MAX),
    ("concurrent_calls", COUNT_MAX),
    ("calls_per_day", PER_DAY_MAX),
];
/// More than any server answers.
const COUNT_MAX: u64 = 1_000_000;
/// The largest quota: counters of a day have 40 bits.
const PER_DAY_MAX: u64 = 1_000_000_000_000;

impl TrafficLimits {
    /// True if nothing is limited.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// The rate, if there is one. The default burst is the number of calls of one period.
    #[must_use]
    pub fn rate(&self) -> Option<CallRate> {
        let (calls, period, period_ns) = match (self.calls_per_second, self.calls_per_minute) {
            (Some(calls), _) => (calls, "second", 1_000_000_000_u64),
            (None, Some(calls)) => (calls, "minute", 60_000_000_000),
            (None, None) => return None,
        };
        let interval_ns = period_ns.div_ceil(u64::from(calls.get()));
        Some(CallRate { calls, period, interval_ns, burst: self.burst.unwrap_or(calls) })
    }

    /// Reads limits, and reports all their faults to `tell`, each with its place. Faulty limits are
    /// left out of the result.
    pub fn read(node: &Node, at: &Place, tell: &mut dyn FnMut(&Place, LimitProblem)) -> Self {
        let Node::Object(fields) = node else {
            tell(at, LimitProblem::NotAnObject(node.found()));
            return Self::default();
        };
        Self::read_beside(fields, at, &[], tell)
    }

    /// Reads limits of an object that has keys of others, too.
    pub(crate) fn read_beside(
        fields: &[(String, Node)],
        at: &Place,
        others: &[(&'static str, u64)],
        tell: &mut dyn FnMut(&Place, LimitProblem),
    ) -> Self {
        let known: Vec<&str> = KEYS.iter().chain(others).map(|(key, _)| *key).collect();
        for (key, _) in fields.iter().filter(|(key, _)| !known.contains(&key.as_str())) {
            tell(&at.key(key), LimitProblem::Unknown(UnknownKey::new(key, &known)));
        }
        let [per_second, per_minute, burst, concurrent, per_day] =
            KEYS.map(|key| amount_of(field(fields, key.0)?, at, key, tell));
        let has = |key| field(fields, key).is_some();
        let is_second = has("calls_per_second");
        if is_second && has("calls_per_minute") {
            tell(&at.key("calls_per_minute"), LimitProblem::TwoRates);
        }
        if has("burst") && !is_second && !has("calls_per_minute") {
            tell(&at.key("burst"), LimitProblem::BurstAlone);
        }
        let count = |amount: Option<NonZeroU64>| {
            amount.and_then(|amount| NonZeroU32::try_from(amount).ok())
        };
        let (calls_per_second, calls_per_minute) = match is_second {
            true => (count(per_second), None),
            false => (None, count(per_minute)),
        };
        let has_rate = calls_per_second.is_some() || calls_per_minute.is_some();
        Self {
            calls_per_second,
            calls_per_minute,
            burst: count(burst).filter(|_| has_rate),
            concurrent_calls: count(concurrent),
            calls_per_day: per_day,
        }
    }
}

impl CallRate {
    /// The time that a full burst takes up, in nanoseconds.
    #[must_use]
    pub fn burst_ns(&self) -> u64 {
        // At most a million minutes, which are some 10^17.
        u64::from(self.burst.get()) * self.interval_ns
    }
}

impl LimitProblem {
    /// The remedy.
    #[must_use]
    pub fn remedy(&self) -> String {
        match self {
            Self::NotAnObject(_) => {
                r#"write an object such as `{"calls_per_minute": 60}`"#.to_owned()
            }
            Self::Unknown(unknown) => unknown.remedy(),
            Self::NotAnAmount { .. } => {
                "write such a number, or leave it out for no limit".to_owned()
            }
            Self::TwoRates | Self::Twice => "keep one".to_owned(),
            Self::BurstAlone => "add `calls_per_second` or `calls_per_minute`".to_owned(),
        }
    }
}

/// The number of a limit; a value that is none is reported.
pub(crate) fn amount_of(
    node: &Node,
    at: &Place,
    (key, most): (&str, u64),
    tell: &mut dyn FnMut(&Place, LimitProblem),
) -> Option<NonZeroU64> {
    let amount = match node {
        Node::Number(number) => number.as_u64().filter(|number| *number <= most),
        _ => None,
    };
    let amount = amount.and_then(NonZeroU64::new);
    if amount.is_none() {
        let found = match node {
            Node::Number(_) => "another number",
            _ => node.found(),
        };
        tell(&at.key(key), LimitProblem::NotAnAmount { found, most });
    }
    amount
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::WorkspaceLimits;

    fn read(value: &Value) -> (TrafficLimits, Vec<String>) {
        let mut told = Vec::new();
        let text = value.to_string();
        let limits = WorkspaceLimits::parse(text.as_bytes(), &mut |place, problem| {
            assert!(!problem.remedy().is_empty());
            told.push(format!("{place}: {problem}"));
        });
        (limits.unwrap().traffic, told)
    }

    /// O100: what is written is read as the same, and a burst is a period's calls by default.
    #[test]
    fn o100_limits_have_one_normal_form() {
        for value in [
            json!({}),
            json!({"calls_per_second": 3, "burst": 9, "concurrent_calls": 2, "calls_per_day": 5}),
            json!({"calls_per_minute": 1_000_000, "calls_per_day": 1_000_000_000_000_u64}),
        ] {
            let (limits, told) = read(&value);
            assert_eq!((json!(limits), told), (value.clone(), Vec::new()));
            assert_eq!(limits.is_none(), value == json!({}));
        }
        let rate = |value| read(&value).0.rate().unwrap();
        let third = rate(json!({"calls_per_second": 3}));
        assert_eq!(
            (third.interval_ns, third.burst.get(), third.period),
            (333_333_334, 3, "second")
        );
        let minute = rate(json!({"calls_per_minute": 60, "burst": 1}));
        assert_eq!((minute.interval_ns, minute.burst.get()), (1_000_000_000, 1));
        assert_eq!(read(&json!({"calls_per_day": null})).0.rate(), None);
    }

    /// O100, D9: all faults are reported at once, each with its place.
    #[test]
    fn o100_all_faults_of_limits_are_reported_together() {
        let (limits, told) = read(&json!({
            "calls_per_second": 0, "calls_per_minute": 6, "burst": "many", "concurrent_calls": -1,
            "calls_per_day": 1_000_000_000_001_u64, "calls_per_hour": 1,
        }));
        assert!(limits.is_none(), "{limits:?}");
        let places: Vec<_> = told.iter().map(|told| told.split(": ").next().unwrap()).collect();
        assert_eq!(
            places,
            [
                "calls_per_hour",
                "calls_per_second",
                "burst",
                "concurrent_calls",
                "calls_per_day",
                "calls_per_minute"
            ]
        );
        assert_eq!(
            read(&json!({"burst": 3})).1,
            ["burst: `burst` needs a rate, and there is none"]
        );
        assert_eq!(read(&json!([])).1.len(), 1);
        assert_eq!(read(&json!({"calls_per_second": 1.5})).1.len(), 1);
        let mut told = 0;
        let twice = br#"{"calls_per_day": 1, "calls_per_day": 2}"#;
        WorkspaceLimits::parse(twice, &mut |_, _| told += 1).unwrap();
        assert_eq!(told, 1);
        let error = WorkspaceLimits::parse(b"{", &mut |_, _| ()).unwrap_err();
        assert!(matches!(error, crate::json::TextProblem::Syntax { line: 1, .. }), "{error}");
    }
}
