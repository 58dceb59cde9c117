//! Places inside a definition, as JSON pointers (RFC 6901).

use crate::harmless;

/// Largest number of reported characters of a pointer.
const POINTER_MAX: usize = 300;

/// A place with a reference to its outer place; its text is built only when it is reported.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    outer: Option<&'a Place<'a>>,
    step: Step<'a>,
}

#[derive(Clone, Copy)]
enum Step<'a> {
    Whole,
    Key(&'a str),
    Index(usize),
}

impl<'a> Place<'a> {
    /// The definition as a whole, whose pointer is empty.
    pub(crate) const WHOLE: Place<'static> = Place { outer: None, step: Step::Whole };

    pub(crate) fn key(&'a self, key: &'a str) -> Self {
        Self { outer: Some(self), step: Step::Key(key) }
    }

    pub(crate) fn index(&'a self, index: usize) -> Self {
        Self { outer: Some(self), step: Step::Index(index) }
    }

    /// True if this is `/icons/N/src`, at any number.
    pub(crate) fn is_source_of_icon(&self) -> bool {
        let outer = |place: &Self| place.outer.copied();
        let is = |place: Option<Place<'_>>, name: &str| {
            place.is_some_and(|place| matches!(place.step, Step::Key(key) if key == name))
        };
        let list = outer(self).and_then(|icon| icon.outer.copied());
        is(Some(*self), "src")
            && is(list, "icons")
            && list.and_then(|list| list.outer).is_some_and(|root| root.outer.is_none())
    }

    /// The pointer, made harmless and cut: keys are the server's text.
    pub(crate) fn pointer(&self) -> String {
        let mut steps = Vec::new();
        let mut next = Some(self);
        while let Some(place) = next {
            match place.step {
                Step::Whole => {}
                Step::Key(key) => {
                    let cut = key.chars().take(POINTER_MAX).collect::<String>();
                    steps.push(cut.replace('~', "~0").replace('/', "~1"));
                }
                Step::Index(index) => steps.push(index.to_string()),
            }
            next = place.outer;
        }
        let pointer = steps.iter().rev().map(|step| format!("/{step}")).collect::<String>();
        harmless(&pointer, POINTER_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_pointers_follow_the_rfc_and_show_no_hidden_characters() {
        let properties = Place::WHOLE.key("inputSchema");
        let key = properties.key("a/b~c\u{200b}");
        let index = key.index(3);
        assert_eq!(Place::WHOLE.pointer(), "");
        assert_eq!(index.pointer(), "/inputSchema/a~1b~0c\\u{200b}/3");
        let long = "k".repeat(1000);
        assert!(Place::WHOLE.key(&long).pointer().chars().count() <= POINTER_MAX + 1);
    }

    #[test]
    fn sources_of_icons_are_recognized_by_their_place() {
        let icons = Place::WHOLE.key("icons");
        let icon = icons.index(0);
        assert!(icon.key("src").is_source_of_icon());
        assert!(!icon.key("sizes").is_source_of_icon());
        assert!(!icons.key("src").is_source_of_icon());
        let meta = Place::WHOLE.key("_meta");
        let (inner, deep);
        inner = meta.key("icons");
        deep = inner.index(0);
        assert!(!deep.key("src").is_source_of_icon());
    }
}
