//! Reads the numbers of passed and failed tests off the output of test runners.

use std::collections::BTreeSet;

use crate::tally::Tally;

/// The last summary of cargo-nextest: `5 tests run: 4 passed (1 slow), 1 failed, 0 skipped`. What
/// was planned and did not pass has failed, whatever the reason.
pub(super) fn nextest(output: &str) -> Option<Tally> {
    let summary = output.lines().rev().find(|line| line.contains("Summary ["))?;
    let (_, counts) = summary.split_once(']')?;
    let (planned, outcomes) = counts.split_once(':')?;
    // A run that was ended early prints `3/5 tests run`.
    let planned = planned.split_whitespace().next()?.rsplit('/').next()?.parse::<u64>().ok()?;
    let passed = outcomes.split(',').find_map(|part| {
        let mut words = part.split_whitespace();
        let number = words.next()?.parse::<u64>().ok()?;
        (words.next()? == "passed").then_some(number)
    });
    let passed = passed.unwrap_or(0);
    Some(Tally { passed, failed: planned.saturating_sub(passed) })
}

/// The tests that passed only when they were run once more, by binary and name, each once:
/// `FLAKY 2/2 [   0.010s] (1/9) narthex-wire::it sse::joins_lines`.
pub(super) fn flaky(output: &str) -> BTreeSet<String> {
    let lines = output.lines().filter_map(|line| line.trim_start().strip_prefix("FLAKY "));
    let name = |line: &str| {
        let (_, rest) = line.split_once(']')?;
        let rest = rest.trim_start();
        let place = rest.strip_prefix('(').and_then(|rest| rest.split_once(')'));
        Some(place.map_or(rest, |(_, rest)| rest).trim().to_owned())
    };
    lines.filter_map(name).collect()
}

/// The seeds that passed, such as `seed 7: ok, …`. Each other one that was planned has failed.
pub(super) fn seeds(output: &str, planned: u64) -> Tally {
    let is_passed = |line: &&str| {
        // The name of the test may stand before the first one.
        let outcome = line.rsplit_once("seed ").and_then(|(_, rest)| rest.split_once(": ok, "));
        outcome.is_some_and(|(seed, _)| seed.parse::<u64>().is_ok())
    };
    let passed = output.lines().filter(is_passed).count() as u64;
    Tally { passed, failed: planned.saturating_sub(passed) }
}

/// The sum of all `test result: ok. 3 passed; 0 failed; …` lines of `cargo test`.
pub(super) fn libtest(output: &str) -> Tally {
    let mut tally = Tally::default();
    for line in output.lines().filter(|line| line.trim_start().starts_with("test result:")) {
        let number = |word: &str| {
            let before = line.split_once(word)?.0;
            before.split_whitespace().next_back()?.parse::<u64>().ok()
        };
        tally +=
            Tally { passed: number("passed").unwrap_or(0), failed: number("failed;").unwrap_or(0) };
    }
    tally
}

#[cfg(test)]
mod tests {
    use super::{flaky, libtest, nextest, seeds};
    use crate::tally::Tally;

    fn tally(passed: u64, failed: u64) -> Tally {
        Tally { passed, failed }
    }

    #[test]
    fn summaries_of_nextest_are_parsed() {
        let cases = [
            ("     Summary [   0.010s] 5 tests run: 5 passed, 0 skipped", tally(5, 0)),
            ("     Summary [   0.010s] 1 test run: 0 passed, 1 failed, 0 skipped", tally(0, 1)),
            (
                "     Summary [   9.1s] 4 tests run: 2 passed (1 slow), 1 failed, 1 timed out",
                tally(2, 2),
            ),
            ("     Summary [   9.1s] 3/5 tests run: 3 passed, 0 skipped", tally(3, 2)),
            ("     Summary [   9.1s] 0 tests run: 0 passed, 0 skipped", tally(0, 0)),
        ];
        for (text, expected) in cases {
            assert_eq!(nextest(&format!("PASS x\n{text}\nerror: y\n")), Some(expected), "{text}");
        }
        assert_eq!(nextest("error: could not compile"), None);
    }

    #[test]
    fn tests_that_passed_only_on_a_retry_are_listed() {
        let output = "  TRY 1 FAIL [   0.1s] (1/4) narthex-a::it x::y\n\
                      \x20    Summary [   9.1s] 4 tests run: 4 passed (2 flaky), 1 skipped\n\
                      \x20  FLAKY 2/2 [   0.010s] (1/4) narthex-a::it x::y\n\
                      \x20  FLAKY 2/2 [   0.010s] narthex-b z\n\
                      \x20  FLAKY 2/2 [   0.010s] narthex-b z\n";
        let names: Vec<String> = flaky(output).into_iter().collect();
        assert_eq!(names, ["narthex-a::it x::y", "narthex-b z"]);
        assert_eq!(nextest(output), Some(tally(4, 0)));
        assert!(flaky("     Summary [   0.010s] 5 tests run: 5 passed, 0 skipped").is_empty());
    }

    #[test]
    fn a_planned_seed_that_is_not_reported_has_failed() {
        let output = "test a::b ... seed 1: ok, killed\nseed 0: ok, x\nseed 2: FAILED\nseed: ok, y";
        assert_eq!(seeds(output, 4), tally(2, 2));
        assert_eq!(seeds("", 3), tally(0, 3));
    }

    #[test]
    fn results_of_libtest_are_added_up() {
        let output = "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured\n\n\
            test result: FAILED. 2 passed; 4 failed; 0 ignored; 0 measured\n";
        assert_eq!(libtest(output), tally(5, 4));
        assert_eq!(libtest("nothing"), tally(0, 0));
    }
}
