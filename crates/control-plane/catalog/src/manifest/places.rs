//! Maps places in the result to places in the text that a person wrote.

/// Places in the result, each with the written place.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Places(Vec<Named>);

#[derive(Debug, Clone, PartialEq)]
struct Named {
    made: String,
    written: String,
    /// True if all parts below have the same places.
    is_whole: bool,
}

impl Places {
    /// Maps all parts below `made` to the same parts below `written`.
    pub(super) fn add(&mut self, made: impl Into<String>, written: String) {
        self.0.push(Named { made: made.into(), written, is_whole: false });
    }

    /// Maps all parts below `made` to `written` itself: they were not written one by one.
    pub(super) fn add_whole(&mut self, made: impl Into<String>, written: String) {
        self.0.push(Named { made: made.into(), written, is_whole: true });
    }

    /// Takes over those of a part, below each of the places where it has come to.
    pub(super) fn add_part(&mut self, above: &[String], part: &Self) {
        for above in above {
            self.0.extend(
                part.0
                    .iter()
                    .map(|one| Named { made: format!("{above}.{}", one.made), ..one.clone() }),
            );
        }
    }

    /// These places in a larger text, where this text is at `at`.
    pub(super) fn below(&self, at: &str) -> Self {
        let below = |one: &Named| Named { written: format!("{at}.{}", one.written), ..one.clone() };
        Self(self.0.iter().map(below).collect())
    }

    /// The place as it was written; `None` if it is called the same in both.
    pub(super) fn written(&self, made: &str) -> Option<String> {
        let below = |one: &Named| -> Option<String> {
            let rest = made.strip_prefix(&one.made)?;
            match (rest.starts_with(['.', '[']) || rest.is_empty(), one.is_whole) {
                (false, _) => None,
                (true, true) => Some(one.written.clone()),
                (true, false) => Some(format!("{}{rest}", one.written)),
            }
        };
        let fitting = self.0.iter().filter_map(|one| Some((one.made.len(), below(one)?)));
        // The nearest place counts; of equal ones the first.
        let nearest = fitting.reduce(|one, other| if other.0 > one.0 { other } else { one });
        nearest.map(|(_, written)| written)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_known_place_is_used() {
        let mut places = Places::default();
        places.add("servers.a-b", "mcp.servers.b".to_owned());
        let mut part = Places::default();
        part.add("timeoutMs", "mcp.servers.b.timeout".to_owned());
        part.add_whole("auth", "mcp.servers.b.headers".to_owned());
        places.add_part(&["servers.a-b".to_owned()], &part);
        for (made, written) in [
            ("servers.a-b", Some("mcp.servers.b")),
            ("servers.a-b.url", Some("mcp.servers.b.url")),
            ("servers.a-b[0]", Some("mcp.servers.b[0]")),
            ("servers.a-b.timeoutMs", Some("mcp.servers.b.timeout")),
            ("servers.a-b.auth.key", Some("mcp.servers.b.headers")),
            ("servers.a-bc.url", None),
            ("name", None),
        ] {
            assert_eq!(places.written(made).as_deref(), written, "{made}");
        }
    }
}
