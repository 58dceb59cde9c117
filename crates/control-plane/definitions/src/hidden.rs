//! Characters that people do not see, but models read.

use narthex_model::is_unseen;
use unicode_properties::{GeneralCategory, UnicodeEmoji, UnicodeGeneralCategory};

use crate::finding::Rule;

/// Number of blanks in a row that hide the following text.
const BLANKS_MAX: usize = 100;

/// Empty lines in a row, from which on they do.
const LINES_MAX: usize = 12;

/// Number of characters shown around an unseen one.
const AROUND: usize = 40;

/// The tags after a black flag that make the flags of England, Scotland and Wales.
const FLAGS: [&str; 3] = ["gbeng", "gbsct", "gbwls"];

/// Each kind of hidden character in the text, with its decoded content if that can be read.
pub(crate) fn hidden(text: &str) -> Vec<(Rule, String)> {
    let mut found = Vec::new();
    if let Some(at) = padding(text) {
        found.push((Rule::Padding, around(text, at)));
    }
    if text.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
        return found;
    }
    let is_from_right = text.chars().any(is_from_right);
    let (mut before, mut last) = (' ', ' ');
    let mut flag = 0;
    for (at, c) in text.char_indices() {
        if c == '\u{1f3f4}' {
            flag = flag_tags(&text[at + c.len_utf8()..]);
        } else if flag > 0 && tag(c).is_some() {
            flag -= 1;
        } else if let Some(rule) = rule_of(c) {
            let next = text[at + c.len_utf8()..].chars().next();
            let is_ordinary = match rule {
                Rule::ZeroWidth => joins(before, last, c, next),
                Rule::VariationSelectors => selects(last, c),
                Rule::BidiControls => is_from_right && is_mark_of_direction(c),
                _ => false,
            };
            if !is_ordinary && !found.iter().any(|(known, _)| *known == rule) {
                let read = read(rule, text);
                found.push((rule, read.unwrap_or_else(|| around(text, at))));
            }
        }
        (before, last) = (last, c);
    }
    found
}

fn rule_of(c: char) -> Option<Rule> {
    let rule = match c {
        '\t' | '\n' | '\r' | ' '..='~' => return None,
        '\u{e0000}'..='\u{e007f}' => Rule::HiddenTags,
        '\u{200e}'..='\u{200f}' | '\u{202a}'..='\u{202e}' => Rule::BidiControls,
        '\u{2066}'..='\u{2069}' | '\u{61c}' => Rule::BidiControls,
        '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}' => Rule::VariationSelectors,
        '\u{180b}'..='\u{180d}' | '\u{180f}' => Rule::VariationSelectors,
        '\u{2028}' | '\u{2029}' => Rule::ControlCharacters,
        // Blanks that have a width.
        '\u{2800}' => return None,
        _ if c.is_control() => Rule::ControlCharacters,
        _ if c.general_category() == GeneralCategory::PrivateUse => Rule::PrivateUse,
        _ if c.is_whitespace() || !is_unseen(c) => return None,
        _ => Rule::ZeroWidth,
    };
    Some(rule)
}

/// True if a joiner joins letters of its script or parts of an emoji.
fn joins(before: char, last: char, c: char, next: Option<char>) -> bool {
    let is_emoji = |c: char| !c.is_ascii() && c.is_emoji_char_or_emoji_component();
    let is_letter = |c: char| {
        matches!(c, '\u{600}'..='\u{109f}' | '\u{1780}'..='\u{18af}' | '\u{fb50}'..='\u{fdff}'
            | '\u{fe70}'..='\u{fefc}')
    };
    match c {
        '\u{200c}' => is_letter(last) && next.is_some_and(is_letter),
        '\u{200d}' if is_letter(last) => next.is_none_or(|next| is_letter(next) || next == ' '),
        '\u{200d}' => {
            let joined = if last == '\u{fe0f}' { before } else { last };
            is_emoji(joined) && joined != c && next.is_some_and(is_emoji)
        }
        _ => false,
    }
}

/// True if a variation selector has a meaning after this character.
fn selects(last: char, c: char) -> bool {
    let is_drawn = !last.is_ascii() && !is_unseen(last);
    match c {
        '\u{fe0e}' | '\u{fe0f}' => last.is_emoji_char(),
        '\u{180b}'..='\u{180f}' => matches!(last, '\u{1820}'..='\u{18aa}'),
        '\u{fe00}'..='\u{fe0d}' => is_drawn && !last.is_emoji_char(),
        _ => matches!(last, '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}'
            | '\u{20000}'..='\u{3ffff}'),
    }
}

fn is_mark_of_direction(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{61c}')
}

/// True if a letter is of a script that is written from right to left.
fn is_from_right(c: char) -> bool {
    matches!(c, '\u{590}'..='\u{61b}' | '\u{61d}'..='\u{8ff}' | '\u{fb1d}'..='\u{fdff}'
        | '\u{fe70}'..='\u{fefc}')
}

fn tag(c: char) -> Option<char> {
    matches!(c, '\u{e0001}'..='\u{e007f}').then(|| char::from_u32(c as u32 - 0xe0000)).flatten()
}

/// Number of tags after a black flag that make a flag that exists.
fn flag_tags(after: &str) -> usize {
    let tags = after.chars().take(6).map_while(tag).collect::<String>();
    let is_flag = FLAGS.iter().any(|flag| tags.strip_suffix('\u{7f}') == Some(flag));
    if is_flag { tags.len() } else { 0 }
}

/// Decodes the hidden characters of a kind, if the result is text.
fn read(rule: Rule, text: &str) -> Option<String> {
    let said = match rule {
        Rule::HiddenTags => text.chars().filter_map(tag).collect(),
        Rule::VariationSelectors => {
            let byte = |c: char| match c {
                '\u{fe00}'..='\u{fe0f}' => u8::try_from(c as u32 - 0xfe00).ok(),
                '\u{e0100}'..='\u{e01ef}' => u8::try_from(c as u32 - 0xe0100 + 16).ok(),
                _ => None,
            };
            String::from_utf8(text.chars().filter_map(byte).collect()).ok()?
        }
        _ => return None,
    };
    let is_text = said.chars().filter(|c| c.is_alphanumeric()).count() >= 3;
    is_text.then(|| format!("reads: {said}"))
}

/// Offset of blanks that push text out of sight, if text follows.
fn padding(text: &str) -> Option<usize> {
    let is_blank = |c: char| c.is_whitespace() || matches!(c, '\u{2800}' | '\u{3164}');
    let (mut first, mut blanks, mut lines) = (0, 0, 0);
    for (at, c) in text.char_indices() {
        if is_blank(c) {
            if blanks == 0 {
                first = at;
            }
            blanks += 1;
            lines += usize::from(c == '\n');
        } else if blanks >= BLANKS_MAX || lines > LINES_MAX {
            return Some(first);
        } else {
            (blanks, lines) = (0, 0);
        }
    }
    None
}

/// The text around a place, without long rows of blanks.
pub(crate) fn around(text: &str, at: usize) -> String {
    let start = text[..at].char_indices().rev().nth(AROUND / 2).map_or(0, |(at, _)| at);
    let mut shown = text[start..at].to_owned();
    let (mut blanks, mut count) = (0, 0);
    for c in text[at..].chars() {
        blanks = if c.is_whitespace() { blanks + 1 } else { 0 };
        match blanks {
            0..=2 => shown.push(c),
            3 => shown.push('…'),
            _ => continue,
        }
        count += 1;
        if count > 2 * AROUND {
            break;
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(text: &str) -> Vec<Rule> {
        hidden(text).into_iter().map(|(rule, _)| rule).collect()
    }

    #[test]
    fn s22_hidden_characters_are_found() {
        let tags = "ok\u{e0069}\u{e0067}\u{e006e}\u{e006f}\u{e0072}\u{e0065}";
        assert_eq!(hidden(tags), [(Rule::HiddenTags, "reads: ignore".to_owned())]);
        let selectors = "😀".chars().chain(
            "ignore".bytes().map(|byte| char::from_u32(0xe0100 + u32::from(byte) - 16).unwrap()),
        );
        let selectors = selectors.collect::<String>();
        assert_eq!(hidden(&selectors), [(Rule::VariationSelectors, "reads: ignore".to_owned())]);
        let table = [
            ("a\u{200b}b", Rule::ZeroWidth),
            ("a\u{200d}b", Rule::ZeroWidth),
            ("\u{feff}a", Rule::ZeroWidth),
            ("a\u{2062}\u{2064}", Rule::ZeroWidth),
            ("a\u{3164}b", Rule::ZeroWidth),
            ("a\u{ad}b", Rule::ZeroWidth),
            ("د\u{200c}\u{200c}ه", Rule::ZeroWidth),
            ("a\u{202e}b", Rule::BidiControls),
            ("a\u{2067}b", Rule::BidiControls),
            ("a\u{200f}b", Rule::BidiControls),
            ("a\u{fe0f}b", Rule::VariationSelectors),
            ("漢\u{e0100}\u{e0101}", Rule::VariationSelectors),
            ("🏴\u{e0068}\u{e0069}\u{e007f}", Rule::HiddenTags),
            ("a\u{1b}[8mb", Rule::ControlCharacters),
            ("a\u{7f}", Rule::ControlCharacters),
            ("a\u{85}b\u{2028}c", Rule::ControlCharacters),
            ("a\u{e000}", Rule::PrivateUse),
            ("a\u{100000}", Rule::PrivateUse),
        ];
        for (text, rule) in table {
            assert_eq!(rules(text), [rule], "{text:?}");
        }
    }

    #[test]
    fn s22_padding_before_text_is_found() {
        for blank in [" ", "\u{a0}", "\u{2003}", "\u{2800}", " \n"] {
            let text = format!("a{}b", blank.repeat(BLANKS_MAX));
            assert_eq!(rules(&text), [Rule::Padding], "{blank:?}");
        }
        assert_eq!(rules(&format!("a{}b", "\n".repeat(LINES_MAX + 1))), [Rule::Padding]);
        assert!(hidden(&format!("a{}", "\n".repeat(1000))).is_empty());
        assert_eq!(hidden(&format!("see{}it", " ".repeat(500)))[0].1, "see  …it");
    }

    #[test]
    fn s22_characters_that_scripts_and_emoji_need_are_not_findings() {
        let table = [
            "plain\n\ttext\r\n",
            "ünïcödé — “quotes” … ½ × 3\u{a0}km",
            "👩\u{200d}💻 👩🏽\u{200d}💻 🏳\u{fe0f}\u{200d}🌈 ❤\u{fe0f} #\u{fe0f}\u{20e3} ⚠\u{fe0e}",
            "🏴\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}",
            "می\u{200c}خواهم",
            "क\u{94d}\u{200d}ष",
            "שלום\u{200f}!",
            "葛\u{e0100}飾区 全角\u{3000}空白",
            "    indented\n        code",
        ];
        for text in table {
            assert_eq!(hidden(text), [], "{text:?}");
        }
    }
}
