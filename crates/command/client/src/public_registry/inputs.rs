//! The values that a user gives for a server: their questions, and the check of answers.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use narthex_model::Secret;

use super::document::Input;

/// The form of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputFormat {
    Text,
    Number,
    Boolean,
    /// A file or folder of this machine; written as an absolute path.
    FilePath,
}

/// A value that a user can give.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// The name in `--set NAME=VALUE`.
    pub name: String,
    /// The place of the value, such as "the header `X-Key`".
    pub place: String,
    pub description: Option<String>,
    pub is_required: bool,
    pub is_secret: bool,
    /// True if there can be several values.
    pub is_repeated: bool,
    /// True if the value goes to a variable or a header. Other places show it to other programs.
    pub can_be_secret: bool,
    pub format: InputFormat,
    /// The smallest and the largest number.
    pub range: (Option<f64>, Option<f64>),
    pub default: Option<String>,
    pub placeholder: Option<String>,
    pub choices: Vec<String>,
}

/// One value that a user has given.
#[derive(Debug, Clone)]
pub enum Answer {
    /// The text itself.
    Text(String),
    /// `${env:NAME}` or `${secret:NAME}` as a whole, which the daemon fills in.
    Reference(String),
    /// A value for the vault.
    Secret(Secret),
}

/// The answers by the name of their question.
#[derive(Debug, Clone, Default)]
pub struct Answers(BTreeMap<String, Vec<Answer>>);

/// The folders by which file paths are completed.
#[derive(Debug, Clone, Default)]
pub struct Folders {
    pub current: PathBuf,
    pub home: Option<PathBuf>,
}

impl Question {
    /// The question for an input.
    #[must_use]
    pub fn of(name: &str, place: String, input: &Input) -> Self {
        Self {
            name: plain(name).to_owned(),
            place,
            description: input.description.clone().filter(|text| !text.trim().is_empty()),
            is_required: input.is_required,
            is_secret: input.is_secret,
            is_repeated: false,
            can_be_secret: false,
            format: InputFormat::of(input.format.as_deref()),
            range: (None, None),
            default: input.default.clone().filter(|text| !text.is_empty()),
            placeholder: input.placeholder.clone().filter(|text| !text.is_empty()),
            choices: input.choices.clone(),
        }
    }

    /// The text as it is stored.
    ///
    /// # Errors
    /// The rule that the text breaks, as the end of a sentence. The text is not repeated.
    pub fn checked(&self, text: &str, folders: &Folders) -> Result<String, String> {
        if !self.choices.is_empty() && !self.choices.iter().any(|choice| choice == text) {
            return Err(format!("must be one of `{}`", self.choices.join("`, `")));
        }
        match self.format {
            InputFormat::Number => self.in_range(text).map(|()| text.to_owned()),
            InputFormat::Boolean if !matches!(text, "true" | "false") => {
                Err("must be `true` or `false`".to_owned())
            }
            InputFormat::FilePath if !text.is_empty() => Ok(folders.absolute(text)),
            _ => Ok(text.to_owned()),
        }
    }

    fn in_range(&self, text: &str) -> Result<(), String> {
        let number: f64 = text.parse().map_err(|_other| "must be a number".to_owned())?;
        match self.range {
            (Some(least), _) if number < least => Err(format!("must be at least {least}")),
            (_, Some(most)) if number > most => Err(format!("must be at most {most}")),
            _ => Ok(()),
        }
    }
}

impl InputFormat {
    fn of(word: Option<&str>) -> Self {
        match word {
            Some("number") => Self::Number,
            Some("boolean") => Self::Boolean,
            Some("filepath") => Self::FilePath,
            _ => Self::Text,
        }
    }
}

impl Answers {
    /// Adds a value; a question can have several.
    pub fn add(&mut self, name: &str, answer: Answer) {
        self.0.entry(plain(name).to_owned()).or_default().push(answer);
    }

    /// The values for a question.
    #[must_use]
    pub fn of(&self, name: &str) -> &[Answer] {
        self.0.get(plain(name)).map_or(&[], Vec::as_slice)
    }

    /// The names of all answers.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}

impl Folders {
    fn absolute(&self, text: &str) -> String {
        let path = match (text.strip_prefix("~/"), &self.home) {
            (Some(rest), Some(home)) => home.join(rest),
            _ if text == "~" => self.home.clone().unwrap_or_else(|| PathBuf::from(text)),
            _ => self.current.join(Path::new(text)),
        };
        path.to_string_lossy().into_owned()
    }
}

/// A reference to a variable or a secret, if the text is nothing else.
#[must_use]
pub fn reference(text: &str) -> Option<Answer> {
    let inside = text.strip_prefix("${")?.strip_suffix('}')?;
    let (kind, name) = inside.split_once(':')?;
    let is_name =
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    (matches!(kind, "env" | "secret") && is_name).then(|| Answer::Reference(text.to_owned()))
}

/// The name of a flag without its dashes.
pub(super) fn plain(name: &str) -> &str {
    match name.trim_start_matches('-') {
        "" => name,
        plain => plain,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn question(input: Value) -> Question {
        Question::of("--it", String::new(), &serde_json::from_value(input).unwrap())
    }

    /// E204: values have the publisher's form.
    #[test]
    fn e204_values_are_checked_by_their_format_and_choices() {
        let folders = Folders { current: "/here".into(), home: Some("/home/ada".into()) };
        let checked = |input: Value, text: &str| question(input).checked(text, &folders);
        let words = json!({ "choices": ["red", "blue"] });
        assert_eq!(checked(words.clone(), "red").unwrap(), "red");
        assert_eq!(checked(words, "green").unwrap_err(), "must be one of `red`, `blue`");
        let (number, flag) = (json!({ "format": "number" }), json!({ "format": "boolean" }));
        assert_eq!(checked(number.clone(), "1.5").unwrap(), "1.5");
        assert!(checked(number, "one").unwrap_err().contains("number"));
        assert_eq!(checked(flag.clone(), "true").unwrap(), "true");
        assert!(checked(flag, "yes").unwrap_err().contains("`true` or `false`"));
        let path = json!({ "format": "filepath" });
        for (text, whole) in [("a/b", "/here/a/b"), ("/x", "/x"), ("~/c", "/home/ada/c")] {
            assert_eq!(checked(path.clone(), text).unwrap(), whole);
        }
        assert_eq!(checked(json!({ "format": "new" }), "~/c").unwrap(), "~/c");
    }

    #[test]
    fn a_number_is_checked_by_its_limits() {
        let limited =
            Question { range: (Some(1.0), Some(10.0)), ..question(json!({ "format": "number" })) };
        let checked = |text: &str| limited.checked(text, &Folders::default());
        assert_eq!((checked("1").unwrap(), checked("10").unwrap()), ("1".into(), "10".into()));
        assert_eq!(checked("0.5").unwrap_err(), "must be at least 1");
        assert_eq!(checked("11").unwrap_err(), "must be at most 10");
    }

    #[test]
    fn only_a_whole_text_is_a_reference() {
        for text in ["${env:HOME}", "${secret:A_1}"] {
            assert!(matches!(reference(text), Some(Answer::Reference(_))), "{text}");
        }
        for text in ["x${env:HOME}", "${env:}", "${params:A}", "${env:A}b}", "$HOME", ""] {
            assert!(reference(text).is_none(), "{text}");
        }
    }

    #[test]
    fn a_flag_is_named_with_or_without_its_dashes() {
        let mut answers = Answers::default();
        answers.add("--it", Answer::Text("1".to_owned()));
        answers.add("it", Answer::Text("2".to_owned()));
        assert_eq!((answers.of("it").len(), answers.of("-it").len()), (2, 2));
        assert_eq!(question(json!({})).name, "it");
    }
}
