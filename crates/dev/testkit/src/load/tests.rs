//! The load generator against a fixture.

use std::time::Duration;

use super::{Era, IdlePlan, Plan, Target, Work};
use crate::clock::SteppedClock;
use crate::fixture::{Options, Running};

/// Step of the clock. Calls have many turns in between, however busy the machine is.
const STEP: Duration = Duration::from_millis(1);

async fn run(era: Era, work: Work) -> super::Outcome {
    let _clock = SteppedClock::by(STEP);
    let running = Running::http(Options::default()).await.unwrap();
    let url: http::Uri = running.url.parse().unwrap();
    let plan = Plan {
        target: Target { url: url.clone(), authorization: None, era },
        work,
        prefixes: vec![String::new()],
        connections: 2,
        warm_up: Duration::from_millis(20),
        window: Duration::from_millis(200),
        watched: Vec::new(),
        fixtures: vec![url],
    };
    plan.run().await.unwrap()
}

#[tokio::test]
async fn every_kind_of_work_is_done_right_in_both_eras() {
    for era in [Era::Legacy, Era::Modern] {
        for work in [Work::Echo, Work::Blob(100_000), Work::Progress(10)] {
            let outcome = run(era, work).await;
            assert!(outcome.timed > 0 && outcome.p50_us <= outcome.p99_us, "{era:?} {outcome:?}");
            assert_eq!(outcome.right, outcome.sent, "{era:?} {work:?} {outcome:?}");
            assert_eq!(outcome.received, Some(outcome.sent), "{era:?} {work:?}");
        }
    }
}

#[tokio::test]
async fn a_list_of_another_length_is_wrong() {
    let outcome = run(Era::Modern, Work::List(1)).await;
    assert_eq!((outcome.right, outcome.received), (0, None));
    assert_eq!(outcome.wrong, outcome.sent);
    assert!(outcome.first_problem.unwrap().contains("not 1"));
}

#[tokio::test]
async fn idle_sessions_are_opened_and_ended() {
    let running = Running::http(Options::default()).await.unwrap();
    let url: http::Uri = running.url.parse().unwrap();
    for has_streams in [false, true] {
        let target = Target { url: url.clone(), authorization: None, era: Era::Legacy };
        let plan = IdlePlan { target, sessions: 3, has_streams, watched: Vec::new() };
        assert_eq!(plan.run().await.unwrap().sessions, 3);
    }
    let counts = running.fixture.counts();
    assert_eq!(counts.initializes, counts.sessions_deleted);
}

/// The load generator against a child: this program itself cannot be one, so a shell answers.
#[tokio::test]
async fn calls_over_stdio_are_counted_and_checked() {
    let echo = r#"while read -r line; do id=${line#*'"id":'}; id=${id%%[,\}]*}
        printf '{"id":%s,"result":{"content":[{"type":"text","text":"message %s"}]}}\n' $id $id
        done"#;
    let plan = super::StdioPlan {
        program: "sh".into(),
        args: vec!["-c".to_owned(), echo.to_owned()],
        era: Era::Modern,
        work: Work::Echo,
        callers: 4,
        warm_up: Duration::from_millis(20),
        window: Duration::from_millis(200),
    };
    // The child may be slower than this program.
    let slow = SteppedClock::by(STEP / 10);
    let outcome = plan.run().await.unwrap();
    drop(slow);
    assert!(outcome.timed > 0, "{outcome:?}");
    assert_eq!((outcome.right, outcome.failed), (outcome.sent, 0), "{outcome:?}");
    let _clock = SteppedClock::by(STEP);
    let wrong = super::StdioPlan {
        args: vec!["-c".to_owned(), echo.replace("message", "other")],
        ..plan.clone()
    };
    let outcome = wrong.run().await.unwrap();
    assert_eq!((outcome.right, outcome.wrong), (0, outcome.sent), "{outcome:?}");
    let dying = super::StdioPlan { args: vec!["-c".to_owned(), "read -r x".to_owned()], ..plan };
    let outcome = dying.run().await.unwrap();
    assert_eq!((outcome.right, outcome.failed), (0, 4), "{outcome:?}");
}
