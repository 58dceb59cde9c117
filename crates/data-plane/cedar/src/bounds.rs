//! Limits on the nesting and the length of rules, checked before the parser of Cedar reads them.
//!
//! That parser, the validator and the evaluator recurse for each level of an expression, and a
//! stack overflow ends the whole process. So the text is first scanned in a loop. A text within the
//! bounds is read on a stack with room for it, and is stored in a form that is not deep.

use serde_json::Value;

use crate::{RuleFault, fault::line_of};

/// The most brackets, and `if`s, that may be open at once.
const OPEN_MAX: usize = 64;
/// Maximum number of joined terms of one rule, which is the depth of the parser's result.
const CHAIN_MAX: usize = 4_000;
/// The most operators of one term, such as the names of a path. What asks for them takes time that
/// grows faster than their number.
const RUN_MAX: usize = 100;
/// The most levels of JSON that a rule may have after its chains were balanced.
const LEVELS_MAX: usize = 400;

/// Room for [`CHAIN_MAX`] levels of the largest frames, which are those of the validator in a debug
/// build. The system gives memory only for the used part.
const ROOM: usize = 512 << 20;
/// Room that asking needs at least: [`LEVELS_MAX`] levels of the evaluator.
const ASKING: usize = 1 << 20;
/// Size of the stack that is made if the present one has less room.
const ASKING_ROOM: usize = 8 << 20;

/// Runs code that recurses as deep as rules may be written.
pub(crate) fn with_room<T>(reading: impl FnOnce() -> T) -> T {
    stacker::grow(ROOM, reading)
}

/// Runs code that recurses as deep as rules are stored. On a thread of normal size this costs a
/// comparison.
pub(crate) fn with_room_to_ask<T>(asking: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(ASKING, ASKING_ROOM, asking)
}

/// The first place at which a text is too deep or too long to be read.
pub(crate) fn fault(text: &str) -> Option<RuleFault> {
    let mut depth = Depth::default();
    let fault = Tokens { text: text.as_bytes(), at: 0 }
        .find_map(|(at, token)| depth.add(token).map(|problem| (at, problem)));
    let (at, (message, remedy)) = fault?;
    let line = Some(line_of(text, at));
    Some(RuleFault { line, rule: None, message, remedy: remedy.to_owned() })
}

/// The reason why a rule is too deep to be stored; `None` if it is not.
pub(crate) fn kept_fault(conditions: &Value) -> Option<String> {
    let levels = levels(conditions);
    (levels > LEVELS_MAX).then(|| "its conditions are nested too deeply".to_owned())
}

/// The levels of a value, counted without recursion.
fn levels(value: &Value) -> usize {
    let (mut most, mut open) = (0, vec![(value, 1)]);
    while let Some((value, level)) = open.pop() {
        most = most.max(level);
        match value {
            Value::Array(items) => open.extend(items.iter().map(|item| (item, level + 1))),
            Value::Object(members) => {
                open.extend(members.values().map(|member| (member, level + 1)));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    most
}

/// A part of a text, as far as it matters for depth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token {
    Open,
    Close,
    /// A comma: the part after it does not depend on the part before it.
    Comma,
    /// The end of a rule.
    End,
    /// A token that joins the parts before it: `||`, `&&`, or another clause.
    Chain,
    /// An operator inside one operand of a chain.
    Member,
    Dot,
    /// A part of a name, such as `Server::"a"`.
    Colon,
    Has,
    Is,
    In,
    If,
    /// `then` or `else`: another operand begins.
    Else,
}

/// The depth at a place of a text.
#[derive(Debug, Default)]
struct Depth {
    open: Vec<Level>,
    top: Level,
    /// The sum of the depths of all open levels below the top.
    below: usize,
}

/// The counts inside one pair of brackets, so far.
#[derive(Debug, Default, Clone, Copy)]
struct Level {
    chain: usize,
    /// Number of operators of the current operand.
    run: usize,
    longest_run: usize,
    ifs: usize,
    /// The greatest depth of the brackets that were closed in this level.
    inner: usize,
    /// The depth of the deepest part that ended with a comma.
    ended: usize,
    /// True if brackets were closed in the current operand.
    has_closed: bool,
    /// The operator before this place, if Cedar may write it out.
    before: Option<Token>,
}

impl Level {
    fn depth(&self) -> usize {
        (self.chain + self.longest_run + self.ifs + self.inner).max(self.ended)
    }
}

impl Depth {
    /// Counts a token; gives a message and a remedy if there are too many.
    fn add(&mut self, token: Token) -> Option<(String, &'static str)> {
        let top = &mut self.top;
        // Cedar writes these out, with the operand once for each name: those in brackets in such an
        // operand would double with each level.
        let before = match token {
            Token::Colon => None,
            _ => top.before.replace(token).filter(|_| top.has_closed),
        };
        if let (Some(Token::Has), Token::Dot) | (Some(Token::Is), Token::In) = (before, token) {
            let (what, remedy) = match token {
                Token::Dot => ("`has` with several names", "test one name at a time"),
                _ => ("`is … in …`", "write two conditions, `is …` and `in …`, with `&&`"),
            };
            return Some((format!("{what} is behind brackets"), remedy));
        }
        match token {
            Token::Open => {
                self.below += top.depth() + 1;
                self.open.push(std::mem::take(top));
            }
            Token::Close => {
                let inner = top.depth() + 1;
                *top = self.open.pop().unwrap_or_default();
                self.below = self.below.saturating_sub(top.depth() + 1);
                top.inner = top.inner.max(inner);
                (top.has_closed, top.before) = (true, None);
            }
            Token::Comma => *top = Level { ended: top.depth(), ..Level::default() },
            Token::End => *self = Self::default(),
            Token::Chain => {
                top.chain += 1;
                (top.run, top.has_closed) = (0, false);
            }
            Token::Else => top.has_closed = false,
            Token::Member | Token::Dot | Token::Colon | Token::Has | Token::Is | Token::In => {
                top.run += 1;
                top.longest_run = top.longest_run.max(top.run);
            }
            Token::If => top.ifs += 1,
        }
        self.too_deep()
    }

    fn too_deep(&self) -> Option<(String, &'static str)> {
        let ifs: usize = self.open.iter().map(|level| level.ifs).sum();
        let open = self.open.len() + ifs + self.top.ifs;
        if open > OPEN_MAX {
            let message = format!("more than {OPEN_MAX} brackets or `if`s are open at once");
            return Some((message, "use fewer levels, or split it into several rules"));
        }
        if self.top.run > RUN_MAX {
            let message = format!("a term has more than {RUN_MAX} operators");
            return Some((message, "compare fewer values at once, or split it into several rules"));
        }
        if self.below + self.top.depth() > CHAIN_MAX {
            let message = format!("a rule joins more than {CHAIN_MAX} terms");
            return Some((
                message,
                "split it into several rules, or compare with a set by `contains`",
            ));
        }
        None
    }
}

/// The tokens of a text, each with its place. Text in quotes and comments has none.
struct Tokens<'t> {
    text: &'t [u8],
    at: usize,
}

impl Tokens<'_> {
    /// Skips text in quotes; the place is behind the first quote.
    fn skip_quoted(&mut self) {
        while let Some(byte) = self.text.get(self.at) {
            self.at += 1;
            match byte {
                b'\\' => self.at += 1,
                b'"' => return,
                _ => {}
            }
        }
    }

    fn skip_line(&mut self) {
        let rest = self.text.get(self.at..).unwrap_or_default();
        self.at += rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')).unwrap_or(rest.len());
    }

    /// A word; the place is behind its first letter.
    fn word(&mut self, start: usize) -> Option<Token> {
        let is_part = |byte: &&u8| byte.is_ascii_alphanumeric() || **byte == b'_';
        let rest = self.text.get(self.at..).unwrap_or_default();
        self.at += rest.iter().take_while(is_part).count();
        match &self.text[start..self.at] {
            b"if" => Some(Token::If),
            b"then" | b"else" => Some(Token::Else),
            b"when" | b"unless" => Some(Token::Chain),
            b"like" => Some(Token::Member),
            b"has" => Some(Token::Has),
            b"is" => Some(Token::Is),
            b"in" => Some(Token::In),
            _ => None,
        }
    }
}

impl Iterator for Tokens<'_> {
    type Item = (usize, Token);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let start = self.at;
            let byte = *self.text.get(start)?;
            self.at += 1;
            let next = self.text.get(self.at).copied();
            let token = match byte {
                b'"' => {
                    self.skip_quoted();
                    None
                }
                b'/' if next == Some(b'/') => {
                    self.skip_line();
                    None
                }
                b'(' | b'[' | b'{' => Some(Token::Open),
                b')' | b']' | b'}' => Some(Token::Close),
                b',' => Some(Token::Comma),
                b';' => Some(Token::End),
                b'|' | b'&' => {
                    // Two of them are one operator.
                    self.at += usize::from(next == Some(byte));
                    Some(Token::Chain)
                }
                b'.' => Some(Token::Dot),
                b':' => Some(Token::Colon),
                b'!' | b'=' | b'<' | b'>' | b'+' | b'-' | b'*' | b'/' | b'%' => Some(Token::Member),
                b'a'..=b'z' | b'A'..=b'Z' | b'_' => self.word(start),
                _ => None,
            };
            if let Some(token) = token {
                return Some((start, token));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn around(condition: &str) -> String {
        format!("forbid(principal, action, resource) when {{ {condition} }};")
    }

    fn message(text: &str) -> Option<String> {
        fault(text).map(|fault| fault.message)
    }

    #[test]
    fn realistic_rules_are_within_the_limits() {
        let many = |count: usize, term: &str, by: &str| vec![term; count].join(by);
        let terms = around(&many(600, "context.arguments.path == \"x\"", " || "));
        assert_eq!(message(&terms), None);
        let nested = around(&format!("{}true{}", "(".repeat(60), ")".repeat(60)));
        assert_eq!(message(&nested), None);
        let rules = around(&many(600, "context.arguments.a", " && ")).repeat(40);
        assert_eq!(message(&rules), None);
        let groups = around(&many(600, "(context.a && (context.b || context.c))", " || "));
        assert_eq!(message(&groups), None);
        let set = around(&format!("[{}].contains(context.method)", many(9_000, "\"a\"", ", ")));
        assert_eq!(message(&set), None);
    }

    #[test]
    fn brackets_and_ifs_that_are_open_at_once_are_counted() {
        for text in ["(", "[", "{", "if true then 1 else "] {
            let fault = fault(&format!("\n{}", around(&text.repeat(70)))).unwrap();
            assert!(fault.message.contains("open at once"), "{fault}");
            assert_eq!(fault.line, Some(2));
        }
        let closed = around(&vec!["(if a then b else c)"; 100].join(" && "));
        assert_eq!(message(&closed), None);
    }

    #[test]
    fn terms_that_depend_on_each_other_are_counted() {
        for by in ["||", "&&", "} when {", "} unless {"] {
            let text = around(&vec!["a"; 9_000].join(by));
            assert!(message(&text).unwrap().contains("joins more than"), "{by}");
        }
        for by in ["+", "*", " in ", " has ", ".a", "!", "::a", " like "] {
            let text = around(&vec!["a"; 200].join(by));
            assert!(message(&text).unwrap().contains("more than 100 operators"), "{by}");
        }
    }

    /// A chain behind brackets is above all chains inside them.
    #[test]
    fn chains_at_several_levels_are_counted_together() {
        let mut text = "a".to_owned();
        for _ in 0..10 {
            text = format!("({text}){}", "||a".repeat(500));
        }
        assert!(message(&around(&text)).unwrap().contains("joins more than"));
        let mut text = "a".to_owned();
        for _ in 0..10 {
            text = format!("[1, ({text}){}]", "||a".repeat(500));
        }
        assert!(message(&around(&text)).unwrap().contains("joins more than"));
    }

    /// Nested in each other, these would be written out to more than any memory holds.
    #[test]
    fn operators_that_copy_their_operand_refuse_brackets() {
        for condition in [
            "(context.a) has b.c",
            "(((context.a) has b.c) has b.c) has b.c",
            "{a: context}.a has b . c",
            "context.a.contains(1) has b // \n .c",
            "(principal) is Agent in principal",
            "(principal) is A::B::Agent in principal",
            "(1 + (2)) is Agent // comment\n in principal",
        ] {
            assert!(
                message(&around(condition)).unwrap().contains("behind brackets"),
                "{condition}"
            );
        }
        for condition in [
            "context.arguments has a.b.c",
            "(context.a) && context.arguments has a.b.c",
            "(context.a) has b && (context.a).b has c",
            "principal is Agent in principal || (principal is Agent)",
            "(resource is Tool) && resource in principal",
            "(context.a) has b == context.c",
            "if (context.a) then context has a.b else context has a.b",
        ] {
            assert_eq!(message(&around(condition)), None, "{condition}");
        }
        let head = "forbid(principal, action, resource is Tool in Server::\"a\");";
        assert_eq!(message(head), None);
    }

    #[test]
    fn brackets_in_quotes_and_comments_are_not_counted() {
        assert_eq!(
            message(&around(&format!("\"{}\\\"{}\"", "(".repeat(99), "(".repeat(99)))),
            None
        );
        let commented = format!("// {}\n{}", "(".repeat(99), around("true"));
        assert_eq!(message(&commented), None);
        // An open quote in a comment quotes nothing, and a comment in quotes is none.
        let hidden = format!("// \"\n{}", around(&"(".repeat(99)));
        assert!(message(&hidden).is_some());
        let hidden = around(&format!("\"//\" == {}", "(".repeat(99)));
        assert!(message(&hidden).is_some());
        let escaped = around(&format!("\"\\\\\" == {}", "(".repeat(99)));
        assert!(message(&escaped).is_some());
    }
}
