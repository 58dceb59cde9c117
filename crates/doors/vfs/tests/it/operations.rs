//! Paths and operations by the requirements (R-G1…R-G5, R-O1…R-O13).

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use narthex_model::CallErrorKind;
use narthex_vfs::{Code, Done, Failure, Limits, Namespace, Observer, Operation};

use crate::device::{Fake, Mood, TOOLS, name, one, pid, refused};

const ECHO: &str = "/mnt/mcp/1-files/tools/echo";

fn hi() -> Bytes {
    Bytes::from_static(br#"{"message":"hi"}"#)
}

#[tokio::test]
async fn r_o1_r_o2_a_call_is_open_write_read_close() {
    let (_namespace, process, fake) = one();
    let fd = process.open(ECHO).expect("it opens");
    assert_eq!(fake.asked(), 0, "opening asks no server");
    assert_eq!(process.open(ECHO).expect("each has its own"), fd + 1);
    assert_eq!(process.write(fd, hi()).await.expect("it is called"), hi().len());
    assert_eq!(fake.asked(), 1, "the write is the call");
    let read = process.read(fd, 0).await.expect("there is a result");
    assert_eq!(read, r#"echo:{"message":"hi"}"#);
    let other = process.read(fd + 1, 0).await.expect_err("it has its own buffer");
    assert_eq!(other.code(), Code::Invalid);
    process.close(fd).expect("it is open");
    assert_eq!(process.open(ECHO).expect("it opens"), fd, "the smallest number that is free");
}

#[tokio::test]
async fn r_o3_a_read_before_a_write_fails_with_a_remedy() {
    let (_namespace, process, fake) = one();
    let fd = process.open(ECHO).expect("it opens");
    let error = process.read(fd, 10).await.expect_err("there is nothing");
    assert_eq!(error.code(), Code::Invalid);
    assert!(error.to_string().contains("write the arguments first"), "{error}");
    assert_eq!(fake.asked(), 0);
}

#[tokio::test]
async fn r_o4_r_o5_reads_return_the_rest_and_then_no_bytes() {
    let (_namespace, process, _fake) = one();
    let fd = process.open(ECHO).expect("it opens");
    process.write(fd, hi()).await.expect("it is called");
    assert_eq!(process.read(fd, 4).await.expect("a part"), "echo");
    assert_eq!(process.read(fd, 1_000).await.expect("the rest"), r#":{"message":"hi"}"#);
    assert_eq!(process.read(fd, 10).await.expect("no error"), "");
    process.write(fd, hi()).await.expect("it is called");
    assert_eq!(process.read(fd, -1).await.expect("all"), r#"echo:{"message":"hi"}"#);
}

#[tokio::test]
async fn r_o6_r_o7_a_failed_write_fails_reads_until_a_successful_write() {
    let (_namespace, process, fake) = one();
    let fd = process.open(ECHO).expect("it opens");
    fake.set(Mood::Fails(refused()));
    let error = process.write(fd, hi()).await.expect_err("it is refused");
    assert_eq!((error.code(), error.operation), (Code::Permission, Operation::Write));
    let error = process.read(fd, 0).await.expect_err("so is the read");
    assert_eq!(
        (error.code(), error.failure.kind.as_str()),
        (Code::Permission, "permission_required")
    );
    fake.set(Mood::Well);
    process.write(fd, hi()).await.expect("it is called");
    assert!(process.read(fd, 0).await.is_ok());
}

#[tokio::test]
async fn r_o8_a_text_that_is_no_json_object_never_reaches_the_server() {
    let (_namespace, process, fake) = one();
    let fd = process.open(ECHO).expect("it opens");
    for bytes in [&b"hello"[..], b"", b"[1]", b"{", b"null", b"{} {}", b"\xff"] {
        let written = process.write(fd, Bytes::copy_from_slice(bytes)).await;
        assert_eq!(written.expect_err("it is none").code(), Code::Invalid);
        assert_eq!(process.read(fd, 0).await.expect_err("nor is it read").code(), Code::Invalid);
    }
    let huge = format!(r#"{{"a":"{}"}}"#, "x".repeat(4 << 20));
    let written = process.write(fd, huge.into()).await.expect_err("it is too much");
    assert_eq!(written.code(), Code::ResourceExhausted);
    assert_eq!(fake.asked(), 0);
}

#[tokio::test]
async fn r_o9_lists_and_resources_are_fetched_once_for_each_open() {
    let (_namespace, process, fake) = one();
    let tools = "/mnt/mcp/1-files/tools";
    fake.set(Mood::Fails(refused()));
    let fd = process.open(tools).expect("it opens");
    assert_eq!(process.read(fd, 0).await.expect_err("it fails").code(), refused().code);
    fake.set(Mood::Well);
    assert_eq!(process.read(fd, 8).await.expect("a failure is not kept"), r#"{"tools""#);
    let rest = process.read(fd, 0).await.expect("the rest");
    assert_eq!(rest, TOOLS[8..]);
    assert_eq!(fake.asked(), 2);
    let again = process.open(tools).expect("it opens");
    assert_eq!(process.read(again, 0).await.expect("anew"), TOOLS);
    assert_eq!(fake.asked(), 3);
    let resource = process.open("/mnt/mcp/1-files/resources/file:///a%20b/").expect("it opens");
    let read = process.read(resource, 0).await.expect("it is read");
    assert_eq!(read, "resource:file:///a%20b/", "R-G2: as it was written");
}

#[tokio::test]
async fn r_o10_a_closed_descriptor_refuses_every_operation() {
    let (_namespace, process, _fake) = one();
    let fd = process.open(ECHO).expect("it opens");
    process.close(fd).expect("it is open");
    assert_eq!(process.close(fd).expect_err("not twice").code(), Code::Driver);
    assert_eq!(process.read(fd, 0).await.expect_err("closed").code(), Code::Driver);
    assert_eq!(process.write(fd, hi()).await.expect_err("closed").code(), Code::Driver);
    assert_eq!(process.close(99).expect_err("never open").code(), Code::Driver);
}

#[tokio::test]
async fn read_only_files_refuse_writes_and_directories_are_read_as_lists() {
    let (_namespace, process, fake) = one();
    for path in ["", "/tools", "/resources", "/prompts", "/resources/x:y", "/tools/echo.md"] {
        let fd = process.open(&format!("/mnt/mcp/1-files{path}")).expect("it opens");
        let error = process.write(fd, hi()).await.expect_err("it is read-only");
        assert_eq!(error.code(), Code::Invalid);
        assert!(error.to_string().contains("read-only"), "{error}");
    }
    assert_eq!(fake.asked(), 0);
    let root = process.open("/mnt/mcp/1-files/").expect("it opens");
    let read = process.read(root, 0).await.expect("it is known");
    assert_eq!(read, r#"["tools","resources","prompts","ctl"]"#);
    assert_eq!(process.open("/mnt/mcp").expect_err("it is no mount").code(), Code::IsDirectory);
}

#[tokio::test]
async fn schema_description_status_and_prompts_can_be_read() {
    let (_namespace, process, _fake) = one();
    let read = async |path: &str| {
        let fd = process.open(&format!("/mnt/mcp/1-files/{path}")).expect("it opens");
        process.read(fd, 0).await.map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    };
    let schema = read("tools/echo.schema.json").await.expect("there is one");
    assert_eq!(schema, "{\"type\":\"object\",\"required\":[\"message\"]}\n");
    let text = read("tools/echo.md").await.expect("there is one");
    assert!(text.starts_with("# echo\n\nSays it again.\n") && text.contains("message"), "{text}");
    let bare = read("tools/notes%2Emd.schema.json").await.expect("R-E27");
    assert_eq!(bare, "{\"type\":\"object\"}\n");
    let absent = read("tools/other.md").await.expect_err("there is no such tool");
    assert_eq!(absent.code(), Code::NotFound);
    assert_eq!(read("ctl/status").await.expect("it says"), r#"{"state":"ready"}"#);
    assert_eq!(read("ctl/logs").await.expect("it says"), "said\n");
    let prompt = read("prompts/greet").await.expect("without arguments");
    assert_eq!(prompt, "prompt:greet:{}");
}

#[tokio::test]
async fn the_last_failure_can_be_read_whole() {
    let (_namespace, process, fake) = one();
    let error_file = "/mnt/mcp/1-files/ctl/error";
    let before = process.open(error_file).expect("it opens");
    assert_eq!(process.read(before, 0).await.expect("there is none"), "null\n");
    fake.set(Mood::Fails(refused()));
    let fd = process.open(ECHO).expect("it opens");
    let failure = process.write(fd, hi()).await.expect_err("it is refused");
    assert_eq!(*failure.failure, refused());
    let after = process.open(error_file).expect("it opens");
    let read = process.read(after, 0).await.expect("there is one");
    let error: serde_json::Value = serde_json::from_slice(&read).expect("it is JSON");
    assert_eq!(error["kind"], "permission_required");
    assert_eq!(error["code"], "PERMISSION");
    let gone = Failure::of_call(CallErrorKind::ServerDisabled, "it is gone");
    fake.set(Mood::Fails(gone.clone()));
    let listed = process.list("/mnt/mcp/1-files/tools").await.expect_err("it is gone");
    assert_eq!(*listed.failure, gone);
    assert_eq!(process.last_failure(&name(1, "files")), Some(gone), "lists fail, too");
    process.also(name(9, "files"), name(1, "files"));
    assert!(process.last_failure(&name(9, "files")).is_some(), "by an old path as well");
    assert!(process.last_failure(&name(8, "files")).is_none());
}

#[tokio::test]
async fn directories_list_their_entries() {
    let (_namespace, process, _fake) = one();
    let list = async |path: &str| {
        let entries = process.list(path).await.expect("it is a directory");
        entries.into_iter().map(|entry| entry.name).collect::<Vec<_>>()
    };
    assert_eq!(list("/mnt/mcp").await, ["1-files"]);
    assert_eq!(list("/mnt/mcp/1-files").await, ["tools", "resources", "prompts", "ctl"]);
    assert_eq!(list("/mnt/mcp/1-files/ctl").await, ["error", "status"], "logs are for operators");
    let tools = list("/mnt/mcp/1-files/tools").await;
    let first = ["echo", "echo.schema.json", "echo.md", "notes%2Emd"];
    assert_eq!(tools[..4], first);
    assert_eq!(tools[6], "a%2Fb");
    assert_eq!(list("/mnt/mcp/1-files/resources").await, ["file:%2F%2F%2Fa%2520b"]);
    let file = process.list(ECHO).await.expect_err("it is a file");
    assert_eq!(file.code(), Code::Invalid);
    let stat = process.stat(ECHO).expect("no server is asked");
    assert_eq!((stat.name.as_str(), stat.device.as_str()), ("/tools/echo", "/mnt/mcp/1-files"));
    assert!(stat.is_writable && !stat.is_directory);
}

#[tokio::test]
async fn r_g1_mounts_are_found_by_their_whole_name() {
    let (namespace, process, first) = one();
    let second = Fake::new();
    namespace.mount(name(1, "files2"), second.clone()).expect("nothing is there");
    let fd = process.open("/mnt/mcp/1-files2/tools/x").expect("it opens");
    process.write(fd, hi()).await.expect("it is called");
    assert_eq!((first.asked(), second.asked()), (0, 1));
    let taken = namespace.mount(name(1, "files2"), Fake::new()).expect_err("R-E1");
    assert_eq!(taken.code(), Code::AlreadyMounted);
}

#[tokio::test]
async fn r_g4_r_g5_r_m31_foreign_mounts_are_absent_and_closed_mounts_of_a_parent_denied() {
    let (namespace, _process, fake) = one();
    let stranger = namespace.begin(pid(2), None, &[]).expect("it is new");
    let hidden = stranger.open(ECHO).expect_err("it is another's");
    let absent = stranger.open("/mnt/mcp/7-files/tools/echo").expect_err("no process has it");
    assert_eq!((hidden.code(), absent.code()), (Code::NotFound, Code::NotFound));
    let text = hidden.failure.message.replace("1-files", "7-files");
    assert_eq!(text, absent.failure.message, "D5: both look alike");
    let child = namespace.begin(pid(3), Some(pid(1)), &[]).expect("it is new");
    assert_eq!(child.open(ECHO).expect_err("not inherited").code(), Code::Permission);
    let heir = namespace.begin(pid(4), Some(pid(1)), &[name(1, "files")]).expect("it is new");
    let fd = heir.open(ECHO).expect("R-D9: it is inherited");
    heir.write(fd, hi()).await.expect("it is called");
    let widened = namespace.begin(pid(5), Some(pid(3)), &[name(1, "files")]).expect("it is new");
    assert_eq!(widened.open(ECHO).expect_err("S29").code(), Code::Permission);
    assert_eq!(fake.asked(), 1);
    // A frontend elsewhere gets the closed mounts from the namespace that has them.
    assert_eq!((child.closed(), heir.closed()), (vec![name(1, "files")], Vec::new()));
    let elsewhere = Namespace::new(Limits::default(), None);
    let shown = elsewhere.begin(pid(3), None, &[]).expect("it is new");
    assert_eq!(shown.open(ECHO).expect_err("no frontend reported it").code(), Code::NotFound);
    shown.close_off(child.closed().into_iter().collect());
    assert_eq!(shown.open(ECHO).expect_err("it is there").code(), Code::Permission);
}

#[tokio::test]
async fn s29_revoked_or_unmounted_descriptors_fail_at_once() {
    let (namespace, process, fake) = one();
    let fd = process.open(ECHO).expect("it opens");
    process.write(fd, hi()).await.expect("it is called");
    process.revoke(&name(1, "files"));
    assert_eq!(process.read(fd, 0).await.expect_err("revoked").code(), Code::Permission);
    assert_eq!(process.open(ECHO).expect_err("revoked").code(), Code::Permission);
    assert!(process.mounts().is_empty());
    process.close(fd).expect("closing goes");

    let mounted = namespace.mount(name(1, "other"), fake.clone()).expect("nothing is there");
    let fd = process.open("/mnt/mcp/1-other/tools/echo").expect("it opens");
    assert!(namespace.unmount(&mounted));
    let gone = process.write(fd, hi()).await.expect_err("it is unmounted");
    assert_eq!((gone.code(), gone.code().family()), (Code::DeviceDisconnected, Code::Driver));
    let newer = namespace.mount(name(1, "other"), fake.clone()).expect("nothing is there");
    assert!(!namespace.unmount(&mounted), "R-E5: an old handle");
    assert!(namespace.unmount(&newer));
    assert_eq!(fake.asked(), 1);
}

#[tokio::test]
async fn r_d1_a_resumed_process_can_open_paths_of_its_earlier_process() {
    let (namespace, _first, _fake) = one();
    assert!(namespace.end(pid(1)));
    let resumed = namespace.begin(pid(9), None, &[]).expect("it is new");
    namespace.mount(name(9, "files"), Fake::new()).expect("nothing is there");
    assert_eq!(resumed.open(ECHO).expect_err("not yet").code(), Code::NotFound);
    resumed.also(name(1, "files"), name(9, "files"));
    let fd = resumed.open(ECHO).expect("the old path");
    resumed.write(fd, hi()).await.expect("it is called");
    assert_eq!(resumed.stat(ECHO).expect("it is there").device, "/mnt/mcp/9-files");
}

#[tokio::test]
async fn the_number_of_descriptors_of_a_process_is_limited() {
    let limits = Limits { files: 2, ..Limits::default() };
    let namespace = Namespace::new(limits, None);
    let process = namespace.begin(pid(1), None, &[]).expect("it is the first");
    namespace.mount(name(1, "files"), Fake::new()).expect("nothing is there");
    process.open(ECHO).expect("one");
    let fd = process.open(ECHO).expect("two");
    assert_eq!(process.open(ECHO).expect_err("three").code(), Code::ResourceExhausted);
    process.close(fd).expect("it is open");
    process.open(ECHO).expect("two again");
    assert!(namespace.end(pid(1)) && !namespace.end(pid(1)));
    assert_eq!(process.read(3, 0).await.expect_err("ended").code(), Code::DeviceDisconnected);
    assert_eq!(process.open(ECHO).expect_err("ended").code(), Code::DeviceDisconnected);
    assert_eq!(process.close(3).expect_err("ended").code(), Code::DeviceDisconnected);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_answer_is_given_up_after_the_deadline() {
    let (_namespace, process, fake) = one();
    fake.set(Mood::Waits);
    let fd = process.open(ECHO).expect("it opens");
    let late = process.write(fd, hi()).await.expect_err("the server does not answer");
    assert_eq!(late.code(), Code::Timeout);
    let fd = process.open("/mnt/mcp/1-files/tools").expect("it opens");
    let began = tokio::time::Instant::now();
    assert_eq!(process.read(fd, 0).await.expect_err("nor here").code(), Code::Timeout);
    assert_eq!(began.elapsed().as_secs(), 30);
    assert_eq!(fake.given_up(), 2);
}

#[derive(Debug, Default)]
struct Lines(std::sync::Mutex<Vec<String>>);

impl Observer for Lines {
    fn ended(&self, done: Done<'_>) {
        let done = Done { duration: Duration::from_millis(2), ..done };
        self.0.lock().expect("no thread fails").push(done.to_string());
    }
}

#[tokio::test]
async fn r_m35_each_operation_is_traced_without_its_contents() {
    let lines = Arc::new(Lines::default());
    let namespace = Namespace::new(Limits::default(), Some(lines.clone()));
    let process = namespace.begin(pid(1), None, &[]).expect("it is the first");
    namespace.mount(name(1, "files"), Fake::new()).expect("nothing is there");
    let fd = process.open(ECHO).expect("it opens");
    process.write(fd, hi()).await.expect("it is called");
    process.read(fd, 1_048_576).await.expect("there is a result");
    process.close(fd).expect("it is open");
    let lines = lines.0.lock().expect("no thread fails").join("\n");
    let wanted = "Open(path=\"/mnt/mcp/1-files/tools/echo\") → 3    2ms\n\
        Write(fd=3, size=16) → <nil>    2ms\n\
        Read(fd=3, length=1048576) → 21    2ms\n\
        Close(fd=3) → <nil>    2ms";
    assert_eq!(lines, wanted);
}

/// R-M35, R-O12: the trace has the failure that a tool itself reports, and a failure that a
/// frontend met by itself; a read of all has no length.
#[tokio::test]
async fn r_m35_failures_of_tools_and_of_the_frontend_are_traced() {
    let lines = Arc::new(Lines::default());
    let namespace = Namespace::new(Limits::default(), Some(lines.clone()));
    let process = namespace.begin(pid(1), None, &[]).expect("it is the first");
    namespace.mount(name(1, "files"), Fake::new()).expect("nothing is there");
    let fd = process.open("/mnt/mcp/1-files/tools/fail").expect("it opens");
    process.write(fd, hi()).await.expect("it is called");
    process.read(fd, 0).await.expect("there is a result");
    process.write(fd, Bytes::from_static(b"no JSON")).await.expect_err("it is none");
    let absent = Failure::new(Code::NotFound, "not_found", "there is no such file");
    process.note(Operation::Stat, "/mnt/mcp/1-files/tools/none", absent.clone());
    assert_eq!(process.last_failure(&name(1, "files")), Some(absent));
    assert_eq!(process.may_open(&name(1, "files")), Ok(()));
    let hidden = process.may_open(&name(2, "files")).expect_err("no process has it");
    assert_eq!(hidden.code, Code::NotFound);
    let lines = lines.0.lock().expect("no thread fails").split_off(1).join("\n");
    let wanted = "Write(fd=3, size=16) → <nil> [tool_error]    2ms\n\
        Read(fd=3) → 29    2ms\n\
        Write(fd=3, size=7) → [INVALID]    2ms\n\
        Stat(path=\"/mnt/mcp/1-files/tools/none\") → [NOT_FOUND]    2ms";
    assert_eq!(lines, wanted);
}
