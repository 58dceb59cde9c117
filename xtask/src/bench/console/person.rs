//! A signed-in person as a browser is one: requests over one connection, and the stream of a page.
#![expect(clippy::disallowed_types, reason = "synchronous: there is no tokio clock to pause here")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::bench::program;
use crate::process::capture;

/// Longest wait for bytes. Under the program that counts instructions all takes long.
const SOON: Duration = Duration::from_secs(300);
/// The kind of the body of a form.
const FORM: &str = "application/x-www-form-urlencoded";

/// A person who has signed in by a link.
#[derive(Clone)]
pub(super) struct Person {
    address: String,
    host: String,
    cookie: String,
}

/// One connection of a person, which is kept.
pub(super) struct Connection {
    person: Person,
    stream: BufReader<TcpStream>,
}

/// A whole answer.
pub(super) struct Answer {
    pub(super) status: u16,
    /// Time from the request to the first byte.
    pub(super) first_byte: Duration,
    pub(super) body: String,
    cookies: Vec<String>,
}

/// A request, apart from the person's own headers.
pub(super) struct Asked<'a> {
    pub(super) method: &'a str,
    pub(super) path: &'a str,
    /// The token of a program, in place of the person's cookie.
    pub(super) bearer: Option<&'a str>,
    pub(super) body: Option<(&'a str, &'a str)>,
}

impl<'a> Asked<'a> {
    fn page(path: &'a str) -> Self {
        Self { method: "GET", path, bearer: None, body: None }
    }
}

impl Person {
    /// Signs in by a link that the command makes, at the daemon with this folder and address.
    pub(super) fn sign_in(profile: &str, data: &Path, url: &str) -> Result<Self> {
        let mut open = program("narthex", profile);
        open.args(["open", "--no-browser", "--quiet", "--data"]).arg(data);
        let done = capture(&mut open, SOON)?;
        ensure!(done.status.success(), "narthex open: {}{}", done.stdout, done.stderr);
        let link = done.stdout.trim();
        let rest = link.strip_prefix("http://").context("the link is of plain HTTP")?;
        let (host, path) = rest.split_once('/').context("a link has a path")?;
        let address = url.strip_prefix("http://").context("the daemon is asked over plain HTTP")?;
        let address = address.trim_end_matches('/').to_owned();
        let mut person = Self { address, host: host.to_owned(), cookie: String::new() };
        let path = format!("/{path}");
        let asked = Asked { method: "POST", path: &path, bearer: None, body: Some((FORM, "")) };
        let answer = person.connect()?.ask(&asked)?;
        ensure!(answer.status == 303, "the link was answered with {}", answer.status);
        person.cookie = answer.cookies.join("; ");
        ensure!(!person.cookie.is_empty(), "the sign-in has set no cookie");
        Ok(person)
    }

    pub(super) fn connect(&self) -> Result<Connection> {
        let stream = TcpStream::connect(&self.address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(SOON))?;
        Ok(Connection { person: self.clone(), stream: BufReader::new(stream) })
    }
}

impl Connection {
    /// A page, or an answer of the API, with the person's cookie.
    pub(super) fn get(&mut self, path: &str) -> Result<Answer> {
        self.ask(&Asked::page(path))
    }

    /// A page that exists.
    pub(super) fn see(&mut self, path: &str) -> Result<Answer> {
        let answer = self.get(path)?;
        ensure!(answer.status == 200, "{path} was answered with {}", answer.status);
        Ok(answer)
    }

    pub(super) fn ask(&mut self, asked: &Asked<'_>) -> Result<Answer> {
        let began = self.send(asked)?;
        self.stream.fill_buf()?;
        let first_byte = began.elapsed();
        let head = self.head().with_context(|| asked.path.to_owned())?;
        let body = match (head.length, head.is_chunked) {
            (Some(length), _) => {
                let mut body = vec![0; length];
                self.stream.read_exact(&mut body)?;
                body
            }
            (None, true) => {
                let mut body = Vec::new();
                while let Some(chunk) = self.chunk()? {
                    body.extend(chunk);
                }
                body
            }
            (None, false) => Vec::new(),
        };
        let body = String::from_utf8_lossy(&body).into_owned();
        Ok(Answer { status: head.status, first_byte, body, cookies: head.cookies })
    }

    /// Opens the stream of a page. Its events are read by [`Self::chunk`].
    pub(super) fn open(&mut self, path: &str) -> Result<()> {
        self.send(&Asked::page(path))?;
        let head = self.head()?;
        ensure!(head.status == 200, "the stream {path} was answered with {}", head.status);
        ensure!(head.is_chunked, "the stream {path} comes in one piece");
        Ok(())
    }

    /// The socket, with which another thread ends a wait.
    pub(super) fn socket(&self) -> Result<TcpStream> {
        Ok(self.stream.get_ref().try_clone()?)
    }

    /// The next part of a body without a length; `None` at its end.
    pub(super) fn chunk(&mut self) -> Result<Option<Vec<u8>>> {
        let mut line = String::new();
        if self.stream.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let size = line.trim().split(';').next().unwrap_or_default();
        let size = usize::from_str_radix(size, 16).with_context(|| format!("a chunk: {line:?}"))?;
        let mut chunk = vec![0; size];
        self.stream.read_exact(&mut chunk)?;
        line.clear();
        self.stream.read_line(&mut line)?;
        Ok((size > 0).then_some(chunk))
    }

    fn send(&mut self, asked: &Asked<'_>) -> Result<Instant> {
        let Person { host, cookie, .. } = &self.person;
        let Asked { method, path, bearer, body } = asked;
        let mut text = format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\nAccept: */*\r\n");
        match bearer {
            Some(token) => text.push_str(&format!("Authorization: Bearer {token}\r\n")),
            None => {
                text.push_str("Sec-Fetch-Site: same-origin\r\n");
                if !cookie.is_empty() {
                    text.push_str(&format!("Cookie: {cookie}\r\n"));
                }
            }
        }
        if let Some((kind, body)) = body {
            if bearer.is_none() {
                text.push_str(&format!("Origin: http://{host}\r\n"));
            }
            let length = body.len();
            text.push_str(&format!("Content-Type: {kind}\r\nContent-Length: {length}\r\n\r\n"));
            text.push_str(body);
        } else {
            text.push_str("\r\n");
        }
        let began = Instant::now();
        self.stream.get_mut().write_all(text.as_bytes())?;
        Ok(began)
    }

    fn head(&mut self) -> Result<Head> {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            ensure!(self.stream.read_line(&mut line)? > 0, "the daemon closed the connection");
            if line.trim_end().is_empty() {
                return Head::read(&lines);
            }
            lines.push(line.trim_end().to_owned());
        }
    }
}

/// The beginning of an answer.
#[derive(Debug, PartialEq, Eq)]
struct Head {
    status: u16,
    length: Option<usize>,
    is_chunked: bool,
    /// The cookies that are set, as a browser sends them.
    cookies: Vec<String>,
}

impl Head {
    fn read(lines: &[String]) -> Result<Self> {
        let Some((first, rest)) = lines.split_first() else { bail!("the answer is empty") };
        let status = first.split(' ').nth(1).and_then(|word| word.parse().ok());
        let status = status.with_context(|| format!("`{first}` is no answer of HTTP"))?;
        let mut head = Self { status, length: None, is_chunked: false, cookies: Vec::new() };
        for (name, value) in rest.iter().filter_map(|line| line.split_once(':')) {
            let value = value.trim();
            match name.to_ascii_lowercase().as_str() {
                "content-length" => head.length = value.parse().ok(),
                "transfer-encoding" => head.is_chunked = value.eq_ignore_ascii_case("chunked"),
                "set-cookie" => {
                    let pair = value.split(';').next().unwrap_or_default();
                    if !pair.ends_with('=') {
                        head.cookies.push(pair.to_owned());
                    }
                }
                _ => {}
            }
        }
        Ok(head)
    }
}

#[cfg(test)]
mod tests {
    use super::Head;

    #[test]
    fn the_beginning_of_an_answer_is_read() {
        let lines = [
            "HTTP/1.1 303 See Other",
            "Content-Length: 12",
            "set-cookie: narthex=abc; Path=/; HttpOnly",
            "set-cookie: narthex-onward=; Max-Age=0",
        ];
        let head = Head::read(&lines.map(str::to_owned)).unwrap();
        let cookies = vec!["narthex=abc".to_owned()];
        assert_eq!(head, Head { status: 303, length: Some(12), is_chunked: false, cookies });
        assert!(Head::read(&["nonsense".to_owned()]).is_err());
        assert!(Head::read(&[]).is_err());
    }
}
