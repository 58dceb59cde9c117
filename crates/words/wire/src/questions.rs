//! Questions of legacy servers in the form for modern clients, and the kinds of questions that a
//! modern client declares.

use bytes::Bytes;

use crate::{
    Message, Payload, Raw,
    json::encode_string,
    method,
    rpc::{self, code},
    translate::edited,
};

/// The kinds of servers' questions that a client can answer, as declared in one of its requests.
///
/// Only the members that legacy servers may rely on count; other members are ignored. So there are
/// few different values, whichever members clients send.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Answerable(u8);

impl Answerable {
    const SAMPLING: u8 = 1;
    const SAMPLING_TOOLS: u8 = 1 << 1;
    const SAMPLING_CONTEXT: u8 = 1 << 2;
    const FORMS: u8 = 1 << 3;
    const URLS: u8 = 1 << 4;
    const ROOTS: u8 = 1 << 5;

    /// Reads a client's capabilities from JSON.
    #[must_use]
    pub fn of(capabilities: Raw<'_>) -> Self {
        let object = |within: Raw<'_>, name| within.get(name).is_some_and(Raw::is_object);
        let declared = |name| capabilities.get(name).filter(|raw| raw.is_object());
        let mut bits = 0;
        if let Some(sampling) = declared("sampling") {
            bits |= Self::SAMPLING;
            bits |= if object(sampling, "tools") { Self::SAMPLING_TOOLS } else { 0 };
            bits |= if object(sampling, "context") { Self::SAMPLING_CONTEXT } else { 0 };
        }
        if let Some(elicitation) = declared("elicitation") {
            let (form, url) = (object(elicitation, "form"), object(elicitation, "url"));
            // Without a mode, elicitation means forms.
            bits |= if form || !url { Self::FORMS } else { 0 };
            bits |= if url { Self::URLS } else { 0 };
        }
        bits |= if declared("roots").is_some() { Self::ROOTS } else { 0 };
        Self(bits)
    }

    /// True if the client can answer no question.
    #[must_use]
    pub fn is_none(self) -> bool {
        self.0 == 0
    }

    fn has(self, bit: u8) -> bool {
        self.0 & bit != 0
    }

    /// The `initialize` capabilities of this value, as JSON. Equal values give equal text.
    #[must_use]
    pub fn to_legacy(self) -> String {
        let of = |bits: &[(u8, &str)]| {
            let has = bits.iter().filter(|(bit, _)| self.has(*bit));
            has.map(|(_, name)| format!(r#""{name}":{{}}"#)).collect::<Vec<_>>().join(",")
        };
        let mut members = Vec::new();
        if self.has(Self::SAMPLING) {
            let parts = [(Self::SAMPLING_CONTEXT, "context"), (Self::SAMPLING_TOOLS, "tools")];
            members.push(format!(r#""sampling":{{{}}}"#, of(&parts)));
        }
        if self.has(Self::FORMS | Self::URLS) {
            // Revisions before 2025-11-25 know no modes and ignore them.
            let modes = [(Self::FORMS, "form"), (Self::URLS, "url")];
            members.push(format!(r#""elicitation":{{{}}}"#, of(&modes)));
        }
        if self.has(Self::ROOTS) {
            members.push(r#""roots":{}"#.to_owned());
        }
        format!("{{{}}}", members.join(","))
    }

    /// The reason why the client cannot be asked a question, as an error code and a text for the
    /// server. `None` if the client can be asked.
    #[must_use]
    pub fn refuses(self, question: &Message) -> Option<(i64, &'static str)> {
        let undeclared = "the client did not declare this capability";
        let is_known = match question.method() {
            method::SAMPLING_CREATE_MESSAGE => {
                let wants_tools = question.get("tools").is_some();
                if self.has(Self::SAMPLING) && wants_tools && !self.has(Self::SAMPLING_TOOLS) {
                    return Some((
                        code::INVALID_PARAMS,
                        "the client declared no tools in sampling",
                    ));
                }
                self.has(Self::SAMPLING)
            }
            method::ELICITATION_CREATE if is_url(question) => {
                if self.has(Self::FORMS) && !self.has(Self::URLS) {
                    return Some((code::INVALID_PARAMS, "the client declared no mode `url`"));
                }
                self.has(Self::URLS)
            }
            method::ELICITATION_CREATE => {
                if self.has(Self::URLS) && !self.has(Self::FORMS) {
                    return Some((code::INVALID_PARAMS, "the client declared no mode `form`"));
                }
                self.has(Self::FORMS)
            }
            method::ROOTS_LIST => self.has(Self::ROOTS),
            _ => false,
        };
        (!is_known).then_some((code::METHOD_NOT_FOUND, undeclared))
    }

    /// True if the client can be led to a URL.
    #[must_use]
    pub fn takes_urls(self) -> bool {
        self.has(Self::URLS)
    }
}

fn is_url(question: &Message) -> bool {
    question.get("mode").and_then(Raw::as_str).is_some_and(|mode| mode == "url")
}

/// A legacy question as an entry of `inputRequests`, as JSON. Members that only a legacy client
/// needs are left out.
#[must_use]
pub fn embedded(question: &Message) -> Vec<u8> {
    let params = match question.body_raw().filter(|params| params.is_object()) {
        Some(params) => embedded_params(params),
        None => b"{}".to_vec(),
    };
    entry(question.method(), &params)
}

fn entry(method: &str, params: &[u8]) -> Vec<u8> {
    [&br#"{"method":"#[..], &encode_string(method), br#","params":"#, params, b"}"].concat()
}

fn embedded_params(params: Raw<'_>) -> Vec<u8> {
    edited(params, |key, value| match key {
        "task" | "elicitationId" => None,
        "_meta" => {
            let meta = edited(value, |key, value| {
                (key != "progressToken").then(|| value.as_bytes().into())
            });
            (meta != b"{}").then(|| meta.into())
        }
        _ => Some(value.as_bytes().into()),
    })
}

/// The URLs that a legacy server requires a user to visit first (error −32042), as entries of
/// `inputRequests`. Empty if the error names none.
#[must_use]
pub fn wanted_urls(error: &Message) -> Vec<Vec<u8>> {
    if error.error_code() != Some(code::LEGACY_URL_ELICITATION_REQUIRED) {
        return Vec::new();
    }
    let all = error.get("data").and_then(|data| data.get("elicitations"));
    let all = all.map(Raw::items).unwrap_or_default();
    let with_url = all.into_iter().filter(|one| one.get("url").is_some_and(|url| url.is_token()));
    with_url.map(|one| entry(method::ELICITATION_CREATE, &embedded_params(one))).collect()
}

/// The message to a server whose question gets no answer: a cancelled elicitation, or an error with
/// the text `why`.
#[must_use]
pub fn unanswered(id: Raw<'_>, method: &str, why: &str) -> Payload {
    match method {
        method::ELICITATION_CREATE => {
            rpc::result_response(id, &Bytes::from_static(br#"{"action":"cancel"}"#))
        }
        _ => rpc::error_response(Some(id), code::INTERNAL_ERROR, why, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Limits;

    fn declared(json: &str) -> Answerable {
        Answerable::of(Raw::new(json.as_bytes()))
    }

    fn message(text: &str) -> Message {
        Message::parse(Bytes::copy_from_slice(text.as_bytes()), &Limits::default()).unwrap()
    }

    fn asked(method: &str, params: &str) -> Message {
        let head = r#"{"jsonrpc":"2.0","id":"q","method":"#;
        message(&format!(r#"{head}"{method}","params":{params}}}"#))
    }

    /// E184: a legacy server is offered the declared capabilities, and no others.
    #[test]
    fn e184_capabilities_have_one_legacy_form() {
        for (modern, legacy) in [
            ("{}", "{}"),
            (r#"{"tasks":{},"extensions":{"a/b":{}},"roots":true}"#, "{}"),
            (r#"{"roots":{"listChanged":true}}"#, r#"{"roots":{}}"#),
            (r#"{"elicitation":{}}"#, r#"{"elicitation":{"form":{}}}"#),
            (r#"{"elicitation":{"url":{}}}"#, r#"{"elicitation":{"url":{}}}"#),
            (
                r#"{"elicitation":{"url":{},"form":{}},"sampling":{"x":1}}"#,
                r#"{"sampling":{},"elicitation":{"form":{},"url":{}}}"#,
            ),
            (
                r#"{"sampling":{"tools":{},"context":{}}}"#,
                r#"{"sampling":{"context":{},"tools":{}}}"#,
            ),
        ] {
            assert_eq!(declared(modern).to_legacy(), legacy, "{modern}");
            assert_eq!(declared(modern).is_none(), legacy == "{}", "{modern}");
        }
    }

    /// E184: a question that needs an undeclared capability is refused at once.
    #[test]
    fn e184_undeclared_questions_are_refused() {
        let refused = |json: &str, method: &str, params: &str| {
            declared(json).refuses(&asked(method, params)).map(|(code, _)| code)
        };
        let (form, url) = (r#"{"elicitation":{}}"#, r#"{"elicitation":{"url":{}}}"#);
        let (elicit, sample) = ("elicitation/create", "sampling/createMessage");
        assert_eq!(refused(form, elicit, "{}"), None);
        assert_eq!(refused(form, elicit, r#"{"mode":"url"}"#), Some(code::INVALID_PARAMS));
        assert_eq!(refused(url, elicit, r#"{"mode":"url"}"#), None);
        assert_eq!(refused(url, elicit, r#"{"mode":"form"}"#), Some(code::INVALID_PARAMS));
        assert_eq!(refused("{}", elicit, r#"{"mode":"url"}"#), Some(code::METHOD_NOT_FOUND));
        assert_eq!(refused(form, sample, "{}"), Some(code::METHOD_NOT_FOUND));
        assert_eq!(refused(form, "roots/list", "{}"), Some(code::METHOD_NOT_FOUND));
        assert_eq!(refused(r#"{"roots":{}}"#, "roots/list", "{}"), None);
        let tools = r#"{"tools":[]}"#;
        assert_eq!(refused(r#"{"sampling":{}}"#, sample, tools), Some(code::INVALID_PARAMS));
        assert_eq!(refused(r#"{"sampling":{"tools":{}}}"#, sample, tools), None);
        assert_eq!(refused(r#"{"sampling":{}}"#, "x/ask", "{}"), Some(code::METHOD_NOT_FOUND));
    }

    #[test]
    fn e184_a_question_is_embedded_without_its_legacy_members() {
        let params = r#"{"message":"m","x":1.10,"task":{"ttl":1},"_meta":{"progressToken":7}}"#;
        assert_eq!(
            embedded(&asked("elicitation/create", params)),
            br#"{"method":"elicitation/create","params":{"message":"m","x":1.10}}"#
        );
        let kept = r#"{"_meta":{"a/b":1,"progressToken":7}}"#;
        assert_eq!(
            embedded(&asked("roots/list", kept)),
            br#"{"method":"roots/list","params":{"_meta":{"a/b":1}}}"#
        );
        let bare = message(r#"{"jsonrpc":"2.0","id":1,"method":"roots/list"}"#);
        assert_eq!(embedded(&bare), br#"{"method":"roots/list","params":{}}"#);
    }

    #[test]
    fn e184_wanted_urls_are_read_from_the_error() {
        let error = |code: i64| {
            let data = r#"{"elicitations":[{"mode":"url","elicitationId":"e","url":"https://a/"},
                {"mode":"url"}]}"#;
            let error = format!(r#"{{"code":{code},"message":"m","data":{data}}}"#);
            message(&format!(r#"{{"jsonrpc":"2.0","id":1,"error":{error}}}"#))
        };
        let entry =
            br#"{"method":"elicitation/create","params":{"mode":"url","url":"https://a/"}}"#;
        assert_eq!(wanted_urls(&error(-32042)), [entry.to_vec()]);
        assert!(wanted_urls(&error(-32000)).is_empty());
    }
}
