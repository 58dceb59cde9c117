//! Placeholders of clients, rewritten to narthex's own: `${env:NAME}` and `${workspaceRoot}`.
//!
//! A text is read once, from left to right. A placeholder whose value only the client knows makes
//! the text unusable, and the reason names it.

use narthex_model::written::is_variable_name;

/// A value that a text leaves open.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Placeholder {
    /// An environment variable.
    Variable {
        /// Its name.
        name: String,
        /// True if the text has a value for an unset variable.
        has_default: bool,
    },
    /// A value that the client asks for or stores itself. It becomes an environment variable.
    Asked {
        /// The client's name for the value.
        id: String,
        /// The environment variable.
        variable: String,
    },
    /// The folder of the project.
    Folder,
    /// The home folder.
    Home,
    /// A placeholder of other clients, which this client takes as text.
    Unfilled {
        /// The place of the text, such as `env.API_KEY`.
        place: String,
        /// The placeholder.
        text: String,
    },
}

/// The notation of placeholders in a dialect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Notation {
    /// No placeholders.
    None,
    /// `${NAME}`, `${NAME:-default}`.
    Braced,
    /// As [`Notation::Braced`], and `$NAME`.
    Shell,
    /// As [`Notation::Shell`], `${NAME:?words}`, and `$(command)`.
    Crush,
    /// `${env:NAME}`, `${input:id}`, `${workspaceFolder}` and other variables of editors.
    Editor,
    /// `{env:NAME}`, `{file:path}`.
    Opencode,
    /// `${{ secrets.NAME }}`.
    Continue,
}

/// A text in narthex's notation.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Rewritten {
    pub(super) text: String,
    /// The parts of the text that stand in the file itself, defaults included.
    pub(super) literals: Vec<String>,
    pub(super) placeholders: Vec<Placeholder>,
    /// Placeholders of other clients, which are text.
    pub(super) unfilled: Vec<String>,
    /// The part since the last placeholder.
    open: String,
}

/// A piece of a text that is no plain text.
enum Token {
    Variable { name: String, default: Option<String> },
    Asked(String),
    Folder,
    Home,
    Separator,
}

/// Rewrites a text; `Err` is the reason why its value is not known.
pub(super) fn rewrite(text: &str, notation: Notation) -> Result<Rewritten, String> {
    let mut out = Rewritten::default();
    let mut rest = text;
    while let Some(at) = rest.find(['$', '{']) {
        let (before, from) = rest.split_at(at);
        out.open.push_str(before);
        match notation.token(from)? {
            Some((token, length)) => {
                out.push(token)?;
                rest = &from[length..];
            }
            None => {
                let before = &text[..text.len() - from.len()];
                let other = notation.of_others(before, from).filter(|_| !before.ends_with('$'));
                // Both signs are one byte.
                let (other, from) = from.split_at(other.unwrap_or(1));
                match other.len() {
                    1 => out.open.push_str(other),
                    _ => out.push_unfilled(other),
                }
                rest = from;
            }
        }
    }
    out.open.push_str(rest);
    out.close();
    Ok(out)
}

/// The environment variable for a value that the client asks for.
pub(super) fn variable_for(id: &str) -> String {
    let upper = id.chars().map(|c| c.to_ascii_uppercase());
    let name: String = upper.map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    if is_variable_name(&name) { name } else { format!("_{name}") }
}

impl Rewritten {
    /// A text that is one variable; an unset one counts as empty if `is_optional`.
    pub(super) fn variable(name: &str, is_optional: bool) -> Result<Self, String> {
        let mut out = Self::default();
        let default = is_optional.then(String::new);
        out.push(Token::Variable { name: name.to_owned(), default })?;
        Ok(out)
    }

    /// A text that is one value which the client stores itself.
    pub(super) fn asked(id: &str) -> Result<Self, String> {
        let mut out = Self::default();
        out.push(Token::Asked(id.to_owned()))?;
        Ok(out)
    }

    /// The text after a plain beginning.
    pub(super) fn after(mut self, begin: &str) -> Self {
        self.text.insert_str(0, begin);
        self
    }

    /// Ends the plain part; `${` in it is text.
    fn close(&mut self) {
        if !self.open.is_empty() {
            self.text.push_str(&self.open.replace("${", "$${"));
            self.literals.push(std::mem::take(&mut self.open));
        }
    }

    /// Adds a placeholder of other clients. It is text, but no text that could be a secret.
    fn push_unfilled(&mut self, written: &str) {
        self.close();
        self.text.push('$');
        self.text.push_str(written);
        self.unfilled.push(written.to_owned());
    }

    fn push(&mut self, token: Token) -> Result<(), String> {
        if matches!(token, Token::Separator) {
            self.open.push('/');
            return Ok(());
        }
        if self.open.ends_with('$') {
            return Err("a `$` stands before a placeholder, which narthex cannot write".to_owned());
        }
        self.close();
        match token {
            Token::Variable { name, default } => {
                let has_default = default.is_some();
                let default = default.unwrap_or_default();
                if default.contains(['$', '{', '}']) {
                    return Err(format!(
                        "the default of the variable `{name}` has a placeholder in it"
                    ));
                }
                let end = if has_default { format!(":-{default}") } else { String::new() };
                self.text.push_str(&format!("${{env:{name}{end}}}"));
                self.literals.push(default);
                self.placeholders.push(Placeholder::Variable { name, has_default });
            }
            Token::Asked(id) => {
                let variable = variable_for(&id);
                self.text.push_str(&format!("${{env:{variable}}}"));
                self.placeholders.push(Placeholder::Asked { id, variable });
            }
            Token::Folder => {
                self.text.push_str("${workspaceRoot}");
                self.placeholders.push(Placeholder::Folder);
            }
            Token::Home => {
                self.text.push_str("${env:HOME}");
                self.placeholders.push(Placeholder::Home);
            }
            Token::Separator => {}
        }
        Ok(())
    }
}

type Read = Result<Option<(Token, usize)>, String>;

impl Notation {
    /// The token at the beginning of a text that begins with `$` or `{`, and its length.
    fn token(self, text: &str) -> Read {
        match self {
            Self::None => Ok(None),
            Self::Braced => Ok(braced(text)),
            Self::Shell => Ok(braced(text).or_else(|| bare(text))),
            Self::Crush => crush(text),
            Self::Editor => editor(text),
            Self::Opencode => opencode(text),
            Self::Continue => Ok(continue_secret(text)),
        }
    }

    /// The length of a placeholder of other clients at the beginning of `text`, in a notation whose
    /// clients fill in none of theirs. A text with more in it may be meant for a shell, so
    /// `${NAME}` counts as the whole value alone, or behind `Bearer `.
    fn of_others(self, before: &str, text: &str) -> Option<usize> {
        match self {
            Self::None | Self::Continue => {}
            Self::Braced | Self::Shell | Self::Crush | Self::Editor | Self::Opencode => {
                return None;
            }
        }
        let (inside, length) = between(text, "${", "}")?;
        let is_whole = length == text.len() && matches!(before, "" | "Bearer ");
        let is_placeholder = match inside.split_once(':') {
            Some(("env", name)) => is_variable_name(name.split(":-").next().unwrap_or(name)),
            Some(("input", id)) => !id.is_empty() && !id.contains(['$', '{']),
            Some((name, rest)) => {
                is_whole && rest.starts_with('-') && !rest.contains('$') && is_variable_name(name)
            }
            None => is_whole && is_variable_name(inside),
        };
        is_placeholder.then_some(length)
    }

    /// A variable as the files of these clients write it; `None` if they have no notation for one.
    pub(super) fn variable(self) -> Option<&'static str> {
        match self {
            Self::None | Self::Continue => None,
            Self::Braced | Self::Shell | Self::Crush => Some("${NAME}"),
            Self::Editor => Some("${env:NAME}"),
            Self::Opencode => Some("{env:NAME}"),
        }
    }
}

/// The part between `open` and the next `close`, and the length of all.
fn between<'t>(text: &'t str, open: &str, close: &str) -> Option<(&'t str, usize)> {
    let (inside, _) = text.strip_prefix(open)?.split_once(close)?;
    Some((inside, open.len() + inside.len() + close.len()))
}

fn braced(text: &str) -> Option<(Token, usize)> {
    let (inside, length) = between(text, "${", "}")?;
    let (name, default) = match inside.split_once(":-") {
        Some((name, default)) => (name, Some(default.to_owned())),
        None => (inside, None),
    };
    let name = name.to_owned();
    is_variable_name(&name).then_some((Token::Variable { name, default }, length))
}

fn bare(text: &str) -> Option<(Token, usize)> {
    let name = text.strip_prefix('$')?;
    let end = name.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(name.len());
    let name = name[..end].to_owned();
    is_variable_name(&name).then_some((Token::Variable { name, default: None }, end + 1))
}

fn crush(text: &str) -> Read {
    if text.starts_with("$(") {
        return Err("a value is the output of a command, which narthex does not run".to_owned());
    }
    if let Some((inside, length)) = between(text, "${", "}")
        && let Some((name, _)) = inside.split_once(":?")
        && is_variable_name(name)
    {
        return Ok(Some((Token::Variable { name: name.to_owned(), default: None }, length)));
    }
    if text.starts_with("${") && braced(text).is_none() {
        return Err("a value has an expansion of a shell, which narthex does not do".to_owned());
    }
    Ok(braced(text).or_else(|| bare(text)))
}

fn editor(text: &str) -> Read {
    let Some((inside, length)) = between(text, "${", "}") else { return Ok(None) };
    let token = match inside.split_once(':') {
        _ if matches!(inside, "workspaceFolder" | "workspaceRoot") => Token::Folder,
        _ if inside == "userHome" => Token::Home,
        _ if matches!(inside, "pathSeparator" | "/") => Token::Separator,
        Some(("env", name)) if is_variable_name(name) => {
            Token::Variable { name: name.to_owned(), default: None }
        }
        Some(("input", id)) if !id.is_empty() => Token::Asked(id.to_owned()),
        Some(("file", _)) => return Err(FROM_FILE.to_owned()),
        Some(("config" | "command" | "workspaceFolder", _)) => return Err(of_editor(inside)),
        _ if is_editor_word(inside) => return Err(of_editor(inside)),
        _ => return Ok(None),
    };
    Ok(Some((token, length)))
}

const FROM_FILE: &str = "a value is the content of a file, which narthex does not read; put it \
                         into an environment variable";

fn of_editor(inside: &str) -> String {
    let name: String = inside.chars().filter(|c| !c.is_control()).take(60).collect();
    format!("only the client has a value for `${{{name}}}`")
}

/// True for words that editors fill in, such as `${fileBasename}`.
fn is_editor_word(inside: &str) -> bool {
    let begins = ["workspaceFolder", "file", "relativeFile", "exec", "cwd", "selectedText"];
    let is_word = !inside.is_empty() && inside.chars().all(|c| c.is_ascii_alphanumeric());
    is_word && begins.iter().any(|begin| inside.starts_with(begin))
}

fn opencode(text: &str) -> Read {
    if between(text, "{file:", "}").is_some() {
        return Err(FROM_FILE.to_owned());
    }
    let Some((name, length)) = between(text, "{env:", "}") else { return Ok(None) };
    // An unset variable is an empty text for the client.
    let name = name.trim().to_owned();
    let token = Token::Variable { name: name.clone(), default: None };
    Ok(is_variable_name(&name).then_some((token, length)))
}

fn continue_secret(text: &str) -> Option<(Token, usize)> {
    let (inside, length) = between(text, "${{", "}}")?;
    let name = inside.trim().strip_prefix("secrets.")?;
    let name = name.rsplit('/').next().unwrap_or(name);
    (!name.is_empty()).then(|| (Token::Asked(name.to_owned()), length))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str, notation: Notation) -> String {
        rewrite(text, notation).unwrap().text
    }

    #[test]
    fn each_notation_becomes_narthexs_own() {
        for (notation, before, after) in [
            (Notation::None, "a ${X} $Y {z}", "a $${X} $Y {z}"),
            (Notation::Braced, "${X}-${Y:-z}", "${env:X}-${env:Y:-z}"),
            (Notation::Braced, "$X ${1} ${a b} ${", "$X $${1} $${a b} $${"),
            (Notation::Shell, "Bearer $X.${Y}", "Bearer ${env:X}.${env:Y}"),
            (Notation::Shell, "$ $1 5$", "$ $1 5$"),
            (Notation::Crush, "${X:?set it}/$Y", "${env:X}/${env:Y}"),
            (Notation::Editor, "${env:X} ${input:my-key}", "${env:X} ${env:MY_KEY}"),
            (Notation::Editor, "${workspaceFolder}${/}a", "${workspaceRoot}/a"),
            (Notation::Editor, "${userHome}/b ${X} $${env:", "${env:HOME}/b $${X} $$${env:"),
            (Notation::Opencode, "x{env:A}y{b}${C}", "x${env:A}y{b}$${C}"),
            (Notation::Continue, "a ${{ secrets.KEY }}", "a ${env:KEY}"),
            (Notation::Continue, "${{secrets.team/KEY}}${A}", "${env:KEY}$${A}"),
        ] {
            assert_eq!(text(before, notation), after, "{notation:?} {before}");
        }
    }

    #[test]
    fn values_that_only_the_client_knows_are_named() {
        for (notation, before, word) in [
            (Notation::Editor, "${file:/home/ada/key}", "content of a file"),
            (Notation::Editor, "${config:a.b}", "`${config:a.b}`"),
            (Notation::Editor, "${workspaceFolderBasename}", "`${workspaceFolderBasename}`"),
            (Notation::Opencode, "{file:~/key}", "content of a file"),
            (Notation::Crush, "$(cat key)", "output of a command"),
            (Notation::Crush, "${X##*/}", "expansion of a shell"),
            (Notation::Braced, "$${X}", "before a placeholder"),
            (Notation::Shell, "${A:-${B}}", "default of the variable `A`"),
        ] {
            let reason = rewrite(before, notation).unwrap_err();
            assert!(reason.contains(word), "{before}: {reason}");
        }
    }

    /// A client without placeholders gives a server the placeholder of another as its value.
    #[test]
    fn placeholders_of_other_clients_are_text_and_no_secrets() {
        for notation in [Notation::None, Notation::Continue] {
            for (before, unfilled, after) in [
                ("${env:THK}", "${env:THK}", "$${env:THK}"),
                ("${input:thk}", "${input:thk}", "$${input:thk}"),
                ("${THK}", "${THK}", "$${THK}"),
                ("${THK:-x}", "${THK:-x}", "$${THK:-x}"),
                ("Bearer ${THK}", "${THK}", "Bearer $${THK}"),
                ("--key=${env:THK}", "${env:THK}", "--key=$${env:THK}"),
            ] {
                let read = rewrite(before, notation).unwrap();
                assert_eq!(
                    (read.text.as_str(), &*read.unfilled),
                    (after, &[unfilled.to_owned()][..])
                );
                assert!(!read.literals.iter().any(|text| text.contains("THK")), "{before}");
            }
            for text in ["echo ${THK}", "${THK}/bin", "$THK", "${}", "${env:}", "$${env:THK}"] {
                let read = rewrite(text, notation).unwrap();
                assert!(read.unfilled.is_empty(), "{text}");
                assert_eq!(read.literals, [text]);
            }
        }
        assert!(rewrite("${THK}", Notation::Editor).unwrap().unfilled.is_empty());
    }

    #[test]
    fn plain_parts_and_placeholders_are_listed() {
        let read = rewrite("a ${X:-d} ${Y}", Notation::Braced).unwrap();
        assert_eq!(read.literals, ["a ", "d", " ", ""]);
        let variable =
            |name: &str, has_default| Placeholder::Variable { name: name.to_owned(), has_default };
        assert_eq!(read.placeholders, [variable("X", true), variable("Y", false)]);
        assert_eq!(variable_for("2nd-key"), "_2ND_KEY");
    }
}
