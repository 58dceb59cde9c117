//! Log lines on standard error, and traces over OTLP for those who want them.
//!
//! Without an endpoint nothing of OpenTelemetry runs.

use std::sync::Arc;

use narthex_gateway::Tracer;
use narthex_model::ErrorKind;
use narthex_traces::Traces;
use tokio::runtime::Handle;
use tracing_subscriber::{EnvFilter, Layer, fmt, layer::SubscriberExt, util::SubscriberInitExt};

use crate::{
    config::{LogFormat, Settings},
    failure::Failure,
    output,
};

/// The library that watches files tells of each that was written: of a log beside them without end.
const UNHEARD: &str = "notify=off";

/// What must be ended with the program.
#[derive(Debug)]
pub(crate) struct Telemetry {
    traces: Option<Traces>,
}

/// Starts to log as the settings say, and to trace if they name an endpoint.
pub(crate) fn start(settings: &Settings, runtime: &Handle) -> Result<Telemetry, Failure> {
    let filter = format!("{UNHEARD},{}", settings.log_filter);
    let filter = EnvFilter::try_new(filter).map_err(|error| {
        Failure::usage(format!("the log level `{}` is not valid: {error}", settings.log_filter))
    })?;
    let lines = fmt::layer().with_writer(std::io::stderr).with_ansi(output::is_error_terminal());
    let lines = match settings.log_format {
        LogFormat::Text => lines.with_target(false).boxed(),
        LogFormat::Json => lines.json().flatten_event(true).boxed(),
    };
    let traces = match &settings.otlp_endpoint {
        Some(endpoint) => {
            let traces = Traces::start(endpoint, &settings.service_name, runtime);
            Some(traces.map_err(|why| {
                Failure::usage(format!(
                    "telemetry.otlp_endpoint `{endpoint}` cannot be used: {why}; write for \
                     example http://127.0.0.1:4318"
                ))
            })?)
        }
        None => None,
    };
    let started = tracing_subscriber::registry().with(lines.with_filter(filter)).try_init();
    started.map_err(|error| Failure::new(ErrorKind::Bug, error.to_string()))?;
    Ok(Telemetry { traces })
}

/// Whether the log says what is wrong with configuration files: then nothing else has to.
pub(crate) fn tells_of_files() -> bool {
    tracing::enabled!(target: "narthex_control::follow", tracing::Level::WARN)
}

impl Telemetry {
    /// Makes spans of calls; `None` if nobody collects them.
    pub(crate) fn tracer(&self) -> Option<Arc<dyn Tracer>> {
        self.traces.as_ref().map(Traces::tracer)
    }

    /// Sends what is left. Blocks; the runtime must still be there.
    pub(crate) fn end(self) {
        if let Some(traces) = self.traces {
            traces.end();
        }
    }
}
