//! The part of an address after `?`. Unknown parameters are refused, never ignored.

use std::{collections::BTreeMap, time::SystemTime};

use narthex_control::FieldError;
use narthex_model::{Timestamp, UnknownKey, written};
use percent_encoding::percent_decode_str;

use crate::{problem::Problem, shapes::PAGE_MAX};

/// Number of objects in a page by default.
const PAGE: u32 = 50;

/// Length of the longest name that a sentence takes from an address.
const SUBJECT_MAX: usize = 64;

/// Number of objects in a page, by default and at most.
#[cfg(test)]
pub(crate) fn page_sizes() -> (u32, u32) {
    (PAGE, PAGE_MAX)
}

/// The parameters of a query, by name.
pub(crate) struct Query(BTreeMap<String, String>);

impl Query {
    /// Reads the query. Refuses names other than these, and names that occur twice.
    pub(crate) fn of(uri: &http::Uri, known: &[&str]) -> Result<Self, Problem> {
        Self::read(uri.query().unwrap_or_default(), known)
    }

    /// Reads the query as browsers write that of a form, in which a space is a plus sign.
    pub(crate) fn of_form(uri: &http::Uri, known: &[&str]) -> Result<Self, Problem> {
        Self::read(&uri.query().unwrap_or_default().replace('+', " "), known)
    }

    fn read(query: &str, known: &[&str]) -> Result<Self, Problem> {
        let mut found = BTreeMap::new();
        let mut faults = Vec::new();
        let pairs = query.split('&').filter(|pair| !pair.is_empty());
        for pair in pairs {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let decoded = |text| percent_decode_str(text).decode_utf8_lossy().into_owned();
            let (name, value) = (decoded(name), decoded(value));
            if !known.contains(&name.as_str()) {
                let unknown = UnknownKey::new(&name, known);
                faults.push(FieldError::invalid("query", unknown.message(), unknown.remedy()));
            } else if value.contains('\0') {
                // The store contains no text with a zero byte, so a search for one would find
                // nothing.
                faults.push(FieldError::invalid(&name, "it has a zero byte", "leave it out"));
            } else if found.insert(name.clone(), value).is_some() {
                faults.push(FieldError::invalid(&name, "it is given twice", "keep one"));
            }
        }
        if faults.is_empty() { Ok(Self(found)) } else { Err(refused(&faults)) }
    }

    /// The same parameters, and one that the path of a page has.
    pub(crate) fn with(&self, name: &str, value: &str) -> Self {
        let mut all = self.0.clone();
        all.insert(name.to_owned(), value.to_owned());
        Self(all)
    }

    pub(crate) fn text(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }

    /// The object of an action that was done, for a sentence. A text that is no plain name is left
    /// out: others could write an address, and so a sentence of the page.
    pub(crate) fn subject(&self) -> &str {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:/@".contains(&byte);
        let name = self.text("name");
        match name.len() <= SUBJECT_MAX && name.bytes().all(is_plain) {
            true => name,
            false => "this one",
        }
    }

    /// The value `true` or `false`; a missing value means `false`.
    pub(crate) fn flag(&self, name: &str) -> Result<bool, Problem> {
        match self.text(name) {
            "true" => Ok(true),
            "" | "false" => Ok(false),
            _ => Err(refused(&[FieldError::invalid(
                name,
                "it is neither true nor false",
                format!("write `{name}=true`"),
            )])),
        }
    }

    /// Number of objects in the page that the caller asks for.
    pub(crate) fn limit(&self) -> Result<u32, Problem> {
        let Some(text) = self.0.get("limit") else { return Ok(PAGE) };
        let limit = text.parse().ok().filter(|limit| (1..=PAGE_MAX).contains(limit));
        limit.ok_or_else(|| {
            let message = "it is not a possible length of a page";
            refused(&[FieldError::invalid(
                "limit",
                message,
                format!("write one from 1 to {PAGE_MAX}"),
            )])
        })
    }

    /// The time (RFC 3339) that the caller names, if it names one.
    pub(crate) fn time(&self, name: &str) -> Result<Option<SystemTime>, Problem> {
        let Some(text) = self.0.get(name) else { return Ok(None) };
        Timestamp::parse(text).map(Some).ok_or_else(|| {
            let remedy = "write it like 2026-11-22T13:00:00Z";
            refused(&[FieldError::invalid(name, "it is not a time", remedy)])
        })
    }

    /// The value, which must be one of these words. A missing value means the first word.
    pub(crate) fn word<'w>(&self, name: &str, words: &[&'w str]) -> Result<&'w str, Problem> {
        let text = self.text(name);
        let found = match text {
            "" => words.first(),
            text => words.iter().find(|word| **word == text),
        };
        found.copied().ok_or_else(|| {
            let remedy = format!("write one of `{}`", words.join("`, `"));
            refused(&[FieldError::invalid(name, "this is not known here", remedy)])
        })
    }
}

/// Refuses a query, with all of its faults.
pub(super) fn refused(faults: &[FieldError]) -> Problem {
    Problem::of_fields(written::faults("a parameter of the request is not valid", faults), faults)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A space of a form is a plus sign, and a plus sign of a program stays one.
    #[test]
    fn a_plus_sign_is_a_space_in_forms_alone() {
        let uri: http::Uri = "/x?q=a+b%2B%20c".parse().unwrap();
        let text = |query: Result<Query, Problem>| query.unwrap().text("q").to_owned();
        assert_eq!(text(Query::of_form(&uri, &["q"])), "a b+ c");
        assert_eq!(text(Query::of(&uri, &["q"])), "a+b+ c");
    }

    /// S11: an address puts no words into a sentence.
    #[test]
    fn s11_an_address_names_an_object_and_says_nothing() {
        let subject = |text: &str| {
            let uri: http::Uri = format!("/x?name={text}").parse().unwrap();
            Query::of(&uri, &["name"]).unwrap().subject().to_owned()
        };
        assert_eq!(subject("my-server_2"), "my-server_2");
        for words in ["Call%20us%20now", "a%0Ab", "%E2%80%AEx", "a%E2%80%8Bb", &"x".repeat(65)] {
            assert_eq!(subject(words), "this one", "{words}");
        }
    }
}
