//! The pages as HTML, which works without a script except for passkeys.
//!
//! All text from outside is escaped when it is put into a page. The policy of the page allows no
//! script and no style except our two files, and forbids frames around the page.

use std::fmt::Write;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, StatusCode, header};
use narthex_control::{CreatedLink, PasskeyRow, SignedIn};
use narthex_model::{Timestamp, command::narthex};

use super::status;
pub(super) use crate::html::{escaped, safe};
use crate::{
    html::sentence,
    problem::Problem,
    respond::{self, Response},
    server_sign_in::Ended,
};

/// The script and the style of all pages.
pub(super) const SCRIPT: &str = include_str!("signin.js");
pub(super) const STYLE: &str = include_str!("signin.css");

pub(super) const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
                                 connect-src 'self'; form-action 'self'; base-uri 'none'; \
                                 frame-ancestors 'none'";

/// The policy of pages without a script.
const STILL: &str = "default-src 'none'; style-src 'self'; form-action 'none'; base-uri 'none'; \
                     frame-ancestors 'none'";

/// The data of the page of a signed-in human.
pub(super) struct Shown<'a> {
    pub(super) signed_in: &'a SignedIn,
    pub(super) passkeys: Vec<PasskeyRow>,
    /// The programs that the human let in at the door.
    pub(super) programs: Vec<Program>,
    pub(super) csrf: String,
    /// True if passkeys work at this address.
    pub(super) has_passkeys: bool,
    /// True if the signed-in human may add a passkey.
    pub(super) adds_passkeys: bool,
    /// True if the links that this human makes allow their users to add a passkey.
    pub(super) links_add_passkeys: bool,
    pub(super) has_providers: bool,
    /// True if approvals are refused because this sign-in proves no human.
    pub(super) needs_proof: bool,
}

/// A program that a human let in at the door.
pub(crate) struct Program {
    /// The id of its registered client.
    pub(crate) id: String,
    pub(crate) name: String,
    /// The place at which it gets answers.
    pub(crate) place: String,
    /// The servers that it may use, in words.
    pub(crate) sees: String,
    /// The date of its first consent.
    pub(crate) since: String,
}

/// The page with all ways to sign in, and the reason for the sign-in, which may be empty.
pub(super) fn sign_in(reason: &str, providers: &[&str], has_passkeys: bool) -> Response {
    let mut main = String::from("<h1>Sign in</h1>\n");
    if !reason.is_empty() {
        put(&mut main, format_args!("<p>{}</p>\n", escaped(reason)));
    }
    if has_passkeys {
        main.push_str(
            "<button id=\"sign-in\" hidden>Sign in with a passkey</button>\n\
             <noscript><p>Passkeys need JavaScript.</p></noscript>\n",
        );
    }
    for provider in providers {
        let name = escaped(provider);
        put(
            &mut main,
            format_args!(
                "<a class=\"button\" href=\"/signin/oidc/{name}\">Sign in with {name}</a>\n"
            ),
        );
    }
    main.push_str(
        "<p id=\"told\" role=\"alert\"></p>\n\
         <p class=\"hint\">",
    );
    main.push_str(match (has_passkeys, providers) {
        (_, [_, ..]) => "No account at a provider? Ask an operator for a one-time link.",
        (true, []) => "No passkey here yet? Ask an operator for a one-time link.",
        (false, []) => {
            "Passkeys do not work at this numeric address, and there is no provider. Ask an \
             operator for a one-time link."
        }
    });
    main.push_str("</p>\n");
    html(StatusCode::OK, "Sign in", "", &main)
}

/// The page with the button that uses up a link.
pub(super) fn link(name: &str) -> Response {
    let name = escaped(name);
    let main = format!(
        "<h1>Sign in as {name}?</h1>\n\
         <form method=\"post\"><button>Sign in as {name}</button></form>\n\
         <p class=\"hint\">This link works once. If you did not ask for it, close this page.</p>\n"
    );
    html(StatusCode::OK, "Sign in", "", &main)
}

/// The page of a signed-in human: their account, passkeys and links.
pub(super) fn account(shown: &Shown<'_>) -> Response {
    let (name, csrf) = (escaped(shown.signed_in.account.name.as_str()), escaped(&shown.csrf));
    let mut main = format!("<h1>Signed in as {name}</h1>\n");
    if !shown.signed_in.method.is_authenticated() {
        unproved(&mut main, shown);
    }
    passkeys(&mut main, shown, &csrf);
    programs(&mut main, shown, &csrf);
    if shown.signed_in.account.is_operator {
        invite(&mut main, shown, &csrf);
    }
    put(
        &mut main,
        format_args!(
            "<p id=\"told\" role=\"alert\"></p>\n\
             <a class=\"button\" href=\"/\">Open the console</a>\n\
             <form method=\"post\" action=\"/signout\">\
             <input type=\"hidden\" name=\"csrf\" value=\"{csrf}\">\
             <button>Sign out</button></form>\n"
        ),
    );
    html(StatusCode::OK, "Signed in", &format!(" data-csrf=\"{csrf}\""), &main)
}

/// Explains what a sign-in by link proves, and what its human can do next.
fn unproved(main: &mut String, shown: &Shown<'_>) {
    let ways = match (shown.has_passkeys, shown.has_providers) {
        (true, true) => "with a passkey or at a provider",
        (true, false) => "with a passkey",
        (false, true) => "at a provider",
        (false, false) => "with a passkey at an address that is a name",
    };
    let so = match (shown.needs_proof, shown.adds_passkeys) {
        (true, true) => "To approve anything, add a passkey, sign out, and sign in with it.".into(),
        (true, false) => format!("To approve anything, sign in {ways}."),
        (false, _) => format!(
            "Your approvals count, but are marked as advisory. To approve with proof, sign in \
             {ways}."
        ),
    };
    put(
        main,
        format_args!(
            "<p class=\"note\">You signed in with a link. A program can read a link, so it does \
             not prove that you are a human. {so}</p>\n"
        ),
    );
}

/// Lists the passkeys, and adds the form for another passkey.
fn passkeys(main: &mut String, shown: &Shown<'_>, csrf: &str) {
    main.push_str("<h2>Passkeys</h2>\n<ul>\n");
    for passkey in &shown.passkeys {
        let (id, label) = (escaped(&passkey.id), escaped(&passkey.label));
        let action = format!("/signin/passkeys/{id}/remove");
        put(
            main,
            format_args!(
                "<li><span>{label}</span><form method=\"post\" action=\"{action}\">\
                 <input type=\"hidden\" name=\"csrf\" value=\"{csrf}\">\
                 <button>Remove</button></form></li>\n"
            ),
        );
    }
    if shown.passkeys.is_empty() {
        main.push_str("<li>None yet.</li>\n");
    }
    main.push_str("</ul>\n");
    main.push_str(match (shown.has_passkeys, shown.adds_passkeys) {
        (true, true) => {
            "<form id=\"add\" hidden><label>Name of the new passkey \
             <input name=\"label\" maxlength=\"60\" placeholder=\"such as: my phone\"></label>\
             <button>Add a passkey</button></form>\n\
             <noscript><p>Passkeys need JavaScript.</p></noscript>\n"
        }
        (true, false) => {
            "<p class=\"note\">Your link adds no passkey. For a link that adds one, ask an \
             operator who signs in with a passkey or at a provider.</p>\n"
        }
        (false, _) => "<p class=\"note\">Passkeys do not work at this numeric address.</p>\n",
    });
}

/// Lists the programs that the human let in, each with a button that revokes it.
fn programs(main: &mut String, shown: &Shown<'_>, csrf: &str) {
    if shown.programs.is_empty() {
        return;
    }
    main.push_str("<h2>Programs that act for you</h2>\n<ul>\n");
    for program in &shown.programs {
        let Program { id, name, place, sees, since } = program;
        let (id, name) = (escaped(id), safe(name));
        let (place, sees, since) = (safe(place), safe(sees), escaped(since));
        put(
            main,
            format_args!(
                "<li><span><b>{name}</b> at {place}<small>uses {sees}, since {since}</small></span>\
                 <form method=\"post\" action=\"/signin/clients/{id}/remove\"><input \
                 type=\"hidden\" name=\"csrf\" value=\"{csrf}\"><button \
                 aria-label=\"Revoke {name}\">Revoke</button></form></li>\n"
            ),
        );
    }
    main.push_str("</ul>\n");
}

/// The form with which an operator creates a link for another human.
fn invite(main: &mut String, shown: &Shown<'_>, csrf: &str) {
    let adds = match (shown.has_passkeys, shown.links_add_passkeys) {
        (true, true) => " It lets them add a passkey.",
        (true, false) => " It adds no passkey.",
        (false, _) => "",
    };
    let create = narthex("users create NAME", &[]);
    let create = escaped(&create.to_string());
    put(
        main,
        format_args!(
            "<h2>Let another human in</h2>\n<form method=\"post\" action=\"/signin/links\">\
             <input type=\"hidden\" name=\"csrf\" value=\"{csrf}\">\
             <label>Name of their account <input name=\"name\" maxlength=\"128\" required></label>\
             <button>Make a link</button></form>\n\
             <p class=\"hint\">The link signs them in once, within 15 minutes.{adds} Their \
             account has to exist. To create it:<code class=\"command\">{create}</code></p>\n"
        ),
    );
}

/// The page of a new link, which shows it only this once.
pub(super) fn made_link(made: &CreatedLink) -> Response {
    let CreatedLink { url, account, expires_at, adds_passkey } = made;
    let (name, url) = (escaped(account.name.as_str()), escaped(url.expose()));
    let until = Timestamp::new(*expires_at);
    let adds = match adds_passkey {
        true => format!("{name} can add a passkey with it."),
        false => format!(
            "{name} can add no passkey with it. For a link that adds one, sign in with a passkey \
             or at a provider first."
        ),
    };
    let main = format!(
        "<h1>A link for {name}</h1>\n\
         <input readonly aria-label=\"Link\" value=\"{url}\">\n\
         <p>It works once, until {until}. {adds}</p>\n\
         <p class=\"note\">Send it to {name} only: the person who opens it is signed in as \
         {name}. This page shows the link only once.</p>\n\
         <a class=\"button\" href=\"/signin\">To the sign-in page</a>\n"
    );
    html(StatusCode::OK, "A link", "", &main)
}

/// The page that explains a problem.
pub(super) fn failure(problem: &Problem) -> Response {
    let detail = escaped(&sentence(problem.detail()));
    let main = format!(
        "<h1>That did not work</h1>\n<p role=\"alert\">{detail}</p>\n\
         <a class=\"button\" href=\"/signin\">To the sign-in page</a>\n"
    );
    html(status(problem), "That did not work", "", &main)
}

/// Answers with the script or the style of all pages.
pub(super) fn asset(text: &'static str, kind: &'static str) -> Response {
    let payload = narthex_wire::Payload::from(Bytes::from_static(text.as_bytes()));
    let mut response = guarded(Response::new(payload.into()));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// Adds the headers that forbid foreign scripts and frames.
pub(super) fn guarded(mut response: Response) -> Response {
    let all: [(HeaderName, &'static str); 3] = [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_FRAME_OPTIONS, "DENY"),
        // Other sites never receive a link's address. Without any referrer, forms would have no
        // origin.
        (header::REFERRER_POLICY, "same-origin"),
    ];
    for (name, value) in all {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

pub(super) fn html(status: StatusCode, title: &str, attributes: &str, main: &str) -> Response {
    let script = "<script src=\"/signin/script.js\" defer></script>\n";
    document(status, title, script, attributes, main)
}

/// A whole page, with the elements of its head that follow the style.
fn document(status: StatusCode, title: &str, head: &str, attributes: &str, main: &str) -> Response {
    let page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title} · narthex</title>\n\
         <link rel=\"stylesheet\" href=\"/signin/style.css\">\n\
         {head}</head>\n\
         <body{attributes}>\n<main>\n<p class=\"brand\">narthex</p>\n{main}</main>\n</body>\n\
         </html>\n"
    );
    let payload = narthex_wire::Payload::from(page.into_bytes());
    let mut response = guarded(Response::new(payload.into()));
    *response.status_mut() = status;
    let kind = HeaderValue::from_static("text/html; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

/// The page at the end of a sign-in to a server, which has no script. Its address has the code and
/// the state, so no site receives the address.
pub(super) fn of_server(ended: &Ended) -> Response {
    if let Some(to) = ended.onward.as_ref().and_then(|to| HeaderValue::from_str(to).ok()) {
        let mut response = respond::empty(StatusCode::SEE_OTHER);
        response.headers_mut().insert(header::LOCATION, to);
        return private(response);
    }
    let Ended { title, main, failed, .. } = ended;
    let problem = failed.map(|kind| Problem::new(kind, ""));
    let status = problem.as_ref().map_or(StatusCode::OK, status);
    private(document(status, title, "", "", main))
}

/// Adds the headers of a page without a script, whose address is for no other site.
fn private(response: Response) -> Response {
    let mut response = guarded(response);
    let policy = HeaderValue::from_static(STILL);
    response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, policy);
    let referrer = HeaderValue::from_static("no-referrer");
    response.headers_mut().insert(header::REFERRER_POLICY, referrer);
    response
}

pub(super) fn put(main: &mut String, text: std::fmt::Arguments<'_>) {
    main.write_fmt(text).expect("a string takes everything");
}

#[cfg(test)]
mod tests {
    use narthex_model::ErrorKind;

    use super::*;

    /// The page at the end of a sign-in to a server runs no script, and no site gets its address.
    #[test]
    fn the_page_of_a_sign_in_to_a_server_has_no_script_and_no_referrer() {
        let ended = |failed, onward| Ended {
            failed,
            onward,
            is_unproved: false,
            title: "x",
            main: String::new(),
        };
        let onward = of_server(&ended(None, Some("//as.example/authorize".to_owned())));
        assert_eq!(onward.status(), StatusCode::SEE_OTHER);
        let done = of_server(&ended(None, None));
        assert_eq!(done.status(), StatusCode::OK);
        let failed = of_server(&ended(Some(ErrorKind::Unauthenticated), None));
        assert_eq!(failed.status(), StatusCode::FORBIDDEN);
        for response in [onward, done, failed] {
            assert_eq!(response.headers()[header::REFERRER_POLICY], "no-referrer");
            assert_eq!(response.headers()[header::CONTENT_SECURITY_POLICY], STILL);
            assert_eq!(response.headers()[header::X_FRAME_OPTIONS], "DENY");
            let body = response.body().whole().unwrap_or_default();
            assert!(!String::from_utf8_lossy(&body).contains("<script"));
        }
    }

    /// Inline scripts and styles would not work anyway: the policy forbids them.
    #[test]
    fn pages_have_no_inline_scripts_or_styles() {
        for text in [
            include_str!("page.rs").split("#[cfg(test)]").next().unwrap(),
            include_str!("consent.rs"),
            include_str!("decision.rs"),
        ] {
            for word in
                ["<style", "onclick", "onload", "javascript:", "style=", "http://", "https://"]
            {
                assert!(!text.contains(word), "{word}");
            }
        }
        for word in ["innerHTML", "eval(", "document.write", "http:", "https:"] {
            assert!(!SCRIPT.contains(word), "{word}");
        }
        assert!(!STYLE.contains("url(") && !STYLE.contains("@import"));
    }
}
