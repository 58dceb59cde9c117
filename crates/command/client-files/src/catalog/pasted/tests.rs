//! Files of desktop clients, taken apart.

use super::*;
use crate::edit::Format;

/// X-M12, D7: each pasted server becomes one server, and rewritten parts are reported.
#[test]
fn x_m12_each_server_of_a_pasted_client_file_becomes_a_server() {
    let document = json!({ "mcpServers": {
        "docs": { "url": "https://${HOST}/mcp", "headers": {
            "authorization": "Bearer ${TOKEN}", "x-key": "${DOCS_KEY}" } },
        "github": { "command": "npx", "args": ["-y", "x", "$HOME"],
                    "env": { "TOKEN": "${GITHUB_TOKEN}", "PORT": 80 } } } });
    let Pasted { servers, notices, faults } = take_out(&document).unwrap();
    assert_eq!(faults, []);
    let values: Vec<_> = servers.iter().map(|server| server.value.clone()).collect();
    assert_eq!(
        values,
        [
            json!({ "id": "docs", "url": "https://${env.HOST}/mcp", "verbatim_headers": true,
                "default_config": { "x-key": "${DOCS_KEY}" },
                "auth": { "mode": "apiKey", "key": "${TOKEN}", "headerName": "Authorization",
                          "valuePrefix": "Bearer " } }),
            json!({ "id": "github", "command": "npx", "args": ["-y", "x", "$HOME"],
                "env": { "TOKEN": "${GITHUB_TOKEN}", "PORT": "80" } }),
        ]
    );
    assert_eq!(notices.len(), 4, "{notices:?}");
    assert!(notices[0].starts_with("mcpServers.docs.headers.authorization"), "{notices:?}");
    for (server, field, place) in [
        (0, "", "mcpServers.docs"),
        (0, "auth.key", "mcpServers.docs.headers.authorization"),
        (0, "default_config.x-key", "mcpServers.docs.headers.x-key"),
        (0, "url", "mcpServers.docs.url"),
        (1, "default_config.TOKEN", "mcpServers.github.env.TOKEN"),
        (1, "args[2]", "mcpServers.github.args[2]"),
    ] {
        assert_eq!(servers[server].place(field), place, "{field}");
    }
}

/// X-M12, D7: `${env:VAR}` is a variable of the daemon, as in a client's own file. A placeholder
/// that names no variable is text.
#[test]
fn x_m12_env_placeholders_of_a_client_become_variables_of_the_daemon() {
    let document = json!({ "mcpServers": { "a": { "command": "x", "env": {
        "A": "${env:HOME}/x", "B": "$${B}", "C": "${1} ${C}", "D": "${2}", "E": "${E" } } } });
    let Pasted { servers, notices, faults } = take_out(&document).unwrap();
    assert_eq!(faults, []);
    let env = json!({ "A": "${env.HOME}/x", "B": "$${B}", "C": "$${1} ${env.C}",
                      "D": "$${2}", "E": "$${E" });
    assert_eq!(servers[0].value["env"], env);
    let told: Vec<_> = notices.iter().filter(|text| text.contains("of the daemon")).collect();
    assert_eq!(told.len(), 2, "{notices:?}");
    let as_text = "mcpServers.a.env.D: `${2}` names no variable, and stays as it is";
    assert!(notices.iter().any(|notice| notice == as_text), "{notices:?}");
}

/// D7: a variable that only clients fill in, and a default, are one fault each, with one remedy.
/// The fault does not mention how narthex read them.
#[test]
fn d7_each_client_only_variable_is_one_fault_with_one_remedy() {
    let document = json!({ "mcpServers": {
        "a": { "command": "x", "args": ["${workspaceRoot}", "${input:key}"],
               "env": { "A": "${workspaceFolder}/x", "B": "${input:b-key}",
                        "C": "${C:-sk-1}" } },
        "b": { "url": "https://${input:host}/mcp", "headers": {
               "Authorization": "Bearer ${input:token}", "x-home": "${userHome}/z" } } } });
    let Pasted { notices, faults, .. } = take_out(&document).unwrap();
    assert_eq!(notices, [""; 0]);
    let told: Vec<_> = faults.iter().map(|one| (&*one.place, &*one.remedy)).collect();
    let folder = "write the path of the folder on the daemon's machine";
    let expected = [
        ("mcpServers.a.env.A", folder),
        (
            "mcpServers.a.env.B",
            "write `${B_KEY}`, and store that secret with \
                                `narthex secrets set B_KEY`",
        ),
        ("mcpServers.a.env.C", "leave the default out: write `${C}`"),
        ("mcpServers.a.args[0]", folder),
        (
            "mcpServers.a.args[1]",
            "pass the value in `env`, as `${KEY}`, and store that secret with `narthex secrets set \
             KEY`",
        ),
        (
            "mcpServers.b.headers.Authorization",
            "write `Bearer ${TOKEN}`, and store that \
                                                secret with `narthex secrets set TOKEN`",
        ),
        ("mcpServers.b.headers.x-home", folder),
        ("mcpServers.b.url", "write the value itself"),
    ];
    assert_eq!(told, expected);
    assert!(faults.iter().all(|fault| !fault.message.contains("sk-1")), "{faults:?}");
}

#[test]
fn x_m12_a_document_without_mcp_servers_is_not_converted() {
    for one in [json!({ "id": "a", "command": "npx" }), json!([]), json!(null)] {
        assert!(take_out(&one).is_none(), "{one}");
    }
}

#[test]
fn x_m12_each_unusable_part_of_a_pasted_file_is_named() {
    for (value, place) in [
        (json!({ "mcpServers": [] }), "mcpServers"),
        (json!({ "mcpServers": { "a": 1 } }), "mcpServers.a"),
        (json!({ "mcpServers": { "a": { "id": "b" } } }), "mcpServers.a.id"),
        (json!({ "mcpServers": { "a": { "env": { "B": {} } } } }), "mcpServers.a.env.B"),
        (json!({ "mcpServers": { "a": { "args": [{}] } } }), "mcpServers.a.args[0]"),
        (json!({ "mcpServers": {}, "theme": "dark" }), "theme"),
    ] {
        let faults = take_out(&value).unwrap().faults;
        assert!(matches!(&faults[..], [one] if one.place == place), "{faults:?}");
    }
}

/// X-M12: every fault is reported at once, each with its server, its line and one remedy.
#[test]
fn x_m12_each_fault_of_a_pasted_file_has_its_server_and_line() {
    let text = r#"{
        "mcpServers": {
            "a": {
                "url": "https://a.test",
                "hedaers": {}
            },
            "b": {
                "command": "x",
                "args": ["-y", "--key=${API_KEY}"]
            }
        }
    }"#;
    let lines = crate::rewrite::parse(Format::Json, text.as_bytes()).unwrap().lines();
    let value: Value = serde_json::from_str(text).unwrap();
    let faults = take_out(&value).unwrap().faults;
    let told: Vec<_> =
        faults.iter().map(|one| (&*one.place, lines.of(&one.place), &*one.remedy)).collect();
    let in_env = "all users of the machine can read arguments; hand the variable over in `env`";
    let expected = [
        ("mcpServers.a.hedaers", Some(5), "did you mean `headers`?"),
        ("mcpServers.b.args[1]", Some(9), in_env),
    ];
    assert_eq!(told, expected);
}
