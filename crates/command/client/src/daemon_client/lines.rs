//! Contents of the daemon in lines, of any length.

use std::collections::VecDeque;

use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use narthex_http_client::HttpResponse;
use narthex_model::ErrorKind;
use narthex_wire::Payload;
use serde_json::Value;

use super::{DaemonClient, api::of_problem, failure, refused};
use crate::Failure;

/// Longer than any line.
const LINE_MAX: usize = 16 << 20;

/// A content that is read line by line.
#[derive(Debug)]
pub struct LineReader {
    response: HttpResponse,
    rest: Vec<u8>,
    lines: VecDeque<String>,
}

impl DaemonClient {
    /// Requests a content in lines.
    ///
    /// # Errors
    /// When the daemon cannot be reached, refuses, or closes the connection.
    pub async fn api_lines(&self, path: String) -> Result<LineReader, Failure> {
        let response = self.api_content(path, "application/x-ndjson").await?;
        Ok(LineReader { response, rest: Vec::new(), lines: VecDeque::new() })
    }

    /// Requests a content that is read piece by piece.
    ///
    /// # Errors
    /// When the daemon cannot be reached, refuses, or closes the connection.
    pub async fn api_content(
        &self,
        path: String,
        accept: &'static str,
    ) -> Result<HttpResponse, Failure> {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT, HeaderValue::from_static(accept));
        let response = self.send(Method::GET, &path, headers, Payload::default()).await?;
        if response.status == StatusCode::OK {
            return Ok(response);
        }
        let (status, body) = (response.status, self.body(response).await?);
        match serde_json::from_slice::<Value>(&body) {
            Ok(problem) => Err(of_problem(status, &problem)),
            Err(_) => Err(refused(status, &String::from_utf8_lossy(&body))),
        }
    }
}

impl LineReader {
    /// Waits for the next line, and returns it without its end; `None` after the last line.
    ///
    /// # Errors
    /// When the connection breaks off.
    pub async fn next(&mut self) -> Result<Option<String>, Failure> {
        loop {
            if let Some(line) = self.lines.pop_front() {
                return Ok(Some(line));
            }
            let Some(chunk) = self.response.body.chunk().await else {
                let rest = std::mem::take(&mut self.rest);
                let rest = String::from_utf8_lossy(&rest).into_owned();
                return Ok(Some(rest).filter(|rest| !rest.is_empty()));
            };
            self.rest.extend_from_slice(&chunk.map_err(|error| failure(&error))?);
            if let Some(end) = self.rest.iter().rposition(|byte| *byte == b'\n') {
                let whole: Vec<u8> = self.rest.drain(..=end).collect();
                let text = String::from_utf8_lossy(&whole).into_owned();
                self.lines.extend(text.lines().map(str::to_owned));
            } else if self.rest.len() > LINE_MAX {
                return Err(Failure::new(ErrorKind::Exhausted, "the daemon sent an endless line"));
            }
        }
    }
}
