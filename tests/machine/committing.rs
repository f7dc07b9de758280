//! Attempts that are all or nothing, in the middle of taking place.

use ftsh_machine::driver::{self, Driver};
use ftsh_machine::effect::Query;
use ftsh_machine::event::Refusal;
use ftsh_machine::{Effect, Event, Machine, Outcome, Time};
use ftsh_sim::Simulated;

use super::{World, world};

/// A world that can't tell once which descriptors were written to.
struct Untold {
    world: Simulated,
    is_told: bool,
    answer: Option<Event>,
}

impl Driver for Untold {
    fn now(&self) -> Time {
        self.world.now()
    }

    fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::Query { operation, query: Query::Filled(_), .. } if !self.is_told => {
                self.is_told = true;
                let result = Err(Refusal { message: "nobody can tell".into() });
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
fn an_attempt_that_fails_before_anything_takes_place_leaves_no_file_to_the_one_around() {
    let script = "try 1 time atomic\n\
                  try 2 times backoff none atomic\n\
                  echo $attempt\n\
                  end >> f\n\
                  end";
    let parsed = ftsh_syntax::parse("script", script).expect("a script");
    let World { simulated, config, .. } = world();
    let mut machine = Machine::new(&parsed, vec!["script".into()], vec![], config, 7);
    let mut untold = Untold { world: simulated, is_told: false, answer: None };
    assert_eq!(driver::run(&mut machine, &mut untold), Outcome::Succeeded);
    assert_eq!(untold.world.content("f"), Some("2\n".into()));
}
