//! The fixture server on this program's own standard streams, for tests that need a process.

use narthex_model::{Secret, ServerDefinition, StdioTarget, Target};
use narthex_testkit::fixture::{Fixture, Options, stdio};

use super::world::alias;

const ERAS: &str = "FIXTURE_ERAS";

/// Serves if this program was started as a server; in a run of the tests it does nothing.
pub(crate) fn run() {
    let Some(eras) = std::env::var_os(ERAS) else { return };
    let eras = eras.into_string().unwrap().parse().unwrap();
    let fixture = Fixture::new(Options { eras, ..Options::default() });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    drop(runtime.block_on(stdio::serve(fixture, tokio::io::stdin(), tokio::io::stdout())));
}

/// A server that is this program.
pub(crate) fn server(name: &str, eras: &str) -> ServerDefinition {
    let program = std::env::current_exe().unwrap();
    let args = ["--exact", "fixture_over_stdio", "--nocapture"];
    let target = Target::Stdio(StdioTarget {
        command: program.to_str().unwrap().to_owned(),
        args: args.map(str::to_owned).to_vec(),
        env: [(ERAS.to_owned(), Secret::new(eras))].into(),
        working_dir: None,
        confinement: None,
    });
    ServerDefinition::new(alias(name), target)
}
