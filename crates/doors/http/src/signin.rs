//! The sign-in of humans in a browser: pages made by this daemon, one small script, no build step.
//!
//! These routes require no token, since humans get their session here. Each route has a proof of
//! its own (D4), named in the table of routes. A request that changes data must come from our own
//! page (`Origin`). If it needs a session, it must also repeat a value that only our page can read.

mod authorize;
mod choices;
mod connection;
mod consent;
mod cookie;
mod decision;
mod page;
mod passkeys;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header, request::Parts};
use narthex_control::{Control, ControlError, NewSession, SignInVerbs, SignedIn};
use narthex_gateway::Holder;
use narthex_model::{ErrorKind, json::shortened};
use percent_encoding::percent_decode_str;
use serde::de::DeserializeOwned;
use serde_json::Map;
use subtle::ConstantTimeEq;

use self::cookie::{Jar, Kept, ONWARD};
pub(crate) use self::{
    authorize::revoke_program,
    choices::{programs_of, sees},
    cookie::session_cookie,
    page::Program,
};
use crate::listener::single;
use crate::{
    body::{self, RequestBody, Room},
    door::Door,
    problem::Problem,
    respond::{self, Response},
    routes::Segments,
    server_sign_in::{self, Redirect},
    servers::changes::of_body,
    shapes::{CsrfForm, EmptyForm, LinkForm},
};

/// Enough bytes for the answer of any authenticator, which may contain certificates.
const BODY_MAX: usize = 64 * 1024;

/// The header in which a request by cookie repeats its form token; forms use a field instead.
const CSRF_HEADER: HeaderName = HeaderName::from_static("x-narthex-csrf");

/// The target of a route of the sign-in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SignInTarget {
    Page,
    Script,
    Style,
    Link,
    LinkUse,
    LinkMake,
    PasskeyBegin,
    PasskeyFinish,
    PasskeyNew,
    PasskeyAdd,
    PasskeyRemove,
    OidcBegin,
    OidcCallback,
    SignOut,
    /// The removal of a client that the human let in.
    ClientRemove,
    /// The request of a program that asks for tokens.
    Authorize,
    /// The page on which a human answers that program.
    Consent,
    ConsentAnswer,
    /// The page on which a human decides a run's grant request.
    Decision,
    Decide,
    /// The page on which a human connects their account to a server.
    Connection,
    ChangeConnection,
    /// The end of a sign-in to a server.
    ServerCallback,
    /// The client id metadata document.
    ClientMetadata,
}

impl SignInTarget {
    /// The kind of proof that failed, if a request for this target is refused (S32).
    fn proof(self) -> Option<&'static str> {
        match self {
            Self::Link | Self::LinkUse => Some("sign_in_link"),
            Self::PasskeyFinish => Some("sign_in_passkey"),
            Self::OidcCallback => Some("sign_in_provider"),
            Self::Page
            | Self::Script
            | Self::Style
            | Self::PasskeyBegin
            | Self::PasskeyNew
            | Self::PasskeyAdd
            | Self::PasskeyRemove
            | Self::LinkMake
            | Self::OidcBegin
            | Self::SignOut
            | Self::ClientRemove
            | Self::Authorize
            | Self::Consent
            | Self::ConsentAnswer
            | Self::Decision
            | Self::Decide
            | Self::Connection
            | Self::ChangeConnection
            | Self::ServerCallback
            | Self::ClientMetadata => None,
        }
    }
}

/// A request of a browser, without its body.
pub(crate) struct Visitor<'a> {
    pub(crate) door: &'a Door,
    pub(crate) control: &'a Control,
    pub(crate) target: SignInTarget,
    pub(crate) segments: Segments<'a>,
    pub(crate) parts: &'a Parts,
}

/// A request of a browser, whose human may have signed in.
#[derive(Clone, Copy)]
pub(crate) struct BrowserRequest<'a> {
    pub(crate) door: &'a Door,
    pub(crate) control: &'a Control,
    pub(crate) parts: &'a Parts,
}

impl<'a> BrowserRequest<'a> {
    /// Serves requests at the public origin only, since cookies and passkeys belong to it. A reader
    /// of a page at another origin is redirected. A request that changes data must come from a page
    /// of the public origin.
    pub(crate) fn at_the_public_origin(self) -> Result<Option<Response>, Problem> {
        let origin = self.control.sign_in_origin().ok_or_else(nothing)?;
        let is_read = matches!(self.parts.method, Method::GET | Method::HEAD);
        let host = single(&self.parts.headers, &header::HOST).flatten();
        if host.is_none_or(|host| !host.eq_ignore_ascii_case(origin.authority())) {
            let text = format!("sign in at {}", origin.at("/signin"));
            let elsewhere = Problem::new(ErrorKind::Denied, text);
            return match (is_read, self.parts.uri.path_and_query()) {
                (true, Some(path)) => Ok(Some(redirect(&origin.at(path.as_str()))?)),
                _ => Err(elsewhere),
            };
        }
        if !is_read && !is_from_our_page(&self.parts.headers, origin.as_str()) {
            let text = "the request was not sent by a page of this daemon";
            return Err(Problem::new(ErrorKind::Denied, text));
        }
        Ok(None)
    }

    /// Refuses a read by a page of another origin, such as in a frame, an image or an event source:
    /// pages at other ports of the same host get the cookie sent. A person may follow a link from
    /// anywhere.
    pub(crate) fn is_opened_or_ours(self) -> Result<(), Problem> {
        const MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");
        const DEST: HeaderName = HeaderName::from_static("sec-fetch-dest");
        let headers = &self.parts.headers;
        let is_opened = single(headers, &MODE).flatten() == Some("navigate")
            && matches!(single(headers, &DEST), Some(None | Some("document")));
        match is_of_our_site(headers) || is_opened {
            true => Ok(()),
            false => Err(Problem::new(ErrorKind::Denied, "the request comes from another site")),
        }
    }

    /// The session of the browser, if it is valid.
    pub(crate) fn session(self) -> Result<Option<(&'a str, SignedIn)>, Problem> {
        let Some(token) = self.jar().find(&self.parts.headers, Kept::Session) else {
            return Ok(None);
        };
        let signed_in = self.control.signed_in(token);
        let signed_in = signed_in.map_err(|error| Problem::new(error.kind(), error.to_string()))?;
        Ok(signed_in.map(|signed_in| (token, signed_in)))
    }

    /// The session of the browser, after a check that our page sent the request.
    pub(crate) fn checked_session(
        self,
        csrf: Option<&str>,
    ) -> Result<(&'a str, SignedIn), Problem> {
        let found = self.session()?;
        let (token, signed_in) = found.ok_or_else(|| {
            Problem::new(
                ErrorKind::Unauthenticated,
                "you are not signed in any more; sign in again",
            )
        })?;
        match csrf {
            Some(csrf) if is_same(csrf, &self.control.form_token(token)) => Ok((token, signed_in)),
            _ => Err(Problem::new(ErrorKind::Denied, "this page is too old; reload it")),
        }
    }

    /// Reads a form of a page as the type that the document has for it. Only a short body is read.
    pub(crate) async fn form<F: DeserializeOwned>(self, body: RequestBody) -> Result<F, Problem> {
        self.form_within(body, BODY_MAX).await
    }

    /// Reads a form of at most this many bytes.
    pub(crate) async fn form_within<F: DeserializeOwned>(
        self,
        body: RequestBody,
        most: usize,
    ) -> Result<F, Problem> {
        let kind = single(&self.parts.headers, &header::CONTENT_TYPE).flatten();
        let kind = kind.map(|kind| kind.split(';').next().unwrap_or_default().trim());
        let is_form = |kind: &str| kind.eq_ignore_ascii_case("application/x-www-form-urlencoded");
        if !kind.is_some_and(is_form) {
            let problem = Problem::new(ErrorKind::Invalid, "only forms are accepted here");
            return Err(problem.with_status(StatusCode::UNSUPPORTED_MEDIA_TYPE));
        }
        let bytes = self.read_within(body, most).await?;
        read_form(&bytes).map_err(|fault| {
            let text = format!("the form cannot be used: {fault}; reload its page, and send it");
            Problem::new(ErrorKind::Invalid, text)
        })
    }

    async fn read(self, body: RequestBody) -> Result<Bytes, Problem> {
        self.read_within(body, BODY_MAX).await
    }

    async fn read_within(self, body: RequestBody, most: usize) -> Result<Bytes, Problem> {
        let room = Room::Api(&self.door.api_bodies, Holder::Visitors);
        let within = self.door.options.body_timeout;
        let read = body::read_in(body, most, within, Some(room)).await;
        read.map_err(|fault| of_body(fault, "a form", most))
    }

    fn jar(self) -> Jar {
        Jar::new(self.control.sign_in_origin().is_some_and(|origin| origin.is_https()))
    }

    /// The sign-in page, with the reason why it is shown in place of another page.
    fn ways_in(self, reason: &str) -> Response {
        page::sign_in(reason, &self.control.sign_in_providers(), self.control.has_passkeys())
    }

    /// The page with all ways to sign in. After the sign-in, the browser gets the page that `kept`
    /// names, a value of the pages that the door serves beside its routes.
    pub(crate) fn ways_in_then(self, kept: &str) -> Response {
        let mut response = self.ways_in("The page opens after you sign in.");
        self.jar().set(&mut response, Kept::Onward, kept, ONWARD);
        response
    }
}

type Answered = Result<Response, Problem>;

impl Visitor<'_> {
    pub(crate) async fn answer(&self, body: RequestBody) -> Response {
        let answered = match self.target {
            SignInTarget::Script => Ok(page::asset(page::SCRIPT, "text/javascript; charset=utf-8")),
            SignInTarget::Style => Ok(page::asset(page::STYLE, "text/css; charset=utf-8")),
            SignInTarget::ServerCallback => self.finish_server().await,
            SignInTarget::ClientMetadata => self.client_metadata(),
            _ => self.dispatch(body).await,
        };
        answered.unwrap_or_else(|problem| {
            let is_refused =
                matches!(problem.kind(), ErrorKind::Unauthenticated | ErrorKind::Denied);
            if let Some(reason) = self.target.proof().filter(|_| is_refused) {
                self.door.refused(reason);
            }
            match self.wants_json() {
                true => page::guarded(problem.answer()),
                false => page::failure(&problem),
            }
        })
    }

    async fn dispatch(&self, body: RequestBody) -> Answered {
        if matches!(self.target, SignInTarget::Decision | SignInTarget::Decide) {
            // A path with an invalid workspace or request id is absent at every origin.
            self.place()?;
        }
        if matches!(self.target, SignInTarget::Connection | SignInTarget::ChangeConnection) {
            self.connection_place()?;
        }
        if let Some(elsewhere) = self.at_the_public_origin()? {
            return Ok(elsewhere);
        }
        match self.target {
            SignInTarget::Page => self.page().await,
            SignInTarget::Link => self.look_at_link().await,
            SignInTarget::LinkUse => self.use_link(body).await,
            SignInTarget::LinkMake => self.make_link(body).await,
            SignInTarget::PasskeyBegin => self.begin_sign_in(),
            SignInTarget::PasskeyFinish => self.finish_sign_in(body).await,
            SignInTarget::PasskeyNew => self.begin_passkey().await,
            SignInTarget::PasskeyAdd => self.add_passkey(body).await,
            SignInTarget::PasskeyRemove => self.remove_passkey(body).await,
            SignInTarget::OidcBegin => self.begin_oidc().await,
            SignInTarget::OidcCallback => self.finish_oidc().await,
            SignInTarget::SignOut => self.sign_out(body).await,
            SignInTarget::ClientRemove => self.remove_client(body).await,
            SignInTarget::Authorize => self.authorize().await,
            SignInTarget::Consent => self.consent().await,
            SignInTarget::ConsentAnswer => self.answer_consent(body).await,
            SignInTarget::Decision => self.decision().await,
            SignInTarget::Decide => self.decide(body).await,
            SignInTarget::Connection => self.connection().await,
            SignInTarget::ChangeConnection => self.change_connection(body).await,
            SignInTarget::Script
            | SignInTarget::Style
            | SignInTarget::ServerCallback
            | SignInTarget::ClientMetadata => Err(nothing()),
        }
    }

    /// True if the page's script sent the request, and no person reads the answer as a page.
    fn wants_json(&self) -> bool {
        matches!(
            self.target,
            SignInTarget::PasskeyBegin
                | SignInTarget::PasskeyFinish
                | SignInTarget::PasskeyNew
                | SignInTarget::PasskeyAdd
        )
    }

    /// Serves requests at the public origin only; see [`BrowserRequest::at_the_public_origin`].
    fn at_the_public_origin(&self) -> Result<Option<Response>, Problem> {
        self.as_request().at_the_public_origin()
    }

    fn as_request(&self) -> BrowserRequest<'_> {
        BrowserRequest { door: self.door, control: self.control, parts: self.parts }
    }

    /// Finishes a sign-in to a server with the redirect of its authorization server, which may come
    /// to another address than the public one.
    async fn finish_server(&self) -> Answered {
        self.control.sign_ins().ok_or_else(nothing)?;
        let server = Some(self.segment()).filter(|server| !server.is_empty());
        if let Some(elsewhere) = self.connection_elsewhere(server.as_deref())? {
            return Ok(elsewhere);
        }
        let redirect = Redirect {
            query: self.parts.uri.query().unwrap_or_default().to_owned(),
            server,
            visitor: self.session()?.map(|(_, signed_in)| signed_in),
        };
        let ended = server_sign_in::finish(self.control, redirect).await;
        if ended.is_unproved {
            self.door.refused("server_sign_in");
        }
        Ok(page::of_server(&ended))
    }

    /// Narthex's description of itself for authorization servers.
    fn client_metadata(&self) -> Answered {
        let document = SignInVerbs::of(self.control).client_document().ok_or_else(nothing)?;
        Ok(respond::json(StatusCode::OK, document.to_string().into_bytes().into()))
    }

    async fn page(&self) -> Answered {
        let Some((token, signed_in)) = self.session()? else { return Ok(self.ways_in("")) };
        let passkeys = self.control.passkeys(&signed_in.account.id).await?;
        let csrf = self.control.form_token(token);
        Ok(page::account(&page::Shown {
            signed_in: &signed_in,
            passkeys,
            programs: programs_of(self.control, &signed_in),
            csrf,
            has_passkeys: self.control.has_passkeys(),
            adds_passkeys: self.control.adds_passkeys(&signed_in).await?,
            links_add_passkeys: {
                let is_proved = signed_in.method.is_authenticated();
                self.control.links_add_passkeys(is_proved).await?
            },
            has_providers: !self.control.sign_in_providers().is_empty(),
            needs_proof: self.control.needs_proof(),
        }))
    }

    fn ways_in(&self, reason: &str) -> Response {
        self.as_request().ways_in(reason)
    }

    /// Shows the human whom a link would sign in, and a button. So a preview of the link does not
    /// use it up.
    async fn look_at_link(&self) -> Answered {
        let account = self.control.sign_in_link_look(&self.segment()).await?;
        Ok(page::link(account.name.as_str()))
    }

    async fn use_link(&self, body: RequestBody) -> Answered {
        let EmptyForm {} = self.form(body).await?;
        let new = self.control.sign_in_link_use(&self.segment()).await?;
        let mut response = redirect(&self.onward())?;
        self.open_session(&mut response, &new).await?;
        Ok(response)
    }

    /// Creates a link for another human, as `POST /api/principals/NAME/sign-in-links` does, and
    /// shows it once.
    async fn make_link(&self, body: RequestBody) -> Answered {
        let LinkForm { csrf, name } = self.form(body).await?;
        let (_, signed_in) = self.checked_session(Some(&csrf))?;
        let SignedIn { account, method, .. } = signed_in;
        if !account.is_operator {
            let text = "only an operator makes sign-in links; ask an operator";
            return Err(Problem::new(ErrorKind::Denied, text));
        }
        let (by, is_proved) = (account.actor(), method.is_authenticated());
        let made = self.control.sign_in_link_create(&name, &by, is_proved).await?;
        Ok(page::made_link(&made))
    }

    async fn begin_oidc(&self) -> Answered {
        let (url, token) = self.control.oidc_begin(&self.segment()).await?;
        let mut response = redirect(url.as_str())?;
        self.jar().set(&mut response, Kept::Attempt, token.expose(), cookie::ATTEMPT);
        Ok(response)
    }

    async fn finish_oidc(&self) -> Answered {
        let kept = self.jar().find(&self.parts.headers, Kept::Attempt);
        let kept = kept.ok_or_else(|| {
            let text = "this sign-in was not started in this browser, or took too long; try again";
            Problem::new(ErrorKind::Unauthenticated, text)
        })?;
        let query = self.parts.uri.query().unwrap_or_default();
        let new = self.control.oidc_finish(&self.segment(), kept, query).await?;
        let mut response = redirect(&self.onward())?;
        self.jar().clear(&mut response, Kept::Attempt);
        self.open_session(&mut response, &new).await?;
        Ok(response)
    }

    async fn sign_out(&self, body: RequestBody) -> Answered {
        let CsrfForm { csrf } = self.form(body).await?;
        let (token, _) = self.checked_session(Some(&csrf))?;
        self.control.sign_out(token).await?;
        let mut response = redirect("/signin")?;
        self.jar().clear(&mut response, Kept::Session);
        Ok(response)
    }

    /// Gives a session to the browser. The browser's earlier session is closed, so it cannot be
    /// used again.
    async fn open_session(
        &self,
        response: &mut Response,
        new: &NewSession,
    ) -> Result<(), ControlError> {
        if let Some(before) = self.jar().find(&self.parts.headers, Kept::Session) {
            self.control.session_end(before).await?;
        }
        let life = new.expires_at.duration_since(std::time::SystemTime::now()).unwrap_or_default();
        self.jar().set(response, Kept::Session, new.token.expose(), life);
        if self.jar().find(&self.parts.headers, Kept::Onward).is_some() {
            self.jar().clear(response, Kept::Onward);
        }
        Ok(())
    }

    fn session(&self) -> Result<Option<(&str, SignedIn)>, Problem> {
        self.as_request().session()
    }

    fn checked_session(&self, csrf: Option<&str>) -> Result<(&str, SignedIn), Problem> {
        self.as_request().checked_session(csrf)
    }

    async fn form<F: DeserializeOwned>(&self, body: RequestBody) -> Result<F, Problem> {
        self.as_request().form(body).await
    }

    async fn read(&self, body: RequestBody) -> Result<Bytes, Problem> {
        self.as_request().read(body).await
    }

    fn jar(&self) -> Jar {
        self.as_request().jar()
    }

    fn segment(&self) -> String {
        self.nth_segment(0)
    }

    fn nth_segment(&self, index: usize) -> String {
        percent_decode_str(self.segments[index]).decode_utf8_lossy().into_owned()
    }
}

/// Reads the fields of a form, each of which is text. Returns the first fault as text.
fn read_form<F: DeserializeOwned>(bytes: &[u8]) -> Result<F, String> {
    let mut fields = Map::new();
    for (name, value) in form_urlencoded::parse(bytes) {
        let name = shortened(&name);
        if fields.insert(name.clone(), value.into_owned().into()).is_some() {
            return Err(format!("the field `{name}` is there twice"));
        }
    }
    serde_json::from_value(fields.into()).map_err(|error| error.to_string())
}

/// Checks a request by cookie. A read must not come from another site. A change must come from our
/// own page, and repeat a value that only our page can read.
pub(crate) fn check_cookie_request(
    control: &Control,
    token: &str,
    parts: &Parts,
) -> Result<(), Problem> {
    let denied = |text| Err(Problem::new(ErrorKind::Denied, text));
    let Some(origin) = control.sign_in_origin() else {
        return denied("no human signs in at this process");
    };
    if matches!(parts.method, Method::GET | Method::HEAD) {
        return match is_of_our_site(&parts.headers) {
            true => Ok(()),
            false => denied("the request comes from another site"),
        };
    }
    if !is_from_our_page(&parts.headers, origin.as_str()) {
        return denied("the request was not sent by a page of this daemon");
    }
    let csrf = single(&parts.headers, &CSRF_HEADER).flatten();
    match csrf.is_some_and(|csrf| is_same(csrf, &control.form_token(token))) {
        true => Ok(()),
        false => denied("the header X-Narthex-Csrf is missing, or belongs to another session"),
    }
}

fn is_from_our_page(headers: &HeaderMap, origin: &str) -> bool {
    single(headers, &header::ORIGIN).flatten() == Some(origin) && is_of_our_site(headers)
}

/// True if the browser reports that the request comes from our own site. The header is also absent
/// in requests of older browsers and of other programs, which pass.
fn is_of_our_site(headers: &HeaderMap) -> bool {
    const SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
    match single(headers, &SITE) {
        Some(None | Some("same-origin" | "none")) => true,
        Some(Some(_)) | None => false,
    }
}

fn is_same(a: &str, b: &str) -> bool {
    a.as_bytes().ct_eq(b.as_bytes()).into()
}

fn redirect(to: &str) -> Answered {
    let to = HeaderValue::from_str(to).map_err(|_error| nothing())?;
    let mut response = page::guarded(respond::empty(StatusCode::SEE_OTHER));
    response.headers_mut().insert(header::LOCATION, to);
    Ok(response)
}

fn nothing() -> Problem {
    Problem::new(ErrorKind::NotFound, "nothing is here")
}

/// The status of a problem whose answer is a page.
fn status(problem: &Problem) -> StatusCode {
    match problem.kind() {
        // A 401 is valid only with a challenge, which a page does not have.
        ErrorKind::Unauthenticated => StatusCode::FORBIDDEN,
        _ => problem.status(),
    }
}
