//! Random operations against a model of the namespace: 100,000 steps, each answer as the model
//! says it.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use bytes::Bytes;
use narthex_mount::{Code, Limits, MountName, Mounted, Namespace, Process};

use crate::device::{Fake, Mood, name, pid, refused};

const STEPS: usize = 100_000;
const FILES: usize = 8;
const ALIASES: [&str; 3] = ["a", "ab", "b"];
const NODES: [&str; 7] =
    ["", "/tools", "/tools/echo", "/resources/x:y", "/prompts/greet", "/ctl/logs", "/nothing"];

/// A seeded source of choices: the same each time (a linear congruential generator).
pub(crate) struct Chance(pub(crate) u64);

impl Chance {
    pub(crate) fn below(&mut self, most: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).expect("31 bits fit") % most
    }

    pub(crate) fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }
}

/// What the model knows of a descriptor.
#[derive(Debug, Clone)]
struct Fd {
    mount: (u64, &'static str),
    number: u64,
    node: &'static str,
    content: Option<Result<Vec<u8>, Code>>,
    is_revoked: bool,
}

#[derive(Debug, Default)]
struct Proc {
    allowed: BTreeSet<(u64, &'static str)>,
    fds: BTreeMap<u64, Fd>,
}

#[derive(Default)]
struct Model {
    mounts: BTreeMap<(u64, &'static str), u64>,
    processes: BTreeMap<u64, Proc>,
    next: u64,
}

/// The namespace, what it has been told to be, and what it is checked against.
struct World {
    namespace: Namespace,
    fake: Arc<Fake>,
    is_well: bool,
    handles: Vec<(Mounted, (u64, &'static str), u64)>,
    processes: BTreeMap<u64, Arc<Process>>,
    model: Model,
    chance: Chance,
}

fn mount_name((of, alias): (u64, &'static str)) -> MountName {
    name(of, alias)
}

impl World {
    fn begin(&mut self) {
        let of = 1 + self.chance.below(4) as u64;
        let began = self.namespace.begin(pid(of), None, &[]);
        if self.model.processes.contains_key(&of) {
            assert_eq!(began.expect_err("it is there").code(), Code::AlreadyMounted);
            return;
        }
        self.model.processes.insert(of, Proc::default());
        self.processes.insert(of, began.expect("it is new"));
    }

    fn end(&mut self) {
        let of = 1 + self.chance.below(4) as u64;
        let was_there = self.model.processes.remove(&of).is_some();
        assert_eq!(self.namespace.end(pid(of)), was_there);
        self.processes.remove(&of);
        self.model.mounts.retain(|(owner, _), _| *owner != of);
    }

    fn mount(&mut self) {
        let key = (1 + self.chance.below(4) as u64, self.chance.of(&ALIASES));
        let mounted = self.namespace.mount(mount_name(key), self.fake.clone());
        let Some(process) = self.model.processes.get_mut(&key.0) else {
            assert_eq!(mounted.expect_err("nobody's").code(), Code::NotFound);
            return;
        };
        if self.model.mounts.contains_key(&key) {
            assert_eq!(mounted.expect_err("taken").code(), Code::AlreadyMounted);
            return;
        }
        self.model.next += 1;
        self.model.mounts.insert(key, self.model.next);
        process.allowed.insert(key);
        self.handles.push((mounted.expect("it is free"), key, self.model.next));
    }

    fn unmount(&mut self) {
        if self.handles.is_empty() {
            return;
        }
        let at = self.chance.below(self.handles.len());
        let (handle, key, number) = self.handles.swap_remove(at);
        let is_there = self.model.mounts.get(&key) == Some(&number);
        assert_eq!(self.namespace.unmount(&handle), is_there);
        if is_there {
            self.model.mounts.remove(&key);
        }
    }

    fn revoke(&mut self) {
        let Some((of, process)) = self.someone() else { return };
        let key = (of, self.chance.of(&ALIASES));
        process.revoke(&mount_name(key));
        let model = self.model.processes.get_mut(&of).expect("the model has it");
        model.allowed.remove(&key);
        model.fds.values_mut().filter(|fd| fd.mount == key).for_each(|fd| fd.is_revoked = true);
    }

    fn open(&mut self) {
        let Some((of, process)) = self.someone() else { return };
        let key = (1 + self.chance.below(4) as u64, self.chance.of(&ALIASES));
        let node = self.chance.of(&NODES);
        let opened = process.open(&format!("/mnt/mcp/{}-{}{node}", key.0, key.1));
        let model = self.model.processes.get_mut(&of).expect("the model has it");
        let number = self.model.mounts.get(&key).copied();
        let wanted = match number {
            _ if node == "/nothing" => Err(Code::NotFound),
            Some(_) if model.allowed.contains(&key) && model.fds.len() >= FILES => {
                Err(Code::ResourceExhausted)
            }
            Some(number) if model.allowed.contains(&key) => Ok(number),
            Some(_) if key.0 == of => Err(Code::Permission),
            _ => Err(Code::NotFound),
        };
        match wanted {
            Err(code) => assert_eq!(opened.expect_err("it is refused").code(), code),
            Ok(number) => {
                let fd = opened.expect("it opens");
                let free = (3..).find(|fd| !model.fds.contains_key(fd));
                assert_eq!(Some(fd), free, "the smallest that is free");
                let content = (node.is_empty())
                    .then(|| Ok(br#"["tools","resources","prompts","ctl"]"#.to_vec()));
                let open = Fd { mount: key, number, node, content, is_revoked: false };
                model.fds.insert(fd, open);
            }
        }
    }

    async fn write(&mut self) {
        let Some((of, process)) = self.someone() else { return };
        let fd = 3 + self.chance.below(FILES) as u64;
        let text = self.chance.of(&["{}", r#"{"a":1}"#, "no json", "[]"]);
        let written = process.write(fd, Bytes::from_static(text.as_bytes())).await;
        let written = written.map_err(|error| error.code());
        let open = self.model.fd(of, fd);
        let wanted = match open {
            Err(code) => Err(code),
            Ok(open) if !matches!(open.node, "/tools/echo" | "/prompts/greet") => {
                Err(Code::Invalid)
            }
            Ok(open) => {
                let answer = match (text.starts_with('{'), self.is_well, open.node) {
                    (false, _, _) => Err(Code::Invalid),
                    (true, false, _) => Err(Code::Permission),
                    (true, true, "/tools/echo") => Ok(format!("echo:{text}").into_bytes()),
                    (true, true, _) => Ok(format!("prompt:greet:{text}").into_bytes()),
                };
                open.content = Some(answer.clone());
                answer.map(|_| text.len())
            }
        };
        assert_eq!(written, wanted);
    }

    async fn read(&mut self) {
        let Some((of, process)) = self.someone() else { return };
        let fd = 3 + self.chance.below(FILES) as u64;
        let length = self.chance.of(&[-1_i64, 0, 1, 7, 1000]);
        let read = process.read(fd, length).await;
        let read = read.map(|bytes| bytes.to_vec()).map_err(|error| error.code());
        let is_well = self.is_well;
        let wanted = self.model.fd(of, fd).and_then(|open| {
            if open.content.is_none() {
                let fetched = match (open.node, is_well) {
                    ("/tools/echo", _) => return Err(Code::Invalid),
                    (_, false) => return Err(Code::Permission),
                    ("/tools", _) => crate::device::TOOLS,
                    ("/resources/x:y", _) => "resource:x:y",
                    ("/prompts/greet", _) => "prompt:greet:{}",
                    _ => "said\n",
                };
                open.content = Some(Ok(fetched.into()));
            }
            let content = open.content.as_mut().expect("it was fetched");
            let rest = content.as_mut().map_err(|code| *code)?;
            let wanted = usize::try_from(length).ok().filter(|length| *length > 0);
            let taken = wanted.map_or(rest.len(), |wanted| wanted.min(rest.len()));
            Ok(rest.drain(..taken).collect::<Vec<u8>>())
        });
        assert_eq!(read, wanted);
    }

    fn close(&mut self) {
        let Some((of, process)) = self.someone() else { return };
        let fd = 3 + self.chance.below(FILES) as u64;
        let closed = process.close(fd).map_err(|error| error.code());
        let model = self.model.processes.get_mut(&of).expect("the model has it");
        assert_eq!(closed, model.fds.remove(&fd).map(|_| ()).ok_or(Code::Driver));
    }

    fn turn(&mut self) {
        self.is_well = self.chance.below(3) > 0;
        self.fake.set(if self.is_well { Mood::Well } else { Mood::Fails(refused()) });
    }

    fn someone(&mut self) -> Option<(u64, Arc<Process>)> {
        let of = 1 + self.chance.below(4) as u64;
        self.processes.get(&of).map(|process| (of, process.clone()))
    }
}

impl Model {
    fn fd(&mut self, of: u64, fd: u64) -> Result<&mut Fd, Code> {
        let process = self.processes.get_mut(&of).expect("the model has it");
        let open = process.fds.get_mut(&fd).ok_or(Code::Driver)?;
        if open.is_revoked {
            return Err(Code::Permission);
        }
        match self.mounts.get(&open.mount) {
            Some(number) if *number == open.number => Ok(open),
            _ => Err(Code::DeviceDisconnected),
        }
    }
}

#[tokio::test]
async fn a_hundred_thousand_random_operations_go_as_the_model_says() {
    let fake = Fake::new();
    let limits = Limits { files: FILES, ..Limits::default() };
    let mut world = World {
        namespace: Namespace::new(limits, None),
        fake,
        is_well: true,
        handles: Vec::new(),
        processes: BTreeMap::new(),
        model: Model::default(),
        chance: Chance(20_261_123),
    };
    for _step in 0..STEPS {
        match world.chance.below(100) {
            0..2 => world.begin(),
            2 => world.end(),
            3..8 => world.mount(),
            8..11 => world.unmount(),
            11..13 => world.revoke(),
            13..35 => world.open(),
            35..58 => world.write().await,
            58..82 => world.read().await,
            82..97 => world.close(),
            _ => world.turn(),
        }
    }
    let wanted: Vec<_> = world.model.mounts.keys().map(|key| mount_name(*key)).collect();
    assert_eq!(world.namespace.mounts(), wanted);
}
