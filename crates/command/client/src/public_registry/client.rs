//! Reads servers from a registry: within limits of time, size and pages.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use http::{HeaderValue, Method, Request, StatusCode, header};
use narthex_http_client::{ClientError, ClientSettings, HttpClient, Proxies};
use narthex_model::{ErrorKind, command::narthex, json::with_whole_pairs};
use narthex_wire::Payload;
use serde_json::Value;
use tokio::time::timeout;

use super::{
    address::RegistryAddress,
    document::{ListedServer, ServerPage, ServerStatus},
    unreached,
};
use crate::{Failure, output::harmless};

/// The longest answer of a registry, in bytes.
const ANSWER_MAX: usize = 8 * 1024 * 1024;
/// Longest time for one answer.
const ANSWER_TIME: Duration = Duration::from_secs(30);
/// Longest time for all answers of a search.
const SEARCH_TIME: Duration = Duration::from_secs(60);
/// Number of servers on a page that is asked for.
const PAGE: &str = "100";
/// Number of pages that are read for one word.
const PAGES_MAX: usize = 5;
/// Number of words that a search has.
pub const WORDS_MAX: usize = 5;

/// A client of one registry.
#[derive(Debug)]
pub struct PublicRegistry {
    address: RegistryAddress,
    http: HttpClient,
}

/// A server as it was read, and the registry's own text of it for the cache.
#[derive(Debug, Clone, PartialEq)]
pub struct Listing {
    pub listed: ListedServer,
    pub answer: Value,
}

/// The servers that a search found.
#[derive(Debug, Default, PartialEq)]
pub struct Found {
    /// In the order of their names.
    pub listings: Vec<Listing>,
    /// True if the registry has more servers with one of the words than were read.
    pub is_cut: bool,
    /// Number of servers that this version of narthex cannot read.
    pub unread: usize,
}

impl Listing {
    /// Reads one server of an answer.
    #[must_use]
    pub fn read(answer: Value) -> Option<Self> {
        Some(Self { listed: ListedServer::read(&answer)?, answer })
    }
}

impl PublicRegistry {
    /// A client of the registry at this address. Connects with the first request.
    ///
    /// # Errors
    /// When the address cannot be used.
    pub fn new(address: RegistryAddress, proxies: Arc<Proxies>) -> Result<Self, Failure> {
        let settings = ClientSettings { proxies, ..ClientSettings::default() };
        let http = HttpClient::new(address.url(), settings)
            .map_err(|error| Failure::caused(error.kind(), &error))?;
        Ok(Self { address, http })
    }

    /// The address of the registry.
    #[must_use]
    pub fn address(&self) -> &RegistryAddress {
        &self.address
    }

    /// Finds the latest versions of servers that have all of these words, in small letters, in
    /// their name, title or description. The registry itself looks for a word in names only, so a
    /// server is found by at least one word of its name.
    ///
    /// # Errors
    /// When the registry cannot be reached, refuses, or sends an unreadable answer.
    pub async fn search(&self, words: &[String]) -> Result<Found, Failure> {
        self.search_within(words, SEARCH_TIME).await
    }

    async fn search_within(&self, words: &[String], most: Duration) -> Result<Found, Failure> {
        let (mut found, mut by_name) = (Found::default(), BTreeMap::new());
        let asked = timeout(most, async {
            for word in words.iter().take(WORDS_MAX) {
                self.pages_of(word, &mut found, &mut by_name).await?;
            }
            Ok::<_, Failure>(())
        });
        asked.await.map_err(|_late| {
            let what = format!(
                "sent not all of its servers within {} s; search with fewer or longer words",
                most.as_secs()
            );
            self.failed(ErrorKind::Timeout, &what)
        })??;
        let is_wanted = |listing: &Listing| {
            let is_there = listing.listed.status() != ServerStatus::Deleted;
            is_there && listing.listed.server.has_words(words)
        };
        found.listings = by_name.into_values().filter(is_wanted).collect();
        Ok(found)
    }

    async fn pages_of(
        &self,
        word: &str,
        found: &mut Found,
        by_name: &mut BTreeMap<String, Listing>,
    ) -> Result<(), Failure> {
        let mut cursor = String::new();
        for _ in 0..PAGES_MAX {
            let mut query = vec![("search", word), ("version", "latest"), ("limit", PAGE)];
            if !cursor.is_empty() {
                query.push(("cursor", &cursor));
            }
            let page = self.page(&self.address.path(&["servers"], &query)).await?;
            for answer in page.servers {
                let Some(listing) = Listing::read(answer) else {
                    found.unread += 1;
                    continue;
                };
                let name = listing.listed.server.name.clone();
                // A registry that ignores `version` lists all versions of a server.
                let is_newer =
                    |old: &Listing| listing.listed.is_latest() || !old.listed.is_latest();
                if by_name.get(&name).is_none_or(is_newer) {
                    by_name.insert(name, listing);
                }
            }
            match page.metadata.next_cursor.filter(|next| !next.is_empty()) {
                // A registry that repeats a cursor would never end.
                Some(next) if next != cursor => cursor = next,
                Some(_) | None => return Ok(()),
            }
        }
        found.is_cut = true;
        Ok(())
    }

    /// One version of a server; `latest` is the newest.
    ///
    /// # Errors
    /// When the registry has no such server or version, cannot be reached, or sends an unreadable
    /// answer.
    pub async fn version(&self, name: &str, version: &str) -> Result<Listing, Failure> {
        let path = self.address.path(&["servers", name, "versions", version], &[]);
        let (status, answer) = self.get(&path).await?;
        match status {
            StatusCode::OK => {
                let listing = Listing::read(answer).ok_or_else(|| {
                    let what =
                        format!("describes `{name}` in a form that this version cannot read");
                    self.failed(ErrorKind::Invalid, &what)
                })?;
                let server = &listing.listed.server;
                if server.name == name && (version == "latest" || server.version == version) {
                    return Ok(listing);
                }
                let what = format!(
                    "answered with `{}` {} instead of `{name}` {version}; choose another with \
                     --registry, or leave --version out",
                    server.name, server.version
                );
                Err(self.failed(ErrorKind::Invalid, &what))
            }
            StatusCode::NOT_FOUND => {
                let search = narthex("search {}", &[&last_part(name)]);
                let what = match version {
                    "latest" => format!("has no server `{name}`; find its name with `{search}`"),
                    version => format!(
                        "has no version `{version}` of `{name}`; leave --version out for the latest"
                    ),
                };
                Err(self.failed(ErrorKind::NotFound, &what))
            }
            status => Err(self.refused(status, &answer)),
        }
    }

    async fn page(&self, path: &str) -> Result<ServerPage, Failure> {
        let (status, answer) = self.get(path).await?;
        if status != StatusCode::OK {
            return Err(self.refused(status, &answer));
        }
        serde_json::from_value(answer).map_err(|error| {
            let what = format!("sent no list of servers of the registry API v0.1: {error}");
            self.failed(ErrorKind::Invalid, &what)
        })
    }

    /// One answer of JSON; null for another body of a refusal.
    async fn get(&self, path: &str) -> Result<(StatusCode, Value), Failure> {
        let mut request = Request::new(Payload::default());
        *request.method_mut() = Method::GET;
        *request.uri_mut() = path.parse().map_err(|error| {
            Failure::new(ErrorKind::Bug, format!("`{path}` is not a path: {error}"))
        })?;
        let json = HeaderValue::from_static("application/json");
        request.headers_mut().insert(header::ACCEPT, json);
        let asked = timeout(ANSWER_TIME, async {
            let response = self.http.send(request).await?;
            let status = response.status;
            Ok((status, response.body.collect(ANSWER_MAX).await?))
        });
        let answered = asked.await.map_err(|_late| {
            let reason = format!("it sent no whole answer within {} s", ANSWER_TIME.as_secs());
            unreached::late(&self.address, &reason)
        })?;
        let (status, body) =
            answered.map_err(|error: ClientError| unreached::failure(&self.address, &error))?;
        match serde_json::from_slice(&with_whole_pairs(&body)) {
            Ok(answer) => Ok((status, answer)),
            Err(_) if status != StatusCode::OK => Ok((status, Value::Null)),
            Err(error) => {
                let what = format!("sent an answer that is not JSON: {error}");
                Err(self.failed(ErrorKind::Invalid, &what))
            }
        }
    }

    fn refused(&self, status: StatusCode, answer: &Value) -> Failure {
        let kind = match status {
            StatusCode::UNAUTHORIZED => ErrorKind::Unauthenticated,
            StatusCode::FORBIDDEN => ErrorKind::Denied,
            StatusCode::NOT_FOUND => ErrorKind::NotFound,
            StatusCode::TOO_MANY_REQUESTS => ErrorKind::Exhausted,
            _ => ErrorKind::Unavailable,
        };
        let words = ["error", "detail", "title"].iter().find_map(|name| answer[*name].as_str());
        let words = words.map(|words| format!(": {}", words.chars().take(200).collect::<String>()));
        self.failed(kind, &format!("answered {status}{}", words.unwrap_or_default()))
    }

    /// A failure with this end of its sentence, which may have texts of the registry.
    fn failed(&self, kind: ErrorKind, what: &str) -> Failure {
        Failure::new(kind, harmless(&format!("the registry {} {what}", self.address)))
    }
}

/// The part of a name behind the publisher.
#[must_use]
pub fn last_part(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

#[cfg(test)]
mod tests;
