//! Calls as OpenTelemetry spans, sent in batches over OTLP by the same HTTP client as everything
//! else. Reads no settings.

mod spans;

use std::{pin::Pin, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Request, Response};
use narthex_gateway::Tracer;
use narthex_model::with_causes;
use narthex_upstream::client::{ClientSettings, HttpClient};
use opentelemetry::{KeyValue, trace::TracerProvider};
use opentelemetry_http::HttpError;
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::{Resource, trace::SdkTracerProvider};
use tokio::runtime::Handle;
use tokio_util::task::TaskTracker;
use url::Url;

/// The most of a collector's answer that is read.
const ANSWER_MAX: usize = 64 * 1024;
/// How long one batch may take, and the last one at the end of the program.
const SEND: Duration = Duration::from_secs(5);
/// Where a collector takes traces, below its address.
const TRACES: &str = "/v1/traces";

/// Where spans go. What must be ended with the program.
#[derive(Debug)]
pub struct Traces {
    provider: SdkTracerProvider,
}

impl Traces {
    /// Sends spans to a collector at this address, such as `http://127.0.0.1:4318`, under the name
    /// of a service.
    ///
    /// # Errors
    /// Why the address cannot be used.
    pub fn start(endpoint: &str, service_name: &str, runtime: &Handle) -> Result<Self, String> {
        let url = Url::parse(endpoint).map_err(|error| error.to_string())?;
        let http = HttpClient::new(&url, ClientSettings::default());
        let http = http.map_err(|error| with_causes(&error))?;
        let client = Client { http, runtime: runtime.clone(), tasks: TaskTracker::new() };
        let base = endpoint.trim_end_matches('/');
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(client)
            .with_protocol(Protocol::HttpBinary)
            .with_timeout(SEND)
            .with_endpoint(format!("{}{TRACES}", base.strip_suffix(TRACES).unwrap_or(base)))
            .build()
            .map_err(|error| with_causes(&error))?;
        let version = KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
        let resource = Resource::builder_empty()
            .with_service_name(service_name.to_owned())
            .with_attribute(version)
            .build();
        let provider =
            SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource);
        Ok(Self { provider: provider.build() })
    }

    /// Makes spans of calls.
    #[must_use]
    pub fn tracer(&self) -> Arc<dyn Tracer> {
        Arc::new(spans::Spans::new(self.provider.tracer("narthex")))
    }

    /// Sends what is left. Blocks; the runtime must still be there.
    pub fn end(self) {
        if let Err(error) = self.provider.shutdown_with_timeout(SEND) {
            tracing::warn!(%error, "the last traces could not be sent");
        }
    }
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
