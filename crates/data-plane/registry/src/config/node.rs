//! Reads the JSON of a whole file.

use std::path::Path;

pub(super) use narthex_model::json::{Node, Place, TEXT_MAX, field, shortened};
use narthex_model::json::{TextProblem, without_comments};

use super::error::{ConfigFileError, FileProblem};

/// Reads a whole file of a person, which may have comments.
pub(super) fn parse_written(text: &[u8], file: &Path) -> Result<Node, ConfigFileError> {
    parse(&without_comments(text), file)
}

/// Reads a whole text.
pub(super) fn parse(text: &[u8], file: &Path) -> Result<Node, ConfigFileError> {
    let fail = |problem| ConfigFileError::new(file, problem);
    let node = Node::parse(text).map_err(|problem| fail(problem.into()))?;
    match node.keys_given_twice().into_iter().next() {
        None => Ok(node),
        Some(path) => Err(fail(FileProblem::DuplicateKey { path: path.to_string() })),
    }
}

impl From<TextProblem> for FileProblem {
    fn from(problem: TextProblem) -> Self {
        match problem {
            TextProblem::TooLong => Self::TooLong { limit: TEXT_MAX },
            TextProblem::Syntax { line, column, problem, remedy } => {
                Self::Syntax { line, column, problem, remedy }
            }
        }
    }
}
