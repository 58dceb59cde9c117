//! Programs of the catalog that are confined.

use fs_err as fs;
use serde_json::{Value, json};

use crate::support::{Place, fixture};

/// X-E116, D22: a run starts a program of the catalog confined as its entry says, which is stored,
/// shown and exported as it was written; a faulty confinement is refused at save.
#[test]
fn x_e116_a_run_starts_a_program_confined_by_its_entry() {
    // In the folder for temporary files, of which a confined program gets nothing.
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    for name in ["in", "out", "secret"] {
        fs::create_dir(at(name)).unwrap();
        fs::write(at(&format!("{name}/file")), format!("text of {name}\n")).unwrap();
    }
    let (fixture, out) = (fixture(), at("out"));
    let script = format!(
        "{{ cat '{}' || echo denied; cat '{}'; }} > '{out}'/\"$1\" 2>/dev/null
        exec '{}' --stdio\n",
        at("secret/file"),
        at("in/file"),
        fixture.display(),
    );
    fs::write(at("in/run.sh"), script).unwrap();
    let place = Place::with(&json!({}));
    let _daemon = place.up();
    let confinement = json!({
        "filesystem": { "read": [at("in"), fixture.parent().unwrap()], "write": [out] },
        "network": "none",
    });
    let apply = |name: &str, confinement: &Value| {
        let entry = json!({ "id": name, "command": "sh", "args": [at("in/run.sh"), name],
            "confinement": confinement });
        place.write("entry.json", &entry.to_string());
        place.run(["servers", "apply", "-f", "entry.json"])
    };
    for (name, confinement) in [("held", &confinement), ("loose", &json!("none"))] {
        apply(name, confinement).succeeded();
        let agent = json!({ "name": name, "mcpServers": { name: { "ref": name } } });
        place.write("agent.json", &agent.to_string());
        place.run(["agents", "apply", "-f", "agent.json"]).succeeded();
        place.run(["runs", "create", "--agent", name]).succeeded();
    }
    let seen = |name: &str| fs::read_to_string(at(&format!("out/{name}"))).unwrap();
    assert_eq!(seen("held"), "denied\ntext of in\n");
    assert_eq!(seen("loose"), "text of secret\ntext of in\n");

    let exported = place.run(["export"]).succeeded().stdout;
    assert!(exported.contains("confinement"), "{exported}");
    let shown = place.run(["servers", "get", "held", "--json"]).succeeded().json();
    assert_eq!(shown["data"]["definition"]["confinement"], confinement, "{shown}");
    let wrong = json!({ "privileged": true, "network": "host", "filesystem": { "read": ["in"] } });
    let places = ["confinement.network", "confinement.filesystem.read[0]", "`privileged`"];
    apply("held", &wrong).failed(1, &places);
    let shown = place.run(["servers", "get", "held", "--json"]).succeeded().json();
    assert_eq!(shown["data"]["definition"]["confinement"], confinement, "{shown}");
}
