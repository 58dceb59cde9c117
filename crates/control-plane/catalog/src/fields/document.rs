//! Small documents: their fields, and all their faults.

use narthex_model::{
    Role, Roles, UnknownKey,
    json::{Node, Place, field, shortened},
};

use crate::fields::{CatalogError, FieldError};

/// The longest text for people, in characters.
const TEXT_MAX: usize = 200;

/// The fields of an object, taken out one by one.
pub struct Fields {
    fields: Vec<(String, Node)>,
    faults: Vec<FieldError>,
}

impl Fields {
    /// Reads an object with no other fields than these, each once.
    pub fn read(text: &[u8], known: &[&str]) -> Result<Self, CatalogError> {
        let refused = |message: String| {
            let remedy = format!("send an object with some of `{}`", known.join("`, `"));
            CatalogError::Refused(vec![FieldError::invalid("", message, remedy)])
        };
        let node = Node::parse(text).map_err(|problem| refused(problem.to_string()))?;
        let twice = node.keys_given_twice();
        let Node::Object(fields) = node else {
            return Err(refused(format!("it is {}, not an object", node.found())));
        };
        let mut faults = Vec::new();
        for place in twice {
            let place = place.to_string();
            faults.push(FieldError::invalid(&place, "it is given twice", "keep one"));
        }
        for (name, _) in fields.iter().filter(|(name, _)| !known.contains(&name.as_str())) {
            let place = Place::root(&shortened(name)).to_string();
            let unknown = UnknownKey::new(name, known);
            faults.push(FieldError::invalid(&place, unknown.message(), unknown.remedy()));
        }
        Ok(Self { fields, faults })
    }

    /// Ends the check. Fails if there was a fault.
    pub fn done(self) -> Result<(), CatalogError> {
        if self.faults.is_empty() { Ok(()) } else { Err(CatalogError::Refused(self.faults)) }
    }

    /// As [`Self::done`], with further faults.
    pub fn done_with(mut self, more: Vec<FieldError>) -> Result<(), CatalogError> {
        self.faults.extend(more);
        self.done()
    }

    /// Takes a value of any kind.
    pub fn take(&mut self, name: &str) -> Option<Node> {
        field(&self.fields, name).cloned()
    }

    pub fn fault(&mut self, name: &str, message: impl Into<String>, remedy: &str) {
        self.faults.push(FieldError::invalid(name, message, remedy));
    }

    /// Takes a text for people.
    pub fn text(&mut self, name: &str) -> Option<String> {
        let text = match field(&self.fields, name)? {
            Node::Text(text) => text.clone(),
            other => {
                let found = other.found();
                self.fault(name, format!("it is {found}, not text"), "write a text");
                return None;
            }
        };
        if text.chars().count() > TEXT_MAX || text.chars().any(char::is_control) {
            let remedy = format!("write at most {TEXT_MAX} characters in one line");
            self.fault(name, "it is too long, or has control characters", &remedy);
            return None;
        }
        Some(text)
    }

    /// Takes a required text that satisfies a rule.
    pub fn named<T, E: std::fmt::Display>(
        &mut self,
        name: &str,
        rule: impl FnOnce(&str) -> Result<T, E>,
    ) -> Option<T> {
        if field(&self.fields, name).is_none() {
            self.fault(name, "it is missing", "give a value");
            return None;
        }
        let text = self.text(name)?;
        match rule(&text) {
            Ok(value) => Some(value),
            Err(error) => {
                self.fault(name, error.to_string(), "choose another");
                None
            }
        }
    }

    pub fn flag(&mut self, name: &str) -> Option<bool> {
        match field(&self.fields, name)? {
            Node::Bool(flag) => Some(*flag),
            other => {
                let found = other.found();
                self.fault(name, format!("it is {found}"), "write true or false");
                None
            }
        }
    }

    /// Takes one of several words.
    pub fn word<T: Copy>(&mut self, name: &str, known: &[(&str, T)]) -> Option<T> {
        let found = field(&self.fields, name)?;
        let meant =
            known.iter().find(|(word, _)| matches!(found, Node::Text(text) if text == word));
        if meant.is_none() {
            let words: Vec<_> = known.iter().map(|(word, _)| *word).collect();
            let remedy = format!("write one of `{}`", words.join("`, `"));
            self.fault(name, "it is not one of the possible words", &remedy);
        }
        meant.map(|(_, value)| *value)
    }

    /// Takes a number of days; 0 stands for ever.
    pub fn days(&mut self, name: &str) -> Option<u32> {
        /// About a hundred years.
        const MOST: u32 = 36_500;
        let days = match field(&self.fields, name)? {
            Node::Number(number) => number.as_u64().and_then(|days| u32::try_from(days).ok()),
            _ => None,
        };
        let days = days.filter(|days| *days <= MOST);
        if days.is_none() {
            let remedy = format!("write a whole number from 0 to {MOST}; 0 means for ever");
            self.fault(name, "it is not a possible number of days", &remedy);
        }
        days
    }

    /// Takes a whole number from 1 to `most`.
    pub fn amount(&mut self, name: &str, most: u64) -> Option<u64> {
        let amount = match field(&self.fields, name)? {
            Node::Number(number) => number.as_u64(),
            _ => None,
        };
        let amount = amount.filter(|amount| (1..=most).contains(amount));
        if amount.is_none() {
            let remedy = format!("write a whole number from 1 to {most}");
            self.fault(name, "it is not a possible number", &remedy);
        }
        amount
    }

    /// Takes a list of at least one role.
    pub fn roles(&mut self, name: &str) -> Option<Roles> {
        let remedy =
            format!("write a list of some of `{}`", Role::ALL.map(Role::as_str).join("`, `"));
        let items = match field(&self.fields, name)? {
            Node::List(items) if !items.is_empty() => items.clone(),
            _ => {
                self.fault(name, "it is not a list with at least one item", &remedy);
                return None;
            }
        };
        let mut roles = Roles::new();
        for (index, item) in items.iter().enumerate() {
            let role = match item {
                Node::Text(word) => Role::parse(word),
                _ => None,
            };
            match role {
                Some(role) => _ = roles.insert(role),
                None => {
                    let place = Place::root(name).index(index).to_string();
                    self.fault(&place, "there is no such role", &remedy);
                }
            }
        }
        Some(roles)
    }

    /// Checks that a required field is there.
    pub fn needed(&mut self, name: &str) {
        if field(&self.fields, name).is_none() {
            self.fault(name, "it is missing", "give a value");
        }
    }
}
