//! Measures the cost of one request of the HTTP client: a closed loop against a server in another
//! thread, whose work is not counted. `client_bench [REQUESTS] [CALLERS] [ANSWER_BYTES]`; Linux
//! only.

#![expect(clippy::print_stdout, reason = "printing is its purpose")]

use std::{
    error::Error,
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    sync::Arc,
};

use bytes::Bytes;
use http::Request;
use narthex_http_client::{ClientSettings, HttpClient};
use narthex_wire::Payload;
use tokio::{task::JoinSet, time::Instant};
use url::Url;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

const LIMIT: usize = 64 * 1024 * 1024;
const CALL: &[u8] = concat!(
    r#"{"jsonrpc":"2.0","id":17,"method":"tools/call","params":"#,
    r#"{"name":"echo","arguments":{"text":"The quick brown fox jumps over the lazy dog."}}}"#
)
.as_bytes();

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse::<usize>());
    let mut next = |default| arguments.next().unwrap_or(Ok(default));
    let (requests, callers, bytes) = (next(200_000)?, next(1)?, next(300)?);
    let url = Url::parse(&format!("http://{}/mcp", serve(bytes)?))?;
    let client = HttpClient::new(&url, ClientSettings::default())?;
    run(&client, requests / 10, callers).await?;
    let (started, cpu) = (Instant::now(), thread_cpu_ns()?);
    run(&client, requests, callers).await?;
    let (seconds, cpu) = (started.elapsed().as_secs_f64(), thread_cpu_ns()? - cpu);
    let done = f64::from(u32::try_from(requests)?);
    let cpu_us = std::time::Duration::from_nanos(cpu).as_secs_f64() * 1e6 / done;
    println!("{:.0} requests/s, {cpu_us:.2} µs of CPU each, {callers} callers", done / seconds);
    Ok(())
}

async fn run(client: &HttpClient, requests: usize, callers: usize) -> Outcome<()> {
    let mut running = JoinSet::new();
    for _ in 0..callers {
        let client = client.clone();
        running.spawn(async move {
            for _ in 0..requests / callers {
                client.send(call()?).await?.body.collect(LIMIT).await?;
            }
            Outcome::Ok(())
        });
    }
    running.join_all().await.into_iter().collect()
}

fn call() -> Outcome<Request<Payload>> {
    Ok(Request::post("/mcp")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2025-11-25")
        .header("mcp-session-id", "0123456789abcdef0123456789abcdef")
        .body(Bytes::from_static(CALL).into())?)
}

/// A server that answers every request with the same bytes, as cheaply as possible.
fn serve(bytes: usize) -> Outcome<std::net::SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {bytes}\r\n\
         date: Thu, 01 Jan 1970 00:00:00 GMT\r\n\r\n"
    );
    let answer: Arc<[u8]> = [head.into_bytes(), vec![b'x'; bytes]].concat().into();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let answer = Arc::clone(&answer);
            // Errors end the connection, which the client reports.
            std::thread::spawn(move || answer_all(stream, &answer));
        }
    });
    Ok(address)
}

fn answer_all(mut stream: TcpStream, answer: &[u8]) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let (mut buffer, mut length) = (vec![0; 64 * 1024], 0);
    loop {
        match stream.read(&mut buffer[length..])? {
            0 => return Ok(()),
            read => length += read,
        }
        if buffer[..length].ends_with(CALL) {
            stream.write_all(answer)?;
            length = 0;
        }
    }
}

/// The time that this thread has been on a CPU.
fn thread_cpu_ns() -> Outcome<u64> {
    #[expect(clippy::disallowed_methods, reason = "the path is constant, and this is no product")]
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    Ok(text.split_whitespace().next().ok_or("an empty schedstat")?.parse()?)
}
