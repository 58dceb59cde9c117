//! The page on which a human lets in a program that asked for tokens.
//!
//! All texts of the program are hostile: they are cleaned and escaped, and the page names the host
//! that the program proved, or says that it proved none. No logo is loaded.
//!
//! A careless press gives nothing that the human did not choose. Only a choice without an
//! alternative, and the one that the program has already, are preselected.

use http::{HeaderValue, StatusCode};
use narthex_oauth::server::{ConsentWarning, PendingConsent, RedirectKind};

use super::{
    choices::Choice,
    page::{POLICY, escaped, html, put, safe},
};
use crate::respond::Response;

/// The content of the page.
pub(super) struct Shown<'a> {
    pub(super) pending: &'a PendingConsent,
    pub(super) token: &'a str,
    pub(super) csrf: &'a str,
    pub(super) choices: &'a [Choice],
    /// The choice that is preselected.
    pub(super) chosen: Option<&'a Choice>,
    /// True if an approval was sent without a choice.
    pub(super) is_unchosen: bool,
    pub(super) who: &'a str,
    /// False if this sign-in proves no human, and one is needed.
    pub(super) is_proved: bool,
}

/// The policy of the page, with the program's address as one to which the form may lead.
pub(super) fn policy(pending: &PendingConsent) -> Option<HeaderValue> {
    let uri = &pending.redirect_uri;
    let (scheme, _) = uri.as_str().split_once(':')?;
    let place = uri.place();
    let source = match uri.kind() {
        RedirectKind::Web => format!("{scheme}://{place}"),
        RedirectKind::Loopback => format!("{scheme}://{place}:*"),
        RedirectKind::PrivateUse => format!("{scheme}:"),
    };
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"-.+:/[]*".contains(&b);
    let to_itself = "form-action 'self'";
    let policy = POLICY.replace(to_itself, &format!("{to_itself} {source}"));
    HeaderValue::from_str(&policy).ok().filter(|_| source.bytes().all(is_plain))
}

pub(super) fn page(shown: &Shown<'_>) -> Response {
    let pending = shown.pending;
    let name = safe(pending.client_name.as_str());
    let heading = "Let a program in?";
    let mut main = format!(
        "<h1>{heading}</h1>\n<p>A program that calls itself <b>{name}</b> wants \
         to use your servers, and to act for you.</p>\n<dl>\n"
    );
    for (word, value) in facts(pending) {
        put(&mut main, format_args!("<dt>{word}</dt><dd>{}</dd>\n", safe(&value)));
    }
    main.push_str("</dl>\n");
    for warning in pending.warnings() {
        put(&mut main, format_args!("<p class=\"note\">{}</p>\n", words(warning)));
    }
    form(&mut main, shown);
    put(&mut main, format_args!("<p class=\"hint\">You answer as {}.</p>\n", safe(shown.who)));
    let (status, title) = match shown.is_unchosen {
        true => (StatusCode::BAD_REQUEST, "Choose the servers"),
        false => (StatusCode::OK, heading),
    };
    html(status, title, "", &main)
}

fn facts(pending: &PendingConsent) -> Vec<(&'static str, String)> {
    let host = match (&pending.verified_host, pending.redirect_uri.kind()) {
        (None, _) => "none: the name is only its own claim".to_owned(),
        (Some(host), RedirectKind::Web) => host.clone(),
        // The document is that of the host, and any program can answer at these addresses.
        (Some(host), RedirectKind::Loopback | RedirectKind::PrivateUse) => {
            format!("{host}, but another program on your machine could use its name")
        }
    };
    let mut facts = vec![
        ("proved host", host),
        ("answer goes to", pending.redirect_uri.place()),
        ("full address", pending.redirect_uri.as_str().to_owned()),
        ("endpoint", pending.resource.as_str().to_owned()),
        ("scopes", pending.scopes.to_string()),
    ];
    if let Some(link) = &pending.client_link {
        facts.push(("says that its page is", link.clone()));
    }
    facts
}

fn words(warning: ConsentWarning) -> &'static str {
    match warning {
        ConsentWarning::Loopback => {
            "The answer goes to a program on your own machine. Go on only if you started this \
             sign-in just now, in a program that you trust."
        }
        ConsentWarning::PrivateUse => {
            "The answer goes to the program on your own machine that has this kind of address. Go \
             on only if you started this sign-in just now, in a program that you trust."
        }
        ConsentWarning::UnverifiedHost => {
            "The program did not prove that the address of the answer is its own. Go on only if \
             you know that address."
        }
    }
}

fn form(main: &mut String, shown: &Shown<'_>) {
    if !shown.is_proved {
        main.push_str(
            "<p class=\"note\">You signed in with a link, which proves no human. To let a program \
             in, sign in with a passkey or at a provider. You can always deny.</p>\n",
        );
    }
    let (token, csrf) = (escaped(shown.token), escaped(shown.csrf));
    put(
        main,
        format_args!(
            "<form method=\"post\" action=\"/consent/{token}\" class=\"decide\">\
             <input type=\"hidden\" name=\"csrf\" value=\"{csrf}\">\n"
        ),
    );
    if shown.choices.is_empty() {
        main.push_str(
            "<p class=\"note\">You have no servers to give. Ask an admin of a workspace for the \
             role runner.</p>\n",
        );
    } else {
        servers(main, shown);
        main.push_str("<button name=\"decision\" value=\"approve\">Let it in</button>\n");
    }
    // A denial needs no choice.
    main.push_str(
        "<button name=\"decision\" value=\"deny\" formnovalidate>Deny</button>\n</form>\n",
    );
}

/// The choices of servers, one of which has to be chosen. Browsers check this without a script.
fn servers(main: &mut String, shown: &Shown<'_>) {
    let fault = match shown.is_unchosen {
        true => " aria-invalid=\"true\" aria-describedby=\"unchosen\"",
        false => "",
    };
    put(
        main,
        format_args!(
            "<fieldset role=\"radiogroup\"{fault}>\n<legend>Servers that it may use</legend>\n"
        ),
    );
    if shown.is_unchosen {
        main.push_str(
            "<p id=\"unchosen\" class=\"fault\" role=\"alert\">Choose the servers that the program \
             may use. It was not let in yet.</p>\n",
        );
    }
    for (index, choice) in shown.choices.iter().enumerate() {
        let (value, label) = (escaped(&choice.value()), safe(&choice.label()));
        let checked = if shown.chosen == Some(choice) { " checked" } else { "" };
        // The keyboard begins at the fault.
        let focus = if shown.is_unchosen && index == 0 { " autofocus" } else { "" };
        put(
            main,
            format_args!(
                "<label class=\"choice\"><input type=\"radio\" name=\"servers\" value=\"{value}\" \
                 required{checked}{focus}><span>{label}</span></label>\n"
            ),
        );
    }
    main.push_str("</fieldset>\n");
}
