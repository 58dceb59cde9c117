//! Tests of the commands that add a server of one folder, or a second one of a name.

use narthex_model::Secret;

use super::*;

fn server(target: Target) -> FoundServer {
    FoundServer {
        name: "docs".to_owned(),
        target,
        timeout_ms: None,
        start_timeout_ms: None,
        tools: ToolLists::default(),
        is_disabled: false,
        placeholders: BTreeSet::new(),
        spelled: BTreeMap::new(),
        left_out: Vec::new(),
    }
}

fn plain(text: &str) -> Text {
    Text::Plain(text.to_owned())
}

fn program(args: Vec<Text>, env: BTreeMap<String, Text>) -> FoundServer {
    server(Target::Stdio { command: plain("npx"), args, env, cwd: Some("/srv/my shop".to_owned()) })
}

fn told(server: &FoundServer) -> Option<String> {
    Some(Adding::of(server, &Alias::suggest("docs"), &mut BTreeSet::new())?.told("adds it"))
}

/// A printed command works when it is pasted: it has the server's own words, quoted, and no
/// value of a secret.
#[test]
fn a_command_has_the_words_of_its_server_and_names_its_secrets() {
    let secret = || Text::Secret(Secret::new("adding-canary-5731".to_owned()));
    let env = BTreeMap::from([
        ("DOCS_KEY".to_owned(), secret()),
        ("LOG".to_owned(), plain("${env:LOG:-info}")),
    ]);
    assert_eq!(
        told(&program(vec![plain("-y"), plain("@example/docs@1.0.0"), plain("a b")], env)).unwrap(),
        "store its secret first with `narthex secrets set DOCS_KEY`, then `narthex mcp add \
         docs --env 'DOCS_KEY=${secret:DOCS_KEY}' --env 'LOG=${env:LOG:-info}' --cwd '/srv/my \
         shop' -- npx -y @example/docs@1.0.0 'a b'` adds it"
    );
    let remote = |url| {
        let headers = BTreeMap::from([("X-Key".to_owned(), secret())]);
        server(Target::Remote { is_sse: true, url, headers })
    };
    assert_eq!(
        told(&remote(plain("https://docs.example.com/sse"))).unwrap(),
        "store its secret first with `narthex secrets set DOCS_X_KEY`, then `narthex mcp add \
         docs --sse --url https://docs.example.com/sse --header \
         'X-Key=${secret:DOCS_X_KEY}'` adds it"
    );
    // A fact that no flag has is in an entry.
    let slow = FoundServer { timeout_ms: Some(5), ..program(vec![], BTreeMap::new()) };
    assert_eq!(
        told(&slow).unwrap(),
        "`narthex mcp add docs '{\"transport\":\"stdio\",\"command\":\"npx\",\"cwd\":\
         \"/srv/my shop\",\"timeoutMs\":5}'` adds it"
    );
    // A secret in an argument or an address cannot be named.
    assert_eq!(told(&program(vec![secret()], BTreeMap::new())), None);
    assert_eq!(told(&remote(secret())), None);
}

/// A printed command has no character that a terminal changes, and no name that looks like a
/// flag.
#[test]
fn words_that_cannot_be_pasted_are_in_an_entry() {
    let home = |target: Target| FoundServer {
        target: match target {
            Target::Stdio { command, args, env, .. } => {
                Target::Stdio { command, args, env, cwd: None }
            }
            remote @ Target::Remote { .. } => remote,
        },
        ..program(vec![], BTreeMap::new())
    };
    let run = |args: Vec<Text>, env| home(program(args, env).target);
    assert_eq!(
        told(&run(vec![plain("-c"), plain("import sys\nprint('\u{202e}')")], BTreeMap::new()))
            .unwrap(),
        "`narthex mcp add docs \"{\\\"transport\\\":\\\"stdio\\\",\\\"command\\\":\\\"npx\\\",\
         \\\"args\\\":[\\\"-c\\\",\\\"import sys\\\\nprint('\\\\u202e')\\\"]}\"` adds it"
    );
    for name in ["-X", "A=B"] {
        let told = told(&run(vec![], BTreeMap::from([(name.to_owned(), plain("1"))]))).unwrap();
        assert_eq!(
            told,
            format!(
                "`narthex mcp add docs '{{\"transport\":\"stdio\",\"command\":\"npx\",\"env\":\
                 {{\"{name}\":\"1\"}}}}'` adds it"
            )
        );
    }
}

/// A pasted `secrets set` overwrites no secret that is there, nor that of another command.
#[test]
fn names_of_secrets_are_free_ones() {
    let server = || {
        let secret = Text::Secret(Secret::new("adding-canary-5731".to_owned()));
        program(vec![], BTreeMap::from([("DOCS_KEY".to_owned(), secret)]))
    };
    let mut taken = BTreeSet::from(["DOCS_KEY".to_owned()]);
    let mut names = Vec::new();
    for _ in 0..2 {
        let adding = Adding::of(&server(), &Alias::suggest("docs"), &mut taken).unwrap();
        names.extend(adding.secrets.iter().map(|name| name.as_str().to_owned()));
    }
    assert_eq!(names, ["DOCS_KEY_2", "DOCS_KEY_3"]);
}

/// A variable that is not set is named before the command that needs it.
#[test]
fn a_variable_to_set_comes_first() {
    let server = program(vec![plain("${env:DOCS}")], BTreeMap::new());
    let alias = Alias::suggest("docs");
    let way = Way::of(&server, &alias, &mut BTreeSet::new(), vec!["DOCS".to_owned()]);
    let Way::Add(adding) = way else { panic!("it has a secret") };
    let told = adding.told("adds it");
    let begin = "set DOCS, which it reads, here and where the daemon starts, then `narthex mcp add \
                 docs ";
    assert!(told.starts_with(begin), "{told}");
}

#[test]
fn a_name_that_is_taken_gets_an_end_and_a_number() {
    let mut taken = BTreeSet::from(["docs".to_owned()]);
    let mut names = Vec::new();
    for name in ["My Docs", "docs", "docs", "docs"] {
        names.push(free_name(name, "shop", &mut taken).as_str().to_owned());
    }
    assert_eq!(names, ["my-docs", "docs-shop", "docs-shop-2", "docs-shop-3"]);
}
