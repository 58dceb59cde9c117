//! The readable content of an open file, and the permitted answers of operations on it.

use narthex_vfs::Code;

use super::{
    ERROR, PROMPT, TOOL,
    device::Seen,
    facts::{Facts, Opened, Span},
};

/// A descriptor in the model.
#[derive(Debug)]
pub(crate) struct File {
    pub(crate) opened: Opened,
    pub(crate) node: &'static str,
    /// Number of writes so far that changed the file.
    pub(crate) turn: u64,
    content: Content,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Content {
    Nothing,
    Rest(Vec<u8>),
    Failed(Code),
    /// The last failure of its mount, with this code.
    Told(Option<Code>),
}

/// The operation on a file.
#[derive(Debug, Clone)]
pub(crate) enum Doing {
    /// A write of these bytes, as this turn of the file; `None` if the file was over before.
    Write(String, Option<u64>),
    /// A read of at most this many bytes.
    Read(i64),
}

/// An operation that has ended.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) doing: Doing,
    /// The result: the bytes of a read, none for a write.
    pub(crate) result: Result<Vec<u8>, Code>,
    /// The span from its begin to its end.
    pub(crate) whole: Span,
    /// The span of its last look at the namespace.
    pub(crate) look: Span,
    /// The answers of servers at its last look.
    pub(crate) seen: Seen,
}

impl File {
    pub(crate) fn new(opened: Opened, node: &'static str, last_failure: Option<Code>) -> Self {
        let content = match node {
            "" => Content::Rest(br#"["tools","resources","prompts","ctl"]"#.to_vec()),
            ERROR => Content::Told(last_failure),
            _ => Content::Nothing,
        };
        Self { opened, node, turn: 0, content }
    }

    pub(crate) fn is_writable(&self) -> bool {
        [TOOL, PROMPT].contains(&self.node)
    }

    /// A write begins that is not over before: nothing of before is read any more.
    pub(crate) fn begin_write(&mut self) -> Option<u64> {
        if !self.is_writable() {
            return None;
        }
        self.turn += 1;
        self.content = Content::Nothing;
        Some(self.turn)
    }

    /// Checks what an operation has answered, and has the file be as it left it.
    ///
    /// # Panics
    /// When it is not permitted.
    pub(crate) fn check(&mut self, done: &Done, facts: &Facts) {
        let over = facts.over(&self.opened, done.look);
        let is_over = matches!(&done.result, Err(code) if over.codes.contains(code));
        assert!(
            is_over || over.may_go_on,
            "it is over: {done:?} of {self:?}, where {over:?} is permitted"
        );
        match &done.doing {
            Doing::Write(text, turn) => self.check_write(text, *turn, is_over, done, facts),
            Doing::Read(length) => self.check_read(*length, is_over, done, facts),
        }
    }

    fn check_write(
        &mut self,
        text: &str,
        turn: Option<u64>,
        is_over: bool,
        done: &Done,
        facts: &Facts,
    ) {
        let failing = facts.failing(&self.opened.mounts, done.whole);
        let is_object = text.starts_with('{');
        let is_permitted = match &done.result {
            Ok(_) => self.is_writable() && is_object && failing.may_go_on,
            Err(Code::Invalid) => !self.is_writable() || !is_object,
            Err(code) => is_over || (self.is_writable() && failing.codes.contains(code)),
        };
        assert!(is_permitted, "{done:?} of {self:?}, where {failing:?} is permitted");
        // A later write counts, also where it has been answered before.
        if turn.is_none_or(|turn| turn != self.turn) {
            return;
        }
        self.content = match &done.result {
            Err(code) => Content::Failed(*code),
            Ok(_) => {
                let answered = done.seen.answered.clone().expect("the server has answered");
                let whole = String::from_utf8_lossy(&answered);
                assert!(whole.ends_with(text), "`{whole}` is no answer to {text}");
                self.narrow(&whole);
                Content::Rest(answered)
            }
        };
    }

    fn check_read(&mut self, length: i64, is_over: bool, done: &Done, facts: &Facts) {
        if is_over {
            return;
        }
        let failing = facts.failing(&self.opened.mounts, done.whole);
        let is_fetched = !matches!(self.node, "" | TOOL | ERROR);
        let read = match &done.result {
            Ok(read) => read,
            Err(code) => {
                let is_permitted = match &self.content {
                    Content::Failed(failed) if failed == code => true,
                    Content::Nothing if self.node == TOOL => *code == Code::Invalid,
                    // A write may have been answered since it was fetched.
                    _ => is_fetched && failing.codes.contains(code),
                };
                assert!(is_permitted, "{done:?} of {self:?}, where {failing:?} is permitted");
                return;
            }
        };
        let mut whole = match std::mem::replace(&mut self.content, Content::Nothing) {
            Content::Rest(rest) => rest,
            Content::Nothing if is_fetched && failing.may_go_on => {
                let answered = done.seen.answered.clone().expect("the server has answered");
                self.narrow(&String::from_utf8_lossy(&answered));
                answered
            }
            Content::Told(code) => {
                let told = String::from_utf8_lossy(read);
                let wanted = code.map_or("null\n".to_owned(), |code| format!(r#""code":"{code}""#));
                assert!(told.contains(&wanted), "`{told}` says nothing of {wanted}");
                self.content = Content::Rest(Vec::new());
                return;
            }
            other => panic!("{done:?} of {self:?}, which has {other:?}"),
        };
        let wanted = usize::try_from(length).ok().filter(|length| *length > 0);
        let rest = whole.split_off(wanted.unwrap_or(whole.len()).min(whole.len()));
        assert!(*read == whole, "{done:?} of {self:?}, which has {:?}", show(&whole));
        self.content = Content::Rest(rest);
    }

    /// An answer names its server: one that the file may be of, and that for good.
    fn narrow(&mut self, answer: &str) {
        let is_of = |mount: &usize| answer.contains(&format!("server {mount} answer "));
        self.opened.mounts.retain(is_of);
        assert!(!self.opened.mounts.is_empty(), "`{answer}` is another server's: {self:?}");
    }
}

fn show(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
