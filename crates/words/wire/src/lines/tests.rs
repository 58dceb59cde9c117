//! Lines are the same however the bytes are cut, and bounded.

use proptest::prelude::*;

use super::*;

fn lines(parser: &mut LineParser, text: &'static [u8]) -> Vec<Result<Bytes, LineError>> {
    parser.push(Bytes::from_static(text));
    std::iter::from_fn(|| parser.next_line().transpose()).collect()
}

#[test]
fn lines_end_with_lf_or_crlf_and_blank_lines_are_skipped() {
    let mut parser = LineParser::new(100);
    assert_eq!(lines(&mut parser, b"a\r\n\n\r\nbc"), [Ok(Bytes::from_static(b"a"))]);
    assert_eq!(lines(&mut parser, b"d\r"), []);
    assert_eq!(lines(&mut parser, b"\ne\rf\n"), ["bcd", "e\rf"].map(|l| Ok(Bytes::from(l))));
}

#[test]
fn a_line_within_one_chunk_is_not_copied() {
    let chunk = Bytes::from_static(b"{\"a\":1}\n");
    let mut parser = LineParser::new(100);
    parser.push(chunk.clone());
    let line = parser.next_line().unwrap().unwrap();
    assert_eq!(line.as_ptr(), chunk.as_ptr());
}

#[test]
fn s31_an_overlong_line_is_refused_early_once_and_skipped() {
    let too_long = || Err(LineError::TooLong { limit: 3 });
    let mut parser = LineParser::new(3);
    assert_eq!(lines(&mut parser, b"abcde"), [too_long()]);
    assert_eq!(lines(&mut parser, b"fgh"), []);
    assert_eq!(lines(&mut parser, b"i\nok\n"), [Ok(Bytes::from_static(b"ok"))]);
    assert_eq!(lines(&mut parser, b"abc\r\n"), [Ok(Bytes::from_static(b"abc"))]);
    assert_eq!(lines(&mut parser, b"abcd\nx\n"), [too_long(), Ok(Bytes::from_static(b"x"))]);
    assert_eq!(lines(&mut parser, b"ab"), []);
    assert_eq!(lines(&mut parser, b"cde\ny\n"), [too_long(), Ok(Bytes::from_static(b"y"))]);
}

#[test]
fn frames_turn_raw_line_ends_into_spaces_and_share_the_rest() {
    let framed = line_frames(&[Bytes::from_static(b"{\r\n\"a\":\n1}").into()]);
    assert_eq!(framed.into_bytes(), "{  \"a\": 1}\n");
    let large = Bytes::from(vec![b'x'; 100_000]);
    let framed = line_frames(&[large.clone().into()]);
    assert_eq!(framed.pieces().next().unwrap().as_ptr(), large.as_ptr());
    assert_eq!(framed.len(), large.len() + 1);
}

proptest! {
    #[test]
    fn framed_lines_parse_back_however_they_are_cut(
        texts in prop::collection::vec("[a-z{}\" \r\n]{0,40}", 0..8),
        cuts in prop::collection::vec(1usize..9, 1..30),
    ) {
        let messages: Vec<Payload> =
            texts.iter().map(|text| Bytes::from(text.clone()).into()).collect();
        let mut parser = LineParser::new(100);
        let mut found = Vec::new();
        let mut rest = line_frames(&messages).into_bytes();
        let mut cuts = cuts.into_iter().cycle();
        while !rest.is_empty() {
            let at = cuts.next().unwrap().min(rest.len());
            parser.push(rest.split_to(at));
            while let Some(line) = parser.next_line().unwrap() {
                found.push(String::from_utf8(line.to_vec()).unwrap());
            }
        }
        let expected: Vec<_> =
            texts.iter().map(|t| t.replace(['\r', '\n'], " ")).filter(|t| !t.is_empty()).collect();
        prop_assert_eq!(found, expected);
    }
}
