//! The fixture MCP server as a program.
//!
//! Each network transport prints one line of JSON with its URL when it is ready: on standard
//! output, or on standard error when `--stdio` is given too.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use clap::{ArgGroup, Parser};
use narthex_testkit::fixture::{Bearer, Eras, Fixture, Options, Quirk, http, sse, stdio};
use tokio::net::TcpListener;

/// A fixture MCP server for tests and benchmarks.
#[derive(Parser)]
#[command(version, group = ArgGroup::new("transport").required(true).multiple(true))]
struct Args {
    /// Serve Streamable HTTP at this address, path /mcp; port 0 takes a free one
    #[arg(long, value_name = "ADDR", group = "transport")]
    http: Option<SocketAddr>,
    /// Serve the HTTP+SSE transport of 2024-11-05 at this address, path /sse
    #[arg(long, value_name = "ADDR", group = "transport")]
    sse: Option<SocketAddr>,
    /// Serve standard input and output; the program ends with its input
    #[arg(long, group = "transport")]
    stdio: bool,
    /// The protocol eras to speak: legacy, modern or both
    #[arg(long, default_value = "both")]
    eras: Eras,
    /// How many generated tools to add
    #[arg(long, value_name = "N", default_value_t = 0)]
    tools: usize,
    /// Entries per page of a list
    #[arg(long, value_name = "N")]
    page_size: Option<usize>,
    /// Odd behaviour, separated by commas
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    quirks: Vec<Quirk>,
    /// A host name to accept in Host and Origin besides the loopback ones
    #[arg(long, value_name = "HOST")]
    allow_host: Vec<String>,
    /// A file with the token that HTTP requests must carry
    #[arg(long, value_name = "PATH")]
    require_bearer_file: Option<PathBuf>,
    /// Keep the headers of POSTs for the tool `seen_headers`
    #[arg(long)]
    record_headers: bool,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let fixture = Fixture::new(Options {
        eras: args.eras,
        extra_tools: args.tools,
        page_size: args.page_size,
        quirks: args.quirks,
        allowed_hosts: args.allow_host,
        required_bearer: args.require_bearer_file.as_deref().map(read_bearer).transpose()?,
        records_headers: args.record_headers,
        records_messages: false,
    });
    let http = listen(args.http, "http", "/mcp", args.stdio).await?;
    let sse = listen(args.sse, "sse", "/sse", args.stdio).await?;
    let has_network = http.is_some() || sse.is_some();
    let network = async {
        tokio::join!(
            async {
                if let Some(listener) = http {
                    http::serve(Arc::clone(&fixture), listener).await;
                }
            },
            async {
                if let Some(listener) = sse {
                    sse::serve(Arc::clone(&fixture), listener).await;
                }
            },
        );
    };
    if !args.stdio {
        network.await;
        return Ok(());
    }
    let lines = stdio::serve(Arc::clone(&fixture), tokio::io::stdin(), tokio::io::stdout());
    tokio::select! {
        outcome = lines => outcome.context("standard input or output failed"),
        () = network, if has_network => Ok(()),
    }
}

fn read_bearer(path: &Path) -> anyhow::Result<Bearer> {
    Ok(Bearer(fs_err::read_to_string(path)?.trim().to_owned()))
}

async fn listen(
    addr: Option<SocketAddr>,
    transport: &str,
    path: &str,
    has_stdio: bool,
) -> anyhow::Result<Option<TcpListener>> {
    let Some(addr) = addr else { return Ok(None) };
    let listener =
        TcpListener::bind(addr).await.with_context(|| format!("cannot listen on {addr}"))?;
    let url = format!("http://{}{path}", listener.local_addr()?);
    announce(&serde_json::json!({"transport": transport, "url": url}).to_string(), has_stdio);
    Ok(Some(listener))
}

/// Tells the caller that the port is open; standard output may be taken by the protocol.
#[expect(clippy::print_stdout, clippy::print_stderr, reason = "the caller waits for the line")]
fn announce(line: &str, has_stdio: bool) {
    if has_stdio {
        eprintln!("{line}");
    } else {
        println!("{line}");
    }
}
