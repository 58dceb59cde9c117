//! Tests of the words in front of a package, which could replace it or open the machine.

use serde_json::{Value, json};

use super::{super::inputs::Answers, *};
use crate::public_registry::{
    document::ServerDocument,
    testing::folders,
    ways::{Unusable, Way, ways},
};

/// The ways of a server with a package of this kind and these words in front of it.
fn with(kind: &str, words: &Value) -> (Vec<Way>, Vec<Unusable>) {
    let identifier = match kind {
        "npm" => "@trusted/pkg",
        "pypi" => "trusted-pkg",
        _ => "trusted/pkg",
    };
    let package = json!({ "registryType": kind, "identifier": identifier, "version": "1.0.0",
        "runtimeArguments": words });
    let server = json!({ "name": "a/b", "packages": [package] });
    ways(&serde_json::from_value::<ServerDocument>(server).unwrap())
}

/// The command with these words in front of its package.
#[track_caller]
fn command(kind: &str, words: &Value) -> String {
    let (usable, unusable) = with(kind, words);
    assert!(unusable.is_empty(), "{unusable:?}");
    usable[0].draft(&Answers::default(), &folders()).unwrap().target()
}

#[track_caller]
fn refused(kind: &str, word: &Value, named: &str) {
    let (usable, unusable) = with(kind, &json!([word]));
    assert!(usable.is_empty(), "{kind} {word}: {usable:?}");
    let why = &unusable[0].why;
    assert!(why.contains(&format!("has `{named}` in front of its package")), "{why}");
    assert!(why.contains("narthex mcp add NAME -- COMMAND"), "{why}");
}

/// E206: no word in front of a package of npm or `PyPI` replaces it.
#[test]
fn e206_a_description_cannot_replace_the_checked_package() {
    let word = |text: &str| json!({ "type": "positional", "value": text });
    for kind in ["npm", "pypi"] {
        for text in ["evil-unpinned", "--", "-c", "--from", "@evil/pkg@1.0.0", "-p", "-yq", ""] {
            refused(kind, &word(text), text);
        }
        refused(kind, &json!({ "type": "positional", "valueHint": "pkg" }), "pkg");
        let hint = json!({ "type": "positional", "valueHint": "-y", "default": "evil" });
        refused(kind, &hint, "-y");
        for name in [
            "-c",
            "--call",
            "-p",
            "--package",
            "--registry",
            "--from",
            "--with",
            "--with-requirements",
            "--index",
            "--index-url",
            "--extra-index-url",
            "--default-index",
            "--find-links",
            "--python",
            "--node-options",
            "--script-shell",
            "--userconfig",
            "--prefix",
            "--quiet=evil",
        ] {
            for input in [json!({}), json!({ "value": "x" }), json!({ "isRequired": true })] {
                let mut word = input;
                word["type"] = json!("named");
                word["name"] = json!(name);
                refused(kind, &word, name);
            }
        }
        // The value of a switch would be the package.
        for input in [
            json!({ "value": "evil" }),
            json!({ "default": "evil" }),
            json!({ "description": "any", "isRequired": true }),
        ] {
            let mut word = input;
            word["type"] = json!("named");
            word["name"] = json!("--quiet");
            refused(kind, &word, "--quiet");
        }
    }
    let valued = json!({ "type": "named", "name": "-y", "value": "evil" });
    refused("npm", &valued, "-y");
    let accepted = json!([word("-y"), { "type": "named", "name": "--yes" },
        { "type": "named", "name": "--quiet" }, word("-q")]);
    assert_eq!(command("npm", &accepted), "npx -y --quiet -q @trusted/pkg@1.0.0");
    let accepted = json!([{ "type": "named", "name": "--no-progress" }]);
    assert_eq!(command("pypi", &accepted), "uvx --no-progress trusted-pkg==1.0.0");
}

/// E206: no word in front of an image opens the machine to it, or is read as the image.
#[test]
fn e206_a_description_cannot_open_the_machine_to_a_container() {
    for name in [
        "--privileged",
        "--pid",
        "--cap-add",
        "--device",
        "--security-opt",
        "--volumes-from",
        "--entrypoint",
        "--env-file",
        "--user",
        "-u",
        "-it",
        "-v/:/h",
        "--volume=/:/h",
        "--mount=type=bind,src=/,dst=/h",
    ] {
        for input in [json!({}), json!({ "value": "x" })] {
            let mut word = input;
            word["type"] = json!("named");
            word["name"] = json!(name);
            refused("oci", &word, name);
        }
    }
    for text in ["evil/image:1", "--privileged", "-v", "/:/h"] {
        refused("oci", &json!({ "type": "positional", "value": text }), text);
    }
    // The next word, the image, would be the value.
    for name in ["-v", "--mount", "--network", "-e", "--env"] {
        refused("oci", &json!({ "type": "named", "name": name }), name);
    }
    // A variable of the daemon would pass into the image, or the user would be asked for a name.
    for value in [
        json!({ "value": "GITHUB_TOKEN" }),
        json!({ "isRequired": true }),
        json!({ "value": "{v}=x", "variables": { "v": { "default": "PATH" } } }),
    ] {
        let mut word = value;
        word["type"] = json!("named");
        word["name"] = json!("-e");
        refused("oci", &word, "-e");
    }
    refused("oci", &json!({ "type": "named", "name": "--rm", "value": "evil" }), "--rm");
    let accepted = json!([
        { "type": "positional", "value": "run" },
        { "type": "named", "name": "--rm" },
        { "type": "named", "name": "-i", "description": "Keeps the input open" },
        { "type": "named", "name": "--network", "value": "none" },
        { "type": "named", "name": "-v", "value": "data:/data:ro" },
        { "type": "named", "name": "-e", "value": "LEVEL=info" },
    ]);
    let expected = "docker run -i --rm -e LEVEL --network none -v data:/data:ro trusted/pkg:1.0.0";
    assert_eq!(command("oci", &accepted), expected);
}

/// E206: a container gets neither the root of the machine nor the socket of its runtime, whatever
/// parts the path is made of.
#[test]
fn e206_a_container_gets_no_root_and_no_socket() {
    let volumes = [
        "/:/h",
        "//:/h",
        "/.:/h",
        "/./:/h",
        "/a/..:/h",
        "..:/h",
        "./x:/h",
        "~:/h",
        "/home:/h",
        "/home/ada:/h",
        "/home/ada/:/h",
        "/etc:/h",
        "/etc/ssh:/h:ro",
        "/proc/1/root:/h",
        "/var:/h",
        "/var/run:/h",
        "/var/run/docker.sock:/s",
        "/var//run/docker.sock:/s",
        "/run/podman/podman.sock:/s",
        "/tmp/x.sock:/s",
        "/data:/h:shared",
        "/data:/h:ro:x",
        "",
    ];
    for text in volumes {
        for flag in ["-v", "--volume"] {
            assert!(opens(flag, text, &folders()).is_err(), "{flag} {text}");
        }
        let from = text.split(':').next().unwrap_or_default();
        let is_path = !from.is_empty() && !text.starts_with("/data");
        let mount = format!("type=bind,src={from},dst=/h");
        assert!(!is_path || opens("--mount", &mount, &folders()).is_err(), "{mount}");
    }
    for text in [
        "type=bind,SOURCE=/,dst=/h",
        "type=bind,src=/data,dst=/h,src=/",
        "type=bind,\"src=/\",dst=/h",
        "type=volume,dst=/h,volume-opt=device=/,volume-opt=o=bind",
        "type=volume,dst=/h,volume-driver=x",
        "type=image,src=x,dst=/h",
        "type=bind,src=/data,dst=/h,bind-propagation=shared",
        "type=bind,src=/data,dst=/h,$${x}",
    ] {
        assert!(opens("--mount", text, &folders()).is_err(), "{text}");
    }
    for (flag, text) in [
        ("-v", "data:/data"),
        ("-v", "/data"),
        ("-v", "/home/ada/papers:/papers:ro,z"),
        ("-v", "${env:DATA}:/data"),
        ("-v", "${env:DATA}/x:/data"),
        ("--mount", "type=bind,src=/home/ada/x y,dst=/h,readonly"),
        ("--mount", "type=bind,source=${env:DATA},target=/h"),
        ("--mount", "type=tmpfs,dst=/h"),
        ("--network", "none"),
    ] {
        assert_eq!(opens(flag, text, &folders()), Ok(()), "{flag} {text}");
    }
    // The folder of a reference stays below it.
    assert!(opens("-v", "${env:DATA}/../..:/data", &folders()).is_err());
}

/// E206: the check sees the whole value, also where a default completes it.
#[test]
fn e206_a_default_cannot_complete_a_forbidden_mount() {
    let way = |name: &str, value: &str, default: &str| {
        let variables = json!({ "v": { "default": default } });
        let word = json!({ "type": "named", "name": name, "value": value, "variables": variables });
        with("oci", &json!([word])).0.remove(0)
    };
    for (name, value, default) in [
        ("-v", "{v}:/h", "/"),
        ("-v", "/{v}:/h", "var/run/docker.sock"),
        ("--mount", "type=bind,src=/data{v},dst=/h", ",src=/"),
        ("--mount", "{v}", "type=bind,src=/,dst=/h"),
    ] {
        let faults = way(name, value, default).draft(&Answers::default(), &folders()).unwrap_err();
        assert!(faults[0].starts_with(&format!("the argument `{name}` ")), "{faults:?}");
    }
    let draft = way("-v", "{v}:/h", "/data").draft(&Answers::default(), &folders()).unwrap();
    assert_eq!(draft.opened(), [("-v".to_owned(), "/data:/h".to_owned())]);
}
