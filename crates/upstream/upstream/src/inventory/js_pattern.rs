//! Recognizes regular expressions of JavaScript.
//!
//! Clients in JavaScript compile the patterns of schemas with the flag `u`. With this flag,
//! JavaScript refuses much that other engines accept: `\-`, `\Z`, `(?P<name>…)`, a `{` that is no
//! quantifier.

use narthex_model::written::is_digits;

/// Characters that a backslash may escape.
const ITSELF: &str = "^$\\.*+?()[]{}|/";
/// Classes of characters.
const CLASSES: &str = "dDwWsS";
/// Letters that are an escape for a control character.
const LETTERS: &str = "fnrtv";

/// True if JavaScript compiles a pattern with the flag `u`. Takes time in proportion to the
/// pattern's length.
pub(super) fn is_js_pattern(pattern: &str) -> bool {
    let mut reader = Reader { left: pattern, ..Reader::default() };
    reader.pattern().is_some()
}

#[derive(Debug, Default)]
struct Reader<'p> {
    left: &'p str,
    /// The open groups; true if a quantifier may follow the group.
    open: Vec<bool>,
    /// Number of capturing groups.
    groups: u32,
    names: Vec<&'p str>,
    /// The greatest number that refers to a group, and all names that refer to groups.
    referred: u32,
    referred_names: Vec<&'p str>,
}

/// A member of a class in brackets.
enum Member {
    One(char),
    Set,
}

impl<'p> Reader<'p> {
    fn next(&mut self) -> Option<char> {
        let mut chars = self.left.chars();
        let next = chars.next()?;
        self.left = chars.as_str();
        Some(next)
    }

    /// Consumes `text` if it comes next; returns `true` in this case.
    fn takes(&mut self, text: &str) -> bool {
        let left = self.left.strip_prefix(text);
        self.left = left.unwrap_or(self.left);
        left.is_some()
    }

    /// Consumes and returns the text before `sign`, and consumes the sign; `None` if no such sign
    /// follows.
    fn until(&mut self, sign: char) -> Option<&'p str> {
        let (taken, left) = self.left.split_once(sign)?;
        self.left = left;
        Some(taken)
    }

    /// Reads the whole pattern; `None` if it is not valid.
    fn pattern(&mut self) -> Option<()> {
        // True if a quantifier may follow.
        let mut is_atom = false;
        while let Some(next) = self.next() {
            is_atom = match next {
                '\\' => self.escape()?,
                '[' => self.class()?,
                '(' => self.opened()?,
                ')' => self.open.pop()?,
                '|' | '^' | '$' => false,
                '*' | '+' | '?' if is_atom => self.quantified(),
                '{' if is_atom => {
                    self.count()?;
                    self.quantified()
                }
                '*' | '+' | '?' | '{' | '}' | ']' => return None,
                _ => true,
            };
        }
        let is_known = |name: &&str| self.names.contains(name);
        let is_whole = self.open.is_empty() && self.referred <= self.groups;
        (is_whole && self.referred_names.iter().all(is_known)).then_some(())
    }

    /// Reads the `?` of a lazy quantifier. Returns `false`, because no quantifier may follow a
    /// quantifier.
    fn quantified(&mut self) -> bool {
        self.takes("?");
        false
    }

    /// Reads a quantifier after its `{`; `None` if it is not valid.
    fn count(&mut self) -> Option<()> {
        let count = self.until('}')?;
        let number = |text: &str| {
            // A number that is too long for 64 bits counts as no bound.
            is_digits(text).then(|| text.parse::<u64>().unwrap_or(u64::MAX))
        };
        match count.split_once(',') {
            None => number(count).map(drop),
            Some((least, "")) => number(least).map(drop),
            Some((least, most)) => (number(least)? <= number(most)?).then_some(()),
        }
    }

    /// Reads the start of a group after its `(`; `None` if it is not valid. Returns `Some(false)`,
    /// because no quantifier may follow at once.
    fn opened(&mut self) -> Option<bool> {
        let mut is_atom = true;
        if !self.takes("?") {
            self.groups += 1;
        } else if ["=", "!", "<=", "<!"].into_iter().any(|sign| self.takes(sign)) {
            is_atom = false;
        } else if self.takes("<") {
            let name = self.until('>').filter(|name| is_name(name))?;
            if self.names.contains(&name) {
                return None;
            }
            self.names.push(name);
            self.groups += 1;
        } else if !self.takes(":") {
            return None;
        }
        self.open.push(is_atom);
        Some(false)
    }

    /// Reads an escape after its `\`, outside of a class; `None` if it is not valid. The result is
    /// true if a quantifier may follow.
    fn escape(&mut self) -> Option<bool> {
        let next = self.next()?;
        match next {
            'b' | 'B' => return Some(false),
            'k' => {
                let name = self.takes("<").then(|| self.until('>')).flatten();
                self.referred_names.push(name.filter(|name| is_name(name))?);
            }
            '1'..='9' => {
                let end = self.left.find(|c: char| !c.is_ascii_digit());
                let (rest, left) = self.left.split_at(end.unwrap_or(self.left.len()));
                self.left = left;
                self.referred = self.referred.max(format!("{next}{rest}").parse().ok()?);
            }
            next => {
                self.escaped(next)?;
            }
        }
        Some(true)
    }

    /// Reads an escape after its `\` and this character, inside or outside of a class; `None` if it
    /// is not valid.
    fn escaped(&mut self, next: char) -> Option<Member> {
        Some(match next {
            next if CLASSES.contains(next) => Member::Set,
            'p' | 'P' => {
                let property = self.takes("{").then(|| self.until('}')).flatten()?;
                let is_property = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '=';
                if property.is_empty() || !property.chars().all(is_property) {
                    return None;
                }
                Member::Set
            }
            next if LETTERS.contains(next) => Member::One(next),
            next if ITSELF.contains(next) => Member::One(next),
            '0' if !self.left.starts_with(|c: char| c.is_ascii_digit()) => Member::One('\0'),
            'c' => Member::One(self.next().filter(char::is_ascii_alphabetic)?),
            'x' => Member::One(self.hex(2)?),
            'u' if self.takes("{") => {
                let digits = self.until('}')?;
                Member::One(char::from_u32(u32::from_str_radix(digits, 16).ok()?)?)
            }
            'u' => Member::One(self.hex(4)?),
            _ => return None,
        })
    }

    /// Reads a character as a number of hexadecimal digits. Half of a surrogate pair gives a
    /// replacement character.
    fn hex(&mut self, count: usize) -> Option<char> {
        let (digits, left) = self.left.split_at_checked(count)?;
        self.left = left;
        let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        let number = u32::from_str_radix(digits, 16).ok().filter(|_| is_hex)?;
        Some(char::from_u32(number).unwrap_or(char::REPLACEMENT_CHARACTER))
    }

    /// Reads a class after its `[`, up to its end; `None` if it is not valid.
    fn class(&mut self) -> Option<bool> {
        self.takes("^");
        while !self.takes("]") {
            let first = self.member()?;
            if !self.left.starts_with('-') || self.left.starts_with("-]") {
                continue;
            }
            self.takes("-");
            match (first, self.member()?) {
                (Member::One(first), Member::One(last)) if first <= last => {}
                _ => return None,
            }
        }
        Some(true)
    }

    fn member(&mut self) -> Option<Member> {
        match self.next()? {
            '\\' => match self.next()? {
                'b' => Some(Member::One('\u{8}')),
                '-' => Some(Member::One('-')),
                next => self.escaped(next),
            },
            next => Some(Member::One(next)),
        }
    }
}

fn is_name(name: &str) -> bool {
    let is_start = |c: char| c.is_alphabetic() || c == '_' || c == '$';
    name.starts_with(is_start) && name.chars().all(|c| is_start(c) || c.is_numeric())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Patterns that JavaScript refuses, separated by blanks.
    const BAD: [&str; 3] = [
        r"[ ( ) ] } { a{ a{x} {1} a{,2} a{2,1} a{2}{3} a** * + ? (? (?P<n>a) (?i)a (?>a)",
        r"(?#a) (?<1>a) (?<n>a)(?<n>b) \- \Z \A \_ \@ \ [\ \1 (a)\2 \k<n> \k \00 \x4",
        r"\u{110000} \u{} \u12 \c1 \p \p{} [z-a] [\d-x] [a-\w] [[:alpha:]] (?=a)* ^* |*",
    ];

    /// E81: narthex accepts and refuses the same patterns as `new RegExp(pattern, "u")` of Node.
    #[test]
    fn e81_patterns_are_accepted_and_refused_as_in_javascript() {
        for fine in [
            "",
            "^[a-z0-9_-]+$",
            r"^[\w\-.]+@(?:[^@\s]+)\.\w{2,}$",
            r"(?<year>\d{4})-\k<year>\1",
            r"(?<=x)y(?<!z)(?=a)(?!b)",
            r"a{2}?b*?c+?d??",
            r"\u{1F600}\u0041\x41\cA\0\/",
            r"[\b\-\]\d]|\b\B",
            r"[^]",
            r"[]",
            r"\p{L}[\p{Script=Greek}]",
            "ä{0,99999999999999999999}",
            "(((a)))|",
            r"[+--]",
        ] {
            assert!(is_js_pattern(fine), "{fine}");
        }
        for bad in BAD.into_iter().flat_map(|line| line.split(' ')) {
            assert!(!is_js_pattern(bad), "{bad}");
        }
        // Long patterns use no more of the stack.
        assert!(is_js_pattern(&format!("{}a{}", "(".repeat(50_000), ")".repeat(50_000))));
    }
}
