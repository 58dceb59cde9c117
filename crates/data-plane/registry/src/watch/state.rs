//! The present declarations, composed of the last good content of each file.

use std::{
    path::Path,
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::SystemTime,
};

use narthex_model::Provenance;
use tokio::{sync::watch, time::timeout};
use tokio_util::task::TaskTracker;

use super::{
    FollowError, LayerOptions, Watching,
    content::{ContentHash, Found, Source},
};
use crate::{
    config::{ConfigWarning, Entry, LoadedConfig, ProfileEntry},
    layers::{Declared, Layer, compose},
};

/// The declarations of the layers, and the status of their files.
#[derive(Debug, Clone)]
pub struct LayersState {
    /// Every entry; the global layer's come first.
    pub declared: Arc<[Declared]>,
    /// Warnings about tolerated, changed or ignored content of the files that count.
    pub warnings: Arc<[ConfigWarning]>,
    /// The profiles of the settings file.
    pub profiles: Arc<[ProfileEntry]>,
    /// The files that are followed, the settings first.
    pub files: Vec<FileState>,
    /// Number of the set; the first loaded set is 0.
    pub(super) revision: u64,
}

/// Status of one file.
#[derive(Debug, Clone)]
pub struct FileState {
    /// The file.
    pub file: Arc<Path>,
    /// The layer of the file.
    pub provenance: Provenance,
    /// True if a content of the file counts. A missing file is no error (E123).
    pub is_present: bool,
    /// Time when the content that counts was read; `None` while none counts.
    pub applied_at: Option<SystemTime>,
    /// Reason why the present content does not count; an older content may count.
    pub error: Option<FollowError>,
    /// Time when the present content was first read, while it does not count.
    pub refused_since: Option<SystemTime>,
    /// Time of the first reading that missed the file, if an earlier one had found a content that
    /// declares something.
    pub gone_since: Option<SystemTime>,
    /// Time of the last reading.
    pub last_read: Option<SystemTime>,
    /// Number of readings.
    pub reads: u64,
    /// The way in which changes are noticed; `None` while the file is not followed.
    pub watching: Option<Watching>,
    /// Number of failures that differ from the one before.
    pub(super) failures: u64,
    /// Counts the ends of failures.
    pub(super) recoveries: u64,
    /// Counts how often the file went away.
    pub(super) departures: u64,
}

/// State that the tasks of one [`super::LayerFiles`] share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) options: LayerOptions,
    pub(super) tasks: TaskTracker,
    pub(super) sources: Vec<Source>,
    /// One lock per source, locked while a file is read and the result is applied, so that results
    /// are applied in order (E128).
    looks: Vec<tokio::sync::Mutex<()>>,
    contents: Mutex<Contents>,
    states: watch::Sender<Arc<LayersState>>,
}

/// The last good contents.
#[derive(Debug)]
struct Contents {
    /// The contents, one per source.
    files: Vec<Content>,
    /// The global layer from code, which then counts instead of the file.
    given: Option<Vec<Entry>>,
}

#[derive(Debug)]
struct Content {
    /// The hash of the content that counts; `None` if the file is missing, or never had a good
    /// content.
    hash: Option<ContentHash>,
    config: LoadedConfig,
    /// The hash of the present content, while that is refused.
    refused: Option<ContentHash>,
}

impl Content {
    /// True if the content that counts declares nothing, and nothing in it is in doubt.
    fn is_without_effect(&self) -> bool {
        let LoadedConfig { entries, warnings, profiles } = &self.config;
        entries.is_empty() && warnings.is_empty() && profiles.is_empty()
    }
}

/// Outcome of reading a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Examined {
    /// The content was applied.
    Done,
    /// The content was not applied: it would remove entries, and may be a moment within a save.
    InDoubt,
}

impl Shared {
    pub(super) fn new(options: LayerOptions, tasks: TaskTracker, sources: Vec<Source>) -> Self {
        let files = sources.iter().map(FileState::new);
        let state = LayersState {
            declared: Arc::default(),
            warnings: Arc::default(),
            profiles: Arc::default(),
            files: files.collect(),
            revision: 0,
        };
        let empty = || Content {
            hash: None,
            config: LoadedConfig::new(Vec::new(), Vec::new()),
            refused: None,
        };
        let contents = Contents { files: sources.iter().map(|_| empty()).collect(), given: None };
        Self {
            options,
            tasks,
            looks: sources.iter().map(|_| tokio::sync::Mutex::default()).collect(),
            sources,
            contents: Mutex::new(contents),
            states: watch::Sender::new(Arc::new(state)),
        }
    }

    pub(super) fn current(&self) -> Arc<LayersState> {
        self.states.borrow().clone()
    }

    pub(super) fn states(&self) -> watch::Receiver<Arc<LayersState>> {
        self.states.subscribe()
    }

    /// Waits until every file was read once.
    pub(super) async fn wait_until_loaded(&self) {
        let mut states = self.states();
        let is_loaded = |state: &Arc<LayersState>| state.files.iter().all(|file| file.reads > 0);
        // The sender exists as long as `self`, so this ends for no other reason.
        if let Err(error) = states.wait_for(is_loaded).await {
            tracing::debug!(%error, "no reader follows these files any more");
        }
    }

    /// Reads the file at `index` and applies the result; does nothing if there is no such file.
    /// Reports the file and gives up when that takes too long.
    pub(super) async fn examine_now(self: &Arc<Self>, index: usize) {
        let Some(turn) = self.looks.get(index) else { return };
        let limit = self.options.read_deadline;
        let turn = timeout(limit, turn.lock()).await;
        let found = match &turn {
            Ok(_) => timeout(limit, self.look_twice(index)).await.ok(),
            Err(_) => None,
        };
        self.take_over(index, found.unwrap_or_else(|| self.stalled(index)));
        drop(turn);
    }

    /// Reads a file and applies the content; with `may_doubt` a doubtful content is not applied.
    /// Reports when reading takes too long, and keeps waiting.
    pub(super) async fn examine(self: &Arc<Self>, index: usize, may_doubt: bool) -> Examined {
        let _turn = self.looks[index].lock().await;
        let mut look = pin!(self.look(index));
        let found = match timeout(self.options.read_deadline, &mut look).await {
            Ok(found) => found,
            Err(_) => {
                self.take_over(index, self.stalled(index));
                look.await
            }
        };
        if may_doubt && self.is_in_doubt(index, &found) {
            return Examined::InDoubt;
        }
        self.take_over(index, found);
        Examined::Done
    }

    /// Reads a file, and once more if its content is doubtful. The first reading is not repeated:
    /// it removes no entry, and a start waits for it.
    async fn look_twice(self: &Arc<Self>, index: usize) -> Found {
        let is_first = self.states.borrow().files[index].reads == 0;
        let found = self.look(index).await;
        if is_first || !self.is_in_doubt(index, &found) {
            return found;
        }
        tokio::time::sleep(self.options.debounce).await;
        self.look(index).await
    }

    /// Reads a file on a thread that may block.
    async fn look(self: &Arc<Self>, index: usize) -> Found {
        let shared = self.clone();
        let known = self.contents().files[index].hash;
        let look =
            self.tasks.spawn_blocking(move || shared.sources[index].look(&shared.options, known));
        look.await.unwrap_or_else(|error| {
            let file = self.sources[index].file.clone();
            tracing::error!(%error, file = %file.display(), "reading a configuration failed");
            Found::bad(FollowError::Bug { file })
        })
    }

    fn stalled(&self, index: usize) -> Found {
        let file = self.sources[index].file.clone();
        Found::bad(FollowError::Stalled { file, after: self.options.read_deadline })
    }

    /// True if a content may be a moment within a save, which removes the file or leaves it half
    /// written.
    fn is_in_doubt(&self, index: usize, found: &Found) -> bool {
        let state = &self.states.borrow().files[index];
        match found {
            Found::Missing => state.is_there(),
            Found::Bad { error, .. } => error.may_pass() && is_news(state.error.as_ref(), error),
            Found::Same | Found::Good { .. } => false,
        }
    }

    fn take_over(&self, index: usize, found: Found) {
        let mut contents = self.contents();
        let content = &mut contents.files[index];
        let now = SystemTime::now();
        let mut state = LayersState::clone(&self.states.borrow());
        let file = &mut state.files[index];
        // The first reading gives the initial state, and no event (E122).
        let is_first = file.reads == 0;
        let is_lost = file.error.is_some() || !content.is_without_effect();
        file.note(&found, content.refused, now);
        if matches!(found, Found::Missing) && !is_lost && content.hash.is_some() {
            // Nothing that was declared is unavailable now.
            file.gone_since = None;
        }
        match found {
            Found::Same => content.refused = None,
            Found::Missing => {
                content.refused = None;
                content.hash = None;
                file.applied_at = None;
                content.config = LoadedConfig::new(Vec::new(), Vec::new());
            }
            Found::Good { hash, config } => {
                content.refused = None;
                content.hash = Some(hash);
                content.config = config;
                file.applied_at = Some(now);
            }
            Found::Bad { hash, .. } => content.refused = hash.or(content.refused),
        }
        file.is_present = content.hash.is_some();
        file.last_read = Some(now);
        file.reads += 1;
        self.put_together(&contents, &mut state, is_first);
        self.states.send_replace(Arc::new(state));
    }

    pub(super) fn replace_global(&self, entries: Vec<Entry>) {
        let mut contents = self.contents();
        contents.given = Some(entries);
        let mut state = LayersState::clone(&self.states.borrow());
        self.put_together(&contents, &mut state, false);
        self.states.send_replace(Arc::new(state));
    }

    pub(super) fn set_watching(&self, index: usize, watching: Option<Watching>) {
        // Every task that derives a new state from the present one holds this, so that no change is
        // lost.
        let _contents = self.contents();
        self.states.send_if_modified(|state| {
            if state.files[index].watching == watching {
                return false;
            }
            Arc::make_mut(state).files[index].watching = watching;
            true
        });
    }

    fn put_together(&self, contents: &Contents, state: &mut LayersState, is_first: bool) {
        let mut layers = Vec::with_capacity(self.sources.len());
        let (mut warnings, mut profiles) = (Vec::new(), Vec::new());
        if let Some(entries) = &contents.given {
            let entries = entries.clone();
            layers.push(Layer { provenance: Provenance::Settings, file: None, entries });
        }
        for (source, content) in self.sources.iter().zip(&contents.files) {
            let provenance = source.provenance();
            if provenance == Provenance::Settings && contents.given.is_some() {
                continue;
            }
            warnings.extend(content.config.warnings.iter().cloned());
            profiles.extend(content.config.profiles.iter().cloned());
            let entries = content.config.entries.clone();
            layers.push(Layer { provenance, file: Some(source.file.clone()), entries });
        }
        let declared = compose(&layers);
        let is_same = *declared == *state.declared && *profiles == *state.profiles;
        if is_same && *warnings == *state.warnings {
            return;
        }
        state.declared = declared.into();
        state.warnings = warnings.into();
        state.profiles = profiles.into();
        if !is_first {
            state.revision += 1;
        }
    }

    fn contents(&self) -> MutexGuard<'_, Contents> {
        self.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FileState {
    fn new(source: &Source) -> Self {
        Self {
            file: source.file.clone(),
            provenance: source.provenance(),
            is_present: false,
            applied_at: None,
            error: None,
            refused_since: None,
            gone_since: None,
            last_read: None,
            reads: 0,
            watching: None,
            failures: 0,
            recoveries: 0,
            departures: 0,
        }
    }

    /// True if the last reading found a file, good or not.
    fn is_there(&self) -> bool {
        self.is_present || self.error.is_some()
    }

    /// Records the result of a reading: the fault of the present content, the absence of the file,
    /// and the time since when each holds. `refused` is the content that the reading before
    /// refused.
    fn note(&mut self, found: &Found, refused: Option<ContentHash>, now: SystemTime) {
        let error = match found {
            Found::Bad { error, .. } => Some(error.clone()),
            Found::Missing | Found::Same | Found::Good { .. } => None,
        };
        let is_new = error.as_ref().is_some_and(|error| is_news(self.error.as_ref(), error));
        let is_missing = matches!(found, Found::Missing);
        match is_missing {
            true if self.is_there() => {
                self.departures += 1;
                self.gone_since = Some(now);
            }
            true => {}
            false => self.gone_since = None,
        }
        if is_new && self.reads > 0 {
            self.failures += 1;
        }
        if self.error.is_some() && error.is_none() && !is_missing {
            self.recoveries += 1;
        }
        // Without a hash to compare, another fault counts as another content.
        let is_same = match found {
            Found::Bad { hash: Some(hash), .. } => refused == Some(*hash),
            _ => !is_new,
        };
        let since = self.refused_since.filter(|_| is_same).unwrap_or(now);
        self.refused_since = error.is_some().then_some(since);
        self.error = error;
    }
}

/// True if an error differs from the reported one.
fn is_news(told: Option<&FollowError>, error: &FollowError) -> bool {
    told.is_none_or(|told| told.to_string() != error.to_string())
}

#[cfg(test)]
mod tests {
    use super::{
        super::content::{Origin, Refused},
        *,
    };

    fn refused(content: u8, reason: &str) -> Found {
        let file: Arc<Path> = Path::new("/f/mcp.json").into();
        let refused = Refused { reason: reason.to_owned() };
        Found::Bad { error: FollowError::Refused { file, refused }, hash: Some([content; 32]) }
    }

    /// E118: a content is refused since it was found, not since an older one was refused.
    #[test]
    fn e118_each_refused_content_records_its_own_time() {
        let mut file = FileState::new(&Source::new(Path::new("/f/mcp.json"), Origin::Settings));
        let at = |seconds| SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
        let mut before = None;
        for (time, found, since) in [
            (1, refused(1, "is not trusted"), Some(1)),
            (2, refused(1, "is not trusted"), Some(1)),
            // Another content with the same reason.
            (3, refused(2, "is not trusted"), Some(3)),
            // The same content with another reason.
            (4, refused(2, "line 1"), Some(3)),
            (5, Found::Same, None),
            (6, refused(2, "is not trusted"), Some(6)),
            (7, Found::Missing, None),
        ] {
            file.note(&found, before, at(time));
            before = match found {
                Found::Bad { hash, .. } => hash,
                Found::Missing | Found::Same | Found::Good { .. } => None,
            };
            assert_eq!(file.refused_since, since.map(at), "{time}");
        }
    }
}
