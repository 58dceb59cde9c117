//! Log lines on standard error, and traces over OTLP for those who want them.
//!
//! Without an endpoint nothing of OpenTelemetry runs. With one, spans are sent in batches by the
//! same HTTP client as everything else.

mod spans;

use std::{pin::Pin, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Request, Response};
use narthex_gateway::Tracer;
use narthex_model::ErrorKind;
use narthex_upstream::client::{ClientSettings, HttpClient};
use opentelemetry::{KeyValue, trace::TracerProvider};
use opentelemetry_http::HttpError;
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::{Resource, trace::SdkTracerProvider};
use tokio::runtime::Handle;
use tokio_util::task::TaskTracker;
use tracing_subscriber::{EnvFilter, Layer, fmt, layer::SubscriberExt, util::SubscriberInitExt};
use url::Url;

use crate::{
    config::{LogFormat, Settings},
    failure::{Failure, with_causes},
    output,
};

/// The most of a collector's answer that is read.
const ANSWER_MAX: usize = 64 * 1024;
/// How long one batch may take, and the last one at the end of the program.
const SEND: Duration = Duration::from_secs(5);
/// Where a collector takes traces, below its address.
const TRACES: &str = "/v1/traces";

/// The library that watches files tells of each that was written: of a log beside them without end.
const UNHEARD: &str = "notify=off";

/// What must be ended with the program.
#[derive(Debug)]
pub(crate) struct Telemetry {
    traces: Option<SdkTracerProvider>,
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
        Some(endpoint) => Some(provider(endpoint, &settings.service_name, runtime)?),
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
        let traces = self.traces.as_ref()?;
        Some(Arc::new(spans::Spans::new(traces.tracer("narthex"))))
    }

    /// Sends what is left. Blocks; the runtime must still be there.
    pub(crate) fn end(self) {
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
) -> Result<SdkTracerProvider, Failure> {
    let wrong = |why: &str| {
        Failure::usage(format!(
            "telemetry.otlp_endpoint `{endpoint}` cannot be used: {why}; write for example \
             http://127.0.0.1:4318"
        ))
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
