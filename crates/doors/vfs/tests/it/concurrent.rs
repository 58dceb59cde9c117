//! Random operations that overlap each other and every change: 100,000 steps in an order that the
//! seed decides, and as many from threads that meet as they may.
//!
//! At once there are calls, reads, lists and closings, while servers are unmounted, mounted again,
//! crash, come back, and are revoked. Others take their places, paths come to mean other mounts,
//! and processes end and begin. The answer of an operation is then no single value: the model
//! ([`facts`]) decides which answers are permitted.
//!
//! - An operation must see every change that ended before it looked; it may see changes meanwhile.
//! - No descriptor returns an answer of another descriptor, another mount or an earlier write.
//! - A waiting operation whose file is over is answered at the next look.
//! - At the end no server has an open request, nothing is mounted, and no server is kept.

mod device;
mod facts;
mod file;
mod seeded;
mod threads;

/// Prints the seed if the test fails.
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

/// The written arguments: the number tells one write from all others. Some of them are no object.
fn arguments(number: u64) -> String {
    match number % 7 {
        0 => format!("[{number}]"),
        _ => format!(r#"{{"n":{number}}}"#),
    }
}
