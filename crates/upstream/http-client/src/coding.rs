//! Decodes answers that a server compressed although the request asked for no compression.
//!
//! Requests carry `Accept-Encoding: identity`. Some servers, and proxies before them, compress all
//! the same. The decoded body comes in small pieces, so that limits hold for it.

use std::io::{self, Write};

use bytes::Bytes;
use flate2::write::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
use http::{HeaderMap, header};

/// Bytes of an answer that are decoded at a time. They become at most about a thousand times more.
const STEP_BYTES: usize = 1024;

/// Decodes the body of one answer.
#[derive(Debug)]
pub(super) struct Decoder {
    coding: Coding,
    input: Bytes,
    is_finished: bool,
    has_input: bool,
}

#[derive(Debug)]
enum Coding {
    Gzip(MultiGzDecoder<Vec<u8>>),
    /// Zlib or raw deflate: the first byte shows which.
    Deflate,
    Zlib(ZlibDecoder<Vec<u8>>),
    RawDeflate(DeflateDecoder<Vec<u8>>),
    /// A coding that this client cannot decode.
    Unknown(String),
}

impl Decoder {
    /// The decoder for an answer with these headers; `None` if the answer comes as it is.
    pub(super) fn of(headers: &HeaderMap) -> Option<Self> {
        let named = headers.get(header::CONTENT_ENCODING)?;
        let named = String::from_utf8_lossy(named.as_bytes()).trim().to_ascii_lowercase();
        let coding = match &*named {
            "" | "identity" => return None,
            "gzip" | "x-gzip" => Coding::Gzip(MultiGzDecoder::new(Vec::new())),
            "deflate" => Coding::Deflate,
            _ => Coding::Unknown(named),
        };
        Some(Self { coding, input: Bytes::new(), is_finished: false, has_input: false })
    }

    /// Takes the next part of the body, once [`Decoder::next`] has no more.
    pub(super) fn push(&mut self, input: Bytes) {
        self.has_input |= !input.is_empty();
        self.input = input;
    }

    /// Notes that the body is at its end.
    pub(super) fn finish(&mut self) {
        self.is_finished = true;
    }

    pub(super) fn is_finished(&self) -> bool {
        self.is_finished
    }

    /// The next decoded piece; `None` if more input is needed, or nothing is left.
    pub(super) fn next(&mut self) -> Result<Option<Bytes>, String> {
        while !self.input.is_empty() {
            let step = self.input.split_to(self.input.len().min(STEP_BYTES));
            let piece = self.coding.decode(step)?;
            if !piece.is_empty() {
                return Ok(Some(piece));
            }
        }
        match self.is_finished && std::mem::take(&mut self.has_input) {
            true => self.coding.end().map(|rest| Some(rest).filter(|rest| !rest.is_empty())),
            false => Ok(None),
        }
    }
}

impl Coding {
    fn decode(&mut self, input: Bytes) -> Result<Bytes, String> {
        if let (Self::Deflate, Some(first)) = (&*self, input.first()) {
            // RFC 9110 means zlib, and some send the bare stream, which does not begin so.
            *self = match first & 0x0f == 8 && first >> 4 <= 7 {
                true => Self::Zlib(ZlibDecoder::new(Vec::new())),
                false => Self::RawDeflate(DeflateDecoder::new(Vec::new())),
            };
        }
        let wrong = |error: io::Error| format!("it does not match its Content-Encoding: {error}");
        let writer = self.writer()?;
        writer.write_all(&input).map_err(wrong)?;
        writer.flush().map_err(wrong)?;
        Ok(self.taken())
    }

    fn end(&mut self) -> Result<Bytes, String> {
        let ended = match self {
            Self::Gzip(decoder) => decoder.try_finish(),
            Self::Zlib(decoder) => decoder.try_finish(),
            Self::RawDeflate(decoder) => decoder.try_finish(),
            Self::Deflate | Self::Unknown(_) => Ok(()),
        };
        ended.map_err(|error| format!("it ends too early: {error}"))?;
        Ok(self.taken())
    }

    fn writer(&mut self) -> Result<&mut dyn Write, String> {
        match self {
            Self::Gzip(decoder) => Ok(decoder),
            Self::Zlib(decoder) => Ok(decoder),
            Self::RawDeflate(decoder) => Ok(decoder),
            Self::Deflate => Err("it is empty".to_owned()),
            Self::Unknown(named) => Err(format!(
                "it has the content coding `{named}`, which narthex does not support; set the \
                 server, or the proxy before it, to send `identity` or gzip"
            )),
        }
    }

    /// The decoded bytes so far.
    fn taken(&mut self) -> Bytes {
        let out = match self {
            Self::Gzip(decoder) => decoder.get_mut(),
            Self::Zlib(decoder) => decoder.get_mut(),
            Self::RawDeflate(decoder) => decoder.get_mut(),
            Self::Deflate | Self::Unknown(_) => return Bytes::new(),
        };
        std::mem::take(out).into()
    }
}

#[cfg(test)]
mod tests {
    use flate2::{
        Compression,
        write::{DeflateEncoder, GzEncoder, ZlibEncoder},
    };

    use super::*;

    fn encoded<W>(encoder: W, text: &[u8], end: fn(W) -> io::Result<Vec<u8>>) -> Vec<u8>
    where
        W: Write,
    {
        let mut encoder = encoder;
        encoder.write_all(text).unwrap();
        end(encoder).unwrap()
    }

    fn decoded(coding: &str, body: &[u8], chunk: usize) -> Result<Vec<u8>, String> {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_ENCODING, coding.parse().unwrap());
        let mut decoder = Decoder::of(&headers).unwrap();
        let mut out = Vec::new();
        for chunk in body.chunks(chunk) {
            decoder.push(Bytes::copy_from_slice(chunk));
            while let Some(piece) = decoder.next()? {
                assert!(piece.len() <= 2 * 1024 * 1024);
                out.extend_from_slice(&piece);
            }
        }
        decoder.finish();
        while let Some(piece) = decoder.next()? {
            out.extend_from_slice(&piece);
        }
        Ok(out)
    }

    /// E170: each coding that is read, in chunks of each size; an incomplete or unknown one is
    /// named.
    #[test]
    fn e170_coded_answers_are_decoded_or_named() {
        let text = "{\"a\":\"narthex\"}".repeat(5000).into_bytes();
        let best = Compression::best();
        let gzip = encoded(GzEncoder::new(Vec::new(), best), &text, GzEncoder::finish);
        let zlib = encoded(ZlibEncoder::new(Vec::new(), best), &text, ZlibEncoder::finish);
        let bare = encoded(DeflateEncoder::new(Vec::new(), best), &text, DeflateEncoder::finish);
        for chunk in [1, 7, 4096, 1 << 20] {
            for (coding, body) in
                [("gzip", &gzip), ("X-GZIP", &gzip), ("deflate", &zlib), ("deflate", &bare)]
            {
                assert_eq!(decoded(coding, body, chunk).unwrap(), text, "{coding} {chunk}");
            }
        }
        assert!(
            decoded("gzip", &gzip[..gzip.len() - 4], 64).unwrap_err().contains("ends too early")
        );
        assert!(decoded("gzip", b"{\"jsonrpc\"", 64).unwrap_err().contains("Content-Encoding"));
        assert!(decoded("br", b"x", 64).unwrap_err().contains("`br`"));
        assert_eq!(decoded("gzip", b"", 64).unwrap(), b"", "an empty body is empty");
    }
}
