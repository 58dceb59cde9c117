//! One run of a program for a keychain, with limits on its time, its output and its error text.

use std::{
    ffi::OsString,
    io,
    process::{ExitStatus, Stdio},
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWriteExt},
    process::{Child, Command},
    time::timeout,
};
use zeroize::Zeroizing;

/// More than any key ring has.
const OUTPUT_MAX: usize = 16 * 1024;
/// Most bytes of a program's errors that are read, and that are shown.
const SAID_MAX: usize = 4096;
const SHOWN_MAX: usize = 300;
/// Time after a program's end in which its output is still read, while another process holds it
/// open.
const LINGER: Duration = Duration::from_secs(1);
/// Largest length of a shown word with digits: a longer word may be a part of a key.
const WORD_MAX: usize = 15;

/// A failure of a program. The error repeats none of the program's output, and only words of its
/// error text that can hold no key.
#[derive(Debug, thiserror::Error)]
pub enum CommandFault {
    /// The program does not exist, or may not be started.
    #[error("`{program}` cannot be started")]
    Start {
        /// The program.
        program: String,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// The program was killed, since it had not ended in time.
    #[error("`{program}` did not end within {seconds} seconds")]
    Time {
        /// The program.
        program: String,
        /// The time limit in seconds.
        seconds: u64,
    },
    /// The program failed.
    #[error("`{program}` ended with {status}{said}")]
    Failed {
        /// The program.
        program: String,
        /// The exit status.
        status: ExitStatus,
        /// Its last error text, after a colon; may be empty.
        said: String,
    },
    /// The program printed more than any key ring has.
    #[error("`{program}` printed more than a key ring can have")]
    Long {
        /// The program.
        program: String,
    },
    /// The program's output is no text.
    #[error("the stored value is not text")]
    Text,
    /// The keychain is locked.
    #[error("it is locked; unlock the keychain")]
    Locked,
    /// The program reported success, but returns another ring.
    #[error("it returns another value than the stored one")]
    NotKept,
    /// A pipe to the program broke.
    #[error("the pipe to `{program}` failed")]
    Pipe {
        /// The program.
        program: String,
        /// The system's error.
        #[source]
        source: io::Error,
    },
}

pub(super) struct Question<'a> {
    /// The program and its arguments.
    pub(super) words: &'a [String],
    pub(super) input: Option<&'a str>,
    /// Variables that it does not get.
    pub(super) hidden: &'a [OsString],
    pub(super) limit: Duration,
}

pub(super) struct Answer {
    pub(super) status: ExitStatus,
    pub(super) out: Zeroizing<Vec<u8>>,
    pub(super) said: Zeroizing<Vec<u8>>,
}

impl Answer {
    /// The fault of a program that ended badly.
    pub(super) fn failure(&self, words: &[String]) -> CommandFault {
        let said = match shown(&self.said) {
            said if said.is_empty() => said,
            said => format!(": {said}"),
        };
        CommandFault::Failed { program: program(words), status: self.status, said }
    }
}

/// Runs it to its end. Blocks.
pub(super) fn run(question: &Question<'_>) -> Result<Answer, CommandFault> {
    let program = program(question.words);
    let pipe = |source| CommandFault::Pipe { program: program.clone(), source };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let answer = runtime.map_err(pipe)?.block_on(async {
        let mut child = spawn(question, &program)
            .map_err(|source| CommandFault::Start { program: program.clone(), source })?;
        let group = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        let Ok(answer) = timeout(question.limit, talk(&mut child, question.input)).await else {
            // Kills the processes that it has started, too.
            if let Some(group) = group
                && let Err(error) = kill_process_group(group, Signal::KILL)
            {
                tracing::debug!(%error, "a program of the keychain has ended just now");
            }
            child.wait().await.map_err(pipe)?;
            let seconds = question.limit.as_secs();
            return Err(CommandFault::Time { program: program.clone(), seconds });
        };
        answer.map_err(pipe)
    })?;
    if answer.out.len() > OUTPUT_MAX {
        return Err(CommandFault::Long { program });
    }
    Ok(answer)
}

fn spawn(question: &Question<'_>, program: &str) -> io::Result<Child> {
    let mut command = Command::new(program);
    command.args(question.words.iter().skip(1));
    for name in question.hidden {
        command.env_remove(name);
    }
    let stdin = if question.input.is_some() { Stdio::piped() } else { Stdio::null() };
    command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.process_group(0).kill_on_drop(true).spawn()
}

async fn talk(child: &mut Child, input: Option<&str>) -> io::Result<Answer> {
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let write = async {
        let (Some(mut stdin), Some(text)) = (stdin, input) else { return Ok(()) };
        match stdin.write_all(text.as_bytes()).await {
            // The program's end and its output show if it has its input.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            done => done,
        }
    };
    // Allocated at once for the longest output: a buffer that moves leaves a copy behind.
    let mut out = Zeroizing::new(Vec::with_capacity(OUTPUT_MAX + 1));
    let mut said = Zeroizing::new(Vec::with_capacity(SAID_MAX));
    let status = {
        let reading = async {
            tokio::try_join!(
                read(stdout, &mut out, OUTPUT_MAX + 1),
                read(stderr, &mut said, SAID_MAX)
            )
        };
        let mut reading = std::pin::pin!(reading);
        let mut ending = std::pin::pin!(async { tokio::try_join!(write, child.wait()) });
        tokio::select! {
            biased;
            read = &mut reading => {
                read?;
                ending.await?.1
            }
            ended = &mut ending => {
                let ((), status) = ended?;
                // An agent that it has started may hold its output open for good.
                if let Ok(read) = timeout(LINGER, reading).await {
                    read?;
                }
                status
            }
        }
    };
    Ok(Answer { status, out, said })
}

/// Reads to the end, and keeps the first `most` bytes.
async fn read(
    from: Option<impl AsyncRead + Unpin>,
    kept: &mut Zeroizing<Vec<u8>>,
    most: usize,
) -> io::Result<()> {
    let Some(mut from) = from else { return Ok(()) };
    let mut part = Zeroizing::new([0; 1024]);
    loop {
        let count = from.read(&mut *part).await?;
        if count == 0 {
            return Ok(());
        }
        let room = (most - kept.len()).min(count);
        kept.extend_from_slice(&part[..room]);
    }
}

fn program(words: &[String]) -> String {
    words.first().cloned().unwrap_or_default()
}

/// The last line, without parts that may be a key, a password or a command for a terminal.
fn shown(said: &[u8]) -> String {
    let text = Zeroizing::new(String::from_utf8_lossy(said).into_owned());
    let last = text.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or_default();
    let mut shown = String::new();
    for run in last.split_inclusive(|c: char| !c.is_ascii_alphanumeric()) {
        let word = run.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
        match word.len() > WORD_MAX && word.contains(|c: char| c.is_ascii_digit()) {
            true => {
                shown.push('…');
                shown.push_str(&run[word.len()..]);
            }
            false => shown.push_str(run),
        }
    }
    shown.chars().filter(|c| !c.is_control()).take(SHOWN_MAX).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Question, run, shown};

    /// Background processes of a program, such as agents of keys, hold its output open.
    #[test]
    fn background_processes_of_a_key_program_are_not_waited_for() {
        let words = ["sh", "-c", "sleep 120 & printf key"].map(str::to_owned);
        let limit = Duration::from_secs(60);
        let question = Question { words: &words, input: None, hidden: &[], limit };
        let answer = run(&question).unwrap();
        assert!(answer.status.success());
        assert_eq!(&**answer.out, b"key");
    }

    /// A program that does not read its input fails by its exit code alone.
    #[test]
    fn a_program_that_does_not_read_is_no_broken_pipe() {
        let words = ["true"].map(str::to_owned);
        let text = "x".repeat(1 << 20);
        let limit = Duration::from_secs(60);
        let question = Question { words: &words, input: Some(&text), hidden: &[], limit };
        assert!(run(&question).unwrap().status.success());
    }

    #[test]
    fn long_error_texts_are_not_stored_whole() {
        let words = ["sh", "-c", "head -c 20000 /dev/zero >&2"].map(str::to_owned);
        let limit = Duration::from_secs(60);
        let question = Question { words: &words, input: None, hidden: &[], limit };
        assert_eq!(run(&question).unwrap().said.len(), 4096);
    }

    /// S27: a program's errors are shown without words that may be a key.
    #[test]
    fn s27_words_that_may_be_keys_are_not_shown() {
        let key = "feffe9928665731c6d6a8f9467308308e0d1c2b3a49586776859403122130475";
        let said = format!("first\nsecret-tool: Cannot create item ({key}), \u{1b}[1m{key}\n\n");
        assert_eq!(shown(said.as_bytes()), "secret-tool: Cannot create item (…), […");
        assert_eq!(shown(format!("at {}", &key[..15]).as_bytes()), format!("at {}", &key[..15]));
        assert_eq!(
            shown(b"org.freedesktop.SystemPrompter failed"),
            "org.freedesktop.SystemPrompter failed"
        );
        assert_eq!(shown("a b ".repeat(500).as_bytes()).len(), 300);
        assert_eq!(shown(b"\n \n"), "");
    }
}
