//! The data of server-sent events.

/// The data of each event of a whole stream, comments and empty events left out.
pub(super) fn data(stream: &str) -> Vec<String> {
    let mut events = Vec::new();
    let mut data: Option<String> = None;
    for line in stream.lines() {
        if line.is_empty() {
            events.extend(data.take().filter(|data| !data.is_empty()));
        } else if let Some(piece) = line.strip_prefix("data:") {
            let piece = piece.strip_prefix(' ').unwrap_or(piece);
            match &mut data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(piece);
                }
                None => data = Some(piece.to_owned()),
            }
        }
    }
    events
}

#[cfg(test)]
mod tests {
    use super::data;

    #[test]
    fn only_finished_events_with_data_count() {
        let stream =
            ": hello\n\nid: 1\ndata: \n\nevent: message\ndata: {\ndata:}\n\ndata: unfinished";
        assert_eq!(data(stream), ["{\n}"]);
        assert!(data("").is_empty());
    }
}
