//! Events are the same however the bytes are cut, and bounded.

use proptest::prelude::*;

use super::*;

fn read_cut(stream: &[u8], cuts: &[usize]) -> Vec<SseEvent> {
    let mut parser = SseParser::new(10_000_000);
    let mut rest = Bytes::copy_from_slice(stream);
    let mut cuts = cuts.iter().cycle();
    let mut events = Vec::new();
    while !rest.is_empty() {
        let at = cuts.next().map_or(rest.len(), |cut| (*cut).min(rest.len()));
        parser.push(rest.split_to(at));
        while let Some(event) = parser.next_event().unwrap() {
            events.push(event);
        }
    }
    events
}

fn message(data: &str) -> SseEvent {
    SseEvent { data: Bytes::from(data.to_owned()), has_data: true, ..SseEvent::default() }
}

/// Streams with their events by the WHATWG rules, read as a whole and byte by byte.
#[test]
fn streams_are_parsed_by_the_whatwg_rules() {
    let id = |id: &'static str, data| SseEvent { id: Some(id.into()), ..message(data) };
    let typed = |event: &'static str, data| SseEvent { event: Some(event.into()), ..message(data) };
    let table: &[(&str, Vec<SseEvent>)] = &[
        ("data: a\n\ndata:b\n\n", vec![message("a"), message("b")]),
        ("data: a\rdata:  b\r\r", vec![message("a\n b")]),
        ("data: a\r\ndata: b\r\n\r\n", vec![message("a\nb")]),
        ("data: a\r\n\ndata: b\n\r\n", vec![message("a"), message("b")]),
        ("\u{feff}data: a\n\n", vec![message("a")]),
        ("data: a\n\n\u{feff}data: b\n\n", vec![message("a")]),
        (": hello\n\n:\n\ndata: a\n: x\n\n", vec![message("a")]),
        ("data\n\n", vec![message("")]),
        ("data\ndata\n\n", vec![message("\n")]),
        ("data:\ndata: x\n\n", vec![message("\nx")]),
        ("data: a:b\n\n", vec![message("a:b")]),
        ("dat: a\nDATA: b\nfoo\n\n", vec![]),
        ("data: unfinished\n", vec![]),
        ("id: 7\ndata:\n\n", vec![id("7", "")]),
        ("id\ndata: x\n\n", vec![id("", "x")]),
        ("id: a\0b\ndata: x\n\n", vec![message("x")]),
        ("event: endpoint\ndata: /m\n\n", vec![typed("endpoint", "/m")]),
        ("event: a\n\ndata: x\n\n", vec![message("x")]),
        ("retry: 5x\ndata: x\n\n", vec![message("x")]),
        ("retry:\nretry: -1\ndata: x\n\n", vec![message("x")]),
        ("\n\n\n", vec![]),
    ];
    for (stream, expected) in table {
        assert_eq!(&read_cut(stream.as_bytes(), &[]), expected, "{stream:?}");
        assert_eq!(&read_cut(stream.as_bytes(), &[1]), expected, "{stream:?} byte by byte");
    }
}

/// Priming events carry an id or a retry time and no data.
#[test]
fn events_without_data_are_reported() {
    let events = read_cut(b"id: 1\n\nretry: 250\n\nid: 2\nretry: 9\ndata:\n\n", &[]);
    let text = |id: &Option<Bytes>| id.as_ref().map(|id| String::from_utf8(id.to_vec()).unwrap());
    let found: Vec<_> = events.iter().map(|e| (text(&e.id), e.retry_ms, e.has_data)).collect();
    let expected = [
        (Some("1".to_owned()), None, false),
        (None, Some(250), false),
        (Some("2".to_owned()), Some(9), true),
    ];
    assert_eq!(found, expected);
}

#[test]
fn data_within_one_chunk_is_not_copied() {
    let chunk = Bytes::from_static(b"data: {}\n\n");
    let mut parser = SseParser::new(100);
    parser.push(chunk.clone());
    let event = parser.next_event().unwrap().unwrap();
    assert_eq!(event.data.as_ptr(), chunk[6..].as_ptr());
}

#[test]
fn s31_overlong_events_are_refused_during_reading() {
    let error = Err(SseError::TooLong { limit: 20 });
    let endless: [&'static [u8]; 4] = [
        b"data: 1234567890123456",
        b": comment without an end",
        b"data: 1\ndata: 2\nid: 3456789",
        b"x: 12345678901234567890\n\n",
    ];
    for stream in endless {
        let mut parser = SseParser::new(20);
        parser.push(Bytes::from_static(stream));
        assert_eq!(parser.next_event(), error, "{stream:?}");
        parser.push(Bytes::from_static(b"\n\ndata: x\n\n"));
        assert_eq!(parser.next_event(), error);
    }
    let mut parser = SseParser::new(20);
    parser.push(Bytes::from_static(b": 1234567\n: 1234567\n: 1234567\n: 1234567\ndata: x\n\n"));
    assert_eq!(parser.next_event(), Ok(Some(message("x"))));
}

#[test]
fn large_events_are_shared_when_written_and_read_in_linear_time() {
    let large = Bytes::from(vec![b'x'; 5_000_000]);
    let written = sse_event(Some("1"), None, &large.clone().into());
    assert!(written.pieces().any(|piece| piece.as_ptr() == large.as_ptr()));
    let events = read_cut(&written.into_bytes(), &[65_536]);
    assert_eq!((events.len(), &events[0].data), (1, &large));
}

#[test]
fn raw_line_ends_in_json_become_spaces() {
    let written = sse_event(None, None, &Bytes::from_static(b"{\n\"a\":\r\n1}").into());
    assert_eq!(written.into_bytes(), "data: { \"a\":  1}\n\n");
    let priming = sse_event(Some("a\nb\0"), Some(3), &Payload::default());
    assert_eq!(priming.into_bytes(), "id: ab\nretry: 3\ndata:\n\n");
}

fn any_event() -> impl Strategy<Value = SseEvent> {
    let id = prop::option::of("[ -~é:]{0,8}".prop_map(Bytes::from));
    let retry = prop::option::of(any::<u64>());
    (id, retry, "[^\r\n]{0,40}").prop_map(|(id, retry_ms, data)| SseEvent {
        event: None,
        id,
        retry_ms,
        data: data.into(),
        has_data: true,
    })
}

proptest! {
    #[test]
    fn written_events_parse_back_however_they_are_cut(
        events in prop::collection::vec(any_event(), 0..6),
        cuts in prop::collection::vec(1usize..12, 1..30),
    ) {
        let (mut stream, mut joined) = (Vec::new(), BytesMut::new());
        for e in &events {
            let data = e.data.clone().into();
            let id = e.id.as_deref().map(|id| std::str::from_utf8(id).unwrap());
            stream.extend(sse_event(id, e.retry_ms, &data).into_bytes());
            stream.extend(b":\n\n");
            write_sse_event(&mut joined, id, e.retry_ms, &data);
            joined.extend_from_slice(b":\n\n");
        }
        prop_assert_eq!(&stream, &joined);
        prop_assert_eq!(read_cut(&stream, &cuts), events);
    }

    #[test]
    fn any_stream_reads_the_same_however_it_is_cut(
        stream in "[adeit:\r\n \u{feff}]{0,60}|(data|id|retry|event|:|: x|\r|\n|\r\n){0,30}",
        cuts in prop::collection::vec(1usize..7, 1..20),
    ) {
        prop_assert_eq!(read_cut(stream.as_bytes(), &cuts), read_cut(stream.as_bytes(), &[]));
    }
}
