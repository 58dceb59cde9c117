//! The standard input of a child. The sender of a short message also writes the message, which
//! saves a thread switch. A message that has to wait goes through a queue, and no other message
//! overtakes it.

use std::{
    io,
    slice::from_ref,
    sync::atomic::{AtomicU64, AtomicUsize, Ordering},
};

use narthex_wire::{Payload, line_frames};
use tokio::{io::AsyncWriteExt, net::unix::pipe, sync::Mutex};

/// Number of bytes that a pipe takes completely or not at all (POSIX `PIPE_BUF`; at least 512 on
/// any system).
const WHOLE: usize = if cfg!(target_os = "linux") { 4096 } else { 512 };

/// One end of a child's pipe, shared by all users of the link.
#[derive(Debug)]
pub(crate) struct Input {
    /// The pipe; `None` once it is closed.
    pipe: Mutex<Option<pipe::Sender>>,
    /// Number of messages in the queue, or taken from the queue and not yet written.
    queued: AtomicUsize,
    /// Number of bytes written to the pipe.
    written: AtomicU64,
}

impl Input {
    pub(super) fn new(pipe: pipe::Sender) -> Self {
        Self {
            pipe: Mutex::new(Some(pipe)),
            queued: AtomicUsize::new(0),
            written: AtomicU64::new(0),
        }
    }

    /// Writes a message if it is short, no earlier message waits, and the pipe has room. Never
    /// waits.
    pub(crate) fn write_now(&self, payload: &Payload) -> bool {
        if payload.len() >= WHOLE {
            return false;
        }
        let Ok(pipe) = self.pipe.try_lock() else { return false };
        // The count is read under the lock: the writer holds the lock until the messages that it
        // took are written.
        let is_first = self.queued.load(Ordering::Acquire) == 0;
        let Some(pipe) = pipe.as_ref().filter(|_| is_first) else { return false };
        // After an error, the message goes to the writer, which can wait or report the error.
        let written = pipe.try_write(&line_frames(from_ref(payload)).into_bytes());
        self.written
            .fetch_add(written.as_ref().map_or(0, |bytes| *bytes as u64), Ordering::Relaxed);
        written.is_ok()
    }

    /// Counts a message. The caller puts the message into the queue only after this call.
    pub(crate) fn queue(&self) {
        self.queued.fetch_add(1, Ordering::AcqRel);
    }

    /// Writes messages from the queue together; waits while the child does not read.
    pub(super) async fn write(&self, messages: &[Payload]) -> io::Result<()> {
        let mut pipe = self.pipe.lock().await;
        let pipe = pipe.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        for piece in line_frames(messages).pieces() {
            let mut left = &piece[..];
            while !left.is_empty() {
                let count = pipe.write(left).await?;
                self.written.fetch_add(count as u64, Ordering::Relaxed);
                left = &left[count..];
            }
        }
        self.queued.fetch_sub(messages.len(), Ordering::AcqRel);
        Ok(())
    }

    /// Number of bytes that were written so far. Later messages come after these bytes.
    pub(crate) fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    /// Maximum number of bytes that the child may have read; `None` where the system does not
    /// report this number.
    pub(crate) fn read_at_most(&self) -> Option<u64> {
        if !cfg!(target_os = "linux") {
            return None;
        }
        let pipe = self.pipe.try_lock().ok()?;
        let unread = rustix::io::ioctl_fionread(pipe.as_ref()?).ok()?;
        Some(self.written().saturating_sub(unread))
    }

    /// Closes the pipe: the child sees the end of its input.
    pub(super) async fn close(&self) {
        *self.pipe.lock().await = None;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::{
        io::{AsyncBufReadExt, BufReader},
        sync::mpsc,
        task::JoinSet,
    };

    use super::*;

    fn payload(text: String) -> Payload {
        text.into_bytes().into()
    }

    #[tokio::test]
    async fn short_messages_are_written_at_once_and_long_messages_are_queued() {
        let (sender, receiver) = pipe::pipe().unwrap();
        sender.writable().await.unwrap();
        let input = Input::new(sender);
        assert!(input.write_now(&payload("a".repeat(WHOLE - 1))));
        assert!(!input.write_now(&payload("b".repeat(WHOLE))), "longer than a pipe takes whole");
        input.queue();
        assert!(!input.write_now(&payload("c".into())), "another waits before it");
        input.write(&[payload("d".into())]).await.unwrap();
        assert!(input.write_now(&payload("e".into())));
        input.close().await;
        assert!(!input.write_now(&payload("f".into())), "closed");
        input.write(&[payload("g".into())]).await.unwrap_err();
        let mut lines = BufReader::new(receiver).lines();
        for expected in ["a".repeat(WHOLE - 1), "d".into(), "e".into()] {
            assert_eq!(lines.next_line().await.unwrap(), Some(expected));
        }
        assert_eq!(lines.next_line().await.unwrap(), None);
    }

    #[tokio::test]
    async fn a_full_pipe_refuses_immediate_writes() {
        let (sender, _receiver) = pipe::pipe().unwrap();
        sender.writable().await.unwrap();
        let input = Input::new(sender);
        let message = payload("x".repeat(1000));
        let most = (0..10_000).take_while(|_| input.write_now(&message)).count();
        assert!(most < 10_000 && most > 0, "{most}");
    }

    const EACH: usize = 300;

    async fn send_all(who: usize, input: Arc<Input>, queue: mpsc::Sender<Payload>) {
        for number in 0..EACH {
            let filler = "y".repeat(number * 37 % 9000);
            let message = payload(format!("{who} {number} {filler}"));
            if !input.write_now(&message) {
                input.queue();
                queue.send(message).await.unwrap();
            }
            tokio::task::yield_now().await;
        }
    }

    /// Each message arrives complete, and the messages of one sender arrive in order, however
    /// direct writes and the queue mix.
    #[tokio::test(flavor = "multi_thread", worker_threads = 3)]
    async fn messages_of_one_sender_arrive_in_order_and_complete() {
        let (sender, receiver) = pipe::pipe().unwrap();
        let input = Arc::new(Input::new(sender));
        let (queue, mut queued) = mpsc::channel(16);
        let writing = input.clone();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut batch = Vec::new();
            while queued.recv_many(&mut batch, 8).await > 0 {
                writing.write(&std::mem::take(&mut batch)).await.unwrap();
            }
        });
        for who in 0..4 {
            let (input, queue) = (input.clone(), queue.clone());
            tasks.spawn(send_all(who, input, queue));
        }
        let mut lines = BufReader::new(receiver).lines();
        let mut next = [0; 4];
        for _ in 0..4 * EACH {
            let line = lines.next_line().await.unwrap().unwrap();
            let words: Vec<&str> = line.split(' ').collect();
            let (who, number): (usize, usize) =
                (words[0].parse().unwrap(), words[1].parse().unwrap());
            assert_eq!(next[who], number);
            assert_eq!(words[2].len(), number * 37 % 9000);
            next[who] += 1;
        }
    }
}
