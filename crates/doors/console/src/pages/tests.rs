//! Laws of all templates: texts are inert, parts are named, nothing is inline.

mod attacks;

use std::collections::BTreeSet;

use scraper::{Html, Selector};

use super::{
    agents, approvals, catalog, clients, connect, fault, home, kitchen_sink, me, onward, operator,
    registry, runs, search, secrets, server::sample_pages, server::samples, servers, settings,
};
use crate::{
    html,
    parts::{Moment, State, Words},
};

/// Texts that others could write: markup, ends of attributes, templates, directions, lengths.
pub(super) fn hostile() -> Vec<String> {
    let mut all: Vec<String> = [
        "<script>alert(1)</script>",
        "\"><img src=x onerror=alert(1)>",
        "' onmouseover='alert(1)",
        "</title></style></textarea><svg onload=alert(1)>",
        "<hx-partial hx-target=\"body\"><b>x</b></hx-partial>",
        "{{ 7*7 }} {% raw %} ${7*7}",
        "javascript:alert(1)",
        "data:text/html,<script>alert(1)</script>",
        "//evil.example/x",
        "https://evil.example/\"><base href=//evil.example>",
        "a\u{202e}b\u{2066}c\u{200b}d\u{0}\u{1b}[31m",
        "\u{61c}\u{2067}x\u{2069}\u{feff}\u{ad}\u{2028}y\u{2029}\u{e0041}\u{fe0f}\u{3164}",
        "\n\ndata: <b>x</b>\n\n",
        "\r\nevent: x\rdata: <b>x</b>\r\n\r\nid: 7\n\n",
        "x\r\nSet-Cookie: narthex=1\r\nLocation: //evil.example\r\n\r\n<b>x</b>",
        "hx-get=\"/signout\" hx-trigger=load hx-on:click=alert(1) x='",
        "\" autofocus onfocus=alert(1) hx-vals='js:{a:alert(1)}",
        "}*{display:none}/* */ expression(alert(1)) </style><style>*{color:red}",
        "--><!-- ]]> <![CDATA[ <?php </noscript></iframe></xmp></select></option></p></form>",
        "&lt;b&gt; &#60;b&#62; &#x3c;script&#x3e; \\u003cscript\\u003e %3Cscript%3E",
    ]
    .map(str::to_owned)
    .to_vec();
    all.push("<b>".repeat(50_000));
    all
}

/// Characters of [`hostile`] that are drawn as nothing, or change what is drawn.
const UNSEEN: [char; 15] = [
    '\u{202e}',
    '\u{2066}',
    '\u{2067}',
    '\u{2069}',
    '\u{200b}',
    '\u{0}',
    '\u{1b}',
    '\r',
    '\u{61c}',
    '\u{feff}',
    '\u{ad}',
    '\u{2028}',
    '\u{2029}',
    '\u{e0041}',
    '\u{3164}',
];

fn selector(text: &str) -> Selector {
    Selector::parse(text).unwrap()
}

/// Every page with each of its texts replaced by, or ending in, this text.
fn pages(text: &str) -> Vec<(&'static str, String)> {
    let frame = || kitchen_sink::frame_of(text);
    let words = || Words::new(text);
    let rows = || kitchen_sink::rows_of(text);
    let first = rows().remove(0);
    let fault = || fault::Fault { kind: "invalid", sentence: words() };
    let found = search::Found { href: "/w/default/".to_owned(), name: words(), about: words() };
    let group = search::Group { title: "Servers", found: vec![found], has_more: true };
    let home = home::HomePage {
        frame: frame(),
        offers_passkey: true,
        steps: kitchen_sink::steps(),
        now: kitchen_sink::now_of(text),
    };
    let onward = onward::OnwardPage {
        frame: frame(),
        server: words(),
        host: words(),
        url: "https://id.example.com/authorize".to_owned(),
        back: "/w/default/servers".to_owned(),
    };
    let mut all = of_servers(text);
    all.extend(of_server(text));
    all.extend(of_secrets(text));
    all.extend(of_catalog(text));
    all.extend(of_approvals(text));
    all.extend(runs::samples::pages(text, &frame()));
    all.extend(me::samples::pages(text));
    all.extend(clients::samples::pages(text));
    all.extend(connect::samples::pages(text));
    all.extend(settings::samples::pages(text));
    all.extend(operator::samples::pages(text));
    all.extend([
        ("agents", html(&agents::samples::list_of(frame(), text))),
        ("agent", html(&agents::samples::page_of(frame(), text))),
        ("tools", html(&kitchen_sink::play::tools_page_of(text))),
        ("play", html(&kitchen_sink::play::play_page_of(text))),
        ("audit", html(&kitchen_sink::audit::page_of(text))),
        ("policy", html(&kitchen_sink::policy::page_of(text))),
        ("audit event", html(&kitchen_sink::audit::event_page_of(text))),
        ("play ask", html(&kitchen_sink::play::play_ask_page_of(text))),
    ]);
    all.extend([
        ("kitchen sink", html(&kitchen_sink::sample_of(text))),
        ("home", html(&home)),
        ("onward", html(&onward)),
        ("search", html(&search::SearchPage { frame: frame(), groups: vec![group] })),
        ("row", html(&servers::ServerRowPart { csrf: "token".to_owned(), row: first })),
        ("fault", html(&fault::FaultPage { frame: frame(), fault: fault() })),
        ("bare fault", html(&fault::BareFaultPage { fault: fault() })),
        ("fault part", html(&fault::FaultPart { fault: fault() })),
    ]);
    all
}

/// The pages of secrets and of the registry.
fn of_secrets(text: &str) -> Vec<(&'static str, String)> {
    let frame = || kitchen_sink::frame_of(text);
    vec![
        ("secrets", html(&secrets::samples::list(frame(), text))),
        ("secret new", html(&secrets::samples::new(frame(), text))),
        ("secret clear", html(&secrets::samples::clear(frame(), text))),
        ("registry", html(&registry::samples::found(frame(), text))),
        ("registry fault", html(&registry::samples::failed(frame(), text))),
        ("registry server", html(&registry::samples::server(frame(), text))),
    ]
}

/// The pages of servers.
fn of_servers(text: &str) -> Vec<(&'static str, String)> {
    let frame = || kitchen_sink::frame_of(text);
    let back = || "/w/default/servers".to_owned();
    let list = servers::ServersPage {
        frame: frame(),
        list: kitchen_sink::list_of(text),
        filtered: text.chars().take(200).collect(),
        path: back(),
        add: Some("/w/default/add-server".to_owned()),
        reload: Some(crate::parts::Action::new(back(), "Read the files again", text)),
    };
    let tested = kitchen_sink::tested_of(text);
    let part = servers::TestedPart { tested: tested.clone() };
    let test = servers::ServerTestPage { frame: frame(), tested, back: back() };
    let more: String = text.chars().take(200).collect();
    let area = crate::parts::form::Input::area(&more, 5);
    let add = servers::add::ServerAddPage {
        frame: frame(),
        path: "/w/default/add-server".to_owned(),
        back: back(),
        registry: Some("/w/default/registry".to_owned()),
        catalog: Some("/w/default/catalog".to_owned()),
        fields: vec![crate::parts::form::Field::new("server", &more, area).fault(Some(&more))],
    };
    vec![
        ("servers", html(&list)),
        ("server add", html(&add)),
        ("server test", html(&test)),
        ("server test part", html(&part)),
    ]
}

/// The pages of one server.
fn of_server(text: &str) -> Vec<(&'static str, String)> {
    vec![
        ("server", html(&sample_pages::page(text))),
        ("server tools", html(&sample_pages::tools_page(text))),
        ("server tools part", html(&samples::tools(text))),
        ("server definitions", html(&sample_pages::definitions_page(text))),
        ("server configuration", html(&sample_pages::configuration_page(text))),
        ("server log", html(&sample_pages::log_page(text))),
        ("server calls", html(&sample_pages::calls_page(text))),
        ("server runs", html(&sample_pages::runs_page(text))),
    ]
}

/// The pages of the catalog.
fn of_catalog(text: &str) -> Vec<(&'static str, String)> {
    let frame = || kitchen_sink::frame_of(text);
    vec![
        ("catalog", html(&catalog::samples::list(frame(), text))),
        ("catalog entry", html(&catalog::samples::entry(frame(), text))),
        ("catalog edit", html(&catalog::samples::edit(frame(), text))),
        ("catalog remove", html(&catalog::samples::remove(frame(), text))),
    ]
}

/// The pages of approvals and grants.
fn of_approvals(text: &str) -> Vec<(&'static str, String)> {
    let row = kitchen_sink::approvals::requests_of(text).remove(1);
    vec![
        ("approvals", html(&kitchen_sink::approvals::inbox_of(text))),
        ("approval", html(&kitchen_sink::approvals::request_of(text))),
        ("approval decided", html(&kitchen_sink::approvals::decided_of(text))),
        ("approval row part", html(&approvals::RequestRowPart { row })),
        ("grants", html(&kitchen_sink::approvals::grants_of(text))),
        ("grant", html(&kitchen_sink::approvals::grant_of(text))),
    ]
}

/// Each template of a page is among the pages that these tests look at.
#[test]
fn each_page_is_looked_at() {
    let folder = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/templates"));
    let layouts = ["frame.html", "bare.html"];
    let known: Vec<_> = pages("x").iter().map(|(name, _)| name.replace(' ', "_")).collect();
    for entry in folder.read_dir().unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let Some(page) = name.strip_suffix(".html").filter(|_| !layouts.contains(&&*name)) else {
            continue;
        };
        assert!(known.iter().any(|known| known == page), "add `{page}` to `pages`");
    }
}

/// The elements of a page with their attributes, without the values that carry text.
fn skeleton(page: &str) -> BTreeSet<String> {
    let page = Html::parse_document(page);
    let all = selector("*");
    let elements = page.select(&all).map(|element| {
        let names: Vec<_> = element.value().attrs().map(|(name, _)| name).collect();
        format!("{} {}", element.value().name(), names.join(" "))
    });
    elements.collect()
}

/// S11: hostile text adds no element and no attribute to any page, and no invisible character.
#[test]
fn s11_hostile_text_changes_no_page() {
    let plain: Vec<_> =
        pages("x").into_iter().map(|(name, page)| (name, skeleton(&page))).collect();
    for text in hostile() {
        for ((name, page), (_, expected)) in pages(&text).iter().zip(&plain) {
            let shown: String = text.chars().take(40).collect();
            assert_eq!(skeleton(page), *expected, "{name}: {shown}");
            for hidden in UNSEEN {
                assert!(!page.contains(hidden), "{name}: {hidden:?} of {shown}");
            }
            // The kitchen sink has samples of all pages.
            let most = if *name == "kitchen sink" { 1_000_000 } else { 400_000 };
            assert!(page.len() < most, "{name}: {} bytes", page.len());
        }
    }
}

/// Nothing on a page needs more than the policy allows.
#[test]
fn pages_have_no_inline_script_style_or_handler() {
    for (name, page) in pages("x") {
        let page = Html::parse_document(&page);
        assert_eq!(page.select(&selector("style, script:not([src]), iframe, base")).count(), 0);
        for element in page.select(&selector("*")) {
            for (attribute, value) in element.value().attrs() {
                let is_bad = attribute.starts_with("on")
                    || attribute == "style"
                    || attribute.starts_with("hx-on")
                    || value.trim_start().starts_with("javascript:")
                    || value.trim_start().starts_with("js:");
                assert!(!is_bad, "{name}: {attribute}={value}");
            }
        }
    }
}

/// Readers of screens get a heading, a language, names of fields, and unique ids.
#[test]
fn pages_have_a_heading_a_language_and_named_fields() {
    for (name, page) in pages("x").into_iter().filter(|(name, _)| !name.contains("part")) {
        if name == "row" {
            continue;
        }
        let page = Html::parse_document(&page);
        assert_eq!(page.select(&selector("h1")).count(), 1, "{name}");
        assert_eq!(page.select(&selector("html[lang=en]")).count(), 1, "{name}");
        assert_eq!(page.select(&selector("main#main")).count(), 1, "{name}");
        let title = page.select(&selector("title")).next().unwrap();
        assert!(title.text().collect::<String>().ends_with(" · narthex"), "{name}");
        let mut ids = BTreeSet::new();
        for element in page.select(&selector("[id]")) {
            let id = element.value().id().unwrap();
            // The kitchen sink shows two lists of the same servers.
            assert!(ids.insert(id) || name == "kitchen sink", "{name}: two `{id}`");
        }
        for input in page.select(&selector("input:not([type=hidden]), select, textarea")) {
            let id = input.value().id().unwrap_or_default();
            let label = selector(&format!("label[for='{id}']"));
            assert_eq!(page.select(&label).count(), 1, "{name}: {id}");
        }
        for form in page.select(&selector("form[method=post]")) {
            let has_token = form.select(&selector("input[name=csrf]")).count() == 1;
            assert!(has_token, "{name}: {:?}", form.value().attr("action"));
        }
    }
}

/// The row of the page and the row of the event stream are the same text.
#[test]
fn a_row_is_the_same_in_the_page_and_in_the_event() {
    let sink = html(&kitchen_sink::page());
    for row in kitchen_sink::rows_of("") {
        let part = html(&servers::ServerRowPart { csrf: "token".to_owned(), row });
        assert!(sink.contains(part.trim()), "{part}");
    }
    let inbox = html(&kitchen_sink::approvals::inbox_of(""));
    for row in kitchen_sink::approvals::requests_of("") {
        let part = html(&approvals::RequestRowPart { row });
        assert!(inbox.contains(part.trim()), "{part}");
    }
}

/// Each state has a word and an icon of its own: colour alone tells nothing.
#[test]
fn each_state_has_a_word_and_an_icon() {
    let all = kitchen_sink::STATES.map(State);
    let words: BTreeSet<_> = all.iter().map(|state| state.word()).collect();
    let icons: BTreeSet<_> = all.iter().map(|state| state.icon()).collect();
    assert_eq!((words.len(), icons.len()), (5, 5));
}

/// Each status of a run has a word of its own, and a run that is active has an icon of its own.
#[test]
fn each_status_of_a_run_has_a_word() {
    let all = runs::samples::STATUSES.map(runs::RunStatus);
    let words: BTreeSet<_> = all.iter().map(|status| status.word()).collect();
    assert_eq!(words.len(), all.len());
    let icon = |word| runs::RunStatus(word).icon();
    assert_ne!(icon("running"), icon("pending"));
    assert_ne!(icon("failed"), icon("ended"));
}

/// A call in the page and in its event are the same text.
#[test]
fn a_call_is_the_same_in_the_page_and_in_the_event() {
    let rows = runs::samples::calls_of("");
    let list = html(&runs::trace::CallList { rows: rows.clone() });
    for row in rows {
        let part = html(&runs::trace::CallRowPart { row });
        assert!(list.contains(part.trim()), "{part}");
    }
}

/// Times are exact in the page, whether or not a script runs.
#[test]
fn times_are_exact_without_a_script() {
    let page = Html::parse_document(&html(&kitchen_sink::page()));
    let time = page.select(&selector("nx-time time")).next().unwrap();
    let exact = time.value().attr("datetime").unwrap();
    assert!(narthex_model::Timestamp::read(exact).is_some(), "{exact}");
    let at = Moment::new(narthex_model::Timestamp::read(exact).unwrap());
    assert_eq!(time.text().collect::<String>(), at.shown());
}

/// Templates have no way around the escaper, and no code.
#[test]
fn templates_have_no_way_around_the_escaper() {
    let mut folders =
        vec![std::path::PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/templates"))];
    let mut count = 0;
    while let Some(folder) = folders.pop() {
        for entry in folder.read_dir().unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = fs_err::read_to_string(&path).unwrap();
            for word in ["|safe", "| safe", "|escape", "autoescape", "hx-on", "js:", "style="] {
                assert!(!text.contains(word), "{}: {word}", path.display());
            }
            count += 1;
        }
    }
    assert!(count > 10, "{count}");
}
