//! A server over standard input and output that misbehaves on request.
//!
//! Words, separated by commas, set how it starts and lists: see [`Settings`]. The called tool
//! decides what goes wrong in a call. The server speaks the legacy era only, and on Linux alone can
//! be set to ignore signals and to leave its session.
//!
//! It is a program, `narthex-unruly`. Tests of other crates, which cannot name the programs of this
//! one, start themselves again instead: see [`run_if_asked`].

mod call;
mod offspring;
mod server;
mod settings;
mod words;

use std::ffi::OsString;

pub use self::settings::Settings;

/// The variable with the settings, of the server and of its offspring.
pub const VARIABLE: &str = "NARTHEX_TEST_UNRULY";

/// Serves, if this process was started for it, and does not return then.
///
/// For a test that does nothing else: other tests name this program, the test and `--nocapture` as
/// a server's command, and put the settings into [`VARIABLE`].
pub fn run_if_asked() {
    if let Some(words) = std::env::var_os(VARIABLE) {
        run(words);
    }
}

/// Serves until its input ends, and ends the process.
#[expect(clippy::exit, reason = "whatever still runs must not hold up the end")]
pub fn run(words: OsString) -> ! {
    let settings = words.into_string().map_err(|_bytes| "settings are text".to_owned());
    let settings = settings.and_then(|words| words.parse::<Settings>());
    let code = match settings {
        Ok(settings) => serve(settings),
        Err(fault) => {
            words::last(&fault);
            2
        }
    };
    std::process::exit(code)
}

fn serve(settings: Settings) -> i32 {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let served = runtime.and_then(|runtime| runtime.block_on(server::serve(settings)));
    match served {
        Ok(code) => code,
        Err(error) => {
            words::last(&error.to_string());
            1
        }
    }
}
