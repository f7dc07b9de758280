//! Atomic attempts that fail during the commit.

use ftsh_machine::driver::{self, Driver};
use ftsh_machine::effect::Query;
use ftsh_machine::event::Refusal;
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
