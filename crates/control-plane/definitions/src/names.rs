//! Names that people and models can mistake for others.

use std::collections::{HashMap, HashSet};

use unicode_normalization::UnicodeNormalization;
use unicode_security::confusable_detection::skeleton;

/// First part of names of tools where all servers' tools are in one list.
const QUALIFIED: &str = "mcp";

/// Number of compared characters of a name: clients shorten longer names.
pub const NAME_MAX: usize = 64;

/// Largest number of stored names of one server that look alike: a server with more has enough.
const ALIKE_MAX: usize = 4;

/// Names of many servers, to find those that resemble a given one.
#[derive(Debug, Default)]
pub struct Names {
    names: Vec<(String, String)>,
    by_skeleton: HashMap<String, Vec<usize>>,
    /// The names of each server, letter for letter.
    exactly: HashMap<String, HashSet<String>>,
    /// The servers by the skeletons of their names.
    servers: HashMap<String, Vec<String>>,
    /// Number of characters of the longest skeleton of a server's name.
    server_max: usize,
}

/// The resemblance of a name to that of another server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Resemblance {
    /// The same name, letter for letter. Two servers of one kind may have equal names, as calls go
    /// by server.
    Same,
    /// The same letters in other cases or with other separators: `readFile` and `read_file`.
    Spelling,
    /// The same first [`NAME_MAX`] characters.
    Cut,
    /// The other server's name, followed by the rest of a tool's name.
    Prefixed,
    /// A name that looks the same, with other letters.
    Confusable,
}

/// The name of another server that resembles a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LookAlike {
    /// The kind of resemblance.
    pub resemblance: Resemblance,
    /// The other server.
    pub server: String,
    /// The other server's name for the item.
    pub name: String,
}

impl Names {
    /// The names of all servers, as pairs of server and name, with those of the built-in server.
    #[must_use]
    pub fn new<'a>(names: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut all = Self::default();
        for (server, name) in names {
            for skeleton in skeletons(name) {
                let known = all.by_skeleton.entry(skeleton).or_default();
                let of_server = known.iter().filter(|index| all.names[**index].0 == server);
                if of_server.count() < ALIKE_MAX {
                    known.push(all.names.len());
                }
            }
            for skeleton in skeletons(server) {
                all.server_max = all.server_max.max(skeleton.chars().count());
                let known = all.servers.entry(skeleton).or_default();
                if !known.iter().any(|known| known == server) {
                    known.push(server.to_owned());
                }
            }
            all.exactly.entry(server.to_owned()).or_default().insert(name.to_owned());
            all.names.push((server.to_owned(), name.to_owned()));
        }
        all
    }

    /// The most similar name of another server, if there is one. A name in plain letters never
    /// resembles one in letters that imitate them.
    #[must_use]
    pub fn look_alike(&self, server: &str, name: &str) -> Option<LookAlike> {
        let mut best = None;
        for skeleton in skeletons(name) {
            for index in self.by_skeleton.get(&skeleton).into_iter().flatten() {
                let (other, known) = &self.names[*index];
                let resemblance = resemblance(name, known);
                // A name in disguise is taken for the plain one, and not the other way round.
                let is_meant = matches!(resemblance, Resemblance::Confusable | Resemblance::Cut)
                    && is_in_disguise(known)
                    && !is_in_disguise(name);
                // A server that also has the other's very name, or whose name the other has, gains
                // nothing by the end that clients drop.
                let is_shared = resemblance == Resemblance::Cut
                    && (self.has(server, known) || self.has(other, name));
                if other != server && !is_meant && !is_shared {
                    keep(&mut best, resemblance, other, known);
                }
            }
            self.look_behind_prefix(server, &skeleton, &mut best);
            // A prefix is possible where all servers' names are in one list.
            for mark in skeletons(QUALIFIED) {
                if let Some(rest) = skeleton.strip_prefix(&mark) {
                    self.look_behind_prefix(server, rest, &mut best);
                }
            }
        }
        best
    }

    fn has(&self, server: &str, name: &str) -> bool {
        self.exactly.get(server).is_some_and(|names| names.contains(name))
    }

    /// Finds a name that is another server's name followed by a name of that server.
    fn look_behind_prefix(&self, server: &str, skeleton: &str, best: &mut Option<LookAlike>) {
        for (end, _) in skeleton.char_indices().skip(1).take(self.server_max) {
            let (prefix, rest) = skeleton.split_at(end);
            let Some(others) = self.servers.get(prefix) else { continue };
            let behind = self.by_skeleton.get(rest).into_iter().flatten();
            let behind = behind.map(|index| &self.names[*index]);
            let is_meant = |owner: &String| owner != server && others.contains(owner);
            for (owner, known) in behind.filter(|(owner, _)| is_meant(owner)) {
                keep(best, Resemblance::Prefixed, owner, known);
            }
        }
    }
}

fn keep(best: &mut Option<LookAlike>, resemblance: Resemblance, server: &str, name: &str) {
    if best.as_ref().is_none_or(|best| best.resemblance < resemblance) {
        *best = Some(LookAlike { resemblance, server: server.to_owned(), name: name.to_owned() });
    }
}

/// The resemblance of two names that share a skeleton.
fn resemblance(one: &str, other: &str) -> Resemblance {
    let plain = |name: &str| {
        let letters = name.chars().filter(|c| !is_separator(*c)).flat_map(char::to_lowercase);
        letters.collect::<String>()
    };
    // A name cut by clients is compared with names that are that long already.
    let length = |name: &str| name.nfkc().take(NAME_MAX + 1).count();
    let (one_length, other_length) = (length(one), length(other));
    let is_cut =
        one_length.min(other_length) >= NAME_MAX && one_length.max(other_length) > NAME_MAX;
    let beginning = |name: &str| plain(&name.chars().take(NAME_MAX).collect::<String>());
    if one == other {
        Resemblance::Same
    } else if plain(one) == plain(other) {
        Resemblance::Spelling
    } else if is_cut {
        Resemblance::Cut
    } else if beginning(one) == beginning(other) {
        // Separators alone come between a short name and where the other one is cut.
        Resemblance::Spelling
    } else {
        Resemblance::Confusable
    }
}

/// The forms in which names that look alike are equal: as they are written, and in small letters.
///
/// Both are needed: `Iist` looks like `list` only while its first letter is a capital, and `LIST`
/// is like it only in small letters.
fn skeletons(name: &str) -> impl Iterator<Item = String> {
    let cut = name.nfkc().take(NAME_MAX).collect::<String>();
    let written = form(&cut);
    let small = form(&cut.to_lowercase());
    let is_one = written == small;
    [Some(written), (!is_one).then_some(small)]
        .into_iter()
        .flatten()
        .filter(|form| !form.is_empty())
}

fn form(name: &str) -> String {
    skeleton(name).flat_map(char::to_lowercase).filter(|c| !is_separator(*c)).collect()
}

fn is_separator(c: char) -> bool {
    matches!(c, '_' | '-' | '.' | '/' | ':' | ' ')
}

/// True if a name has letters that look like plain ones: some among plain ones, or only such
/// letters. A single letter, such as `ρ`, is no disguise.
pub(crate) fn is_in_disguise(name: &str) -> bool {
    if name.is_ascii() {
        return false;
    }
    let letters = || name.chars().take(NAME_MAX).filter(|c| c.is_alphabetic());
    let mut foreign = letters().filter(|c| !c.is_ascii());
    let is_disguised = |c: char| {
        // Letters of Turkish, French and Danish.
        let is_usual = matches!(c, 'ı' | 'œ' | 'æ' | 'Œ' | 'Æ');
        let form = form(c.encode_utf8(&mut [0; 4]));
        !is_usual && !form.is_empty() && form.bytes().all(|byte| byte.is_ascii_alphabetic())
    };
    match letters().any(|c| c.is_ascii()) {
        true => foreign.any(is_disguised),
        false => letters().nth(1).is_some() && foreign.all(is_disguised),
    }
}

/// A name with every letter that is not plain written as `\u{…}`.
pub(crate) fn spelled(name: &str) -> String {
    let mut text = String::new();
    for c in name.chars().take(crate::EXCERPT_MAX) {
        if c.is_ascii() { text.push(c) } else { text.extend(c.escape_unicode()) }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s24_names_that_look_alike_are_found() {
        use Resemblance::{Confusable, Cut, Prefixed, Same, Spelling};
        let long = format!("{}_read", "x".repeat(NAME_MAX));
        let names = [
            ("github", "create_issue"),
            ("files", "list_files"),
            ("files", "read_form"),
            ("files", &long),
            ("narthex", "request_grant"),
        ];
        let names = Names::new(names);
        let table = [
            ("list_files", Some(Same)),
            ("listFiles", Some(Spelling)),
            ("mcp__github__create_issue", Some(Prefixed)),
            ("mcp__fіles__list_files", Some(Prefixed)),
            ("mcp_list_files", None),
            ("LIST-FILES", Some(Spelling)),
            ("list__files", Some(Spelling)),
            ("lіst_fіles", Some(Confusable)),
            ("Iist_files", Some(Confusable)),
            ("1ist_fi1es", Some(Confusable)),
            ("ｌｉｓｔ_files", Some(Confusable)),
            ("list\u{200b}_files", Some(Confusable)),
            ("read_forrn", Some(Confusable)),
            ("request_grаnt", Some(Confusable)),
            (&format!("{}_write", "x".repeat(NAME_MAX)), Some(Cut)),
            (&format!("list_files{}x", "_".repeat(55)), Some(Spelling)),
            (&format!("lіst_files{}x", "_".repeat(55)), Some(Confusable)),
            (&"x".repeat(NAME_MAX), Some(Cut)),
            ("github_create_issue", Some(Prefixed)),
            ("github__create_issue", Some(Prefixed)),
            ("GitHub.createIssue", Some(Prefixed)),
            ("gіthub/create_issue", Some(Prefixed)),
            ("github_close_issue", None),
            ("files_create_issue", None),
            ("list_file", None),
            ("_", None),
            ("", None),
        ];
        for (name, resemblance) in table {
            let found = names.look_alike("evil", name);
            assert_eq!(found.map(|found| found.resemblance), resemblance, "{name:?}");
        }
        let found = names.look_alike("evil", "request_grаnt").unwrap();
        assert_eq!((found.server.as_str(), found.name.as_str()), ("narthex", "request_grant"));
    }

    #[test]
    fn s24_names_of_one_server_do_not_resemble_each_other() {
        let names = Names::new([("files", "read_file"), ("files", "readFile"), ("b", "other")]);
        assert_eq!(names.look_alike("files", "read-file"), None);
        assert_eq!(names.look_alike("files", "files_read_file"), None);
    }

    /// S24: two long names of one server that differ at the end are its own, also where another
    /// server has one of them, or both.
    #[test]
    fn s24_long_names_of_one_server_do_not_resemble_each_other() {
        let [one, two, three] = ["a", "b", "c"].map(|end| format!("{}{end}", "x".repeat(139)));
        let own = [("files", &*one), ("files", &*two)];
        let like = |names: &[(&str, &str)], server: &str, name: &str| {
            let found = Names::new(names.iter().copied()).look_alike(server, name);
            found.map(|found| found.resemblance).filter(|found| *found != Resemblance::Same)
        };
        for name in [&one, &two] {
            assert_eq!(like(&own, "files", name), None);
            let both = [own[0], own[1], ("copy", &*one), ("copy", &*two)];
            assert_eq!(like(&both, "copy", name), None);
            let single = [own[0], own[1], ("other", &*one)];
            assert_eq!(like(&single, "files", name), None);
            assert_eq!(like(&single, "other", name), None);
        }
        // A third end is still that of a name that is meant to be taken for the other.
        assert_eq!(like(&own, "evil", &three), Some(Resemblance::Cut));
    }

    /// S24: a server that lists a name in disguise takes no other server's own name away with it,
    /// and hides no other resemblance behind it.
    #[test]
    fn s24_a_plain_name_is_not_reported_for_its_disguised_copy() {
        let disguised = [("evil", "list_fіles"), ("evil", "ѕend"), ("mail", "sеnd")];
        let names = Names::new(disguised);
        assert_eq!(names.look_alike("files", "list_files"), None);
        assert_eq!(names.look_alike("files", "send"), None);
        let found = names.look_alike("evil", "ѕend").unwrap();
        assert_eq!((found.server.as_str(), found.resemblance), ("mail", Resemblance::Confusable));
        // Length is no exception: clients cut the long name to another one.
        let long = format!("x{}", "y".repeat(NAME_MAX));
        for (own, rival) in [
            ("list_files", format!("lіst_files{}x", "_".repeat(55))),
            ("list_files", format!("list_files{}x", "_".repeat(55))),
            (&*long, format!("х{}z", "y".repeat(NAME_MAX))),
        ] {
            let found = Names::new([("evil", &*rival)]).look_alike("files", own);
            let is_held = found.is_some_and(|found| found.resemblance > Resemblance::Spelling);
            assert!(!is_held, "{own} for {rival}");
        }
        let found = Names::new([("files", &*long)]).look_alike("evil", &format!("{long}z"));
        assert_eq!(found.unwrap().resemblance, Resemblance::Cut);
        let plain = [("evil", "lіst_files"), ("files", "1ist_files")];
        let found = Names::new(plain).look_alike("other", "list_files").unwrap();
        assert_eq!((found.server.as_str(), found.name.as_str()), ("files", "1ist_files"));
    }

    #[test]
    fn s24_letters_of_another_alphabet_are_spelled() {
        for name in ["ѕсоре", "pаth", "pаth_größe", "ｐａｔｈ", "ρath"] {
            assert!(is_in_disguise(name), "{name}");
        }
        for name in
            ["path", "größe", "имя", "名前", "ファイル名", "δ", "ρ", "Δt", "名前_id", "kullanıcı"]
        {
            assert!(!is_in_disguise(name), "{name}");
        }
        assert_eq!(spelled("ѕcope"), "\\u{455}cope");
    }
}
