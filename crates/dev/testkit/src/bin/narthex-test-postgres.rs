//! Runs a private PostgreSQL server for tests, and prints its folder. The server ends with it.

use anyhow::{Context, Result};
use narthex_testkit::postgres::Server;

#[expect(clippy::print_stdout, reason = "the program that starts it waits for this line")]
fn main() -> Result<()> {
    let server = Server::start()?.context("PostgreSQL is not installed")?;
    println!("folder {}", server.dir().display());
    loop {
        std::thread::park();
    }
}
