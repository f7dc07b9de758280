use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use insta::assert_snapshot;

use super::rows::MAX_ROWS;
use super::thin::thin;
use super::words::{escaped, shortened, width};
use super::{Bar, BarKind, Drawing, Row, SpanEnd, Timeline, axis, html, svg};
use ftsh_machine::driver::{self, Driver};
use ftsh_machine::effect::TaskId;
use ftsh_machine::outcome::{Failure, FailureKind};
use ftsh_machine::record::{Level, LogEvent, LogRecord};
use ftsh_machine::trace::Trace;
use ftsh_machine::{Config, Effect, Event, Machine, Time};
use ftsh_sim::{Model, Simulated};
use ftsh_syntax::Source;

/// Driver in virtual time whose log feeds a drawing.
struct Watched(Simulated, Timeline);

impl Driver for Watched {
    fn now(&self) -> Time {
        self.0.now()
    }

    fn perform(&mut self, effect: Effect) {
        if let Effect::Log(record) = &effect {
            self.1.logged(record);
        }
        self.0.perform(effect);
    }

    fn wait(&mut self, until: Time) -> Option<Event> {
        self.0.wait(until)
    }
}

/// Returns the drawing of a script whose commands take 2 s (`ok`), 1000 s (`hang`) or fail after 1
/// s (`fail`).
fn picture(script: &str) -> Drawing {
    let script = ftsh_syntax::parse("script", script).expect("valid");
    let config = Config { log_level: Level::STRUCTURES, ..Config::default() };
    let mut machine = Machine::new(&script, vec!["script".into()], Vec::new(), config, 7);
    let takes = |seconds| move || Model::succeeds().takes(Duration::from_secs(seconds));
    let (short, long) = (takes(2), takes(1000));
    let world = Simulated::new(1)
        .command("ok", move |_, _| short())
        .command("hang", move |_, _| long())
        .command("fail", |_, _| Model::fails(3).takes(Duration::from_secs(1)));
    let mut watched = Watched(world, Timeline::default());
    let outcome = driver::run(&mut machine, &mut watched);
    let now = watched.now().elapsed();
    let picture = watched.1.finish(now, Some(&outcome));
    for bar in picture.rows.iter().flat_map(|row| &row.bars) {
        assert!(bar.from <= bar.to && bar.to <= now, "{bar:?}");
    }
    picture
}

/// Returns a line for each row: its position, bars in seconds, and limits.
fn lines(rows: &[Row]) -> String {
    let mut lines = String::new();
    for row in rows {
        let _ = write!(lines, "{}{}:", "  ".repeat(row.depth), row.label);
        for bar in &row.bars {
            let kind = match bar.kind {
                BarKind::Task => "",
                BarKind::Attempt => " attempt",
                BarKind::Delay => " delay",
                BarKind::Call => " call",
                BarKind::Command => " command",
            };
            let end = if bar.kind == BarKind::Delay { "" } else { super::draw::class(bar.end) };
            let (from, to) = (bar.from.as_secs_f64(), bar.to.as_secs_f64());
            let _ = write!(lines, "{kind} {from:.0}-{to:.0} {end};");
        }
        for limit in &row.limits {
            let _ = write!(lines, " limit {}", limit.as_secs());
        }
        lines.push('\n');
    }
    lines
}

#[test]
fn attempts_delays_and_their_results() {
    let picture = picture("try 2 times every 10 s\n fail\ncatch\n ok\nend");
    assert_snapshot!(lines(&picture.rows), @r"
    script: 0-13 succeeded; command 11-13 succeeded;
      try, line 1: attempt 0-1 failed; attempt 10-11 failed; delay 1-10 ; command 0-1 failed; command 10-11 failed;
    ");
    let text = |kind| {
        let bar = picture.rows[1].bars.iter().find(|bar| bar.kind == kind);
        bar.expect("one").text.as_str()
    };
    assert_eq!(text(BarKind::Attempt), "attempt 1, 1 s\nline 2: `fail` exited with 3");
    assert_eq!(text(BarKind::Delay), "delay of 9 s\n9 s");
    assert_eq!(text(BarKind::Command), "line 2: fail\n1 s\nline 2: `fail` exited with 3");
}

#[test]
fn branches_stand_below_what_they_are_in() {
    let script = "try 2 times every 10 s
 forall x in ok hang fail
  forall y in 1 2
   ok
  end
  try 1 time
   $x
  end
 end
catch
 forall z in 1 2
  ok
 end
end";
    assert_snapshot!(lines(&picture(script).rows), @r"
    script: 0-15 succeeded;
      try, line 1: attempt 0-3 failed; attempt 10-13 failed; delay 3-10 ;
        x=ok: 0-3 canceled; 10-13 canceled;
          y=1: 0-2 succeeded; 10-12 succeeded; command 0-2 succeeded; command 10-12 succeeded;
          y=2: 0-2 succeeded; 10-12 succeeded; command 0-2 succeeded; command 10-12 succeeded;
          try, line 6: attempt 2-3 canceled; attempt 12-13 canceled; command 2-3 canceled; command 12-13 canceled;
        x=hang: 0-3 canceled; 10-13 canceled;
          y=1: 0-2 succeeded; 10-12 succeeded; command 0-2 succeeded; command 10-12 succeeded;
          y=2: 0-2 succeeded; 10-12 succeeded; command 0-2 succeeded; command 10-12 succeeded;
          try, line 6: attempt 2-3 canceled; attempt 12-13 canceled; command 2-3 canceled; command 12-13 canceled;
        x=fail: 0-3 failed; 10-13 failed;
          y=1: 0-2 succeeded; 10-12 succeeded; command 0-2 succeeded; command 10-12 succeeded;
          y=2: 0-2 succeeded; 10-12 succeeded; command 0-2 succeeded; command 10-12 succeeded;
          try, line 6: attempt 2-3 failed; attempt 12-13 failed; command 2-3 failed; command 12-13 failed;
      z=1: 13-15 succeeded; command 13-15 succeeded;
      z=2: 13-15 succeeded; command 13-15 succeeded;
    ");
}

#[test]
fn stages_pauses_and_functions_have_their_time() {
    let script = "function f\n ok\n sleep 3 s\n ok | ok | fail\nend\nsleep 1 s\nok\ntry 1 time\n f\ncatch\n ok\nend";
    assert_snapshot!(lines(&picture(script).rows), @r"
    script: 0-15 succeeded; command 0-1 succeeded; command 1-3 succeeded; command 13-15 succeeded;
      try, line 8: attempt 3-13 failed; call 3-13 failed; command 3-5 succeeded; command 5-8 succeeded;
        | ok: 8-10 succeeded; command 8-10 succeeded;
        | ok: 8-12 succeeded; command 8-12 succeeded;
        | fail: 8-13 failed; command 8-13 failed;
    ");
}

#[test]
fn the_words_of_a_hedge_are_cut_short_by_the_first() {
    let script = "forany x in hang ok hang hedge after 5 s\n $x\nend";
    assert_snapshot!(lines(&picture(script).rows), @r"
    script: 0-7 succeeded;
      x=hang: 0-7 canceled; command 0-7 canceled;
      x=ok: 5-7 succeeded; command 5-7 succeeded;
    ");
}

#[test]
fn limits_that_passed_are_where_they_were_set() {
    let script = "for x in 1 2\n try for 1 minute\n  ok\n end\nend
try for 20 s
 forall x in 1 2
  try 2 times each 5 s
   hang
  end
 end
catch
 ok
end";
    assert_snapshot!(lines(&picture(script).rows), @r"
    script: 0-26 succeeded; command 24-26 succeeded;
      try, line 2: attempt 0-2 succeeded; attempt 2-4 succeeded; command 0-2 succeeded; command 2-4 succeeded;
      try, line 6: attempt 4-15 failed; attempt 17-24 failed; delay 15-17 ; limit 24
        x=1: 4-15 failed; 17-24 failed;
          try, line 8: attempt 4-9 failed; attempt 10-15 failed; attempt 17-22 failed; attempt 24-24 canceled; delay 9-10 ; delay 22-24 ; command 4-9 failed; command 10-15 failed; command 17-22 failed; command 24-24 canceled; limit 9 limit 15 limit 21
        x=2: 4-15 canceled; 17-24 failed;
          try, line 8: attempt 4-9 failed; attempt 10-15 canceled; attempt 17-22 failed; attempt 23-24 canceled; delay 9-10 ; delay 22-23 ; command 4-9 failed; command 10-15 canceled; command 17-22 failed; command 23-24 canceled; limit 9 limit 21
    ");
}

fn log(timeline: &mut Timeline, seconds: u64, task: Option<(u64, Option<u64>)>, event: LogEvent) {
    let at = Time::after(Duration::from_secs(seconds));
    let record = LogRecord {
        task: task.map(|(task, _)| TaskId(task)),
        parent: task.and_then(|(_, parent)| parent.map(TaskId)),
        ..LogRecord::of_shell(at, "script".into(), 1, event)
    };
    timeline.logged(&record);
}

fn lost(command: &str) -> LogEvent {
    LogEvent::CommandFailed(Box::new(Failure {
        kind: FailureKind::Lost,
        code: 1,
        errno: None,
        slug: FailureKind::Lost.slug(),
        message: format!("`{command}` was running when the shell ended"),
        command: command.into(),
        elapsed: None,
        source: Arc::new(Source::new("script", "")),
        line: 1,
        tries: Vec::new(),
        trace: Trace::default(),
        earlier: None,
        branches: None,
        printed: None,
        errors: None,
        output: None,
    }))
}

fn branch(word: &str) -> LogEvent {
    LogEvent::Iteration { kind: "forall", name: "x".into(), value: word.into() }
}

#[test]
fn a_command_that_is_lost_ends_with_the_shell() {
    let mut timeline = Timeline::default();
    let (script, first) = (Some((0, None)), Some((1, Some(0))));
    let attempt = |number| LogEvent::Attempt { number, until: None, each: None };
    log(&mut timeline, 1, script, attempt(1));
    log(&mut timeline, 2, first, branch("a"));
    log(&mut timeline, 2, first, attempt(1));
    log(&mut timeline, 3, first, LogEvent::CommandStarted("copy".into()));
    log(&mut timeline, 5, None, LogEvent::Suspended(Some(15)));
    log(&mut timeline, 9, None, LogEvent::Resumed { lost: 1 });
    log(&mut timeline, 9, first, lost("copy"));
    log(&mut timeline, 12, first, attempt(2));
    log(&mut timeline, 12, first, LogEvent::CommandStarted("copy".into()));
    // A killed shell leaves no record of its end.
    log(&mut timeline, 20, None, LogEvent::Resumed { lost: 1 });
    let picture = timeline.finish(Duration::from_secs(20), None);
    assert_snapshot!(lines(&picture.rows), @r"
    script: 0-20 unknown;
      try, line 1: attempt 1-20 unknown;
        x=a: 2-20 unknown;
          try, line 1: attempt 2-12 failed; attempt 12-20 unknown; command 3-5 lost; command 12-20 unknown;
    ");
    let gaps: Vec<_> = picture.gaps.iter().map(|gap| (gap.from.as_secs(), gap.to)).collect();
    let at = |seconds| Some(Duration::from_secs(seconds));
    assert_eq!(gaps, [(5, at(9)), (12, at(20))]);
    assert_eq!(picture.gaps[0].ended, "the shell was ended by signal 15");
    assert_eq!(picture.gaps[1].ended, "the latest record of the shell");
    let drawing = svg("title", picture);
    for (text, count) in [("class=\"gap\"", 2), ("class=\"mark\"", 4), ("command lost", 1)] {
        assert_eq!(drawing.matches(text).count(), count, "{text} in {drawing}");
    }
    assert!(drawing.contains("the result of 1 command is unknown"), "{drawing}");
}

#[test]
fn branches_show_their_machines() {
    let mut timeline = Timeline::default();
    let placed = |node: &str| LogEvent::Placed { node: node.into() };
    log(
        &mut timeline,
        0,
        Some((0, None)),
        LogEvent::Attempt { number: 1, until: None, each: None },
    );
    for (task, word) in [(1, "a"), (2, "b"), (3, "c")] {
        log(&mut timeline, 1, Some((task, Some(0))), branch(word));
    }
    log(&mut timeline, 2, Some((1, Some(0))), placed("n1"));
    log(&mut timeline, 2, Some((2, Some(0))), placed("n2"));
    log(&mut timeline, 3, Some((1, Some(0))), placed("n3"));
    for task in [1, 2, 3] {
        let ended = LogEvent::BranchEnded {
            name: "x".into(),
            word: "a".into(),
            place: 0,
            node: None,
            failure: None,
            attempts: 0,
            elapsed: Duration::ZERO,
        };
        log(&mut timeline, 5, Some((task, Some(0))), ended);
    }
    let picture = timeline.finish(Duration::from_secs(5), None);
    let bars =
        picture.rows.iter().flat_map(|row| &row.bars).filter(|bar| bar.kind == BarKind::Task);
    let texts: Vec<_> = bars.map(|bar| bar.text.as_str()).collect();
    for expected in ["x=a\non n1, then n3\n4 s", "x=b\non n2\n4 s", "x=c\n4 s"] {
        assert!(texts.contains(&expected), "{texts:?}");
    }
}

#[test]
fn more_branches_than_a_picture_has_room_for_are_counted() {
    let mut timeline = Timeline::default();
    let branches = MAX_ROWS as u64 + 499;
    for id in 1..=branches {
        log(&mut timeline, id, Some((id, Some(0))), branch(&id.to_string()));
        let attempt = LogEvent::Attempt { number: 1, until: None, each: None };
        log(&mut timeline, id, Some((id, Some(0))), attempt);
    }
    let picture = timeline.finish(Duration::from_secs(branches), None);
    assert_eq!(picture.rows.len(), MAX_ROWS);
    // The script's, 1000 branches, 999 tries.
    assert_eq!(picture.left_out as u64, 1 + branches - 1000);
    let drawing = svg("title", picture);
    is_well_formed(&drawing);
    assert!(drawing.contains("more rows, too many to draw"), "{drawing}");
}

#[test]
fn repeated_work_uses_the_same_row() {
    let script = "for n in 1 2 3\n forall x in a b b\n  ok\n end\nend";
    assert_snapshot!(lines(&picture(script).rows), @r"
    script: 0-6 succeeded;
      x=a: 0-2 succeeded; 2-4 succeeded; 4-6 succeeded; command 0-2 succeeded; command 2-4 succeeded; command 4-6 succeeded;
      x=b: 0-2 succeeded; 2-4 succeeded; 4-6 succeeded; command 0-2 succeeded; command 2-4 succeeded; command 4-6 succeeded;
      x=b: 0-2 succeeded; 2-4 succeeded; 4-6 succeeded; command 0-2 succeeded; command 2-4 succeeded; command 4-6 succeeded;
    ");
}

#[test]
fn bars_too_close_to_distinguish_are_merged() {
    let bar = |from: u64, to: u64, end| Bar {
        kind: BarKind::Command,
        from: Duration::from_millis(from),
        to: Duration::from_millis(to),
        end,
        text: format!("at {from}"),
    };
    let bars = vec![
        bar(0, 1, SpanEnd::Succeeded),
        bar(2, 3, SpanEnd::Failed),
        bar(4, 5, SpanEnd::Succeeded),
        bar(50, 90, SpanEnd::Succeeded),
        bar(91, 92, SpanEnd::Succeeded),
    ];
    let thinned = thin(bars, Duration::from_millis(10));
    let merged: Vec<_> =
        thinned.iter().map(|bar| (bar.to.as_millis(), bar.end, bar.text.as_str())).collect();
    assert_eq!(
        merged,
        [
            (5, SpanEnd::Failed, "3 commands, 1 failed"),
            (90, SpanEnd::Succeeded, "at 50"),
            (92, SpanEnd::Succeeded, "at 91")
        ]
    );
}

#[test]
fn times_are_marked_at_clock_steps() {
    let marks = |whole: Duration| {
        let times = axis::times(whole, 8);
        let words: Vec<String> = times.iter().map(|time| axis::words(*time, whole)).collect();
        words.join(", ")
    };
    assert_snapshot!(
        [0, 7, 300, 2_600, 9_000, 77_000, 3_000_000, 90_000_000, 10_000_000_000]
            .map(Duration::from_millis)
            .map(marks)
            .join("\n"),
        @r"
    0
    0, 1 ms, 2 ms, 3 ms, 4 ms, 5 ms, 6 ms, 7 ms
    0, 50 ms, 100 ms, 150 ms, 200 ms, 250 ms, 300 ms
    0, 0.5 s, 1 s, 1.5 s, 2 s, 2.5 s
    0, 2 s, 4 s, 6 s, 8 s
    0, 10 s, 20 s, 30 s, 40 s, 50 s, 1 min, 1 min 10 s
    0, 10 min, 20 min, 30 min, 40 min, 50 min
    0, 4 h, 8 h, 12 h, 16 h, 20 h, 1 d
    0, 20 d, 40 d, 60 d, 80 d, 100 d
    "
    );
    assert!(axis::times(Duration::MAX, 8).len() <= 9);
}

/// True if all tags are closed, and no other text is a tag or a reference.
fn is_well_formed(xml: &str) {
    let mut open = Vec::new();
    let mut rest = xml;
    while let Some(start) = rest.find(['<', '&']) {
        assert!(!rest[..start].contains('>'), "{}", &rest[..start]);
        if rest[start..].starts_with('&') {
            let end = rest[start..].find(';').expect("a reference that ends");
            let name = &rest[start + 1..start + end];
            assert!(["amp", "lt", "gt", "quot"].contains(&name), "{name}");
            rest = &rest[start + end..];
            continue;
        }
        let end = start + rest[start..].find('>').expect("a tag that ends");
        let tag = &rest[start + 1..end];
        rest = &rest[end + 1..];
        assert!(tag.matches('"').count().is_multiple_of(2), "{tag}");
        let name = tag.split(' ').next().expect("a name");
        if let Some(name) = name.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name));
        } else if !tag.ends_with('/') {
            open.push(name);
        }
    }
    assert!(open.is_empty(), "{open:?}");
}

#[test]
fn hostile_words_are_only_words() {
    let mut timeline = Timeline::default();
    let hostile = "</title><script>alert(1)</script>&amp;\"'\u{1b}[31m\u{202e}\u{0}\u{ffff}\n]]>";
    log(&mut timeline, 1, Some((1, Some(0))), branch(hostile));
    log(&mut timeline, 2, Some((1, Some(0))), LogEvent::CommandStarted(hostile.into()));
    log(&mut timeline, 3, Some((2, Some(0))), LogEvent::CommandStarted(hostile.into()));
    let drawing = svg(hostile, timeline.finish(Duration::from_secs(9), None));
    is_well_formed(&drawing);
    assert!(!drawing.contains("<script"), "{drawing}");
    let is_bad = |c: char| c.is_control() && c != '\n' || "\u{202e}\u{ffff}".contains(c);
    assert!(!drawing.contains(is_bad), "{drawing}");
    let page = html(hostile, &drawing);
    assert_eq!(page.matches("<script>").count(), 1, "{page}");
    assert!(page.contains(&drawing));
    assert_eq!(escaped("a\u{7}b"), "a\\u{7}b");
}

#[test]
fn a_page_needs_nothing_else() {
    let page = html("title", &svg("title", picture("ok")));
    let addresses = page.matches("http").count();
    assert_eq!(addresses, page.matches("xmlns=\"http://www.w3.org/2000/svg\"").count(), "{page}");
    for word in ["src=", "@import", "fetch(", "href"] {
        assert!(!page.contains(word), "{word} in {page}");
    }
}

#[test]
fn names_have_the_room_that_there_is() {
    assert_eq!(shortened("host=alpha", 100.0), "host=alpha");
    assert_eq!(shortened("host=alphabetical", 68.0), "host=alph…");
    assert_eq!(shortened("日本語日本語", 40.0), "日本…");
    assert!(width(&shortened(&"\u{1b}".repeat(9), 60.0)) <= 60.0);
    assert_eq!(shortened("", 0.0), "");
}

#[test]
fn nothing_is_a_picture_too() {
    let drawing = svg("nothing", Timeline::default().finish(Duration::ZERO, None));
    is_well_formed(&drawing);
    assert!(drawing.contains("nothing"), "{drawing}");
}
