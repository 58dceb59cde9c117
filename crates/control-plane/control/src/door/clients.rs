//! Programs that ask for tokens: they register themselves, or have a metadata document.

use std::{
    net::IpAddr,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use http::{HeaderMap, HeaderName, HeaderValue, Request, header};
use narthex_http_client::{AllowedAddresses, ClientSettings, HttpClient};
use narthex_oauth::server::{
    Answer, CachedDocument, Client, ClientId, DocumentError, DocumentUse, FETCH, FetchedDocument,
    RegistrationCounts, RegistrationLimits, RegistrationRules, UNUSED_LIFE, register,
};
use narthex_store::DoorClientRow;
use narthex_wire::Payload;
use serde::Serialize;
use url::{Position, Url};

use super::{
    DoorDesk,
    documents::{read, text_of},
    senders::counted_as,
    server::DoorServer,
};
use crate::ControlError;

/// The kind of a program that registered itself.
const REGISTERED: &str = "registration";
/// The kind of a program with a document.
const DOCUMENT: &str = "document";
/// Time after which a program is forgotten that was not used. No token of it is valid by then.
const USED_LIFE: Duration = Duration::from_hours(31 * 24);
/// Most documents of programs that are kept. Anyone can name a document, so further ones are read
/// anew each time.
const DOCUMENTS_MAX: usize = 1000;
/// The status of an answer to a registered program.
const CREATED: u16 = 201;
/// Time in which registrations are counted.
const HOUR: Duration = Duration::from_hours(1);

impl DoorDesk<'_> {
    /// Registers a program (RFC 7591). `sender` is the address of the other end of the connection.
    ///
    /// # Errors
    /// When the store fails. Faults of the program are answers.
    pub async fn register(
        &self,
        body: &[u8],
        sender: Option<IpAddr>,
    ) -> Result<Answer, ControlError> {
        let registrations = &self.server.registrations;
        let now = SystemTime::now();
        let counted = sender.and_then(counted_as);
        // Where too many senders are counted, the limits of all hold alone.
        let before = counted.and_then(|sender| registrations.count(&sender, now));
        let registered = self.register_counted(body, before.unwrap_or_default(), now).await;
        let is_done = matches!(&registered, Ok(answer) if answer.status == CREATED);
        if let Some(sender) = counted.filter(|_| before.is_some() && !is_done) {
            registrations.uncount(&sender);
        }
        registered
    }

    /// Registers a program whose sender has registered others in the last hour.
    async fn register_counted(
        &self,
        body: &[u8],
        in_last_hour_from_it: usize,
        now: SystemTime,
    ) -> Result<Answer, ControlError> {
        let (server, store) = (self.server, self.store.door());
        let forgotten = store.forget(REGISTERED, now - UNUSED_LIFE, now - USED_LIFE).await;
        forgotten.map_err(ControlError::Store)?;
        let count =
            async |since| store.clients_since(REGISTERED, since).await.map_err(ControlError::Store);
        let limits = RegistrationLimits::default();
        let mut clients = count(UNIX_EPOCH).await?;
        if clients >= limits.clients {
            // Strangers have filled the table: a program of a human is used within minutes.
            let forgotten = store.forget(REGISTERED, now - HOUR, now - USED_LIFE).await;
            forgotten.map_err(ControlError::Store)?;
            clients = count(UNIX_EPOCH).await?;
        }
        let counts = RegistrationCounts {
            clients,
            in_last_hour: count(now - HOUR).await?,
            in_last_hour_from_it,
        };
        let rules = RegistrationRules {
            redirects: &server.options.redirects,
            scopes: &server.scopes,
            limits,
        };
        match register(body, &rules, counts, now) {
            Ok(registered) => {
                let row = row(&registered.client, REGISTERED, &registered.client, now);
                store.put_client(&row).await.map_err(ControlError::Store)?;
                Ok(registered.answer)
            }
            Err(error) => Ok(error.answer()),
        }
    }

    /// The program of an id; `None` if it is unknown here.
    pub(super) async fn client(
        &self,
        id: &ClientId,
        usage: DocumentUse,
    ) -> Result<Option<Client>, ClientFault> {
        let is_document = id.document_url().is_some();
        let found = self.stored_client(id).await?;
        match found {
            // Nothing removes the row before the next registration.
            Some(row) if is_abandoned(&row, SystemTime::now()) => Ok(None),
            Some(row) if row.kind != DOCUMENT => {
                Ok(Some(read(&row.document).map_err(ControlError::from)?))
            }
            Some(_) => self.documented(id, usage).await,
            None if is_document => self.documented(id, usage).await,
            None => Ok(None),
        }
    }

    /// A program as it is stored, with the time of its last use. Nothing is fetched.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn registration(
        &self,
        id: &ClientId,
    ) -> Result<Option<DoorRegistration>, ControlError> {
        let Some(row) = self.stored_client(id).await? else { return Ok(None) };
        let client = match row.kind == DOCUMENT {
            true => read::<CachedDocument>(&row.document)?.client,
            false => read(&row.document)?,
        };
        Ok(Some(DoorRegistration {
            is_document: row.kind == DOCUMENT,
            client,
            created_at: row.created_at,
            used_at: row.used_at,
        }))
    }

    async fn stored_client(&self, id: &ClientId) -> Result<Option<DoorClientRow>, ControlError> {
        let found = self.store.door().client(id.as_str()).await;
        found.map_err(ControlError::Store)
    }

    /// The program of a document, which is fetched if the stored copy is old. One task at a time
    /// fetches the document of a program.
    async fn documented(
        &self,
        id: &ClientId,
        usage: DocumentUse,
    ) -> Result<Option<Client>, ClientFault> {
        let (server, now) = (self.server, SystemTime::now());
        let _turn = server.fetching.take(id).await;
        let cached: Option<CachedDocument> = match self.stored_client(id).await? {
            Some(row) => Some(read(&row.document).map_err(ControlError::from)?),
            None => None,
        };
        if let Some(fresh) = cached.as_ref().filter(|cached| !cached.is_old(now)) {
            return Ok(fresh.client_for(usage).cloned());
        }
        let is_new = cached.is_none();
        let next = match (server.fetch(id, now).await, cached) {
            (Ok(new), Some(cached)) => cached.after_success(new),
            (Ok(new), None) => new,
            (Err(error), Some(cached)) => {
                tracing::info!(client.id = id.as_str(), "the last good copy is used: {error}");
                cached.after_failure(now)
            }
            (Err(error), None) => return Err(ClientFault::Document(error)),
        };
        if !is_new || self.has_room(now).await? {
            let put = self.store.door().put_client(&row(&next.client, DOCUMENT, &next, now)).await;
            put.map_err(ControlError::Store)?;
        }
        Ok(next.client_for(usage).cloned())
    }
}

impl DoorDesk<'_> {
    /// True if one more document can be kept. Those that no program used are forgotten.
    async fn has_room(&self, now: SystemTime) -> Result<bool, ControlError> {
        let store = self.store.door();
        let forgotten = store.forget(DOCUMENT, now - UNUSED_LIFE, now - USED_LIFE).await;
        forgotten.map_err(ControlError::Store)?;
        let kept = store.clients_since(DOCUMENT, UNIX_EPOCH).await;
        Ok(kept.map_err(ControlError::Store)? < DOCUMENTS_MAX)
    }
}

/// A program that may ask for tokens, as it is stored.
#[derive(Debug, Clone)]
pub struct DoorRegistration {
    /// The program.
    pub client: Client,
    /// True if the facts are those of a document at the program's own address.
    pub is_document: bool,
    /// The time at which the program became known.
    pub created_at: SystemTime,
    /// The time at which it last got tokens; `None` before the first.
    pub used_at: Option<SystemTime>,
}

/// The reason why a program cannot be looked up.
#[derive(Debug)]
pub(super) enum ClientFault {
    /// Its document cannot be used.
    Document(DocumentError),
    /// Another failure.
    Control(ControlError),
}

impl From<ControlError> for ClientFault {
    fn from(error: ControlError) -> Self {
        Self::Control(error)
    }
}

/// True for a program that registered itself, and then was not used for days.
fn is_abandoned(row: &DoorClientRow, now: SystemTime) -> bool {
    let age = now.duration_since(row.created_at).unwrap_or_default();
    row.kind == REGISTERED && row.used_at.is_none() && age >= UNUSED_LIFE
}

fn row(client: &Client, kind: &str, document: &impl Serialize, now: SystemTime) -> DoorClientRow {
    DoorClientRow {
        id: client.id.as_str().to_owned(),
        kind: kind.to_owned(),
        document: text_of(document),
        created_at: now,
        used_at: None,
    }
}

/// The answer of a program's host.
#[derive(Debug)]
pub(super) struct Got {
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    pub(super) body: Vec<u8>,
}

impl DoorServer {
    /// Fetches the document of a program.
    async fn fetch(&self, id: &ClientId, now: SystemTime) -> Result<CachedDocument, DocumentError> {
        let got = self.get(&self.options.documents.admit(id)?).await?;
        let (kind, control, age) = (
            text(&got.headers, &header::CONTENT_TYPE),
            text(&got.headers, &header::CACHE_CONTROL),
            text(&got.headers, &header::AGE),
        );
        let fetched = FetchedDocument {
            status: got.status,
            content_type: kind.as_deref(),
            cache_control: control.as_deref(),
            age: age.as_deref(),
            body: &got.body,
        };
        fetched.read(id, &self.options.redirects, now)
    }

    /// Asks the host of a program: at a public address, within 5 seconds, for at most 64 KiB, and
    /// without redirects.
    pub(super) async fn get(&self, url: &Url) -> Result<Got, DocumentError> {
        let _place = self.fetches.try_acquire().map_err(|_full| DocumentError::Unreachable)?;
        self.get_within(url, AllowedAddresses::Public).await
    }

    /// Asks a host within these addresses, with the limits of time and size of [`Self::get`].
    pub(super) async fn get_within(
        &self,
        url: &Url,
        reach: AllowedAddresses,
    ) -> Result<Got, DocumentError> {
        let settings = ClientSettings {
            connect_timeout: FETCH.time,
            reach,
            proxies: self.proxies.clone(),
            max_idle: 0,
            // An answer that redirects is one without a document.
            returns_redirects: true,
            ..ClientSettings::default()
        };
        let client = HttpClient::new(url, settings).map_err(|_error| DocumentError::Unreachable)?;
        let mut request = Request::new(Payload::default());
        let path = url[Position::BeforePath..Position::AfterQuery].parse();
        *request.uri_mut() = path.map_err(|_unfit| DocumentError::NoAddress)?;
        let json = HeaderValue::from_static("application/json");
        request.headers_mut().insert(header::ACCEPT, json);
        let asked = async {
            let response =
                client.send(request).await.map_err(|_error| DocumentError::Unreachable)?;
            let (status, headers) = (response.status.as_u16(), response.headers);
            let body = response.body.collect(FETCH.bytes).await;
            let body = body.map_err(|_error| DocumentError::NotJson)?.to_vec();
            Ok::<_, DocumentError>(Got { status, headers, body })
        };
        let answered = tokio::time::timeout(FETCH.time, asked).await;
        answered.unwrap_or(Err(DocumentError::Unreachable))
    }
}

/// All values of a header as one.
fn text(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    let text = values.collect::<Vec<_>>().join(", ");
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use narthex_http_client::Proxies;
    use narthex_login::DoorOptions;
    use narthex_oauth::server::Door;
    use narthex_testkit::{
        addresses::{ClosedProxy, INSIDE},
        peer::{self, Peer},
    };

    use super::*;

    /// S9, S17, E169: a client names an inner address as its document or for its keys, in any
    /// spelling. It is not asked, and no proxy is asked for it.
    #[tokio::test]
    async fn s9_door_a3_documents_of_clients_are_at_public_addresses() {
        let proxy = ClosedProxy::start().await;
        let proxies = Proxies::new(Some(&proxy.url), Some(&proxy.url), "").unwrap();
        let door = Door::new("https://narthex.example.com").unwrap();
        let server = DoorServer::new(DoorOptions::new(door), Arc::new(proxies));
        for inside in INSIDE {
            let id = ClientId::parse(inside).ok();
            let admitted = id.and_then(|id| server.options.documents.admit(&id).ok());
            assert_eq!(admitted, None, "{inside}");
            // A name can lead there after it was read.
            let got = server.get(&Url::parse(inside).unwrap()).await;
            assert!(matches!(got, Err(DocumentError::Unreachable)), "{inside}");
        }
        assert_eq!(proxy.asked(), [""; 0]);
        server.get(&Url::parse("https://1.1.1.1/client.json").unwrap()).await.unwrap_err();
        assert_eq!(proxy.asked(), ["1.1.1.1:443"]);
    }

    /// A3: a document of the greatest length is read, and a longer one is none.
    #[tokio::test]
    async fn door_a3_a_document_that_is_too_long_is_not_read() {
        let server = DoorServer::new(
            DoorOptions::new(Door::new("http://127.0.0.1:7717").unwrap()),
            Arc::default(),
        );
        for (length, is_read) in [(FETCH.bytes, true), (FETCH.bytes + 1, false)] {
            let peer =
                Peer::start(move |_seen| peer::text(200, "application/json", "x".repeat(length)))
                    .await;
            let url = Url::parse(&peer.url).unwrap();
            let got = server.get_within(&url, AllowedAddresses::Anywhere).await;
            match got {
                Ok(got) => assert!(is_read && got.body.len() == length, "{}", got.body.len()),
                Err(error) => assert!(!is_read, "{error}"),
            }
        }
    }
}
