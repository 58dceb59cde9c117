//! The packages that are reported as not fixed, and the proposed replacements.

use super::*;

fn found(line: &str) -> Vec<(String, String)> {
    let words: Vec<_> = line.split(' ').collect();
    let all = unpinned(words[0], &words[1..]);
    all.into_iter().map(|one| (one.spec, one.pin)).collect()
}

/// S5: each runner of the issue, however it is called.
#[test]
fn s5_packages_without_a_version_are_named_with_their_pin() {
    let wanted = [
        ("npx -y @scope/server-files /tmp", "@scope/server-files", "@scope/server-files@VERSION"),
        ("npx --yes server@latest", "server@latest", "server@VERSION"),
        ("/usr/bin/npx server@^1.2.3", "server@^1.2.3", "server@VERSION"),
        ("NPX.CMD -y server@1", "server@1", "server@VERSION"),
        ("npx --package=server@1.2 run-it", "server@1.2", "server@VERSION"),
        ("npx -p server -- run-it --x", "server", "server@VERSION"),
        ("npx -- server", "server", "server@VERSION"),
        ("npm exec -y server", "server", "server@VERSION"),
        ("pnpm dlx server@next", "server@next", "server@VERSION"),
        ("pnpx server", "server", "server@VERSION"),
        ("yarn dlx -p server run-it", "server", "server@VERSION"),
        ("bunx server@1.x", "server@1.x", "server@VERSION"),
        ("bun x server", "server", "server@VERSION"),
        ("npx alias@npm:server@~1.0.0", "alias@npm:server@~1.0.0", "server@VERSION"),
        ("npx user/repo", "user/repo", "user/repo#VERSION"),
        ("npx github:user/repo#main", "github:user/repo#main", "github:user/repo#VERSION"),
        ("uvx server", "server", "server==VERSION"),
        ("uvx server@latest", "server@latest", "server==VERSION"),
        ("uvx --python 3.12 server[cli]>=1.0 --port 1", "server[cli]>=1.0", "server[cli]==VERSION"),
        ("uvx --from server~=1.0 run-it", "server~=1.0", "server==VERSION"),
        ("uvx --from=server==1.* run-it", "server==1.*", "server==VERSION"),
        ("uv tool run server", "server", "server==VERSION"),
        ("uvx --with extra server==1.2", "extra", "extra==VERSION"),
        ("pipx run server", "server", "server==VERSION"),
        ("pipx run --spec server==1.0.* run-it", "server==1.0.*", "server==VERSION"),
        ("python3.12 -m pipx run server", "server", "server==VERSION"),
        ("env A=1 npx -y server", "server", "server@VERSION"),
        ("cmd /c npx -y server", "server", "server@VERSION"),
    ];
    for (line, spec, pin) in wanted {
        assert_eq!(found(line), [(spec.to_owned(), pin.to_owned())], "{line}");
    }
    let shell = unpinned("sh", &["-c", "cd /x && exec npx -y 'server' --flag"]);
    assert_eq!(shell[0].pin, "server@VERSION");
    let git = &unpinned("uvx", &["--from", "git+https://a.test/r.git", "run-it"])[0];
    assert_eq!(git.pin, "git+https://a.test/r.git@VERSION");
    assert_eq!(git.find, "git ls-remote https://a.test/r.git HEAD");
    let told = unpinned("npx", &["git+https://me:pw@a.test/r.git"])[0].to_string();
    assert!(told.contains("`git+https://a.test/r.git`") && !told.contains("pw"), "{told}");
}

/// S5: what always starts the same code, or nothing that is downloaded, is not named.
#[test]
fn s5_fixed_packages_and_other_programs_are_not_named() {
    let commit = "0123456789abcdef0123456789abcdef01234567";
    let fixed = [
        "npx -y @scope/server@1.2.3 /tmp".to_owned(),
        "npx server@1.2.3-beta.1+b2".to_owned(),
        "npx --package server@1.2.3 run-it".to_owned(),
        "npx -y alias@npm:server@1.0.0".to_owned(),
        "npx ./local".to_owned(),
        "npx /srv/server.tgz".to_owned(),
        "npx server@${env:VERSION}".to_owned(),
        format!("npx user/repo#{commit}"),
        "uvx server@1.2".to_owned(),
        "uvx server==1.2.3 --port 1".to_owned(),
        "uvx --from server==1.2 run-it".to_owned(),
        format!("uvx --from git+https://a.test/r.git@{commit} run-it"),
        "pipx run --spec server==1.0 run-it".to_owned(),
        "pipx install server".to_owned(),
        "npm start".to_owned(),
        "node server.js".to_owned(),
        "uv run server".to_owned(),
        "docker run npx".to_owned(),
        "npx".to_owned(),
        "npx -y".to_owned(),
    ];
    for line in fixed {
        assert_eq!(found(&line), [], "{line}");
    }
    assert!(unpinned("", &[""]).is_empty());
}

#[test]
fn s5_the_warning_names_the_pin_and_the_command_for_a_version() {
    let one = &unpinned("npx", &["-y", "server"])[0];
    let text = one.to_string();
    assert!(text.contains("write `server@VERSION`; `npm view server version` prints"), "{text}");
    let known = one.with_version("1.2.3").to_string();
    assert!(known.ends_with("write `server@1.2.3`"), "{known}");
}
