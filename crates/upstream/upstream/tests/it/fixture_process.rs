//! The fixture server on this program's own standard streams, for tests that need a process.

use narthex_testkit::fixture::{Fixture, Options, stdio};

/// Not a test: tests start this program again with this test's name. Without settings it does
/// nothing.
pub(crate) fn run() {
    let Some(settings) = std::env::var_os("FIXTURE_SETTINGS") else { return };
    let settings = settings.into_string().unwrap();
    let mut parts = settings.split(',');
    let eras = parts.next().unwrap_or_default().parse().unwrap();
    let quirks = parts.map(|name| name.parse().unwrap()).collect();
    let fixture = Fixture::new(Options { eras, quirks, ..Options::default() });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let serving = stdio::serve(fixture, tokio::io::stdin(), tokio::io::stdout());
    drop(runtime.block_on(serving));
}
