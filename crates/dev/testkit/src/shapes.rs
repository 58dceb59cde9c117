//! Texts of many shapes for readers that may call themselves, each reader in a process of its own:
//! one that overflows its stack ends its whole process, which is a failure of its test alone.

use std::{env, process::Command, thread};

/// Set for the process that reads: the name of its test.
const READS: &str = "NARTHEX_TEST_SHAPES_FOR";
/// The stack of a thread of the daemon.
const STACK: usize = 2 << 20;
/// Numbers of repetitions of a part in a text.
const COUNTS: [usize; 6] = [1, 20, 120, 1_000, 10_000, 1_000_000];
/// Texts of parts in any order, for each length.
const MIXED: usize = 12;

/// The parts of a language, of which texts are made.
#[derive(Debug, Clone, Copy)]
pub struct Grammar {
    /// Brackets: what opens them and what closes them.
    pub brackets: &'static [(&'static str, &'static str)],
    /// The texts that may precede a value any number of times.
    pub prefixes: &'static [&'static str],
    /// The texts between two values.
    pub infixes: &'static [&'static str],
    /// A value.
    pub leaf: &'static str,
    /// The texts before and behind the whole.
    pub around: (&'static str, &'static str),
}

/// JSON: any nesting of arrays and objects.
pub const JSON: Grammar = Grammar {
    brackets: &[("[", "]"), ("{\"a\":", "}"), ("{\"a\":1,\"b\":[", "]}"), ("\"", "\"")],
    prefixes: &["-", "\\", "/*", "//"],
    infixes: &[",", ":", ",\"a\":", " ", "\n"],
    leaf: "1",
    around: ("", ""),
};

/// Has `reader` read texts of each grammar, and `others`, in a process of its own.
///
/// The texts have at most `longest` bytes, and the thread has the stack of the daemon's. `test` is
/// the full name of the test that calls this, such as `tests::any_shape`.
///
/// # Panics
/// When that process ends otherwise than by reading all texts; the message has what it wrote, and
/// the last text's shape.
pub fn survives(
    test: &'static str,
    grammars: &[Grammar],
    others: impl FnOnce() -> Vec<String>,
    longest: usize,
    reader: impl Fn(&str) + Send + 'static,
) {
    if env::var_os(READS).is_some_and(|name| name == test) {
        return read_all(texts(grammars, longest), others(), longest, reader);
    }
    let program = env::current_exe().expect("a test knows its program");
    let mut command = Command::new(program);
    command.args([test, "--exact", "--nocapture"]).env(READS, test);
    let done = command.output().expect("a test can start its own program");
    let said = String::from_utf8_lossy(&done.stdout);
    assert!(said.contains("1 passed") || !done.status.success(), "no test `{test}`: {said}");
    let told = String::from_utf8_lossy(&done.stderr);
    let last: Vec<_> = told.lines().rev().take(12).collect();
    let last: Vec<_> = last.into_iter().rev().collect();
    assert!(done.status.success(), "the reader ended with {}: {}", done.status, last.join("\n"));
}

#[expect(clippy::print_stderr, reason = "the test that started this process reads it")]
fn read_all(
    made: Vec<String>,
    others: Vec<String>,
    longest: usize,
    reader: impl Fn(&str) + Send + 'static,
) {
    let reading = move || {
        for text in made.into_iter().chain(others).filter(|text| text.len() <= longest) {
            let begin: String = text.chars().take(60).collect();
            eprintln!("reads {} bytes: {begin:?}", text.len());
            reader(&text);
        }
    };
    let thread = thread::Builder::new().stack_size(STACK).spawn(reading);
    thread.expect("there is room").join().expect("no reader panics");
}

fn texts(grammars: &[Grammar], longest: usize) -> Vec<String> {
    let mut all = Vec::new();
    for grammar in grammars {
        for count in COUNTS {
            regular(grammar, count, longest, &mut all);
        }
        for seed in 0..MIXED {
            for length in [10, 100, 1_000] {
                all.push(mixed(grammar, seed * 10_007 + length, length));
            }
        }
    }
    all
}

/// The texts that have a part a number of times, or as often as there is room for it.
fn regular(grammar: &Grammar, count: usize, longest: usize, all: &mut Vec<String>) {
    let Grammar { brackets, prefixes, infixes, leaf, around: (before, after) } = grammar;
    let room = longest.saturating_sub(before.len() + after.len() + 2 * leaf.len() + 16);
    let fits = |part: usize| count.min(room / part.max(1));
    let mut add = |inside: String| all.push(format!("{before}{inside}{after}"));
    for (open, close) in *brackets {
        let n = fits(open.len() + close.len());
        add(format!("{}{leaf}{}", open.repeat(n), close.repeat(n)));
        add(open.repeat(fits(open.len())));
        add(close.repeat(fits(close.len())));
        for infix in *infixes {
            let n = fits(open.len() + close.len() + infix.len() + leaf.len());
            let right = format!("{leaf}{infix}{open}").repeat(n);
            add(format!("{right}{leaf}{}", close.repeat(n)));
            let left = format!("{close}{infix}{leaf}").repeat(n);
            add(format!("{}{leaf}{left}", open.repeat(n)));
        }
        for prefix in *prefixes {
            let part = format!("{prefix}{open}");
            let n = fits(part.len() + close.len());
            add(format!("{}{leaf}{}", part.repeat(n), close.repeat(n)));
        }
        for (other, other_close) in *brackets {
            let n = fits(open.len() + other.len() + close.len() + other_close.len());
            let ends = format!("{other_close}{close}").repeat(n);
            add(format!("{}{leaf}{ends}", format!("{open}{other}").repeat(n)));
        }
    }
    for prefix in *prefixes {
        add(format!("{}{leaf}", prefix.repeat(fits(prefix.len()))));
    }
    for infix in *infixes {
        let part = format!("{infix}{leaf}");
        add(format!("{leaf}{}", part.repeat(fits(part.len()))));
        add(infix.repeat(fits(infix.len())));
    }
}

/// Parts in any order, the same for the same seed.
fn mixed(grammar: &Grammar, seed: usize, length: usize) -> String {
    let Grammar { brackets, prefixes, infixes, leaf, around: (before, after) } = grammar;
    let mut parts = vec![*leaf];
    parts.extend(brackets.iter().flat_map(|(open, close)| [*open, *open, *close]));
    parts.extend(prefixes.iter().chain(*infixes));
    let mut state = seed as u64 ^ 0x9e37_79b9_7f4a_7c15;
    let mut text = String::from(*before);
    for _ in 0..length {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let at = usize::try_from(state >> 33).unwrap_or_default() % parts.len();
        text.push_str(parts[at]);
    }
    text.push_str(after);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const BRACKETS: Grammar = Grammar {
        brackets: &[("(", ")")],
        prefixes: &["!"],
        infixes: &["+"],
        leaf: "1",
        around: ("", ""),
    };

    fn depth(text: &str) -> usize {
        fn below(text: &[u8]) -> usize {
            match text.split_first() {
                Some((b'(', rest)) => std::hint::black_box(below(rest)) + 1,
                _ => 0,
            }
        }
        below(text.as_bytes())
    }

    #[test]
    fn a_reader_that_returns_survives() {
        survives(
            "shapes::tests::a_reader_that_returns_survives",
            &[BRACKETS],
            Vec::new,
            900,
            |text| {
                assert!(text.len() <= 900 && depth(text) <= 900);
            },
        );
    }

    #[test]
    #[should_panic(expected = "the reader ended with signal: 6")]
    fn a_reader_that_overflows_its_stack_fails_its_test_alone() {
        let test = "shapes::tests::a_reader_that_overflows_its_stack_fails_its_test_alone";
        survives(test, &[BRACKETS], Vec::new, 4 << 20, |text| {
            std::hint::black_box(depth(text));
        });
    }

    #[test]
    fn generated_texts_repeat_their_parts_up_to_the_limit() {
        let all = texts(&[BRACKETS], 1_000);
        assert!(all.iter().any(|text| text.matches('(').count() > 900));
        assert!(all.iter().any(|text| text.matches("+1").count() > 450));
        assert_eq!(all, texts(&[BRACKETS], 1_000));
    }
}
