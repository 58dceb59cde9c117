//! Log lines on standard error, and traces over OTLP for operators who want them.
//!
//! Without an endpoint no part of OpenTelemetry runs. With an endpoint, spans are sent in batches
//! by the same HTTP client as all other requests.

mod spans;

use std::{pin::Pin, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Request, Response};
use narthex_gateway::Tracer;
use narthex_http_client::{ClientSettings, HttpClient};
use narthex_model::{ErrorKind, with_causes};
use opentelemetry::{KeyValue, trace::TracerProvider};
use opentelemetry_http::HttpError;
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::{Resource, trace::SdkTracerProvider};
use tokio::runtime::Handle;
use tokio_util::task::TaskTracker;
use tracing_subscriber::{
    EnvFilter, Layer, filter::LevelFilter, fmt, layer::SubscriberExt, util::SubscriberInitExt,
};
use url::Url;

/// The most of a collector's answer that is read.
const ANSWER_MAX: usize = 64 * 1024;
/// Longest time for one batch, and for the last one at the end of the program.
const SEND: Duration = Duration::from_secs(5);
/// The path for traces, below a collector's address.
const TRACES: &str = "/v1/traces";

/// Silences two libraries. `notify` logs each write to a watched folder, which never ends if the
/// log file is in one. `fuser` warns of each request of a program that narthex's files do not know.
const UNHEARD: &str = "notify=off,fuser=error";
/// Messages of agents to channels that are the log itself.
const HEARD: &str = "narthex::channel=info";

/// The format of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LogFormat {
    /// Text for people.
    #[default]
    Text,
    /// One JSON object per line.
    Json,
}

/// Options for logs and traces.
#[derive(Debug, Clone, Copy)]
pub struct TelemetryOptions<'a> {
    /// The filter in the form of `EnvFilter`: a level, or levels by target.
    pub filter: &'a str,
    /// The format of lines.
    pub format: LogFormat,
    /// True if lines have colours.
    pub has_colours: bool,
    /// True if lines of text have their time.
    pub has_times: bool,
    /// The address of a collector for traces as OTLP over HTTP, if there is one.
    pub endpoint: Option<&'a str>,
    /// The name of this program in traces.
    pub service_name: &'a str,
}

/// The reason why logs or traces cannot start.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// The filter is not valid.
    #[error("the log level `{text}` is not valid: {why}")]
    Filter {
        /// The filter.
        text: String,
        /// The filter's fault.
        why: String,
    },
    /// Traces cannot be sent to the endpoint.
    #[error(
        "the endpoint for traces `{text}` cannot be used: {why}; write for example \
         http://127.0.0.1:4318"
    )]
    Endpoint {
        /// The address.
        text: String,
        /// The address's fault.
        why: String,
    },
    /// The process has a logger already.
    #[error("{0}")]
    Twice(String),
}

impl TelemetryError {
    /// Returns the error's kind (D24).
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Filter { .. } | Self::Endpoint { .. } => ErrorKind::Invalid,
            Self::Twice(_) => ErrorKind::Bug,
        }
    }
}

/// The running telemetry, to be ended with the program.
#[derive(Debug)]
pub struct Telemetry {
    traces: Option<SdkTracerProvider>,
}

/// Starts logging, and tracing if there is an endpoint.
///
/// # Errors
/// When the filter or the endpoint is not valid, or this process has a logger already.
pub fn start(options: TelemetryOptions<'_>, runtime: &Handle) -> Result<Telemetry, TelemetryError> {
    let filter = format!("{UNHEARD},{HEARD},{}", options.filter);
    let filter = EnvFilter::try_new(filter).map_err(|error| TelemetryError::Filter {
        text: options.filter.to_owned(),
        why: error.to_string(),
    })?;
    let lines = fmt::layer().with_writer(std::io::stderr).with_ansi(options.has_colours);
    let lines = match (options.format, options.has_times) {
        (LogFormat::Text, true) => lines.with_target(false).boxed(),
        (LogFormat::Text, false) => lines.with_target(false).without_time().boxed(),
        (LogFormat::Json, _) => lines.json().flatten_event(true).boxed(),
    };
    let traces = match options.endpoint {
        Some(endpoint) => Some(provider(endpoint, options.service_name, runtime)?),
        None => None,
    };
    let started = tracing_subscriber::registry().with(lines.with_filter(filter)).try_init();
    started.map_err(|error| TelemetryError::Twice(error.to_string()))?;
    Ok(Telemetry { traces })
}

/// The first word of a filter that stands for itself and is no level; `None` if there is none. The
/// library would read it as the name of a target, and log nothing else.
#[must_use]
pub fn wrong_level(filter: &str) -> Option<&str> {
    // Commas inside of brackets are of a span's fields.
    let is_plain = !filter.contains('[');
    let words = filter.split(',').map(str::trim).filter(|word| is_plain && !word.is_empty());
    words.filter(|word| !word.contains('=')).find(|word| word.parse::<LevelFilter>().is_err())
}

/// True if the log reports faults of configuration files, so that no other output has to.
#[must_use]
pub fn tells_of_files() -> bool {
    tracing::enabled!(target: "narthex_control::follow", tracing::Level::WARN)
}

impl Telemetry {
    /// The maker of spans for calls; `None` without a collector.
    #[must_use]
    pub fn tracer(&self) -> Option<Arc<dyn Tracer>> {
        let traces = self.traces.as_ref()?;
        Some(Arc::new(spans::Spans::new(traces.tracer("narthex"))))
    }

    /// Sends the remaining spans. Blocks, and needs the runtime.
    pub fn end(self) {
        if let Some(traces) = self.traces
            && let Err(error) = traces.shutdown_with_timeout(SEND)
        {
            tracing::warn!(%error, "the last traces could not be sent");
        }
    }
}

fn provider(
    endpoint: &str,
    service_name: &str,
    runtime: &Handle,
) -> Result<SdkTracerProvider, TelemetryError> {
    let wrong = |why: &str| {
        let (text, why) = (endpoint.to_owned(), why.to_owned());
        TelemetryError::Endpoint { text, why }
    };
    let url = Url::parse(endpoint).map_err(|error| wrong(&error.to_string()))?;
    let http = HttpClient::new(&url, ClientSettings::default())
        .map_err(|error| wrong(&with_causes(&error)))?;
    let client = Client { http, runtime: runtime.clone(), tasks: TaskTracker::new() };
    let base = endpoint.trim_end_matches('/');
    let exporter = SpanExporter::builder()
        .with_http()
        .with_http_client(client)
        .with_protocol(Protocol::HttpBinary)
        .with_timeout(SEND)
        .with_endpoint(format!("{}{TRACES}", base.strip_suffix(TRACES).unwrap_or(base)))
        .build()
        .map_err(|error| wrong(&with_causes(&error)))?;
    let version = KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
    let resource = Resource::builder_empty()
        .with_service_name(service_name.to_owned())
        .with_attribute(version)
        .build();
    Ok(SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource).build())
}

/// Our HTTP client for the exporter, whose thread is outside the runtime.
#[derive(Debug)]
struct Client {
    http: HttpClient,
    runtime: Handle,
    tasks: TaskTracker,
}

impl opentelemetry_http::HttpClient for Client {
    fn send_bytes<'c, 'f>(
        &'c self,
        request: Request<Bytes>,
    ) -> Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'f>>
    where
        'c: 'f,
        Self: 'f,
    {
        let http = self.http.clone();
        let sending = async move { tokio::time::timeout(SEND, send(http, request)).await };
        let sent = self.tasks.spawn_on(sending, &self.runtime);
        Box::pin(async move {
            let sent = sent.await.map_err(HttpError::from)?;
            let sent = sent.map_err(HttpError::from).flatten();
            if let Err(error) = &sent {
                tracing::warn!("traces could not be sent: {}", with_causes(&**error));
            }
            sent
        })
    }
}

async fn send(http: HttpClient, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
    let answer = http.send(request.map(Into::into)).await?;
    let mut response = Response::new(Bytes::new());
    *response.status_mut() = answer.status;
    *response.headers_mut() = answer.headers;
    *response.body_mut() = answer.body.collect(ANSWER_MAX).await?;
    Ok(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_that_is_no_level_is_found() {
        for good in ["warn", "off", "WARN", "warn,narthex_gateway=debug", "a[b{c=1,d=2}]=info", ""]
        {
            assert_eq!(wrong_level(good), None, "{good}");
        }
        for (wrong, word) in
            [("xx", "xx"), ("warn,xx", "xx"), ("narthex_gateway", "narthex_gateway")]
        {
            assert_eq!(wrong_level(wrong), Some(word), "{wrong}");
        }
    }
}
