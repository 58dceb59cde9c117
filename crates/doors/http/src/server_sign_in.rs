//! The end of a sign-in to a server, in a browser: its result, and the text of its page.
//!
//! The proof of the redirect is its `state`, which belongs to one open attempt and is used once.
//! An attempt that a signed-in human began can be finished only in the browser of that login
//! session. The texts have nothing of the authorization server.

use narthex_control::{Control, ControlError, SignInVerbs, SignedIn, SignedInBrowser, public_base};
use narthex_model::{ErrorKind, SharedGrant, command::narthex, with_causes};

use crate::html::{safe, sentence};

/// The end of a sign-in.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Ended {
    /// The kind of the failure; `None` for a success.
    pub(crate) failed: Option<ErrorKind>,
    /// The address at which the same person goes on at once.
    pub(crate) onward: Option<String>,
    /// True if the redirect belongs to no open attempt of this browser.
    pub(crate) is_unproved: bool,
    pub(crate) title: &'static str,
    /// The contents of the page, as HTML.
    pub(crate) main: String,
}

/// A redirect of an authorization server.
#[derive(Debug)]
pub(crate) struct Redirect {
    pub(crate) query: String,
    /// The server in the path.
    pub(crate) server: Option<String>,
    /// The human of the login session of the browser.
    pub(crate) visitor: Option<SignedIn>,
}

/// Finishes the sign-in that the redirect belongs to.
pub(crate) async fn finish(control: &Control, redirect: Redirect) -> Ended {
    let Redirect { query, server, visitor } = redirect;
    let verbs = SignInVerbs::of(control);
    let human = visitor.as_ref().map(|visitor| visitor.account.id.clone());
    let list = human.as_ref().map(|_| format!("/w/{}/servers", control.home()));
    let visitor = visitor
        .map(|visitor| SignedInBrowser { by: visitor.account.actor(), session: visitor.session });
    let end = verbs.finish(query, server.clone(), visitor).await;
    let back = human.and_then(|human| end.page_of(&human));
    let is_proved = end.is_proved();
    let error = match end.outcome {
        Ok(finished) if finished.key.user.is_some() => {
            return connected(&finished.alias, back.as_deref());
        }
        Ok(finished) => return done(&finished.alias, list.as_deref()),
        Err(error) => error,
    };
    tracing::info!("a sign-in to a server was not finished: {}", with_causes(&error));
    let is_unproved = matches!(&error, ControlError::SignIn(error) if error.is_unproved());
    let retry = match (is_proved, back) {
        (false, _) => String::new(),
        (true, Some(page)) => link(&page, "Back to the connection"),
        (true, None) => retry(server.as_deref()),
    };
    let ended = failed(error.kind(), &error.to_string(), &retry);
    match &error {
        ControlError::SignIn(error) => {
            Ended { onward: error.goes_on_at().map(ToString::to_string), is_unproved, ..ended }
        }
        _ => ended,
    }
}

/// The login session to which an attempt is bound that its human begins. `None` where the redirect
/// comes to another host than that of the session's cookie: there, `state` alone proves it.
pub(crate) fn binding(
    control: &Control,
    signed_in: &SignedIn,
    host: Option<&str>,
) -> Option<String> {
    let origin = control.sign_in_origin()?;
    let is_public = public_base(origin).is_some();
    let is_there = is_public && host?.eq_ignore_ascii_case(origin.authority());
    is_there.then(|| signed_in.session.clone())
}

/// The server of the catalog to which a human connects their account, by the name in the path.
/// `None` for a server of the configuration.
pub(crate) fn connection(server: Option<&str>) -> Option<&str> {
    server.and_then(SharedGrant::catalog_id)
}

/// The page of a new connection, with the path of the page on which its human ends it.
fn connected(server: &str, page: Option<&str>) -> Ended {
    let mut main = format!(
        "<h1>Connected to {}</h1>\n<p>Runs that you drive use this server as you from now on, \
         also those that are open. You can close this page.</p>\n",
        safe(server)
    );
    if let Some(page) = page {
        main.push_str(&link(page, "See the connection"));
    }
    Ended { failed: None, onward: None, is_unproved: false, title: "Connected", main }
}

/// The page of a sign-in for all callers. A human of the console is led back to the list of
/// servers, which is at `page`.
fn done(server: &str, page: Option<&str>) -> Ended {
    let mut main = format!(
        "<h1>Signed in to {}</h1>\n<p>narthex has connected your account, and the server is ready \
         in a moment. You can close this page.</p>\n",
        safe(server)
    );
    main.push_str(&match page {
        Some(page) => link(page, "Back to Connected services"),
        None => format!(
            "<p class=\"hint\">To see its state:<code class=\"command\">{}</code></p>\n",
            safe(&narthex("mcp list", &[]).to_string())
        ),
    });
    Ended { failed: None, onward: None, is_unproved: false, title: "Signed in", main }
}

/// A link to a page of this daemon, as HTML.
fn link(page: &str, words: &str) -> String {
    format!("<a class=\"button\" href=\"{}\">{}</a>\n", safe(page), safe(words))
}

/// The command to try again, as HTML, where no page leads back. Only a browser that began the
/// sign-in sees the command, which can have paths of this machine.
fn retry(server: Option<&str>) -> String {
    let command = match connection(server) {
        Some(id) => narthex("connections connect {}", &[&id]),
        None => narthex("mcp authorize {}", &[&server.unwrap_or("NAME")]),
    };
    let command = safe(&command.to_string());
    format!("<p class=\"hint\">To try again, run:<code class=\"command\">{command}</code></p>\n")
}

fn failed(kind: ErrorKind, why: &str, retry: &str) -> Ended {
    let why = safe(&sentence(why));
    let main = format!("<h1>That did not work</h1>\n<p role=\"alert\">{why}</p>\n{retry}");
    let (failed, title) = (Some(kind), "That did not work");
    Ended { failed, onward: None, is_unproved: false, title, main }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A human of the console is led back to the list of servers, and others to its command.
    #[test]
    fn a_sign_in_from_the_console_leads_back_to_it() {
        let there = done("notes", Some("/w/default/servers")).main;
        assert!(there.contains("href=\"/w/default/servers\""), "{there}");
        assert!(!there.contains("mcp list"), "{there}");
        assert!(done("notes", None).main.contains("mcp list"));
    }

    /// S11: names and causes are text, whatever is in them.
    #[test]
    fn s11_pages_of_a_sign_in_show_hostile_text_as_text() {
        let hostile = "<img src=x onerror=alert(1)>\"'&\u{202e}";
        let refused = failed(ErrorKind::Denied, hostile, &retry(Some(hostile)));
        for ended in [done(hostile, Some(hostile)), connected(hostile, Some(hostile)), refused] {
            let main = ended.main;
            assert!(!main.contains("<img") && !main.contains('\u{202e}'), "{main}");
            assert!(main.contains("&lt;img src=x onerror=alert(1)&gt;&quot;&#39;&amp;"), "{main}");
        }
    }
}
