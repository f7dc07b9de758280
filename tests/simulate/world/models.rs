//! Programs of the world.

use std::time::Duration;

use ftsh_machine::event::CommandStatus;
use ftsh_sim::{Call, Model};

use crate::dice::Dice;

/// Returns the model of a program, or none for an unknown program.
pub(crate) fn model(call: &Call, dice: &mut Dice) -> Option<Model> {
    let argument = call.words.get(1).map(ToString::to_string);
    let argument = argument.and_then(|text| text.parse::<f64>().ok()).unwrap_or(1.0);
    let time = Duration::from_secs_f64(argument.clamp(0.0, 100.0));
    let model = match call.words[0].to_string().as_str() {
        "ok" => Model::succeeds(),
        "fail" => Model::fails(argument as i32),
        "work" => Model::succeeds().takes(time),
        "slowfail" => Model::fails(1).takes(time),
        "flaky" => Model::fails(i32::from(dice.chance(0.5))),
        "hang" => Model::hangs(),
        "stubborn" => Model::hangs().stubborn(),
        "deaf" => Model::hangs().ignores_others(),
        "obeys" => Model { terminates_after: Some(time), ..Model::hangs() },
        "daemon" => Model::succeeds().leaves_a_daemon(),
        "demon" => Model::succeeds().leaves_a_daemon().stubborn(),
        "dies" => Model::ends(CommandStatus::Signaled(argument as i32)),
        "noisy" => Model { errors: "errors\n".into(), ..Model::succeeds().prints("output\n") },
        "cat" => Model::succeeds().prints(call.input.clone()).consumes(),
        _ => return None,
    };
    // Durations vary a little.
    let more = if dice.chance(0.3) { dice.time(Duration::from_secs(2)) } else { Duration::ZERO };
    let takes = model.takes.map(|takes| takes + more);
    let progress = dice.chance(0.3).then(|| dice.time(Duration::from_secs(3)));
    let memory = if dice.chance(0.2) { 3_000_000_000 } else { 0 };
    let memory = (dice.time(Duration::from_secs(1)), memory);
    Some(Model { takes, progress, memory, ..model })
}
