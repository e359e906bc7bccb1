//! Tests of the lines of the live view as a function of records, time and screen.

use super::*;
use glovebox_journal::event::{BranchId, Digest, EventText, StagePassed, StageStarted};
use glovebox_pipeline::{Inputs, Source};

const LOOP: &str = "digraph g { start [shape=Mdiamond]; done [shape=Msquare]; ok [shape=diamond]
  fix [prompt=\"x\", allowed_write_paths=\"\"]
  test [shape=parallelogram, tool_command=\"true\", allowed_write_paths=\"\"]
  start -> test -> ok; ok -> done [condition=\"outcome=success\"]; ok -> fix; fix -> test }";

fn board(text: &str, began: Instant) -> Board {
    let pipeline = glovebox_pipeline::check(Source::new(text), &Inputs::default()).pipeline;
    Board::new(&pipeline.unwrap(), began)
}

fn screen(rows: usize) -> Screen {
    Screen { rows, columns: 100, paint: Paint::default() }
}

fn passed(node: &str, visit: u32) -> Record {
    let (branch, node) = (BranchId::main(), NodeId::new(node));
    let event = Event::StagePassed(StagePassed { generation: 0, branch, node, visit, status: Status::Success });
    let at = "2026-03-01T12:00:00Z".parse().unwrap();
    Record { seq: 1, at, prev: Digest::ZERO, hash: Digest::ZERO, event, text: EventText::default() }
}

#[test]
fn nodes_stand_in_the_order_of_the_graph_with_the_exit_last() {
    let began = Instant::now();
    let mut board = board(LOOP, began);
    board.record(&passed("start", 1), began);
    board.update(&NodeId::new("test"), Phase::Bad, 1, "fail in 1.0s".into());
    board.record(&passed("ok", 1), began);
    board.update(&NodeId::new("fix"), Phase::Good, 1, "success in 2.0s".into());
    board.record(&passed("ok", 2), began);
    board.update(&NodeId::new("test"), Phase::Running(began + Duration::from_secs(70)), 3, "running".into());
    (board.visits, board.refused, board.turns) = (6, 2, 1);
    board.tokens = Tokens { input: 1200, output: 34 };
    let expected = " 1:15 3 of 5 nodes, 6 visits, 2 refused, 1 model turn, 1200 tokens in, 34 out
 ✓ start success
 ● test  0:05 ×3 running
 ✓ ok    ×2 success
 ✓ fix   success in 2.0s
 ○ done";
    assert_eq!(board.lines(screen(24), began + Duration::from_secs(75)).join("\n"), expected);
}

#[test]
fn the_last_line_of_output_stands_below_a_running_node() {
    let began = Instant::now();
    let mut board = board(LOOP, began);
    let test = NodeId::new("test");
    board.output(&test, b"before it runs");
    board.update(&test, Phase::Running(began), 1, "exec make".into());
    let lines = |board: &Board, rows| board.lines(screen(rows), began).join("\n");
    assert!(!lines(&board, 24).contains("before it runs"));
    board.output(&test, b"one\n\x1b[31mtw");
    board.output(&test, b"o\x1b[0m\x1b[2J\r\n\n");
    assert!(lines(&board, 24).contains(" ● test  0:00 exec make\n     two\\x1b[2J\n ○"), "{}", lines(&board, 24));
    assert!(!lines(&board, 5).contains("two"), "a small screen has no room for output");
    for _ in 0..100 {
        board.output(&test, &[b'x'; 3000]);
    }
    assert_eq!(board.row(&test).unwrap().output.len(), OUTPUT_BYTES_MAX);
    assert!(board.lines(screen(24), began).iter().all(|line| line.width() <= 100 - FREE_COLUMNS));
    board.update(&test, Phase::Bad, 1, "fail".into());
    assert!(!lines(&board, 24).contains("xxx"), "an ended command shows its end");
}

#[test]
fn a_running_attempt_says_its_branch_what_it_waits_for_and_its_silence() {
    let began = Instant::now();
    let mut board = board(LOOP, began);
    let task = Task::for_handler(0, &BranchId::new("f-a"), &NodeId::new("test"), 1);
    let attempt = Attempt { task, ordinal: 2, id: "a".into() };
    let started = StageStarted { attempt: attempt.clone(), worker: "w".into(), machine: None, moved: None };
    board.record(&Record { event: Event::StageStarted(started), ..passed("test", 1) }, began);
    let row = |board: &Board, seconds: u64| {
        let lines = board.lines(screen(24), began + Duration::from_secs(seconds));
        lines.into_iter().find(|line| line.contains("test")).unwrap()
    };
    assert_eq!(row(&board, 9), " ● test  0:09 try 2 running (f-a)");
    assert_eq!(row(&board, 30), " ● test  0:30 try 2 running (f-a, no sign of life for 0:30)");
    let heartbeat = LivenessLine::of_attempt(LivenessEvent::StageHeartbeat, passed("test", 1).at, &attempt);
    let waits = LivenessLine { waits_for: Some(WaitKind::Model), ..heartbeat.clone() };
    board.liveness(&waits, began + Duration::from_secs(31));
    assert_eq!(row(&board, 33), " ● test  0:33 try 2 running (f-a, waits for the model)");
    board.liveness(&heartbeat, began + Duration::from_secs(41));
    assert_eq!(row(&board, 43), " ● test  0:43 try 2 running (f-a)");
    board.update(&NodeId::new("test"), Phase::Running(began), 1, "waits for an answer".into());
    assert_eq!(row(&board, 90), " ● test  1:30 waits for an answer", "a person is not silent");
}

#[test]
fn no_line_is_wider_than_the_screen_whatever_a_stage_says() {
    let began = Instant::now();
    for text in ["漢字の長い名前".repeat(20), "e\u{301}".repeat(200), "🦀".repeat(90), "a".repeat(300)] {
        let mut board = board(LOOP, began);
        board.update(&NodeId::new("test"), Phase::Running(began), 1, text.clone());
        for line in board.lines(screen(24), began) {
            assert!(line.width() <= 100 - FREE_COLUMNS, "{} columns: {line}", line.width());
        }
        assert!(board.lines(screen(24), began).iter().any(|line| line.width() > 90), "room is used: {text}");
    }
    assert_eq!((cut("漢字", 4).as_str(), cut("漢字", 3).as_str(), cut("a漢字", 3).as_str()), ("漢字", "漢…", "a…"));
}

#[test]
fn a_view_folds_to_any_screen_and_keeps_what_runs() {
    let chain: String = (0..60).map(|node| format!(" -> n{node}")).collect();
    let nodes: String = (0..60)
        .map(|node| format!("n{node} [shape=parallelogram, tool_command=\"true\", allowed_write_paths=\"\"]\n"))
        .collect();
    let text = format!("digraph g {{ start [shape=Mdiamond]; done [shape=Msquare]\n{nodes} start{chain} -> done }}");
    let began = Instant::now();
    for running in [0, 1, 30, 59] {
        let mut board = board(&text, began);
        board.record(&passed("start", 1), began);
        (0..running).for_each(|node| board.update(&NodeId::new(format!("n{node}")), Phase::Good, 1, "success".into()));
        board.update(&NodeId::new(format!("n{running}")), Phase::Running(began), 1, "running".into());
        for rows in [1, 5, 10, 24, 62] {
            let lines = board.lines(screen(rows), began);
            assert!(lines.len() < rows.max(6), "{rows} rows: {lines:?}");
            let wanted = format!("● n{running}");
            assert!(lines.iter().any(|line| line.contains(&wanted)), "{rows} rows: {lines:?}");
        }
        assert_eq!(board.lines(screen(100), began).len(), 63, "a large screen folds nothing");
    }
    let mut board = board(&text, began);
    (0..30).for_each(|node| board.update(&NodeId::new(format!("n{node}")), Phase::Good, 1, "success".into()));
    board.update(&NodeId::new("n30"), Phase::Running(began), 1, "running".into());
    let lines = board.lines(screen(9), began);
    let expected = [" 0:00 30 of 62 nodes, 0 visits", " … 28 done", " ✓ n28   success", " ✓ n29   success"];
    assert_eq!(lines[..4], expected, "{lines:?}");
}

#[test]
fn a_long_line_is_cut_before_the_edge() {
    let began = Instant::now();
    let mut board = board(LOOP, began);
    board.update(&NodeId::new("fix"), Phase::Bad, 1, "x".repeat(300));
    let narrow = Screen { columns: 40, ..screen(24) };
    assert!(board.lines(narrow, began).iter().all(|line| line.chars().count() <= 40 - FREE_COLUMNS + 1));
}
