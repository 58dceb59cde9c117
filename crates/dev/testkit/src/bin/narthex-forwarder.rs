//! The header-adding reverse proxy as a program; prints one line of JSON with its URL when ready.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Parser;
use http::header::{AUTHORIZATION, HeaderName, HeaderValue};
use http::uri::Uri;
use narthex_testkit::forwarder::Forwarder;
use tokio::net::TcpListener;

/// Forwards HTTP requests with additional headers.
#[derive(Parser)]
#[command(version)]
struct Args {
    /// Where to listen; port 0 takes a free one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// Where to send requests; a path in it is ignored
    #[arg(long, value_name = "URL")]
    to: Uri,
    /// A file with a token, sent as a bearer token
    #[arg(long, value_name = "PATH")]
    bearer_file: Option<PathBuf>,
    /// A header to add, as `Name: value`; not for secrets, which others can read in the arguments
    #[arg(long, value_name = "HEADER")]
    header: Vec<String>,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let mut headers = Vec::new();
    for header in &args.header {
        headers.push(parse_header(header)?);
    }
    if let Some(path) = &args.bearer_file {
        headers.push((AUTHORIZATION, read_bearer(path)?));
    }
    let forwarder = Forwarder::new(&args.to, headers)?;
    let listener = TcpListener::bind(args.listen)
        .await
        .with_context(|| format!("cannot listen on {}", args.listen))?;
    announce(listener.local_addr()?);
    forwarder.serve(listener).await;
    Ok(())
}

fn parse_header(text: &str) -> anyhow::Result<(HeaderName, HeaderValue)> {
    let (name, value) = text.split_once(':').context("a header is written as `Name: value`")?;
    let name = name.trim().parse().context("not a header name")?;
    let value = value.trim().parse().context("not a header value")?;
    Ok((name, value))
}

fn read_bearer(path: &Path) -> anyhow::Result<HeaderValue> {
    let token = fs_err::read_to_string(path)?;
    let mut value: HeaderValue =
        format!("Bearer {}", token.trim()).parse().context("the file holds no token")?;
    value.set_sensitive(true);
    Ok(value)
}

#[expect(clippy::print_stdout, reason = "the caller waits for the line")]
fn announce(addr: SocketAddr) {
    println!("{}", serde_json::json!({"url": format!("http://{addr}")}));
}
