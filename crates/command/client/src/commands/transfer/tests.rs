//! Tests of the words of a refusal.

use super::*;

/// O61: a fault of the whole request has the text alone, and any other its file, place and
/// line.
#[test]
fn o61_a_fault_of_the_whole_request_has_no_place() {
    let fault = |field: &str, source: Option<&str>, line: Option<u64>| {
        json!({ "field": field, "source": source, "line": line, "message": "it is wrong",
                "remedy": "correct it" })
    };
    for (told, expected) in [
        (fault("body", None, None), "it is wrong; correct it"),
        (fault("body", Some("a.yaml"), None), "a.yaml: it is wrong; correct it"),
        (fault("", Some("a.yaml"), Some(1)), "a.yaml: it is wrong; correct it"),
        (fault("url", Some("a.yaml"), Some(2)), "a.yaml: `url` (line 2): it is wrong; correct it"),
        (fault("url", None, None), "`url`: it is wrong; correct it"),
    ] {
        assert_eq!(line(&told), expected);
    }
    let denied = json!({ "errors": [fault("body", None, None)] });
    let failure = Failure::new(ErrorKind::Denied, "x").with_details(Some(denied));
    let told = Bundle::default().with_sources(failure).message;
    assert_eq!(told, "nothing was stored:\nit is wrong; correct it");
}
