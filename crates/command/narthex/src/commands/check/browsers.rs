//! Browsers that servers with Playwright start.

use std::path::{Path, PathBuf};

use fs_err as fs;
use narthex_model::StdioTarget;

use super::Check;
use crate::config;

/// A browser by the name that `--browser` has for it.
struct Browser {
    name: &'static str,
    /// The code of its findings: `CHROMIUM` for browsers that are based on Chromium.
    code: &'static str,
    /// The paths at which its own installer puts it.
    programs: &'static [&'static str],
    /// The prefix of its folder among the browsers of Playwright; empty if it has none there.
    folder: &'static str,
    /// The command that installs it, as in the server's own message.
    install: &'static str,
}

const BROWSERS: [Browser; 5] = [
    Browser {
        name: "chrome",
        code: "CHROMIUM",
        programs: &[
            "/opt/google/chrome/chrome",
            "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
        ],
        folder: "",
        install: "npx playwright install chrome",
    },
    Browser {
        name: "chromium",
        code: "CHROMIUM",
        programs: &[],
        folder: "chromium",
        install: "npx @playwright/mcp install-browser chrome-for-testing",
    },
    Browser {
        name: "firefox",
        code: "BROWSER",
        programs: &[],
        folder: "firefox",
        install: "npx @playwright/mcp install-browser firefox",
    },
    Browser {
        name: "webkit",
        code: "BROWSER",
        programs: &[],
        folder: "webkit",
        install: "npx @playwright/mcp install-browser webkit",
    },
    Browser {
        name: "msedge",
        code: "CHROMIUM",
        programs: &["/opt/microsoft/msedge/msedge"],
        folder: "",
        install: "npx playwright install msedge",
    },
];

/// Options by which a server uses a browser that it does not start from its own place.
const ELSEWHERE: [&str; 5] =
    ["--cdp-endpoint", "--config", "--executable-path", "--extension", "--remote-endpoint"];

/// A check for each browser that entries start.
pub(super) fn checks<'t>(targets: impl Iterator<Item = &'t StdioTarget>) -> Vec<Check> {
    let wanted = targets.filter_map(|target| wanted(&target.command, &target.args));
    let mut wanted: Vec<_> = wanted.collect();
    wanted.sort_by_key(|browser| browser.name);
    wanted.dedup_by_key(|browser| browser.name);
    wanted.into_iter().map(Browser::check).collect()
}

/// The browser that a server starts; `None` if it starts none that is known.
fn wanted(command: &str, args: &[String]) -> Option<&'static Browser> {
    let mut words = std::iter::once(command).chain(args.iter().map(String::as_str));
    let of_playwright = words.find(|word| word.contains("playwright"))?;
    let option = |name: &str| {
        let mut args = args.iter();
        args.find_map(|arg| {
            let rest = arg.strip_prefix(name)?;
            Some(if rest.is_empty() { "" } else { rest.strip_prefix('=')? })
        })
    };
    if ELSEWHERE.iter().any(|name| option(name).is_some()) {
        return None;
    }
    let after = || args.iter().skip_while(|arg| *arg != "--browser").nth(1);
    let usual = if of_playwright.contains("@playwright/mcp") { "chrome" } else { "chromium" };
    let name = match option("--browser") {
        None => usual,
        Some("") => after()?,
        Some(name) => name,
    };
    BROWSERS.iter().find(|browser| browser.name == name)
}

impl Browser {
    fn check(&self) -> Check {
        let Self { name, code, install, .. } = self;
        match self.place() {
            Some(path) => Check::info(code, format!("{name} is {}", path.display())),
            None => Check::warn(
                code,
                format!("an entry starts playwright with {name}, which is not installed"),
                format!("install it with `{install}`"),
            ),
        }
    }

    /// The place of the browser, if it is installed.
    fn place(&self) -> Option<PathBuf> {
        let installed = self.programs.iter().map(Path::new).find(|path| path.exists());
        installed.map(Path::to_owned).or_else(|| self.downloaded())
    }

    fn downloaded(&self) -> Option<PathBuf> {
        let usual = || Some(Path::new(&config::variable("HOME")?).join(".cache/ms-playwright"));
        let own = config::variable("PLAYWRIGHT_BROWSERS_PATH").map(PathBuf::from);
        let is_its = |entry: &fs::DirEntry| {
            !self.folder.is_empty() && entry.file_name().to_string_lossy().starts_with(self.folder)
        };
        let mut entries = fs::read_dir(own.or_else(usual)?).ok()?.filter_map(Result::ok);
        entries.find(is_its).map(|entry| entry.path())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_browser_of_an_entry_follows_from_its_arguments() {
        for (args, browser) in [
            (&["-y", "@playwright/mcp@latest", "--headless"][..], Some("chrome")),
            (&["@playwright/mcp", "--browser", "chromium"], Some("chromium")),
            (&["@playwright/mcp", "--browser=firefox"], Some("firefox")),
            (&["@playwright/mcp", "--browser"], None),
            (&["@playwright/mcp", "--cdp-endpoint=http://127.0.0.1:9222"], None),
            (&["@other/playwright-server"], Some("chromium")),
            (&["@modelcontextprotocol/server-github"], None),
        ] {
            let args: Vec<_> = args.iter().map(ToString::to_string).collect();
            assert_eq!(wanted("npx", &args).map(|browser| browser.name), browser, "{args:?}");
        }
    }
}
