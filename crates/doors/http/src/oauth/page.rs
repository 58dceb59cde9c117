//! The pages at the end of a sign-in to a server. They have no script, and no text of the
//! authorization server.

use http::{HeaderName, HeaderValue, StatusCode, header};
use narthex_definitions::harmless;
use narthex_model::{ErrorKind, SharedGrant, command::narthex};
use narthex_wire::Payload;

use crate::{
    problem::status_of_kind,
    respond::{self, Response},
    signin::escaped,
};

/// Allows the style of all pages, and nothing else.
const POLICY: &str = "default-src 'none'; style-src 'self'; form-action 'none'; base-uri 'none'; \
                      frame-ancestors 'none'";
/// Maximum number of characters of a name or an error that a page shows.
const SHOWN_MAX: usize = 2_000;

/// The page after a sign-in.
pub(super) fn done(server: &str) -> Response {
    let list = narthex("mcp list", &[]).to_string();
    let main = format!(
        "<h1>Signed in to {}</h1>\n<p>narthex has connected your account, and the server is ready \
         in a moment. You can close this page.</p>\n<p class=\"hint\"><code>{}</code> shows the \
         state of the server.</p>\n",
        safe(server),
        safe(&list)
    );
    html(StatusCode::OK, "Signed in", &main)
}

/// The page after a human has connected their account to a server of the catalog.
pub(super) fn connected(server: &str) -> Response {
    let main = format!(
        "<h1>Connected to {}</h1>\n<p>Runs that you drive now use this server as you, also those \
         that are open. You can close this page.</p>\n",
        safe(server)
    );
    html(StatusCode::OK, "Connected", &main)
}

/// The page after a sign-in that failed, with the cause in words of this program.
pub(super) fn failed(server: Option<&str>, kind: ErrorKind, why: &str) -> Response {
    let authorize = match server.and_then(SharedGrant::catalog_id) {
        Some(id) => narthex("connections connect {}", &[&id]).to_string(),
        None => narthex("mcp authorize {}", &[&server.unwrap_or("NAME")]).to_string(),
    };
    let main = format!(
        "<h1>That did not work</h1>\n<p role=\"alert\">{}</p>\n<p class=\"hint\">To try again, \
         start the sign-in anew: <code>{}</code></p>\n",
        safe(why),
        safe(&authorize)
    );
    // A 401 is valid only with a challenge, which a page does not have.
    let status = match kind {
        ErrorKind::Unauthenticated => StatusCode::FORBIDDEN,
        kind => status_of_kind(kind),
    };
    html(status, "That did not work", &main)
}

/// Sends the browser back to the authorization server, which refused the first question.
pub(super) fn onward(url: &str) -> Response {
    let Ok(to) = HeaderValue::from_str(url) else {
        return failed(None, ErrorKind::Invalid, "the address of the sign-in cannot be used");
    };
    let mut response = respond::empty(StatusCode::SEE_OTHER);
    response.headers_mut().insert(header::LOCATION, to);
    let policy = HeaderValue::from_static("no-referrer");
    response.headers_mut().insert(header::REFERRER_POLICY, policy);
    response
}

fn html(status: StatusCode, title: &str, main: &str) -> Response {
    let page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta \
         name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{title} · \
         narthex</title>\n<link rel=\"stylesheet\" \
         href=\"/signin/style.css\">\n</head>\n<body>\n<main>\n<p \
         class=\"brand\">narthex</p>\n{main}</main>\n</body>\n</html>\n"
    );
    let mut response = Response::new(Payload::from(page.into_bytes()).into());
    *response.status_mut() = status;
    let headers: [(HeaderName, &'static str); 4] = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_FRAME_OPTIONS, "DENY"),
        // The address of the page has the code and the state.
        (header::REFERRER_POLICY, "no-referrer"),
    ];
    for (name, value) in headers {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

/// Escapes text so that hidden characters, changes of its direction, and markup have no effect.
fn safe(text: &str) -> String {
    escaped(&harmless(text, SHOWN_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(response: &Response) -> String {
        let bytes = response.body().whole().unwrap();
        String::from_utf8(bytes.to_vec()).unwrap()
    }

    /// S11: names and causes are text, whatever is in them, and the page loads nothing of others.
    #[test]
    fn s11_pages_of_a_sign_in_show_hostile_text_as_text() {
        let hostile = "<img src=x onerror=alert(1)>\"'&\u{202e}";
        for response in [done(hostile), failed(Some(hostile), ErrorKind::Denied, hostile)] {
            let page = text(&response);
            assert!(!page.contains("<img") && !page.contains('\u{202e}'), "{page}");
            assert!(page.contains("&lt;img src=x onerror=alert(1)&gt;&quot;&#39;&amp;"), "{page}");
            for word in ["<script", "style=", "http://", "https://"] {
                assert!(!page.contains(word), "{word}: {page}");
            }
            let headers = response.headers();
            assert_eq!(headers[header::REFERRER_POLICY], "no-referrer");
            assert_eq!(headers[header::X_FRAME_OPTIONS], "DENY");
            let policy = headers[header::CONTENT_SECURITY_POLICY].to_str().unwrap();
            assert!(policy.contains("frame-ancestors 'none'"), "{policy}");
        }
    }

    #[test]
    fn a_page_of_a_failed_sign_in_has_the_status_of_its_cause() {
        let status = |kind| failed(None, kind, "no").status();
        assert_eq!(status(ErrorKind::Unauthenticated), StatusCode::FORBIDDEN);
        assert_eq!(status(ErrorKind::Unavailable), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(done("linear").status(), StatusCode::OK);
    }
}
