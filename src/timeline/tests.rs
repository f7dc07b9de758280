use std::time::Duration;

use super::{End, Kind, Row, Timeline, html, svg};
use crate::driver::simulated::{Model, Simulated};
use crate::driver::{self, Driver};
use crate::machine::record::Level;
use crate::machine::{Config, Effect, Event, Machine, Outcome, Time};

/// A world whose effects a picture is made of.
struct Watched(Simulated, Timeline);

impl Driver for Watched {
    fn now(&self) -> Time {
        self.0.now()
    }

    fn perform(&mut self, effect: Effect) {
        match &effect {
            Effect::Log(record) => self.1.logged(record),
            effect => self.1.asked(effect),
        }
        self.0.perform(effect);
    }

    fn wait(&mut self, until: Time) -> Option<Event> {
        self.0.wait(until)
    }
}

fn drawn(script: &str) -> (Vec<Row>, Outcome, Duration) {
    let script = crate::syntax::parse("script", script).expect("valid");
    let config = Config { log_level: Level::STRUCTURES, ..Config::default() };
    let mut machine = Machine::new(&script, vec!["script".into()], Vec::new(), config, 7);
    let seconds = |seconds| move || Model::succeeds().takes(Duration::from_secs(seconds));
    let (short, long) = (seconds(2), seconds(1000));
    let world = Simulated::new(1)
        .command("ok", move |_, _| short())
        .command("hang", move |_, _| long())
        .command("fail", |_, _| Model::fails(3).takes(Duration::from_secs(1)));
    let mut watched = Watched(world, Timeline::default());
    let outcome = driver::run(&mut machine, &mut watched);
    let now = watched.now().elapsed();
    let (rows, left_out) = watched.1.finish(now, Some(&outcome));
    assert_eq!(left_out, 0);
    for bar in rows.iter().flat_map(|row| &row.bars) {
        assert!(bar.from <= bar.to && bar.to <= now, "{bar:?}");
    }
    (rows, outcome, now)
}

/// The bars of a kind in a row: from when, until when, in seconds, and what came of them.
fn bars(row: &Row, kind: Kind) -> Vec<(u64, u64, End)> {
    let bars = row.bars.iter().filter(|bar| bar.kind == kind);
    bars.map(|bar| (bar.from.as_secs(), bar.to.as_secs(), bar.end)).collect()
}

#[test]
fn attempts_delays_and_what_came_of_them() {
    let (rows, ..) = drawn("try 2 times every 10 s\n fail\ncatch\n ok\nend");
    let labels: Vec<&str> = rows.iter().map(|row| row.label.as_str()).collect();
    assert_eq!(labels, ["script", "try, line 1"]);
    assert_eq!(bars(&rows[0], Kind::Task), [(0, 13, End::Succeeded)]);
    assert_eq!(bars(&rows[0], Kind::Command), [(11, 13, End::Succeeded)]);
    assert_eq!(bars(&rows[1], Kind::Attempt), [(0, 1, End::Failed), (10, 11, End::Failed)]);
    assert_eq!(bars(&rows[1], Kind::Delay), [(1, 10, End::Unknown)]);
    assert_eq!(bars(&rows[1], Kind::Command), [(0, 1, End::Failed), (10, 11, End::Failed)]);
    let told = &rows[1].bars.iter().find(|bar| bar.kind == Kind::Attempt).expect("one").text;
    assert!(told.contains("attempt 1") && told.contains("exited with 3"), "{told}");
}

#[test]
fn branches_have_rows_with_what_became_of_them() {
    let (rows, ..) = drawn(
        "try 1 time\n forall x in ok hang fail\n  try 1 time\n   $x\n  end\n end\ncatch\n ok\nend",
    );
    let branch = |label: &str| rows.iter().find(|row| row.label == label).expect(label);
    assert_eq!(bars(branch("x=fail"), Kind::Task), [(0, 1, End::Failed)]);
    for cancelled in ["x=ok", "x=hang"] {
        let [(0, 1, end)] = bars(branch(cancelled), Kind::Task)[..] else { panic!("{cancelled}") };
        assert_ne!(end, End::Succeeded, "{cancelled}");
    }
    let cut = rows.iter().filter(|row| row.label == "try, line 3");
    let cut: Vec<End> = cut.flat_map(|row| bars(row, Kind::Attempt)).map(|bar| bar.2).collect();
    assert_eq!(cut, [End::Cancelled, End::Cancelled, End::Failed]);
}

#[test]
fn a_loop_has_one_row_for_its_try_and_a_limit_is_drawn() {
    let (rows, _, now) =
        drawn("for x in 1 2 3\n try for 1 minute\n  ok\n end\nend\ntry for 5 s\n hang\nend");
    assert_eq!(rows.len(), 3);
    assert_eq!(bars(&rows[1], Kind::Attempt).len(), 3);
    assert_eq!(rows[2].deadlines, [Duration::from_secs(11)]);
    let picture = svg("a <b> & \"c\"", &rows, 0, now);
    assert!(picture.contains("a &lt;b&gt; &amp; &quot;c&quot;"), "{picture}");
    for (class, count) in [("attempt succeeded", 3), ("attempt failed", 1), ("deadline", 1)] {
        let found = picture.matches(&format!("class=\"{class}\"")).count();
        assert_eq!(found, count, "{class} in {picture}");
    }
    let page = html("title", &picture);
    assert!(page.contains(&picture) && !page.contains("http://www.w3.org/1999"), "{page}");
}

#[test]
fn an_end_that_is_not_known_is_drawn_as_such() {
    let rows = Timeline::default().finish(Duration::ZERO, None).0;
    assert!(svg("nothing", &rows, 3, Duration::ZERO).contains("and more"));
}
