//! Addresses that lead to the own machine or its networks, in each spelling, and a proxy that shows
//! which hosts a client asks for (S9).

use std::sync::{Arc, Mutex};

use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

use crate::fixture::lock;

/// Addresses with https that no stranger may lead narthex to.
///
/// They are this machine, private and carriers' networks, the address of clouds for metadata, and
/// addresses of IPv6 that embed one of these.
pub const INSIDE: [&str; 32] = [
    "https://localhost/x",
    "https://LOCALHOST/x",
    "https://127.0.0.1/x",
    "https://127.1/x",
    "https://127.255.255.254/x",
    "https://2130706433/x",
    "https://0x7f000001/x",
    "https://0x7f.1/x",
    "https://0177.0.0.1/x",
    "https://%31%32%37.0.0.1/x",
    "https://\u{ff11}\u{ff12}\u{ff17}.0.0.1/x",
    "https://0/x",
    "https://0.0.0.0/x",
    "https://169.254.169.254/latest/meta-data",
    "https://2852039166/latest/meta-data",
    "https://0xa9.0xfe.0xa9.0xfe/latest/meta-data",
    "https://10.0.0.1/x",
    "https://172.16.0.1/x",
    "https://192.168.1.1/x",
    "https://100.64.0.1/x",
    "https://192.0.0.170/x",
    "https://224.0.0.1/x",
    "https://[::1]/x",
    "https://[::]/x",
    "https://[::ffff:169.254.169.254]/x",
    "https://[::ffff:a9fe:a9fe]/x",
    "https://[::7f00:1]/x",
    "https://[64:ff9b::a9fe:a9fe]/x",
    "https://[2001:0:a9fe:a9fe::1]/x",
    "https://[2002:7f00:1::]/x",
    "https://[fd00::1]/x",
    "https://[fe80::1]/x",
];

/// A proxy that opens no way, and notes the hosts that it is asked for, until it is dropped.
#[derive(Debug)]
pub struct ClosedProxy {
    /// The proxy's address.
    pub url: String,
    asked: Arc<Mutex<Vec<String>>>,
    _task: JoinSet<()>,
}

impl ClosedProxy {
    /// A proxy on a free port.
    ///
    /// # Panics
    /// When the machine has no free port.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("a bound socket"));
        let asked = Arc::<Mutex<Vec<String>>>::default();
        let (noted, mut task) = (asked.clone(), JoinSet::new());
        task.spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let target = target(&mut stream).await;
                lock(&noted).push(target);
                drop(stream.write_all(b"HTTP/1.1 403 Forbidden\r\n\r\n").await);
            }
        });
        Self { url, asked, _task: task }
    }

    /// The targets of all requests so far, such as `1.1.1.1:443`.
    #[must_use]
    pub fn asked(&self) -> Vec<String> {
        lock(&self.asked).clone()
    }
}

/// Reads the head of a request. Returns its target.
async fn target(stream: &mut TcpStream) -> String {
    let mut lines = BufReader::new(stream).lines();
    let mut target = None;
    while let Ok(Some(line)) = lines.next_line().await {
        if line.is_empty() {
            break;
        }
        target = target.or_else(|| line.split(' ').nth(1).map(str::to_owned));
    }
    target.unwrap_or_default()
}
