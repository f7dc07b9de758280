//! Arguments of a script that declares them by `args`, before its run.

use bstr::{BString, ByteSlice};

use crate::cli::messages::{NOTHING_WAS_RUN, print_text, report};
use crate::log::one_line;
use ftsh_machine::Outcome;
use ftsh_machine::arguments::{self, Refusal};
use ftsh_syntax::Script;

/// Returns the outcome of a script that does not run: `--help` prints its usage text and exits with a
/// status, and wrong arguments print the mistake and the usage line.
///
/// `arguments` begin with `$0`.
pub(crate) fn refuse(script: &Script, arguments: &[BString]) -> Option<Outcome> {
    let declaration = script.arguments()?;
    let (path, rest) = arguments.split_first()?;
    let refusal = arguments::check(declaration, rest).err()?;
    let name = path.rsplit_str("/").next().unwrap_or_default().to_str_lossy();
    Some(match refusal {
        Refusal::Help => Outcome::Exited(print_text(&declaration.help(&name)).exit_code()),
        Refusal::Misuse(mistake) => {
            let mistake = one_line(&format!("{name}: {mistake}"));
            report(&format!("{mistake}\n{}\n", declaration.usage(&name)));
            Outcome::Exited(NOTHING_WAS_RUN)
        }
    })
}
