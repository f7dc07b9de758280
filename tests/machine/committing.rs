//! Atomic attempts that fail or lose their shell during the commit.

use ftsh_machine::driver::{self, Driver};
use ftsh_machine::effect::{Action, Query};
use ftsh_machine::event::{Refusal, Reply};
use ftsh_machine::{Effect, Event, Machine, Outcome, Time};
use ftsh_sim::Simulated;

use super::{World, world};

/// World that once cannot report the descriptors written to.
struct FailingQuery {
    world: Simulated,
    is_answered: bool,
    answer: Option<Event>,
}

impl Driver for FailingQuery {
    fn now(&self) -> Time {
        self.world.now()
    }

    fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::Query { operation, query: Query::Filled(_), .. } if !self.is_answered => {
                self.is_answered = true;
                let result = Err(Refusal::new("nobody can tell"));
                self.answer = Some(Event::Done { operation, result });
            }
            effect => self.world.perform(effect),
        }
    }

    fn wait(&mut self, until: Time) -> Option<Event> {
        self.answer.take().or_else(|| self.world.wait(until))
    }
}

#[test]
fn failed_commits_leave_no_file_to_the_outer_attempt() {
    let script = "try 1 time atomic\n\
                  try 2 times backoff none atomic\n\
                  echo $attempt\n\
                  end >> f\n\
                  end";
    let parsed = ftsh_syntax::parse("script", script).expect("a script");
    let World { simulated, config, .. } = world();
    let mut machine = Machine::new(&parsed, vec!["script".into()], vec![], config, 7);
    let mut world = FailingQuery { world: simulated, is_answered: false, answer: None };
    assert_eq!(driver::run(&mut machine, &mut world), Outcome::Succeeded);
    assert_eq!(world.world.content("f"), Some("2\n".into()));
}

/// World in which another process once changes a file that an attempt has changed as well.
struct Conflicting {
    world: Simulated,
    is_answered: bool,
    answer: Option<Event>,
}

impl Driver for Conflicting {
    fn now(&self) -> Time {
        self.world.now()
    }

    fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::CommitView { operation, .. } if !self.is_answered => {
                self.is_answered = true;
                let result = Ok(Reply::Conflict("`f` was changed meanwhile".into()));
                self.answer = Some(Event::Done { operation, result });
            }
            effect => self.world.perform(effect),
        }
    }

    fn wait(&mut self, until: Time) -> Option<Event> {
        self.answer.take().or_else(|| self.world.wait(until))
    }
}

#[test]
fn refused_views_leave_no_file_to_the_outer_attempt() {
    let script = "try 1 time atomic\n\
                  try 1 time\n\
                  try 1 time atomic in d\n\
                  echo lost\n\
                  end > f\n\
                  catch\n\
                  try 1 time atomic in d\n\
                  echo good\n\
                  end > g\n\
                  end\n\
                  end";
    let parsed = ftsh_syntax::parse("script", script).expect("a script");
    let World { simulated, config, .. } = world();
    let mut machine = Machine::new(&parsed, vec!["script".into()], vec![], config, 7);
    let mut world = Conflicting { world: simulated, is_answered: false, answer: None };
    assert_eq!(driver::run(&mut machine, &mut world), Outcome::Succeeded);
    assert_eq!(world.world.content("f"), None);
    assert_eq!(world.world.content("g"), Some("good\n".into()));
}

/// World whose shell ends once during a commit, and continues at once.
struct Interrupted {
    world: Simulated,
    moment: Moment,
    events: Vec<Event>,
}

/// Moment of a commit at which the shell ends.
#[derive(Clone, Copy, PartialEq)]
enum Moment {
    /// Before the commit of the view.
    Before,
    /// After the commit of the view, and before the machine receives the answer.
    After,
    /// While the output of the attempt is written.
    Writing,
    Never,
}

impl Driver for Interrupted {
    fn now(&self) -> Time {
        self.world.now()
    }

    fn perform(&mut self, effect: Effect) {
        let (lost, committed) = match (&effect, self.moment) {
            (Effect::CommitView { .. }, Moment::Before) => (vec![], vec![]),
            (Effect::CommitView { operation, .. }, Moment::After) => {
                let result = Ok(Reply::Truth(true));
                self.events.push(Event::Done { operation: *operation, result });
                (vec![], vec![*operation])
            }
            (Effect::Run(run), Moment::Writing) if matches!(run.action, Action::Copy) => {
                (vec![run.process], vec![])
            }
            _ => return self.world.perform(effect),
        };
        self.moment = Moment::Never;
        self.events.push(Event::Resumed { lost, committed });
    }

    fn wait(&mut self, until: Time) -> Option<Event> {
        self.events.pop().or_else(|| self.world.wait(until))
    }
}

#[test]
fn an_attempt_whose_view_is_committed_is_not_made_again() {
    for (moment, attempts) in
        [(Moment::Never, 1), (Moment::Before, 2), (Moment::After, 1), (Moment::Writing, 1)]
    {
        let script = "try 3 times backoff none atomic in d\n\
                      echo $attempt >> attempts\n\
                      ok | echo output\n\
                      end\n\
                      echo then";
        let parsed = ftsh_syntax::parse("script", script).expect("a script");
        let World { simulated, config, .. } = world();
        let mut machine = Machine::new(&parsed, vec!["script".into()], vec![], config, 7);
        let mut world = Interrupted { world: simulated, moment, events: Vec::new() };
        assert_eq!(driver::run(&mut machine, &mut world), Outcome::Succeeded);
        assert_eq!(world.world.stdout(), "output\nthen\n");
        let made = world.world.content("attempts").expect("attempts");
        assert_eq!(made.lines().count(), attempts);
    }
}
