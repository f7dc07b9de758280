//! Carriers: programs along PATH that run a command somewhere, connect the standard streams, and
//! report on descriptor 3. Neither their exit statuses nor their messages are believed.

use bstr::{BStr, BString, ByteSlice};

use super::{BatchQueue, Diagnosis, Engine, FailedSubmission, JobList, QueueEntry, Submission};
use ftsh_machine::event::Blame;
use ftsh_process::CARRY_WORDS;
use ftsh_syntax::engine::{EngineId, words_for_carrier};

/// Prefix of the variables for carriers.
const PREFIX: &str = "FTSH_CARRY_";

/// Any carrier.
#[derive(Debug)]
pub(crate) struct Carrier;

/// Returns the name of the program of an engine.
fn program(engine: EngineId) -> String {
    match engine {
        EngineId::Carrier(name) => name.program(),
        EngineId::Slurm | EngineId::Ssh => engine.name().to_owned(),
    }
}

impl Engine for Carrier {
    fn program(&self, engine: EngineId) -> String {
        program(engine)
    }

    fn submit(&self, submission: &Submission) -> Vec<BString> {
        let words = words_for_carrier(submission.options).map(BString::from);
        let command = submission.command.iter().cloned();
        let called = [program(submission.engine).into(), "run".into()];
        called.into_iter().chain(words).chain(["--".into()]).chain(command).collect()
    }

    fn variables(&self, submission: &Submission) -> Vec<(BString, BString)> {
        let mut variables = vec![("FTSH_CARRY_JOB", submission.name.to_owned())];
        if !submission.avoid.is_empty() {
            variables.push(("FTSH_CARRY_AVOID", submission.avoid.join(" ")));
        }
        variables.extend(submission.host.map(|host| ("FTSH_CARRY_HOST", host.to_owned())));
        variables.into_iter().map(|(name, value)| (name.into(), value.into())).collect()
    }

    fn queue(&self) -> Option<&dyn BatchQueue> {
        Some(self)
    }

    fn is_carrier(&self) -> bool {
        true
    }

    /// A carrier that ends before a node has answered is as if it had refused for now.
    fn classify(&self, _failure: &FailedSubmission) -> Diagnosis {
        Diagnosis { blame: Blame::Engine, node: None, advice: None }
    }

    fn misleads(&self, variable: &[u8]) -> bool {
        variable.starts_with(PREFIX.as_bytes())
    }
}

impl BatchQueue for Carrier {
    fn shows(&self, _options: &BStr) -> bool {
        true
    }

    fn list(&self, wanted: &JobList) -> (Vec<BString>, Vec<(BString, BString)>) {
        let called = [program(wanted.engine), "list".to_owned()];
        let names = wanted.jobs.iter().cloned();
        let words = called.into_iter().chain(names).map(BString::from).collect();
        (words, vec![(CARRY_WORDS.into(), wanted.words.to_owned())])
    }

    fn parse<'a>(&self, line: &'a str) -> Option<QueueEntry<'a>> {
        let mut parts = line.split_ascii_whitespace();
        let (job, state) = (parts.next()?, parts.next()?);
        let node = match state {
            "waiting" => None,
            "running" => parts.next(),
            _ => return None,
        };
        Some(QueueEntry { job, name: job, node, is_pending: true })
    }

    /// A carrier says by a line on descriptor 3 that its job waits.
    fn pending_job<'a>(&self, _messages: &'a str) -> Option<&'a str> {
        None
    }
}

/// Line of a carrier on descriptor 3.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Notice {
    /// The job waits in a queue.
    Queued,
    /// The job is on the node with this name.
    Node(String),
    /// The job will not run, for this reason.
    Refused {
        /// Cause, which decides when and where the branch is submitted again.
        blame: Blame,
        /// Node to blame.
        node: Option<String>,
        /// Reason for people.
        why: String,
    },
}

impl Notice {
    /// Parses a line. Other lines have no meaning yet.
    pub(crate) fn parse(line: &[u8]) -> Option<Self> {
        let line = line.to_str_lossy();
        let (kind, rest) = split(&line);
        let refused = |blame, node: Option<&str>, why: &str| {
            let why = if why.is_empty() { "it gives no reason" } else { why };
            Self::Refused { blame, node: node.map(ToOwned::to_owned), why: why.to_owned() }
        };
        match (kind, split(rest)) {
            ("queued", _) => Some(Self::Queued),
            ("node", (name, _)) if !name.is_empty() => Some(Self::Node(name.to_owned())),
            ("refused", ("request", why)) => Some(refused(Blame::Request, None, why)),
            ("refused", ("engine", why)) => Some(refused(Blame::Engine, None, why)),
            ("refused", ("node", rest)) => {
                let (name, why) = split(rest);
                Some(refused(Blame::Node, Some(name).filter(|name| !name.is_empty()), why))
            }
            _ => None,
        }
    }
}

/// Splits off the first word.
fn split(text: &str) -> (&str, &str) {
    let text = text.trim();
    text.split_once(char::is_whitespace).map_or((text, ""), |(first, rest)| (first, rest.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_carrier_is_called_with_the_words_of_the_clause() {
        let engine = EngineId::named("condor").expect("a carrier");
        let submission = Submission {
            engine,
            name: "ftsh-x-1",
            options: "hosts=a,b  mem=4G".into(),
            avoid: &["n1".into(), "n2".into()],
            command: &["/x/ftsh".into(), "--branch".into()],
            host: Some("a"),
        };
        let words = bstr::join(" ", Carrier.submit(&submission));
        assert_eq!(words.as_bstr(), "ftsh-carry-condor run mem=4G -- /x/ftsh --branch");
        let variables = Carrier.variables(&submission);
        let text: Vec<_> =
            variables.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let expected = ["FTSH_CARRY_JOB=ftsh-x-1", "FTSH_CARRY_AVOID=n1 n2", "FTSH_CARRY_HOST=a"];
        assert_eq!(text, expected);
    }

    #[test]
    fn lines_on_descriptor_3() {
        let refused = |blame, node: Option<&str>, why: &str| Notice::Refused {
            blame,
            node: node.map(ToOwned::to_owned),
            why: why.into(),
        };
        for (line, expected) in [
            ("queued 12", Some(Notice::Queued)),
            ("node n1 ", Some(Notice::Node("n1".into()))),
            ("refused request no such image", Some(refused(Blame::Request, None, "no such image"))),
            ("refused node n1 it is full", Some(refused(Blame::Node, Some("n1"), "it is full"))),
            ("refused engine", Some(refused(Blame::Engine, None, "it gives no reason"))),
            ("refused", None),
            ("node", None),
            ("progress 12 %", None),
            ("", None),
        ] {
            assert_eq!(Notice::parse(line.as_bytes()), expected, "{line}");
        }
    }

    #[test]
    fn lines_of_the_list() {
        let entry = |node| QueueEntry { job: "j", name: "j", node, is_pending: true };
        assert_eq!(Carrier.parse("j waiting"), Some(entry(None)));
        assert_eq!(Carrier.parse("j running n1"), Some(entry(Some("n1"))));
        assert_eq!(Carrier.parse("j held"), None);
    }
}
