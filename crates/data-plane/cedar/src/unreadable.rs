//! Stored rules that do not compile, such as those of another version: they forbid every call.

use std::sync::Arc;

use narthex_policy::{Forbidding, Question, Rules, Ruling};

/// The id that callers, the audit and checks see as the rule.
const ID: &str = "unreadable";
const REASON: &str = "the workspace's rules cannot be read; an admin must set them again";

/// Replaces stored rules that do not compile. Their meaning is unknown, so every call is forbidden.
#[derive(Debug, Clone, Copy)]
pub struct UnreadableRules;

impl Rules for UnreadableRules {
    fn ask(&self, _question: &Question<'_>) -> Ruling {
        let rule: Arc<str> = ID.into();
        let forbidden = Forbidding { rule: rule.clone(), reason: REASON.into() };
        Ruling { forbidden: Some(forbidden), matched: vec![rule], ..Ruling::default() }
    }
}
