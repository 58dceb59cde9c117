//! What somebody who misspelt a name has probably meant.

/// Longer words are no misspellings, and measuring them takes time.
const WORD_MAX: usize = 80;

/// The nearest of `known` names, or `None` if none is near: one letter in four may differ, and one
/// more.
#[must_use]
pub fn nearest<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    if word.len() > WORD_MAX {
        return None;
    }
    let word = word.to_lowercase();
    let known = known.into_iter().filter(|name| name.len() <= 2 * WORD_MAX);
    let close = |name: &str| distance(&word, &name.to_lowercase());
    let (name, distance) = known.map(|name| (name, close(name))).min_by_key(|(_, d)| *d)?;
    (distance <= 1 + name.len() / 4 && distance < name.len()).then_some(name)
}

/// How many letters must be changed, added or removed.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (index, letter) in one.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = index + 1;
        for column in 0..other.len() {
            let changed = diagonal + usize::from(letter != other[column]);
            diagonal = row[column + 1];
            row[column + 1] = changed.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelt_names_find_the_one_that_was_meant() {
        let known = ["delete_user", "list_users", "echo"];
        for (word, meant) in [
            ("delete_usr", Some("delete_user")),
            ("Echo", Some("echo")),
            ("remove_everything", None),
            ("", None),
        ] {
            assert_eq!(nearest(word, known), meant, "{word}");
        }
        assert_eq!(nearest(&"x".repeat(WORD_MAX + 1), known), None);
    }
}
