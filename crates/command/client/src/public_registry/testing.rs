//! Answers and folders of tests.

use narthex_model::Secret;

use super::inputs::{Answer, Answers, Folders, reference};

/// Answers: `!` before a value makes it a secret.
pub(super) fn answers(given: &[(&str, &str)]) -> Answers {
    let mut answers = Answers::default();
    for (name, value) in given {
        let answer = match value.strip_prefix('!') {
            Some(secret) => Answer::Secret(Secret::new(secret)),
            None => reference(value).unwrap_or_else(|| Answer::Text((*value).to_owned())),
        };
        answers.add(name, answer);
    }
    answers
}

pub(super) fn folders() -> Folders {
    Folders { current: "/here".into(), home: Some("/home/ada".into()) }
}
