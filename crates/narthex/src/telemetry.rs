//! Logs on standard error.

use narthex_model::ErrorKind;
use tracing_subscriber::{EnvFilter, fmt, layer::SubscriberExt, util::SubscriberInitExt};

use crate::{
    config::{LogFormat, Settings},
    failure::Failure,
    output,
};

/// Starts to log as the settings say.
pub(crate) fn start(settings: &Settings) -> Result<(), Failure> {
    let filter = EnvFilter::try_new(&settings.log_filter).map_err(|error| {
        Failure::usage(format!("the log level `{}` is not valid: {error}", settings.log_filter))
    })?;
    let registry = tracing_subscriber::registry().with(filter);
    let lines = fmt::layer().with_writer(std::io::stderr).with_ansi(output::is_error_terminal());
    let started = match settings.log_format {
        LogFormat::Text => registry.with(lines.with_target(false)).try_init(),
        LogFormat::Json => registry.with(lines.json().flatten_event(true)).try_init(),
    };
    started.map_err(|error| Failure::new(ErrorKind::Bug, error.to_string()))
}
