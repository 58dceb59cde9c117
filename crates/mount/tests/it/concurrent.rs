//! Random operations that overlap each other and every change: 100,000 steps in an order that the
//! seed decides, and as many from threads that meet as they may.
//!
//! Under way at once are calls, reads, lists and closings, while servers are unmounted, mounted
//! again, crash, come back, and are revoked, others take their places, paths come to mean other
//! mounts, and processes end and begin. What an operation answers then is no single value: the
//! model ([`facts`]) says which answers are permitted.
//!
//! - What was over before an operation looked must be seen by it; what changes meanwhile may be.
//! - No descriptor gives what another one, another mount or an earlier write was answered.
//! - Whoever waits for what is over is answered when it is looked at next.
//! - At the end nothing is under way at any server, nothing is mounted, and nobody keeps a server.

mod device;
mod facts;
mod file;
mod seeded;
mod threads;

/// Says the seed if the test fails.
struct Seed(u64);

impl Drop for Seed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the seed was {}", self.0);
        }
    }
}

const ALIASES: [&str; 2] = ["a", "ab"];
const TOOL: &str = "/tools/echo";
const PROMPT: &str = "/prompts/greet";
const ERROR: &str = "/ctl/error";
const NODES: [&str; 7] = ["", "/tools", TOOL, PROMPT, "/resources/x:y", "/ctl/status", ERROR];

/// What is written: the number tells one write from all others. Some of it is no object.
fn arguments(number: u64) -> String {
    match number % 7 {
        0 => format!("[{number}]"),
        _ => format!(r#"{{"n":{number}}}"#),
    }
}
