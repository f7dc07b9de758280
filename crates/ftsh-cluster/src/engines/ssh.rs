//! Hosts that `ssh` connects to.

use bstr::{BStr, BString, ByteSlice};

use super::{Diagnosis, Engine, FailedSubmission, NO_PROGRAM, Submission};
use ftsh_machine::event::Blame;
use ftsh_syntax::engine::EngineId;

/// Engine for `ssh`.
#[derive(Debug)]
pub(crate) struct Ssh;

/// Command that connects to a host.
const SSH: &str = "ssh";
/// Exit code of a shell that does not find the command.
const NOT_FOUND: i32 = 127;
/// Options that prevent questions and detect an unreachable host. The others disable interactive
/// parts of the user's configuration, above all a connection that other processes share.
const OPTIONS: [&str; 7] = [
    "BatchMode=yes",
    "ConnectTimeout=15",
    "ControlMaster=no",
    "ClearAllForwardings=yes",
    "ForwardX11=no",
    "PermitLocalCommand=no",
    "RemoteCommand=none",
];

impl Engine for Ssh {
    fn program(&self, _engine: EngineId) -> String {
        SSH.into()
    }

    fn submit(&self, submission: &Submission) -> Vec<BString> {
        let host = submission.host.unwrap_or_default();
        let options = OPTIONS.iter().flat_map(|option| ["-o", option]);
        let words = [SSH, "-T"].into_iter().chain(options).chain(["--", host]);
        let mut command: Vec<BString> = words.map(BString::from).collect();
        // The server passes a single string to a shell.
        let quoted: Vec<_> = submission.command.iter().map(|word| quoted(word.as_ref())).collect();
        let mut line = BString::from("exec ");
        line.extend_from_slice(&bstr::join(" ", quoted));
        command.push(line);
        command
    }

    /// Blames the host only if the branch can go to another host.
    fn classify(&self, failure: &FailedSubmission) -> Diagnosis {
        let is_denied = failure.messages.contains("Permission denied (");
        let advice = match failure.code {
            Some(NOT_FOUND) => Some(NO_PROGRAM),
            _ => is_denied.then_some(NEEDS_KEY),
        };
        let blame = if failure.has_other_hosts { Blame::Node } else { Blame::Engine };
        Diagnosis { blame, node: None, advice }
    }

    fn environment_prefixes(&self) -> &'static [&'static str] {
        &["SSH_"]
    }
}

/// Advice if a host refuses the user.
const NEEDS_KEY: &str =
    "it is asked without a terminal, and so needs a key that no one has to unlock";

fn quoted(word: &BStr) -> BString {
    let mut quoted = BString::from("'");
    quoted.extend_from_slice(&word.replace("'", r"'\''"));
    quoted.push(b'\'');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_is_quoted_for_a_shell() {
        let submission = Submission {
            engine: EngineId::Ssh,
            name: "",
            options: "".into(),
            avoid: &[],
            command: &["/a b/it's".into(), "--branch".into()],
            host: Some("h"),
        };
        let command = Ssh.submit(&submission);
        assert_eq!(command.last().expect("a line"), r"exec '/a b/it'\''s' '--branch'");
    }
}
