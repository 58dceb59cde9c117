//! What somebody who misspelt a name has probably meant.

/// How alike a name must be to be proposed.
const ALIKE: f64 = 0.75;

/// The known name that is most like a misspelt one.
#[must_use]
pub fn nearest<'k>(word: &str, known: impl Iterator<Item = &'k str>) -> Option<&'k str> {
    near(word, known).into_iter().next()
}

/// The known names that are like a misspelt one, best first.
#[must_use]
pub fn near<'k>(word: &str, known: impl Iterator<Item = &'k str>) -> Vec<&'k str> {
    let word = word.to_lowercase();
    let likeness = |name: &str| {
        let name = name.to_lowercase();
        // A part of a name is what people remember.
        let is_part = word.len() >= 3 && (name.contains(&word) || word.contains(&name));
        if is_part {
            1.0
        } else {
            strsim::normalized_damerau_levenshtein(&word, &name)
                .max(strsim::jaro_winkler(&word, &name) - 0.1)
        }
    };
    let mut rated: Vec<_> = known.map(|name| (likeness(name), name)).collect();
    rated.retain(|(rate, _)| *rate >= ALIKE);
    rated.sort_by(|one, other| other.0.total_cmp(&one.0));
    rated.into_iter().map(|(_, name)| name).take(5).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_found() {
        let known = ["echo", "get-sum", "get-env", "print"];
        assert_eq!(near("ecco", known.into_iter()), ["echo"]);
        assert_eq!(near("sum", known.into_iter()), ["get-sum"]);
        assert!(near("zzz", known.into_iter()).is_empty());
    }
}
