//! The way of a program that asks for tokens to the page of consent, and the answers of humans.
//!
//! Only an address that was verified gets a redirect.

use http::header;
use narthex_control::{
    Actor, ActorKind, By, Control, DoorBrowser, DoorChoice, DoorDesk, DoorHuman, DoorStop, SignedIn,
};
use narthex_model::{ErrorKind, PrincipalId};
use narthex_oauth::server::{
    AuthorizeRefusal, Checked, PENDING_LIFE, PendingConsent, Prompt, Redirect, RedirectKind,
};

use super::{
    Answered, Kept, Visitor,
    choices::{Choice, clients_of, preselected},
    consent::{Shown, page, policy},
    cookie::ONWARD,
    is_same, nothing, redirect,
};
use crate::{
    body::RequestBody,
    door::Door,
    problem::Problem,
    respond::Response,
    shapes::{ConsentForm, CsrfForm, Decision},
};

/// The beginning of the cookie that leads to a page of consent after the sign-in.
const TO_CONSENT: &str = "~consent/";
/// Number of characters of the token of a page.
const TOKEN_TEXT: usize = 43;

/// The browser of a request, as far as it may answer a program.
enum Browser<'v> {
    /// A human has signed in; the secret is the token of the session.
    Human(&'v str, SignedIn),
    /// A browser of this machine, where a click is enough; the secret is its cookie.
    Local(&'v str),
    /// A browser of this machine that has no cookie yet.
    NewLocal,
    /// No human has signed in.
    Unknown,
}

/// The human of a browser that may answer a program.
struct Acting<'v> {
    browser: DoorBrowser<'v>,
    secret: &'v str,
    human: DoorHuman,
    who: String,
    /// False if this sign-in proves no human, and one is needed.
    is_proved: bool,
}

impl Visitor<'_> {
    /// Starts the request of a program: an answer without a page where the human has consented
    /// before, the page of consent, or the sign-in page.
    pub(super) async fn authorize(&self) -> Answered {
        let desk = self.desk()?;
        let query = self.parts.uri.query().unwrap_or_default();
        let Checked { pending, prompt } = match desk.authorize(query).await? {
            Ok(checked) => checked,
            Err(DoorStop::Page(text)) => return Err(Problem::new(ErrorKind::Invalid, text)),
            Err(DoorStop::Redirect(to)) => return leave(&to),
        };
        let browser = self.browser(Some(&pending))?;
        if let (Browser::Human(_, signed_in), false) = (&browser, prompt == Prompt::Consent)
            && self.is_proved(signed_in)
            && let Some(known) = desk.remembered(&human(signed_in), &pending)
        {
            let approved = desk.approve_again(pending, &human(signed_in), &known).await;
            return leave(&approved?);
        }
        if prompt == Prompt::Never {
            let is_signed_in = matches!(browser, Browser::Human(..));
            return match AuthorizeRefusal::needs_page(&pending, is_signed_in, desk.server().door())
            {
                AuthorizeRefusal::Redirect(to) => leave(&to),
                AuthorizeRefusal::Page(error) => {
                    Err(Problem::new(ErrorKind::Invalid, error.to_string()))
                }
            };
        }
        match browser {
            Browser::Human(secret, _) | Browser::Local(secret) => {
                let token = desk.wait(&pending, Some(secret)).await?;
                self.consent_page(&pending, token.expose(), &browser, false).await
            }
            Browser::NewLocal => {
                let secret = desk.visitor()?;
                let token = desk.wait(&pending, Some(secret.expose())).await?;
                let known = Browser::Local(secret.expose());
                let page = self.consent_page(&pending, token.expose(), &known, false).await;
                let mut response = page?;
                self.jar().set(&mut response, Kept::Visitor, secret.expose(), PENDING_LIFE);
                Ok(response)
            }
            Browser::Unknown => {
                let token = desk.wait(&pending, None).await?;
                Ok(self.sign_in_for(token.expose()))
            }
        }
    }

    /// Shows the page of a request that waits. A browser that is not signed in returns to it after
    /// the sign-in.
    pub(super) async fn consent(&self) -> Answered {
        let desk = self.desk()?;
        let token = self.page_token()?;
        let browser = self.browser(None)?;
        let Some(acting) = self.acting(&browser) else { return Ok(self.sign_in_for(&token)) };
        let pending = desk.waiting(&token, acting.browser).await?;
        self.consent_page(&pending, &token, &browser, false).await
    }

    /// Answers a program as the human chose.
    pub(super) async fn answer_consent(&self, body: RequestBody) -> Answered {
        let desk = self.desk()?;
        let token = self.page_token()?;
        let ConsentForm { csrf, decision, servers } = self.form(body).await?;
        let browser = self.browser(None)?;
        let Some(acting) = self.acting(&browser) else {
            let text = "you are not signed in any more; begin again in the client";
            return Err(Problem::new(ErrorKind::Unauthenticated, text));
        };
        if !is_same(&csrf, &self.control.form_token(acting.secret)) {
            return Err(Problem::new(ErrorKind::Denied, "this page is too old; reload it"));
        }
        match decision {
            Decision::Deny => {
                let pending = desk.take(&token, acting.browser).await?;
                leave(&desk.deny(pending))
            }
            Decision::Approve if !acting.is_proved => {
                let text = "a link proves no human; sign in with a passkey or at a provider to let \
                            a program act for you";
                Err(Problem::new(ErrorKind::Denied, text))
            }
            Decision::Approve => {
                let home = self.control.home();
                let chosen = servers.as_deref().and_then(|servers| Choice::read(servers, home));
                let Some(choice) = chosen else {
                    let pending = desk.waiting(&token, acting.browser).await?;
                    return self.consent_page(&pending, &token, &browser, true).await;
                };
                self.let_in(&token, &acting, choice).await
            }
        }
    }

    async fn let_in(&self, token: &str, acting: &Acting<'_>, choice: DoorChoice) -> Answered {
        let Some(runs) = &self.door.options.runs else { return Err(nothing()) };
        let desk = self.desk()?;
        let Acting { browser, human, .. } = acting;
        let pending = desk.waiting(token, *browser).await?;
        if !self.is_offered(&pending, human, &choice).await? {
            let text = "these servers are not offered to you; reload the page, and choose others";
            return Err(Problem::new(ErrorKind::Denied, text));
        }
        let pending = desk.take(token, *browser).await?;
        // Boxed: creating the checks of a run makes a large future.
        leave(&Box::pin(runs.door_approve(pending, human, choice)).await?)
    }

    /// Revokes a client that the human let in, from the page of their account.
    pub(super) async fn remove_client(&self, body: RequestBody) -> Answered {
        let CsrfForm { csrf } = self.form(body).await?;
        let (_, signed_in) = self.checked_session(Some(&csrf))?;
        revoke_program(self.door, self.control, &signed_in, &self.segment()).await?;
        redirect("/signin")
    }

    fn desk(&self) -> Result<DoorDesk<'_>, Problem> {
        let desk = DoorDesk::of(self.control);
        desk.filter(|desk| desk.server().gives_tokens()).ok_or_else(nothing)
    }

    fn page_token(&self) -> Result<String, Problem> {
        let token = self.segment();
        if is_token(&token) { Ok(token) } else { Err(nothing()) }
    }

    /// The human of a browser; `None` if no human has signed in.
    fn acting<'v>(&self, browser: &Browser<'v>) -> Option<Acting<'v>> {
        let (browser, secret, human, who, is_proved) = match *browser {
            Browser::Human(secret, ref signed_in) => {
                let who = signed_in.account.name.as_str();
                let is_proved = self.is_proved(signed_in);
                (DoorBrowser::Human(secret), secret, human(signed_in), who, is_proved)
            }
            Browser::Local(secret) => {
                let who = "the user of this machine";
                (DoorBrowser::Local(secret), secret, local_admin(), who, true)
            }
            Browser::NewLocal | Browser::Unknown => return None,
        };
        let who = who.to_owned();
        Some(Acting { browser, secret, human, who, is_proved })
    }

    /// True if the sign-in proves a human, or none has to be proved. A link alone proves none.
    fn is_proved(&self, signed_in: &SignedIn) -> bool {
        signed_in.method.is_authenticated() || !self.control.needs_proof()
    }

    /// The browser of this request. For a program that answers at a web page, a click on this
    /// machine is not enough.
    fn browser(&self, pending: Option<&PendingConsent>) -> Result<Browser<'_>, Problem> {
        if let Some((token, signed_in)) = self.session()? {
            return Ok(Browser::Human(token, signed_in));
        }
        let is_web = pending.is_some_and(|one| one.redirect_uri.kind() == RedirectKind::Web);
        let is_here = self.door.options.listen.ip().is_loopback();
        if is_web || !is_here || !self.desk()?.server().has_local_click() {
            return Ok(Browser::Unknown);
        }
        let kept = self.jar().find(&self.parts.headers, Kept::Visitor);
        Ok(kept.map_or(Browser::NewLocal, Browser::Local))
    }

    /// The sign-in page, from which the browser comes back to the page of consent.
    fn sign_in_for(&self, token: &str) -> Response {
        let mut response = self
            .ways_in("A program wants to use your servers. You see its request after you sign in.");
        self.jar().set(&mut response, Kept::Onward, &format!("{TO_CONSENT}{token}"), ONWARD);
        response
    }

    /// The page of consent. It names the fault if an approval was sent `unchosen`.
    async fn consent_page(
        &self,
        pending: &PendingConsent,
        token: &str,
        browser: &Browser<'_>,
        unchosen: bool,
    ) -> Answered {
        let acting = self.acting(browser).ok_or_else(nothing)?;
        let Acting { secret, human, who, is_proved, browser: _ } = acting;
        let choices = self.choices(pending, &human).await?;
        let before = self.desk()?.remembered(&human, pending);
        let before = before.map(|known| DoorChoice::of(&known));
        let shown = Shown {
            pending,
            token,
            csrf: &self.control.form_token(secret),
            chosen: preselected(&choices, before.as_ref()),
            choices: &choices,
            is_unchosen: unchosen,
            who: &who,
            is_proved,
        };
        let mut response = page(&shown);
        // Browsers apply this policy to the redirect after the form, too.
        if let Some(policy) = policy(pending) {
            response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, policy);
        }
        Ok(response)
    }
}

/// Revokes a client that a human let in, for that human.
pub(crate) async fn revoke_program(
    door: &Door,
    control: &Control,
    signed_in: &SignedIn,
    id: &str,
) -> Result<(), Problem> {
    let all = clients_of(control, signed_in);
    let found = all.into_iter().find(|one| one.row.id.as_str() == id).ok_or_else(nothing)?;
    let Some(runs) = &door.options.runs else { return Err(nothing()) };
    let by = signed_in.account.actor();
    runs.client_revoke(&found.row.workspace, found.row.id.as_str(), &by).await?;
    Ok(())
}

/// The path of the page of consent in the cookie of a browser that has signed in now.
pub(super) fn onward_to_consent(kept: &str) -> Option<String> {
    let token = kept.strip_prefix(TO_CONSENT).filter(|token| is_token(token))?;
    Some(format!("/consent/{token}"))
}

fn is_token(text: &str) -> bool {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_');
    text.len() == TOKEN_TEXT && text.bytes().all(is_plain)
}

fn human(signed_in: &SignedIn) -> DoorHuman {
    DoorHuman { id: signed_in.account.id.clone(), by: signed_in.account.actor() }
}

fn local_admin() -> DoorHuman {
    let by: By = Actor::new(ActorKind::LocalAdmin, PrincipalId::LOCAL_ADMIN_NAME);
    DoorHuman { id: PrincipalId::local_admin(), by }
}

/// Sends the browser to a program, whose address was verified.
fn leave(to: &Redirect) -> Answered {
    let mut response = redirect(to.expose())?;
    if let Some(location) = response.headers_mut().get_mut(header::LOCATION) {
        location.set_sensitive(true);
    }
    Ok(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn door_a6_only_a_token_leads_from_the_sign_in_to_a_page_of_consent() {
        let token = "a".repeat(TOKEN_TEXT);
        let path = format!("/consent/{token}");
        assert_eq!(onward_to_consent(&format!("{TO_CONSENT}{token}")), Some(path));
        for bad in ["", "~consent/", "~consent/../x", "default/grq_1", "~consent//evil.example"] {
            assert_eq!(onward_to_consent(bad), None, "{bad}");
        }
    }
}
