//! Lists that are returned page by page.

/// Some of a list.
#[derive(Debug, Clone, PartialEq)]
pub struct Page<T> {
    /// In the order of their ids.
    pub items: Vec<T>,
    /// After which id the next page begins. `None`: there is no further one.
    pub next: Option<String>,
}

impl<T> Page<T> {
    /// The first `limit` items with ids after `after`, in the order of their ids. An empty text is
    /// before all ids.
    pub fn of(
        all: impl IntoIterator<Item = T>,
        id: impl Fn(&T) -> &str,
        after: &str,
        limit: u32,
    ) -> Self {
        let mut all = all.into_iter().filter(|one| after.is_empty() || id(one) > after);
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let items: Vec<_> = all.by_ref().take(limit).collect();
        let has_more = all.next().is_some();
        let next = items.last().filter(|_| has_more).map(|one| id(one).to_owned());
        Self { items, next }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_follow_each_other_and_end() {
        let page = |after: &str, limit| Page::of(["a", "b", "c"], |one| one, after, limit);
        assert_eq!(page("", 2), Page { items: vec!["a", "b"], next: Some("b".to_owned()) });
        assert_eq!(page("b", 2), Page { items: vec!["c"], next: None });
        assert_eq!(page("", 3).next, None);
        assert_eq!(page("c", 2), Page { items: Vec::new(), next: None });
        assert_eq!(page("aa", 1).items, ["b"]);
    }
}
