//! The spellings of secrets by ordinary encoders: as the encoders wrote them, and any two of the
//! crate's in turn.

use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::*;
use crate::redact::encodings::{ENCODERS, Encoder};

/// A secret with many letters and digits in a row, a secret with all characters that encoders
/// change, and a secret with few letters in a row.
const SECRETS: [&str; 3] =
    [r"wJalrX/UtnFEMI+K7MDENG&bPx=", r#"Pä"s\w/rd&<x>+Canary77'𝄞"#, r#"p@ss/w"ör d+1"#];

/// The spellings that Python's libraries produced, and that those of Go, .NET and PHP produce by
/// their rules.
#[rustfmt::skip]
const SPELLINGS: [(&str, [&str; 3]); 28] = [
    (
        "quote of Python",
        [
            r"wJalrX/UtnFEMI%2BK7MDENG%26bPx%3D",
            r"P%C3%A4%22s%5Cw/rd%26%3Cx%3E%2BCanary77%27%F0%9D%84%9E",
            r"p%40ss/w%22%C3%B6r%20d%2B1",
        ],
    ),
    (
        "quote of Python, nothing kept",
        [
            r"wJalrX%2FUtnFEMI%2BK7MDENG%26bPx%3D",
            r"P%C3%A4%22s%5Cw%2Frd%26%3Cx%3E%2BCanary77%27%F0%9D%84%9E",
            r"p%40ss%2Fw%22%C3%B6r%20d%2B1",
        ],
    ),
    (
        "quote_plus of Python",
        [
            r"wJalrX%2FUtnFEMI%2BK7MDENG%26bPx%3D",
            r"P%C3%A4%22s%5Cw%2Frd%26%3Cx%3E%2BCanary77%27%F0%9D%84%9E",
            r"p%40ss%2Fw%22%C3%B6r+d%2B1",
        ],
    ),
    (
        "encodeURIComponent",
        [
            r"wJalrX%2FUtnFEMI%2BK7MDENG%26bPx%3D",
            r"P%C3%A4%22s%5Cw%2Frd%26%3Cx%3E%2BCanary77'%F0%9D%84%9E",
            r"p%40ss%2Fw%22%C3%B6r%20d%2B1",
        ],
    ),
    (
        "percent, lower case",
        [
            r"wJalrX%2fUtnFEMI%2bK7MDENG%26bPx%3d",
            r"P%c3%a4%22s%5cw%2frd%26%3cx%3e%2bCanary77%27%f0%9d%84%9e",
            r"p%40ss%2fw%22%c3%b6r%20d%2b1",
        ],
    ),
    (
        "percent, twice",
        [
            r"wJalrX%2FUtnFEMI%252BK7MDENG%2526bPx%253D",
            r"P%25C3%25A4%2522s%255Cw%2Frd%2526%253Cx%253E%252BCanary77%2527%25F0%259D%2584%259E",
            r"p%2540ss%2Fw%2522%25C3%25B6r%2520d%252B1",
        ],
    ),
    (
        "json.dumps of Python",
        [
            r"wJalrX/UtnFEMI+K7MDENG&bPx=",
            r#"P\u00e4\"s\\w/rd&<x>+Canary77'\ud834\udd1e"#,
            r#"p@ss/w\"\u00f6r d+1"#,
        ],
    ),
    (
        "json.dumps of Python, not ASCII",
        [
            r"wJalrX/UtnFEMI+K7MDENG&bPx=",
            r#"Pä\"s\\w/rd&<x>+Canary77'𝄞"#,
            r#"p@ss/w\"ör d+1"#,
        ],
    ),
    (
        "encoding/json of Go",
        [
            r"wJalrX/UtnFEMI+K7MDENG\u0026bPx=",
            r#"Pä\"s\\w/rd\u0026\u003cx\u003e+Canary77'𝄞"#,
            r#"p@ss/w\"ör d+1"#,
        ],
    ),
    (
        "System.Text.Json of .NET",
        [
            r"wJalrX/UtnFEMI\u002BK7MDENG\u0026bPx=",
            r"P\u00E4\u0022s\\w/rd\u0026\u003Cx\u003E\u002BCanary77\u0027\uD834\uDD1E",
            r"p@ss/w\u0022\u00F6r d\u002B1",
        ],
    ),
    (
        "json_encode of PHP",
        [
            r"wJalrX\/UtnFEMI+K7MDENG&bPx=",
            r#"P\u00e4\"s\\w\/rd&<x>+Canary77'\ud834\udd1e"#,
            r#"p@ss\/w\"\u00f6r d+1"#,
        ],
    ),
    (
        "JSON in JSON, Python",
        [
            r"wJalrX/UtnFEMI+K7MDENG&bPx=",
            r#"P\\u00e4\\\"s\\\\w/rd&<x>+Canary77'\\ud834\\udd1e"#,
            r#"p@ss/w\\\"\\u00f6r d+1"#,
        ],
    ),
    (
        "JSON in JSON, Go",
        [
            r"wJalrX/UtnFEMI+K7MDENG\\u0026bPx=",
            r#"Pä\\\"s\\\\w/rd\\u0026\\u003cx\\u003e+Canary77'𝄞"#,
            r#"p@ss/w\\\"ör d+1"#,
        ],
    ),
    (
        "JSON in JSON, .NET",
        [
            r"wJalrX/UtnFEMI\\u002BK7MDENG\\u0026bPx=",
            r"P\\u00E4\\u0022s\\\\w/rd\\u0026\\u003Cx\\u003E\\u002BCanary77\\u0027\\uD834\\uDD1E",
            r"p@ss/w\\u0022\\u00F6r d\\u002B1",
        ],
    ),
    (
        "JSON in JSON, PHP",
        [
            r"wJalrX\\\/UtnFEMI+K7MDENG&bPx=",
            r#"P\\u00e4\\\"s\\\\w\\\/rd&<x>+Canary77'\\ud834\\udd1e"#,
            r#"p@ss\\\/w\\\"\\u00f6r d+1"#,
        ],
    ),
    (
        "JSON of .NET in JSON of Python",
        [
            r"wJalrX/UtnFEMI\\u002BK7MDENG\\u0026bPx=",
            r"P\\u00E4\\u0022s\\\\w/rd\\u0026\\u003Cx\\u003E\\u002BCanary77\\u0027\\uD834\\uDD1E",
            r"p@ss/w\\u0022\\u00F6r d\\u002B1",
        ],
    ),
    (
        "percent in JSON of PHP",
        [
            r"wJalrX\/UtnFEMI%2BK7MDENG%26bPx%3D",
            r"P%C3%A4%22s%5Cw\/rd%26%3Cx%3E%2BCanary77%27%F0%9D%84%9E",
            r"p%40ss\/w%22%C3%B6r%20d%2B1",
        ],
    ),
    (
        "html.escape of Python",
        [
            r"wJalrX/UtnFEMI+K7MDENG&amp;bPx=",
            r"Pä&quot;s\w/rd&amp;&lt;x&gt;+Canary77&#x27;𝄞",
            r"p@ss/w&quot;ör d+1",
        ],
    ),
    (
        "htmlspecialchars of PHP",
        [
            r"wJalrX/UtnFEMI+K7MDENG&amp;bPx=",
            r"Pä&quot;s\w/rd&amp;&lt;x&gt;+Canary77&#039;𝄞",
            r"p@ss/w&quot;ör d+1",
        ],
    ),
    (
        "html of Go",
        [
            r"wJalrX/UtnFEMI+K7MDENG&amp;bPx=",
            r"Pä&#34;s\w/rd&amp;&lt;x&gt;+Canary77&#39;𝄞",
            r"p@ss/w&#34;ör d+1",
        ],
    ),
    (
        "quoteattr of XML",
        [
            r"wJalrX/UtnFEMI+K7MDENG&amp;bPx=",
            r"Pä&quot;s\w/rd&amp;&lt;x&gt;+Canary77&apos;𝄞",
            r"p@ss/w&quot;ör d+1",
        ],
    ),
    (
        "HTML, twice",
        [
            r"wJalrX/UtnFEMI+K7MDENG&amp;amp;bPx=",
            r"Pä&amp;quot;s\w/rd&amp;amp;&amp;lt;x&amp;gt;+Canary77&amp;#x27;𝄞",
            r"p@ss/w&amp;quot;ör d+1",
        ],
    ),
    (
        "HTML in JSON of Go",
        [
            r"wJalrX/UtnFEMI+K7MDENG\u0026amp;bPx=",
            r"Pä\u0026quot;s\\w/rd\u0026amp;\u0026lt;x\u0026gt;+Canary77\u0026#x27;𝄞",
            r"p@ss/w\u0026quot;ör d+1",
        ],
    ),
    (
        "xmlcharrefreplace",
        [
            r"wJalrX/UtnFEMI+K7MDENG&amp;bPx=",
            r"P&#228;&quot;s\w/rd&amp;&lt;x&gt;+Canary77&#x27;&#119070;",
            r"p@ss/w&quot;&#246;r d+1",
        ],
    ),
    (
        "base64",
        [
            r"d0phbHJYL1V0bkZFTUkrSzdNREVORyZiUHg9",
            r"UMOkInNcdy9yZCY8eD4rQ2FuYXJ5Nzcn8J2Eng==",
            r"cEBzcy93IsO2ciBkKzE=",
        ],
    ),
    (
        "base64 of URLs",
        [
            r"d0phbHJYL1V0bkZFTUkrSzdNREVORyZiUHg9",
            r"UMOkInNcdy9yZCY8eD4rQ2FuYXJ5Nzcn8J2Eng",
            r"cEBzcy93IsO2ciBkKzE",
        ],
    ),
    (
        "hex, lower case",
        [
            r"774a616c72582f55746e46454d492b4b374d44454e47266250783d",
            r"50c3a422735c772f7264263c783e2b43616e617279373727f09d849e",
            r"704073732f7722c3b67220642b31",
        ],
    ),
    (
        "hex, upper case",
        [
            r"774A616C72582F55746E46454D492B4B374D44454E47266250783D",
            r"50C3A422735C772F7264263C783E2B43616E617279373727F09D849E",
            r"704073732F7722C3B67220642B31",
        ],
    ),
];

/// S27: the output of ordinary encoders is found in texts, in JSON, and in strings within JSON.
#[test]
fn s27_secrets_in_the_output_of_common_encoders_are_found() {
    for (encoder, spelled) in SPELLINGS {
        for (secret, spelling) in SECRETS.into_iter().zip(spelled) {
            let redactor = redactor(&[secret]);
            let (line, clean) = (format!("(key={spelling};)"), "(key=[redacted];)");
            let found = redactor.text(&line).into_owned();
            let is_base64 = encoder.starts_with("base64");
            let found = if is_base64 { found.replace('=', "") } else { found };
            let clean = if is_base64 { clean.replace('=', "") } else { clean.to_owned() };
            assert_eq!(found, clean, "{encoder}: {line}");
            assert!(redactor.is_in(line.as_bytes()), "{encoder}: {line}");
            assert!(spelling.len() <= redactor.longest(), "{encoder}: {line}");
            let told = json!({ "jsonrpc": "2.0", "id": 1, "result": { "text": line } });
            let told = redactor.message(&parse(&told.to_string())).unwrap();
            let told = told.get("text").unwrap().as_str().unwrap().into_owned();
            assert!(told.contains(REDACTED) && !told.contains(spelling), "{encoder}: {told}");
        }
    }
}

/// The parts of a secret in base64 that are the same after and before any other bytes.
fn cores(secret: &str) -> Vec<String> {
    let core = |before: usize| {
        let encoded = STANDARD.encode([&vec![0; before], secret.as_bytes()].concat());
        let end = encoded.trim_end_matches('=').len();
        let is_cut = !(before + secret.len()).is_multiple_of(3);
        encoded[(before * 8).div_ceil(6)..end - usize::from(is_cut)].to_owned()
    };
    (0..3).map(core).collect()
}

fn wrapped(text: &str, width: usize, end: &str) -> String {
    let lines: Vec<_> =
        text.as_bytes().chunks(width).map(|line| std::str::from_utf8(line).unwrap()).collect();
    lines.join(end)
}

/// S27: base64 as mail, PEM and `base64` write it, wherever a line ends.
#[test]
fn s27_base64_in_lines_is_found() {
    for secret in SECRETS {
        let redactor = redactor(&[secret]);
        for before in 0..80 {
            let text = [&vec![b'.'; before], secret.as_bytes(), b" and more".as_slice()].concat();
            for (width, end) in [
                (76, "\n"),
                (64, "\r\n"),
                (76, "\\n"),
                (64, "\\r\\n"),
                (76, "\\\\n"),
                (64, "\n  "),
                (76, "%0A"),
                (64, "&#10;"),
            ] {
                for encoded in [STANDARD.encode(&text), URL_SAFE_NO_PAD.encode(&text)] {
                    let lines = wrapped(&encoded, width, end);
                    let clean = redactor.text(&lines).replace(end, "");
                    let clean = clean.replace('-', "+").replace('_', "/");
                    assert!(clean.contains(REDACTED), "{before} {end:?}: {lines}");
                    let core = &cores(secret)[before % 3];
                    assert!(!clean.contains(core), "{before} {end:?}: {clean}");
                }
            }
        }
    }
}

/// S27: a spelling needs as many letters as the secret: a text that only begins like a secret, or
/// has its letters in another order, stays.
#[test]
fn s27_a_text_that_only_resembles_a_secret_is_not_redacted() {
    let redactor = redactor(&SECRETS);
    for text in [
        "wJalrX/UtnFEMI+K7MDENG&bPx",
        "wJalrX/UtnFEMI K7MDENG&bPx=",
        "UtnFEMI K7MDENG wJalrX",
        "wJalrX%2FUtnFEMI%2BK7MDENG%27bPx%3D",
        "Canary77 and Canary77",
        "p@ss/w\"or d+1",
        "d0phbHJYL1V0bkZFTUkrSzdNREVORyZ",
        "774a616c72582f55746e46454d492b4b374d44454e47",
    ] {
        assert_eq!(redactor.text(text), text);
        assert!(!redactor.is_in(text.as_bytes()), "{text}");
    }
}

/// S27: a value without two letters in a row is found in all that two encoders make of it.
#[test]
fn s27_values_without_letters_are_found() {
    for secret in ["!@#$%^&*()", "a-b c/d+e\"f", "ä<ö>&ü'"] {
        let redactor = redactor(&[secret]);
        for (first, second) in
            ENCODERS.iter().flat_map(|one| ENCODERS.iter().map(move |o| (one, o)))
        {
            let spelling = second(&first(secret));
            let clean = redactor.text(&format!("({spelling})")).into_owned();
            assert!(clean.contains(REDACTED) && !clean.contains(&spelling), "{spelling}: {clean}");
            let told = json!({ "jsonrpc": "2.0", "id": 1, "result": { "text": spelling } });
            let told = redactor.message(&parse(&told.to_string())).unwrap();
            assert!(told.get("text").unwrap().as_str().unwrap().contains(REDACTED), "{spelling}");
        }
    }
}

/// S27: secrets that lie in each other's way are found both.
#[test]
fn s27_secrets_that_overlap_are_found() {
    let redactor = redactor(&["hunter2-abcdef", "abcdef-swordfish", "swordfish"]);
    assert_eq!(redactor.text("<hunter2-abcdef-swordfish>"), "<[redacted]>");
    assert_eq!(redactor.text("<abcdef-swordfis,swordfish>"), "<abcdef-swordfis,[redacted]>");
    assert_eq!(redactor.text("swordfishswordfish"), "[redacted][redacted]");
}

/// The automaton stays small: a value has a handful of pieces by which it is found.
#[test]
fn d22_a_secret_costs_few_patterns() {
    let of = |secret: &str| {
        let mut all = sought::All::default();
        all.add(secret);
        let patterns = all.patterns();
        (patterns.len(), patterns.iter().map(|one| one.len()).sum::<usize>())
    };
    for secret in [SECRETS[0], SECRETS[2], &"a1B2".repeat(1000), &"x".repeat(40)] {
        let (count, bytes) = of(secret);
        assert!(count <= 9 && bytes <= 9 * 16, "{count} {bytes}");
    }
    let (count, bytes) = of("p@s/w\"ö d+1");
    assert!(count <= 350 && bytes <= 20_000, "{count} {bytes}");
}

proptest! {
    /// S27, D22: a redacted text has none of the spellings in it, and keeps the text around them.
    #[test]
    fn s27_no_spelling_of_a_secret_survives_redaction(
        secret in "[ -~äß\u{1d11e}]{6,24}",
        first in 0..ENCODERS.len(),
        second in 0..ENCODERS.len(),
        before in "[({\\[]{0,3}",
        bytes in 0_usize..5,
    ) {
        let redactor = redactor(&[&secret]);
        prop_assume!(!redactor.is_empty());
        let encoders: [Encoder; 2] = [ENCODERS[first], ENCODERS[second]];
        let spelling = encoders[1](&encoders[0](&secret));
        let clean = redactor.text(&format!("{before}{spelling}\u{7}")).into_owned();
        prop_assert!(!clean.contains(&spelling), "{spelling:?}: {clean:?}");
        prop_assert!(clean.contains(REDACTED) && clean.ends_with('\u{7}'), "{clean:?}");
        prop_assert!(clean.starts_with(&before), "{clean:?}");
        let hex: String = secret.bytes().map(|byte| format!("{byte:02X}")).collect();
        prop_assert_eq!(redactor.text(&hex), REDACTED);
        let encoded = STANDARD.encode(format!("{}{secret}::", ".".repeat(bytes)));
        let clean = redactor.text(&encoded).into_owned();
        let core = &cores(&secret)[bytes % 3];
        prop_assert!(core.len() < 8 || !clean.contains(core), "{encoded}: {clean}");
    }
}
