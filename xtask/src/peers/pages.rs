//! The programs of the pages for Python and TypeScript, run as a reader would run them.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use fs_err::{self as fs, os::unix::fs::symlink};

use super::daemon::Daemon;
use super::install::Peers;
use crate::process;
use crate::workspace;

const DONE: Duration = Duration::from_secs(60);
/// The address of the daemon in the pages.
const ADDRESS: &str = "http://127.0.0.1:7717";
/// The variable from which the programs take the token.
const TOKEN: &str = "NARTHEX_CLIENT_TOKEN";
/// The output that the pages show.
const EXPECTED: &str = "Echo: hello\n";

/// A page with programs.
pub(super) struct Page {
    pub(super) path: &'static str,
    /// The language of its blocks.
    language: &'static str,
}

pub(super) const PAGES: [Page; 2] = [
    Page { path: "docs/start/python.md", language: "python" },
    Page { path: "docs/start/typescript.md", language: "typescript" },
];

/// A program of a page, and the name that the page gives it.
#[derive(Debug)]
struct Program {
    name: String,
    text: String,
}

impl Page {
    /// Runs each program of the page, in a folder below `place`.
    pub(super) fn runs(
        &self,
        peers: &Peers,
        daemon: &Daemon,
        data: &Path,
        place: &Path,
    ) -> Result<()> {
        let place = Place::furnish(place, peers, data)?;
        for program in self.programs()? {
            let file = place.dir.join(&program.name);
            fs::write(&file, program.text.replace(ADDRESS, &daemon.endpoint_url("")))?;
            let mut command = match self.language {
                "python" => Command::new(peers.python("mcp-v2", "python")),
                _ => Command::new(peers.node()),
            };
            command.arg(&file).current_dir(&place.dir);
            command.env(TOKEN, fs::read_to_string(daemon.token_file())?.trim());
            command.env("PATH", &place.path).env("HOME", &place.home);
            let done = process::capture(&mut command, DONE)?;
            let said = format!("{}{}", done.stdout, done.stderr);
            ensure!(done.status.success(), "{} ended with {}\n{said}", program.name, done.status);
            ensure!(done.stdout == EXPECTED, "{} printed {said:?}", program.name);
        }
        Ok(())
    }

    fn programs(&self) -> Result<Vec<Program>> {
        let text = fs::read_to_string(workspace::root().join(self.path))?;
        programs(&text, self.language).with_context(|| self.path.to_owned())
    }
}

/// The blocks of a language, each with the last name in backticks of the heading above it.
fn programs(page: &str, language: &str) -> Result<Vec<Program>> {
    let mut found = Vec::new();
    let mut parts = page.split("\n```");
    while let (Some(prose), Some(block)) = (parts.next(), parts.next()) {
        let Some(text) = block.strip_prefix(language).and_then(|text| text.strip_prefix('\n'))
        else {
            continue;
        };
        let heading = prose.lines().rfind(|line| line.starts_with("## "));
        let heading = heading.context("a program has no heading")?;
        let name = heading.rsplit('`').nth(1).context("a heading names no file")?;
        found.push(Program { name: name.to_owned(), text: format!("{text}\n") });
    }
    ensure!(!found.is_empty(), "no block of {language}");
    Ok(found)
}

/// A reader's place: the packages and `narthex` are installed, and the daemon has the usual folder.
struct Place {
    dir: PathBuf,
    home: PathBuf,
    path: OsString,
}

impl Place {
    fn furnish(dir: &Path, peers: &Peers, data: &Path) -> Result<Self> {
        if dir.exists() {
            fs::remove_dir_all(dir)?;
        }
        let home = dir.join("home");
        fs::create_dir_all(home.join(".local/share"))?;
        symlink(data, home.join(".local/share/narthex"))?;
        symlink(peers.node_dir().join("node_modules"), dir.join("node_modules"))?;
        let built = workspace::built("narthex");
        let programs = built.parent().context("a program lies in no folder")?.to_path_buf();
        let usual = std::env::var_os("PATH").unwrap_or_default();
        let path =
            std::env::join_paths([programs].into_iter().chain(std::env::split_paths(&usual)))?;
        Ok(Self { dir: dir.to_path_buf(), home, path })
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use fs_err as fs;

    use super::{ADDRESS, EXPECTED, PAGES, TOKEN, programs};
    use crate::workspace;

    fn read(path: impl AsRef<Path>) -> String {
        fs::read_to_string(workspace::root().join(path)).unwrap()
    }

    #[test]
    fn programs_have_the_names_of_their_headings() {
        let page =
            "# A\n```sh\nx\n```\n## By `a` in `b.py`\n\ntext\n\n```python\none\ntwo\n```\nend";
        let found = programs(page, "python").unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!((&*found[0].name, &*found[0].text), ("b.py", "one\ntwo\n"));
        assert!(programs(page, "typescript").is_err());
        assert!(programs("## A\n\n```python\none\n```\n", "python").is_err());
    }

    #[test]
    fn each_page_has_a_program_over_http_and_a_program_over_stdio() {
        for page in &PAGES {
            let programs = page.programs().unwrap();
            assert_eq!(programs.len(), 2, "{}", page.path);
            let [http, stdio] = [&programs[0], &programs[1]];
            assert_eq!(http.text.matches(ADDRESS).count(), 1, "{http:?}");
            assert!(http.text.contains(TOKEN) && !stdio.text.contains(TOKEN), "{}", page.path);
            assert!(stdio.text.contains("connect") && !stdio.text.contains(ADDRESS), "{stdio:?}");
            let text = read(page.path);
            assert!(text.contains(&format!("{}\n{EXPECTED}", http.name)), "{}", page.path);
        }
    }

    /// The pages tell readers to install what the programs are run with.
    #[test]
    fn the_pages_name_the_pinned_versions() {
        let pinned = read("e2e/peers/python/mcp-v2.in");
        let install = format!("$ pip install {}\n", pinned.trim());
        assert!(read("docs/start/python.md").contains(&install), "{install}");
        let packages: serde_json::Value =
            serde_json::from_str(&read("e2e/peers/node/package.json")).unwrap();
        let name = "@modelcontextprotocol/client";
        let version = packages["dependencies"][name].as_str().unwrap();
        let install = format!("$ npm install {name}@{version}\n");
        assert!(read("docs/start/typescript.md").contains(&install), "{install}");
    }
}
