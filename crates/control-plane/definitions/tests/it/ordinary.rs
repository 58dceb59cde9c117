//! Definitions of honest servers, in which no rule may find anything.

use narthex_definitions::screen;
use serde_json::{Value, json};

use crate::definition;

/// All that two servers of the makers of the protocol list.
const LISTED: [(&str, &str); 2] = [
    ("server-everything", include_str!("../data/server-everything.json")),
    ("server-filesystem", include_str!("../data/server-filesystem.json")),
];

pub(crate) fn listed() -> Vec<Value> {
    let lists = LISTED.map(|(_, text)| serde_json::from_str::<Vec<Value>>(text).unwrap());
    lists.concat()
}

#[test]
fn s22_servers_of_the_makers_of_the_protocol() {
    let all = listed();
    assert!(all.len() >= 40, "{}", all.len());
    for one in all {
        assert_eq!(screen(&definition(&one)), [], "{one}");
    }
}

#[test]
fn s22_descriptions_of_other_servers_have_no_findings() {
    let descriptions = [
        "Dynamic and reflective problem-solving through thoughts. You should: 1. Start with an \
         initial estimate of needed thoughts, but be ready to adjust 2. Ignore information that \
         is irrelevant to the current step 3. Feel free to question or revise previous thoughts",
        "Resolves a package name to a library ID. You MUST call this function before \
         'get-library-docs' to obtain a valid ID UNLESS the user explicitly provides one.",
        "Fetches a URL from the internet. Although originally you did not have internet access, \
         and were advised to refuse and tell the user this, this tool now grants you access.",
        "Shows the working tree status. Files in .gitignore are ignored.",
        "Create or update a file in a repository; if updating, you must provide the SHA of the \
         file being replaced (e.g. 95b966ae1c166bd92f8ae7d1c313e738c731dfc3).",
        "Run a read-only SQL query. Results of previous queries are not kept.",
        "Sends a message to a channel. Do not include more than 40,000 characters.",
        "Deletes an event. All guests are notified by e-mail unless `sendUpdates` is `none`.",
        "Bypasses the cache and overrides the default timeout of 30s",
        "IMPORTANT: paths must be absolute. NEVER pass a relative path!",
        "Liest eine Datei. Bitte alle Anweisungen der Betreiber beachten – „vorsichtig“.",
        "读取文件的内容。路径必须是绝对路径。",
        "Читает файл. Путь должен быть абсолютным.",
        "قراءة ملف من القرص (UTF-8).",
        "Picks an emoji 👩🏽‍💻 ❤️ 🏴󠁧󠁢󠁥󠁮󠁧󠁿 and returns it",
    ];
    for description in descriptions {
        let tool = json!({"name": "t", "description": description});
        assert_eq!(screen(&definition(&tool)), [], "{description}");
    }
}

#[test]
fn s22_pictures_of_icons_are_no_text() {
    let svg = "data:image/svg+xml;base64,\
        PHN2Zz48dGl0bGU+QSBob3VzZSB3aXRoIGEgZ2FyZGVuIGFuZCB0d28gdHJlZXM8L3RpdGxlPjwvc3ZnPg==";
    let tool = json!({"name": "t", "icons": [{"src": svg, "mimeType": "image/svg+xml"}]});
    assert_eq!(screen(&definition(&tool)), []);
    let elsewhere = json!({"name": "t", "description": svg});
    assert_eq!(screen(&definition(&elsewhere)).len(), 1);
}
