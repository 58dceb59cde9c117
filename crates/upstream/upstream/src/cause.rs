//! Finds the line of a program's stderr that gives the reason of its failure.
//!
//! The last line seldom gives the reason: after the error, programs print a stack, a version, the
//! path of a log, or how to get help.

use narthex_model::package::absent_package;

/// Maximum number of characters of a line that are reported.
const LINE_MAX: usize = 400;

/// Beginnings of the errors of package runners, container engines and runtimes.
const STRONG: [&str; 13] = [
    "Cannot connect to the Docker daemon",
    "Error response from daemon",
    "Unable to find image",
    "No matching distribution found",
    "No solution found",
    "could not determine executable to run",
    "command not found",
    "panicked at",
    "panic: ",
    "fatal error",
    "FATAL",
    "error: ",
    "Error: ",
];

/// Words that occur in errors, and that may occur in other lines.
const WEAK: [&str; 12] = [
    "fatal",
    "fail",
    "cannot",
    "can't",
    "could not",
    "unable",
    "not found",
    "no such",
    "denied",
    "refused",
    "invalid",
    "missing",
];

/// Text around an error that does not explain it.
const NOISE: [&str; 12] = [
    "A complete log of this run",
    "npm notice",
    "npm warn",
    "npm WARN",
    "Node.js v",
    "note: run with",
    "for more information",
    "For more information",
    "--help",
    "During handling of the above exception",
    "The above exception was the direct cause",
    "Traceback (most recent call last)",
];

/// The line that is most likely the cause; of equally likely lines, the last one. If no line looks
/// like a cause: the last line that is not blank. Errors of npm are recognized by their code and
/// reason.
pub(crate) fn cause(lines: &[String]) -> Option<String> {
    likely_cause(lines).or_else(|| {
        let last = lines.iter().rev().find(|line| !line.trim().is_empty())?;
        Some(bare(last.trim_end()).chars().take(LINE_MAX).collect())
    })
}

/// As [`cause`], but `None` if no line looks like a cause.
pub(crate) fn likely_cause(lines: &[String]) -> Option<String> {
    let lines: Vec<_> = lines.iter().map(|line| line.trim_end()).collect();
    let weighed = lines.iter().enumerate().map(|(at, line)| (weight(line), at));
    let best = weighed.filter(|(weight, _)| *weight > 0).max_by_key(|(weight, _)| *weight);
    let found = of_npm(&lines).or_else(|| best.map(|(_, at)| with_root(&lines, at)))?;
    Some(found.chars().take(LINE_MAX).collect())
}

/// An error's line with the last cause below the line, as Node, Java and Rust print causes. The
/// line of the error itself often only says that something failed.
fn with_root<'l>(lines: &[&'l str], at: usize) -> String {
    let error = bare(lines[at]);
    let below = &lines[at + 1..];
    let cause_at = |(index, line): (usize, &&'l str)| {
        let text = line.trim_start();
        let cause = CAUSED.iter().find_map(|start| text.strip_prefix(start))?;
        let cause = cause.trim_end_matches('{').trim();
        if !cause.is_empty() {
            return Some(cause);
        }
        // Rust prints the causes in the lines below, each with its number.
        let causes = below[index + 1..].iter().take_while(|line| line.starts_with([' ', '\t']));
        causes.last().map(|line| unnumbered(line))
    };
    match below.iter().enumerate().filter_map(cause_at).next_back() {
        Some(cause) if !error.contains(cause) => format!("{error}; caused by: {cause}"),
        Some(_) | None => error,
    }
}

/// Beginnings of lines with a cause.
const CAUSED: [&str; 2] = ["[cause]:", "Caused by:"];

/// A line without the number in front of it.
fn unnumbered(line: &str) -> &str {
    let text = line.trim();
    match text.split_once(": ") {
        Some((number, rest)) if number.bytes().all(|byte| byte.is_ascii_digit()) => rest,
        _ => text,
    }
}

/// Weight of a line as the cause; 0 if the line cannot be a cause.
fn weight(line: &str) -> u8 {
    if NOISE.iter().any(|noise| line.contains(noise)) || is_frame(line) {
        return 0;
    }
    // Programs draw a frame of such characters around the members of a group of exceptions.
    let text = line.trim_start_matches([' ', '|', '+', '-', '╰', '─', '▶', '×']);
    let is_inside =
        line.starts_with([' ', '\t']) && !line.trim_start().starts_with(['|', '×', '╰']);
    let weight = match exception(text) {
        Some(name) if name.ends_with("Group") => 2,
        Some(_) => 6,
        None if STRONG.iter().any(|words| text.contains(words)) => 5,
        None if has_errno(text) => 4,
        None => {
            let text = text.to_lowercase();
            let is_weak = text.contains("error") || WEAK.iter().any(|word| text.contains(word));
            if is_weak { 3 } else { 0 }
        }
    };
    // Indented lines are parts of the line above: a member of an object, a quoted line of code.
    if is_inside { u8::from(weight > 1) } else { weight }
}

/// True for a line of a stack trace.
fn is_frame(line: &str) -> bool {
    let text = line.trim_start_matches([' ', '|', '\t']);
    text.starts_with("at ") || text.starts_with("File \"") || text.starts_with("goroutine ")
}

/// The name of an exception with which a line begins, as Python, Node and others print it.
fn exception(text: &str) -> Option<&str> {
    let text = text.strip_prefix("Uncaught ").unwrap_or(text);
    let name = text.split([':', ' ', '(']).next()?;
    let is_name = name.contains(|c: char| c.is_ascii_lowercase())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "._".contains(c));
    let ends = ["Error", "Exception", "Group", "Exit", "Interrupt"];
    let rest = &text[name.len()..];
    // Python prints an exception without words as its bare name.
    let is_whole = rest.is_empty() || rest.starts_with(':') || rest.starts_with(" [");
    (is_name && is_whole && ends.iter().any(|end| name.ends_with(end))).then_some(name)
}

/// True if a line has a code of the system or of DNS, such as `ENOTFOUND`.
fn has_errno(text: &str) -> bool {
    text.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| {
        let is_code = word.len() >= 5 && word.starts_with('E');
        is_code
            && word.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit())
            && !word.starts_with("ERR")
            && word != "EXIT"
            && word != "ERROR"
    })
}

/// npm spreads an error over many lines: its code, and a reason in the first line that has one.
fn of_npm(lines: &[&str]) -> Option<String> {
    let of = |line: &&str| {
        let rest = ["npm error ", "npm ERR! "].iter().find_map(|start| line.strip_prefix(start))?;
        Some(rest.trim().to_owned())
    };
    let own: Vec<_> = lines.iter().filter_map(of).collect();
    let code = own.iter().rev().find_map(|line| line.strip_prefix("code "))?.to_owned();
    let is_detail = |line: &&String| {
        let first = line.split(' ').next().unwrap_or_default();
        !matches!(first, "code" | "errno" | "syscall" | "path" | "dest" | "A" | "")
            && !line.contains("This is a problem related to network")
    };
    let reason = own.iter().filter(is_detail).find(|line| line.contains(' '));
    let absent = unknown_package(&own).filter(|_| code == "E404");
    let code = match absent {
        Some(name) => format!("{code}: {}", absent_package(&name)),
        None => code,
    };
    Some(match reason {
        Some(reason) => format!("npm error {code}: {reason}"),
        None => format!("npm error {code}"),
    })
}

/// The package that the registry does not have, from the lines of npm's error: npm quotes the name
/// with a version, or prints an address that ends with the name.
fn unknown_package(own: &[String]) -> Option<String> {
    let quoted = own.iter().filter_map(|line| line.split('\'').nth(1));
    let mut quoted = quoted.filter_map(|spec| spec.rsplit_once('@')).map(|(name, _)| name);
    let fetched = || {
        let (_, address) = own.iter().find_map(|line| line.split_once(" - GET "))?;
        let (_, path) = address.split(' ').next()?.rsplit_once('/')?;
        Some(path.replace("%2f", "/").replace("%2F", "/"))
    };
    let name = quoted.find(|name| !name.is_empty()).map(str::to_owned).or_else(fetched);
    name.filter(|name| !name.is_empty())
}

/// A line without the frame and indentation in front of its text.
fn bare(line: &str) -> String {
    line.trim_start_matches([' ', '|', '+', '\t']).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> String {
        let lines: Vec<_> = text.lines().map(str::to_owned).collect();
        cause(&lines).unwrap_or_default()
    }

    #[test]
    fn a_start_message_is_not_a_likely_cause() {
        let lines = ["Starting default (STDIO) server...".to_owned()];
        assert_eq!(cause(&lines).as_deref(), Some(lines[0].as_str()));
        assert_eq!(likely_cause(&lines), None);
        let lines = [lines[0].clone(), "Error: no disk".to_owned()];
        assert_eq!(likely_cause(&lines).as_deref(), Some("Error: no disk"));
    }

    /// The error names a package that npm's registry does not have, by npm's quotation of the name
    /// or by the package's address.
    #[test]
    fn a_package_that_does_not_exist_is_named() {
        for (text, expected) in [
            (
                "npm error code E404\n\
                 npm error 404 Not Found - GET https://packages.example/x - Not found\n\
                 npm error 404\nnpm error 404 The requested resource could not be found.\n\
                 npm error A complete log of this run can be found in: /x.log",
                "npm error E404: the package `x` does not exist in the npm registry: 404 Not Found \
                 - GET https://packages.example/x - Not found",
            ),
            (
                "npm error code E404\n\
                 npm error 404 Not Found - GET https://packages.example/@scope%2fno-such\n\
                 npm error 404\nnpm error 404  The requested resource '@scope/no-such@*' could \
                 not be found or you do not have permission to access it.",
                "npm error E404: the package `@scope/no-such` does not exist in the npm registry: \
                 404 Not Found - GET https://packages.example/@scope%2fno-such",
            ),
        ] {
            assert_eq!(found(text), expected);
        }
    }

    /// Errors with a vague text are reported with the last of their causes.
    #[test]
    fn an_error_is_reported_with_its_last_cause() {
        for (text, expected) in [
            (
                "node:internal/deps/undici/undici:15422\n      Error.captureStackTrace(err);\n\n\
                 TypeError: fetch failed\n    at node:internal/deps/undici/undici:15422:13\n    \
                 at async file:///a/server.mjs:2:11 {\n  \
                 [cause]: Error: getaddrinfo ENOTFOUND api.example\n      \
                 at GetAddrInfoReqWrap.onlookupall [as oncomplete] (node:dns:122:26) {\n    \
                 errno: -3008,\n    code: 'ENOTFOUND',\n    syscall: 'getaddrinfo',\n    \
                 hostname: 'api.example'\n  }\n}\n\nNode.js v22.1.0",
                "TypeError: fetch failed; caused by: Error: getaddrinfo ENOTFOUND api.example",
            ),
            (
                "java.lang.IllegalStateException: cannot start\n\tat a.Main.main(Main.java:3)\n\
                 Caused by: a.Wrapped: x\n\tat a.B.c(B.java:4)\n\
                 Caused by: java.net.UnknownHostException: api.example\n\t... 4 more",
                "java.lang.IllegalStateException: cannot start; caused by: \
                 java.net.UnknownHostException: api.example",
            ),
            (
                "Error: cannot read the settings\n\nCaused by:\n    0: cannot open /a.toml\n    \
                 1: No such file or directory (os error 2)",
                "Error: cannot read the settings; caused by: No such file or directory (os error \
                 2)",
            ),
            ("Error: no disk\n\nCaused by:\n", "Error: no disk"),
            ("Error: no disk\n  [cause]: no disk", "Error: no disk"),
        ] {
            assert_eq!(found(text), expected, "{text}");
        }
    }

    /// E133: real outputs of programs, and the line in each that gives the reason.
    #[test]
    fn the_output_line_with_the_reason_is_found() {
        for (text, expected) in [
            (
                "npm error code ENOTFOUND\nnpm error syscall getaddrinfo\n\
                 npm error errno ENOTFOUND\n\
                 npm error network request to https://packages.example/x failed, reason: \
                 getaddrinfo ENOTFOUND packages.example\n\
                 npm error network This is a problem related to network connectivity.\n\
                 npm error A complete log of this run can be found in: \
                 /home/a/.npm/_logs/1.log",
                "npm error ENOTFOUND: network request to https://packages.example/x failed, \
                 reason: getaddrinfo ENOTFOUND packages.example",
            ),
            (
                "docker: Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is \
                 the docker daemon running?\n\nRun 'docker run --help' for more information",
                "docker: Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is \
                 the docker daemon running?",
            ),
            (
                "Traceback (most recent call last):\n  \
                 File \"/a/server.py\", line 3, in <module>\n    \
                 import missing_error\nModuleNotFoundError: No module named 'missing_error'\n",
                "ModuleNotFoundError: No module named 'missing_error'",
            ),
            (
                "  + Exception Group Traceback (most recent call last):\n  \
                 |   File \"a.py\", line 1\n  \
                 | ExceptionGroup: unhandled errors in a TaskGroup (1 sub-exception)\n  \
                 +-+---------------- 1 ----------------\n    \
                 | Traceback (most recent call last):\n    \
                 |   File \"b.py\", line 2\n    | ValueError: DATABASE_URL is not set\n    \
                 +------------------------------------",
                "ValueError: DATABASE_URL is not set",
            ),
            (
                "node:internal/modules/cjs/loader:1143\n  throw err;\n  ^\n\n\
                 Error: Cannot find module '/a/server.js'\n    \
                 at Module._resolveFilename (node:internal:1140:15)\n  \
                 code: 'MODULE_NOT_FOUND',\n  requireStack: []\n}\n\nNode.js v22.1.0",
                "Error: Cannot find module '/a/server.js'",
            ),
            (
                "Error: connect ECONNREFUSED 127.0.0.1:5432\n    at TCPConnectWrap (node:net:1)\n  \
                 errno: -111,\n  code: 'ECONNREFUSED',\n}",
                "Error: connect ECONNREFUSED 127.0.0.1:5432",
            ),
            (
                "thread 'main' panicked at src/main.rs:3:5:\nno database\nnote: run with \
                 `RUST_BACKTRACE=1` environment variable to display a backtrace",
                "thread 'main' panicked at src/main.rs:3:5:",
            ),
            (
                "listening\nthe key was refused by the service\nbye",
                "the key was refused by the service",
            ),
            ("starting\nstill starting\n\n", "still starting"),
        ] {
            assert_eq!(found(text), expected, "{text}");
        }
        assert_eq!(cause(&[]), None);
        assert_eq!(found(&"x".repeat(9000)).len(), LINE_MAX);
    }
}
