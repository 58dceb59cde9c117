//! Values that a person who approves a file need not see: those that are certainly secrets.
//!
//! A text that may decide what runs is shown, also where it looks like a secret (D27): a command, a
//! package, a script, an image, code, and a variable that programs read to find code. When in
//! doubt, a text is shown. This is stricter than [`super::secrets`], which keeps texts apart that
//! may be secrets.

use narthex_model::{is_known_key, variable::steers_programs};

use super::secrets::{counts, own_args, pair, says_secret, without_scheme};

/// Beginnings of variables by which package managers, interpreters and git choose code, besides
/// those of which narthex knows that they do.
const CHOOSING: [&str; 16] = [
    "BUN_",
    "CARGO_",
    "DENO_",
    "DOCKER_",
    "GEM_",
    "GIT_",
    "JAVA_",
    "NODE_",
    "NPM_CONFIG_",
    "PERL",
    "PIP_",
    "PNPM_",
    "PYTHON",
    "RUBY",
    "UV_",
    "YARN_",
];
/// Ends of such variables that are credentials all the same, as that of `UV_PUBLISH_TOKEN`.
const CREDENTIALS: [&str; 3] = ["_PASSWORD", "_SECRET", "_TOKEN"];

/// Programs that run the words after them, or start others by rules of their own.
const RUNNERS: [&str; 36] = [
    "ash",
    "aws-vault",
    "bash",
    "bwrap",
    "busybox",
    "cargo",
    "chroot",
    "cmd",
    "csh",
    "dash",
    "deno",
    "direnv",
    "dotenv",
    "dotenvx",
    "dotnet",
    "doas",
    "env",
    "firejail",
    "fish",
    "flatpak",
    "go",
    "ksh",
    "make",
    "nice",
    "nohup",
    "parallel",
    "powershell",
    "pwsh",
    "sh",
    "stdbuf",
    "sudo",
    "tcsh",
    "timeout",
    "wsl",
    "xargs",
    "zsh",
];
/// Programs that run a script, or code of an argument.
const INTERPRETERS: [&str; 14] = [
    "java", "julia", "lua", "node", "nodejs", "perl", "php", "pypy", "python", "pythonw",
    "rscript", "ruby", "ts-node", "tsx",
];
/// Launchers that start the package which is their first word.
const PACKAGE_LAUNCHERS: [&str; 3] = ["bunx", "npx", "uvx"];
/// Launchers that start a package, a script or an image after a word of their own.
const LAUNCHERS: [&str; 8] = ["bun", "docker", "npm", "pipx", "pnpm", "podman", "uv", "yarn"];
const LAUNCHES: [&str; 4] = ["dlx", "exec", "run", "x"];
const CONTAINERS: [&str; 2] = ["docker", "podman"];

/// Flags before a variable or a header.
const BEFORE_VARIABLE: [&str; 2] = ["-e", "--env"];
const BEFORE_HEADER: [&str; 2] = ["-H", "--header"];

/// Ends of the names of files with code.
const CODE_FILES: [&str; 28] = [
    "bash", "bat", "cjs", "cmd", "cts", "dll", "dylib", "exe", "jar", "js", "jsx", "lua", "mjs",
    "mts", "node", "php", "pl", "ps1", "py", "pyz", "rb", "sh", "so", "tgz", "ts", "tsx", "wasm",
    "whl",
];

/// The least length of a text that is a key by its form.
const KEY_MIN: usize = 20;

/// True if the value of a variable is not shown.
#[must_use]
pub fn hides_variable(name: &str, value: &str) -> bool {
    let key = without_scheme(value.trim());
    !chooses_code(name) && is_one_word(key) && (says_secret(name) && counts(key) || is_key(key))
}

/// For each argument of a program, true if it is not shown.
#[must_use]
pub fn hidden_args(command: &str, args: &[&str]) -> Vec<bool> {
    let own = own_begin(command, args);
    let is_container = CONTAINERS.contains(&program(command).as_str());
    let mut hidden = Vec::with_capacity(args.len());
    let mut before = "";
    for (at, arg) in args.iter().copied().enumerate() {
        let is_own = own.is_some_and(|own| at >= own);
        let is_variable = own.is_some() && is_container && BEFORE_VARIABLE.contains(&before);
        hidden.push(is_own && is_hidden(before, arg) || is_variable && is_hidden_pair(arg));
        before = arg;
    }
    hidden
}

/// The index of the first argument that no program takes for a program, a package or code; `None`
/// if that is not known.
fn own_begin(command: &str, args: &[&str]) -> Option<usize> {
    let words = || std::iter::once(command).chain(args.iter().copied()).map(program);
    if words().any(|word| RUNNERS.contains(&word.as_str())) {
        return None;
    }
    let is_interpreter = |word: String| INTERPRETERS.contains(&word.as_str());
    if words().any(is_interpreter) && args.iter().any(|arg| is_code_flag(arg)) {
        return None;
    }
    let name = program(command);
    let name = name.as_str();
    if INTERPRETERS.contains(&name) {
        return match args {
            ["-m" | "-jar", _, ..] => Some(2),
            [script, ..] if !script.starts_with('-') => Some(1),
            _ => None,
        };
    }
    if LAUNCHERS.contains(&name) {
        let first = args.iter().find(|arg| !arg.starts_with('-'));
        let launches = |word: &str| LAUNCHES.contains(&word) || word == "tool" && name == "uv";
        first.filter(|word| launches(word))?;
    } else if !PACKAGE_LAUNCHERS.contains(&name) {
        return Some(0);
    }
    let literals: Vec<_> = args.iter().map(|arg| vec![(*arg).to_owned()]).collect();
    Some(own_args(name, &literals))
}

/// The name of a program: the end of its path, without a version.
fn program(word: &str) -> String {
    let name = word.rsplit(['/', '\\']).next().unwrap_or_default().to_lowercase();
    let name = name.trim_end_matches(".exe").trim_end_matches(".cmd").trim_end_matches(".bat");
    let name = name.split(['@', ':']).next().unwrap_or_default();
    name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.').to_owned()
}

/// True for flags that interpreters take code after, also among others such as `-ne`.
fn is_code_flag(arg: &str) -> bool {
    let long = ["--eval", "--print", "--command", "--call", "--run"];
    let short = arg.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
    long.iter().any(|flag| arg.starts_with(flag))
        || short.is_some_and(|rest| rest.contains(['c', 'e', 'E', 'p', 'r']))
}

/// True for an argument of the server itself that is a secret under the flag before it, or under
/// its own flag.
fn is_hidden(before: &str, arg: &str) -> bool {
    let is_flag = before.starts_with('-') && !before.contains('=') && !before.contains(' ');
    if is_flag && !arg.starts_with('-') {
        let is_named = says_secret(before) && !before.starts_with("--no-");
        let is_pair = BEFORE_VARIABLE.contains(&before) || BEFORE_HEADER.contains(&before);
        let key = without_scheme(arg.trim());
        return is_named && counts(key) && is_one_word(key) && !is_code_file(key)
            || is_key(key)
            || is_pair && is_hidden_pair(arg);
    }
    arg.starts_with('-') && is_hidden_pair(arg)
}

/// True for `--token=x`, `TOKEN=x` and `Authorization: x`.
fn is_hidden_pair(arg: &str) -> bool {
    pair(arg).is_some_and(|(name, value)| {
        let name = name.trim_start_matches('-');
        hides_variable(name, value) && !is_code_file(value)
    })
}

/// True for a variable that may decide which code is loaded.
fn chooses_code(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    let is_of_chooser = CHOOSING.iter().any(|begin| name.starts_with(begin));
    let is_credential = CREDENTIALS.iter().any(|end| name.ends_with(end));
    steers_programs(&name) || name == "PWD" || is_of_chooser && !is_credential
}

/// True for a text with the form of a well-known service's keys. Names of packages can begin as
/// keys do, but have no capital letters.
fn is_key(text: &str) -> bool {
    let has = |is: fn(&char) -> bool| text.chars().any(|c| is(&c));
    is_known_key(text)
        && text.len() >= KEY_MIN
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
        && has(char::is_ascii_digit)
        && has(char::is_ascii_lowercase)
        && has(char::is_ascii_uppercase)
        && !is_code_file(text)
}

/// True for the name of a file with code, and for a package with a version.
fn is_code_file(text: &str) -> bool {
    let end = text.rsplit_once('.').map(|(_, end)| end.to_ascii_lowercase());
    let version = text.rsplit_once('@').map_or("", |(_, version)| version);
    end.is_some_and(|end| CODE_FILES.contains(&end.as_str()))
        || version.starts_with(|c: char| c.is_ascii_digit())
        || version == "latest"
}

/// True if a text is one word as keys are, which no shell takes for more.
fn is_one_word(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_alphanumeric() || "-_.+=~:@!#%*,".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "ghp_0123456789aBcDeFgHiJ";

    /// The arguments of a line that are not shown.
    fn of_line(line: &str) -> Vec<&str> {
        let words: Vec<_> = line.split('|').collect();
        let hidden = hidden_args(words[0], &words[1..]).into_iter();
        hidden.zip(&words[1..]).filter(|(is, _)| *is).map(|(_, word)| *word).collect()
    }

    /// D27: code in an argument is shown, also where it begins as a key does.
    #[test]
    fn d27_code_for_a_shell_is_never_one_word() {
        for one in ["ghp_0123456789abcdefghij", "sk-abc_DEF.1", "hidden-two"] {
            assert!(is_one_word(one), "{one}");
        }
        for code in ["1; curl x", "sk-a|sh", "ghp_$(id)", "eyJ\n", "sk-`id`", "sk-a&b", "a/b"] {
            assert!(!is_one_word(code), "{code}");
        }
    }

    /// D27: words that decide what runs are shown, whatever they look like.
    #[test]
    fn d27_words_of_a_program_are_shown() {
        for line in [
            "npx|-y|weather2mcpserverx@1.0.0",
            "npx|-y|sk-abcdefghij0123456789@1.0.0",
            "npx|gist:0123456789abcdef0123456789abcdef",
            "npx|--token|evil1package2server3",
            "npx|-p|ghp_0123456789aBcDeFgHiJ|server",
            "npx|-y|node|--eval|x|--token|evil",
            "uvx|--from|secret_0123456789abcdefghi|run",
            "uv|run|evil0123456789abcdef.py",
            "docker|run|-i|ghp_0123456789abcdefghij",
            "docker|run|image|sh|--password|evil",
            "docker|run|-e|NODE_OPTIONS=evil0123456789abcdef|image",
            "node|a0123456789abcdef0.js",
            "node|TOKEN=evil",
            "node|--harmony-key|evil",
            "node|server.js|--token|evil0123456789.js",
            "node|-e|evil0123456789abcdef",
            "python3.12|-c|evil0123456789abcdef|--token|evil",
            "bash|-c|evil0123456789abcdef",
            "env|TOKEN=evil|run",
            "sudo|--reset-key|evil",
            "run|ghp_0123456789aBcDeFgHiJ",
            "run|TOKEN=x",
            "run|--no-key|evil",
            "run|--plugin|ghp_0123456789abcdefghij",
            "run|--key|pkg@1.0.0",
            "run|--key|${env:KEY}",
        ] {
            assert_eq!(of_line(line), [""; 0], "{line}");
        }
    }

    #[test]
    fn values_under_names_of_secrets_are_hidden() {
        let of_key = format!("run|--config|{KEY}");
        for (line, hidden) in [
            ("schema-server|--key|a-0123456789", "a-0123456789"),
            ("npx|-y|@example/server@1.2.3|--api-key|abc", "abc"),
            ("npx|-y|@example/server@1.2.3|--api-key|abc==", "abc=="),
            ("npx|-y|@example/server@1.2.3|--token=abc", "--token=abc"),
            ("docker|run|-i|--rm|-e|API_KEY=abc|image", "API_KEY=abc"),
            ("npx|mcp-remote|URL|--header|Authorization: Bearer abc", "Authorization: Bearer abc"),
            ("node|server.js|--token|abc", "abc"),
            (of_key.as_str(), KEY),
        ] {
            assert_eq!(of_line(line), [hidden], "{line}");
        }
    }

    #[test]
    fn variables_that_choose_code_are_shown() {
        for (name, value) in [
            ("LD_PRELOAD", "libevil0123456789abc.so"),
            ("NODE_OPTIONS", KEY),
            ("Path", "evil0123456789abcdef"),
            ("PYTHONPATH", "evil0123456789abcdef"),
            ("PYTHONKEY", "evil"),
            ("GIT_CONFIG_KEY_0", "core.sshCommand"),
            ("npm_config_registry_key", "evil"),
            ("PIP_KEYRING", "evil"),
            ("UV_KEY", "evil"),
            ("MODE", "a1b2c3d4e5f6a7b8c9"),
            ("MODE", "ghp_0123456789abcdefghij"),
            ("TOKEN", "a b"),
            ("TOKEN_FILE", "/run/token"),
            ("API_KEY", "${env:KEY}"),
            ("API_KEY", ""),
        ] {
            assert!(!hides_variable(name, value), "{name}={value}");
        }
        for (name, value) in [
            ("API_KEY", "abc"),
            ("githubToken", "x"),
            ("GITHUBTOKEN", "x"),
            ("UV_PUBLISH_TOKEN", "x"),
            ("GIT_TOKEN", "x"),
            ("AUTHORIZATION", "Bearer x1"),
            ("MODE", KEY),
        ] {
            assert!(hides_variable(name, value), "{name}={value}");
        }
    }
}
