//! The exact edges of what is found: the shortest pieces, neighbours, and texts that almost match.

use base64::engine::general_purpose::URL_SAFE;

use super::*;

/// A value that has no two letters or digits in a row, and each character that an encoder of a
/// whole value writes in its own way.
const PUNCTUATION: &str = "\"'<&>/+ä";

/// S27: the output of encoders of a value without letters, each written down.
#[test]
fn s27_a_value_without_letters_is_found_in_the_output_of_each_encoder() {
    let redactor = redactor(&[PUNCTUATION]);
    for spelling in [
        "%22%27%3C%26%3E%2F%2B%C3%A4",
        "%22%27%3c%26%3e%2f%2b%c3%a4",
        r#"\"'<&>/+ä"#,
        r#"\"'\u003c\u0026\u003e/+ä"#,
        r"\u0022\u0027\u003C\u0026\u003E/\u002B\u00E4",
        r#"\"'<&>\/+\u00e4"#,
        r#"\"'<&>/+\u00e4"#,
        r"\u0022\u0027\u003C\u0026\u003E\u002F\u002B\u00E4",
        r"\u0022\u0027\u003c\u0026\u003e\u002f\u002b\u00e4",
        "&quot;&#39;&lt;&amp;&gt;/+ä",
        "&quot;&#x27;&lt;&amp;&gt;&#x2F;&#x2B;&#xE4;",
        "&quot;&#x27;&lt;&amp;&gt;&#x2f;&#x2b;&#xe4;",
        "&#34;&#39;&lt;&amp;&gt;/+&#228;",
        "&quot;&#039;&lt;&amp;&gt;/+ä",
        "&quot;&apos;&lt;&amp;&gt;/+ä",
    ] {
        assert_eq!(redactor.text(&format!("({spelling})")), "([redacted])", "{spelling}");
    }
}

/// S27: six bytes are the shortest value. Its base64 is found where it begins a group of three
/// bytes, and the character behind it stays.
#[test]
fn s27_the_shortest_value_is_found_in_base64() {
    let redactor = redactor(&["hunter"]);
    assert_eq!(STANDARD.encode("hunter"), "aHVudGVy");
    assert_eq!(redactor.text("(aHVudGVy)"), "([redacted])");
    assert_eq!(redactor.text("aHVudGVyy"), "[redacted]y");
    // Seven characters are too few: other texts would have them.
    let inside = STANDARD.encode("xhunter");
    assert_eq!(redactor.text(&inside), inside);
}

/// S27: both alphabets of base64 differ in `+` and `/` only, also with few letters in a row.
#[test]
fn s27_base64_with_plus_and_slash_is_found_in_both_alphabets() {
    for (secret, encoded) in [
        ("abcdef>>>ghijkl???mnopqr", "YWJjZGVmPj4+Z2hpamtsPz8/bW5vcHFy"),
        ("?~>?~>?~>", "P34+P34+P34+"),
    ] {
        let redactor = redactor(&[secret]);
        assert_eq!(STANDARD.encode(secret), encoded);
        assert_eq!(redactor.text(encoded), REDACTED);
        assert_eq!(redactor.text(&URL_SAFE.encode(secret)), REDACTED);
    }
    // A plus sign is also a blank of a form, which is no part of a value's end.
    assert_eq!(STANDARD.encode("abcdefgh~"), "YWJjZGVmZ2h+");
    for text in ["YWJjZGVmZ2h++", "YWJjZGVm%0AZ2h++"] {
        assert_eq!(redactor(&["abcdefgh~"]).text(text), "[redacted]+", "{text}");
    }
}

/// D22: a line may end inside base64, and nowhere else.
#[test]
fn d22_a_value_with_a_line_end_inside_is_another_text() {
    let redactor = redactor(&["pa%ss-wordword-tail"]);
    for text in [
        "pa%\nss-wordword-tail",
        "pa%ss-wordword\n-tail",
        "pa%ss-wordword-\ntail",
        "\\pa\n%ss-wordword-tail",
    ] {
        assert_eq!(redactor.text(text), text);
    }
    assert_eq!(redactor.text("pa%ss-wordword-tail"), REDACTED);
}

/// S27: a secret is found by a piece that lies inside of another secret.
#[test]
fn s27_a_secret_that_begins_inside_of_another_is_found() {
    let redactor = redactor(&["hunter2-abcdef", "abcdef-xy-zz"]);
    assert_eq!(redactor.text("<hunter2-abcdef-xy-zz>"), "<[redacted]>");
}

/// A shortened text ends at least this many bytes before its cut, so the number must not be less
/// than any spelling, and not much more.
#[test]
fn d22_the_longest_spelling_counts_breaks_of_base64() {
    // 90 letters: 120 characters of base64, and up to three ends of lines.
    assert_eq!(redactor(&[&"abcdefghi".repeat(10)]).longest(), 120 + 3 * 40);
    // Hexadecimal digits of a short value are longer than its base64 without a break.
    assert_eq!(redactor(&["hunter"]).longest(), 8 + 40);
    assert_eq!(redactor(&[]).longest(), 0);
}

/// Short pieces would be found everywhere, and the rest be compared in vain.
#[test]
fn d22_pieces_of_base64_have_at_least_four_letters() {
    // Encoded `P2V+PmFmL1s/XWVhY2Q`, in the first case: runs of 3, 7 and 8 letters.
    for secret in ["?e~>af/[?]eacd", "<~?~[d<;:~>d~<", "?~>?~>abc~~~def"] {
        let mut all = sought::All::default();
        all.add(secret);
        let digits: String = secret.bytes().map(|byte| format!("{byte:02x}")).collect();
        for pattern in all.patterns() {
            let text = String::from_utf8(pattern.to_vec()).unwrap();
            let is_of_value = secret.contains(&text) || digits.contains(&text.to_lowercase());
            assert!(is_of_value || text.len() >= 4, "{secret}: {text}");
        }
    }
}

/// S27: without any other secret, a number is found in every spelling.
#[test]
fn s27_a_number_alone_is_found_in_another_spelling() {
    let redactor = redactor(&["87654321"]);
    assert_eq!(redactor.json(b"[8.7654321E7]").unwrap(), br#"["[redacted]"]"#);
    assert_eq!(redactor.json(b"[8.7654322E7]"), None);
}

/// D22: the rule for short values, as the vault asks for it.
#[test]
fn d22_values_of_six_bytes_and_numbers_of_eight_digits_are_redactable() {
    for (value, is_long) in
        [("abcde", false), ("abcdef", true), ("1234567", false), ("12345678", true), ("", false)]
    {
        assert_eq!(is_redactable(&Secret::new(value)), is_long, "{value}");
    }
}

#[test]
fn d22_the_debug_text_of_a_redactor_says_only_whether_it_is_empty() {
    assert_eq!(format!("{:?}", redactor(&["sk-12345"])), "Redactor { is_empty: false }");
    assert_eq!(format!("{:?}", redactor(&[])), "Redactor { is_empty: true }");
}
