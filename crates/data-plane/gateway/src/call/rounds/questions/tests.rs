//! Reads answers that ask questions.

use super::*;

fn answer(body: &str) -> Message {
    let text = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{body}}}"#);
    Message::parse(text.into(), &Limits::default()).unwrap()
}

/// E172: without questions and without a state, a result is complete.
#[test]
fn only_questions_or_a_request_state_make_a_result_incomplete() {
    let wanted = |body: &str| wanted(&answer(body));
    let kind = r#""resultType":"input_required""#;
    for more in ["", r#","inputRequests":{}"#, r#","inputRequests":null"#] {
        let with_state = wanted(&format!(r#"{{{kind},"requestState":"s"{more}}}"#));
        assert_eq!(with_state, Some(Wanted::Again), "{more}");
        assert_eq!(wanted(&format!("{{{kind}{more}}}")), None, "{more}");
    }
    for state in ["", r#","requestState":"s""#, r#","requestState":null"#] {
        let with_question = wanted(&format!(r#"{{{kind},"inputRequests":{{"a":1}}{state}}}"#));
        assert_eq!(with_question, Some(Wanted::Answers), "{state}");
    }
    assert_eq!(wanted(&format!(r#"{{{kind},"requestState":7}}"#)), None);
    assert_eq!(wanted(r#"{"resultType":"complete","requestState":"s"}"#), None);
    assert_eq!(wanted(r#"{"requestState":"s","content":[]}"#), None);
}

/// E175: the modes and parts of a capability are declared one by one.
#[test]
fn e175_modes_and_parts_of_a_capability_are_declared_one_by_one() {
    let missing = |method: &str, params: &str, declared: &str| {
        let body = format!(r#"{{"method":"{method}","params":{params}}}"#);
        let question = Question::read("s", "q".into(), Raw::new(body.as_bytes())).ok().unwrap();
        question.undeclared(Raw::new(declared.as_bytes())).map(Cow::into_owned)
    };
    let (form, url) = (r#"{"mode":"form"}"#, r#"{"mode":"url"}"#);
    for (method, params, declared, wanted) in [
        ("roots/list", "{}", r#"{"roots":{}}"#, None),
        ("roots/list", "{}", "{}", Some("roots")),
        ("sampling/createMessage", "{}", r#"{"sampling":{}}"#, None),
        ("sampling/createMessage", "{}", r#"{"roots":{}}"#, Some("sampling")),
        ("sampling/createMessage", r#"{"tools":[]}"#, r#"{"sampling":{}}"#, Some("sampling.tools")),
        ("sampling/createMessage", r#"{"tools":[]}"#, r#"{"sampling":{"tools":{}}}"#, None),
        ("elicitation/create", "{}", "{}", Some("elicitation")),
        ("elicitation/create", "{}", r#"{"elicitation":{}}"#, None),
        ("elicitation/create", form, r#"{"elicitation":{}}"#, None),
        ("elicitation/create", url, r#"{"elicitation":{}}"#, Some("elicitation.url")),
        ("elicitation/create", url, r#"{"elicitation":{"url":{}}}"#, None),
        ("elicitation/create", form, r#"{"elicitation":{"url":{}}}"#, Some("elicitation.form")),
        ("elicitation/create", form, r#"{"elicitation":{"form":{},"url":{}}}"#, None),
        ("elicitation/create", r#"{"mode":"x"}"#, r#"{"elicitation":{}}"#, Some("elicitation.x")),
    ] {
        let found = missing(method, params, declared);
        assert_eq!(found.as_deref(), wanted, "{method} {params} {declared}");
    }
}
