//! What an engine may be told besides: options for `srun`, or a list of hosts.

use super::clauses::Engine;

/// Options of `srun` that a branch can't do with: the letter, the whole name, and why.
const REFUSED: [(char, &str, &str); 16] = [
    ('n', "ntasks", ONE_TASK),
    ('N', "nodes", ONE_TASK),
    ('i', "input", STREAMS),
    ('o', "output", STREAMS),
    ('e', "error", STREAMS),
    ('l', "label", STREAMS),
    (NONE, "pty", STREAMS),
    (NONE, "multi-prog", "what runs there is this shell"),
    ('Q', "quiet", "what it says of the job is needed"),
    ('E', "preserve-env", "what is asked for is said by options"),
    ('Z', "no-allocate", "a branch takes the place of a job"),
    ('V', "version", NOTHING),
    ('h', "help", NOTHING),
    (NONE, "usage", NOTHING),
    (NONE, "test-only", NOTHING),
    (NONE, "het-group", ONE_TASK),
];
const NONE: char = '\0';
const ONE_TASK: &str =
    "a branch is one task on one node, and `--cpus-per-task=2` gives it two processors";
const STREAMS: &str = "the streams of a branch lead to the shell here";
const NOTHING: &str = "nothing would run";
/// Letters that may stand before others in a word, as they take no value.
const FLAGS: &str = "HklOQsuvXZEVh";

/// What is wrong with the word for an engine.
pub fn mistake(engine: Engine, word: &str) -> Option<String> {
    match engine {
        Engine::Slurm => slurm(word),
        Engine::Ssh => hosts(word).err(),
    }
}

/// The hosts of a list, `host1 host2*4`, each with its places.
pub fn hosts(list: &str) -> Result<Vec<(String, u64)>, String> {
    let host = |word: &str| {
        let (host, places) = match word.rsplit_once('*') {
            None => (word, 1),
            Some((host, places)) => match places.parse() {
                Ok(places @ 1..) => (host, places),
                _ => return Err(format!("`{word}` has no number of places, as `{host}*4` has")),
            },
        };
        if host.is_empty() || host.starts_with('-') {
            return Err(format!("`{word}` is no host"));
        }
        Ok((host.to_owned(), places))
    };
    let mut hosts: Vec<(String, u64)> = Vec::new();
    for word in list.split_whitespace() {
        let (host, places) = host(word)?;
        match hosts.iter_mut().find(|(known, _)| *known == host) {
            // Named twice, it has the places of both.
            Some((_, all)) => *all = all.saturating_add(places),
            None => hosts.push((host, places)),
        }
    }
    if hosts.is_empty() {
        return Err("it takes a list of hosts: `on ssh \"host1 host2*4\"`".into());
    }
    Ok(hosts)
}

fn slurm(options: &str) -> Option<String> {
    let words: Vec<_> = options.split_ascii_whitespace().collect();
    if let Some(first) = words.first().filter(|first| !first.starts_with('-')) {
        return Some(format!("`{first}` is no option of `srun`"));
    }
    words.iter().enumerate().find_map(|(at, word)| {
        if ["--", ":"].contains(word) {
            return Some(format!("`{word}` can't be among the options of `srun`"));
        }
        let (name, value) = match word.strip_prefix("--") {
            Some(long) => long.split_once('=').map_or((long, None), |(it, to)| (it, Some(to))),
            None => letter(word)?,
        };
        let is_meant = |(letter, long, _): &&(char, &str, &str)| {
            if word.starts_with("--") { long.starts_with(name) } else { name.chars().eq([*letter]) }
        };
        let (_, _, why) = REFUSED.iter().find(is_meant)?;
        let value = value.or_else(|| words.get(at + 1).copied());
        let is_one = *why == ONE_TASK && value.is_some_and(|it| ["1", "1-1"].contains(&it));
        (!is_one).then(|| format!("`{word}` can't be told to `srun`: {why}"))
    })
}

/// The first letter of a word of options that is refused, or takes a value; and that, if it is in the same word.
fn letter(word: &str) -> Option<(&str, Option<&str>)> {
    let letters = word.strip_prefix('-')?;
    let is_refused = |c| REFUSED.iter().any(|(letter, ..)| *letter == c);
    let (at, letter) =
        letters.char_indices().find(|(_, c)| is_refused(*c) || !FLAGS.contains(*c))?;
    let (name, value) = letters[at..].split_at(letter.len_utf8());
    Some((name, Some(value).filter(|value| !value.is_empty())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_that_are_none() {
        for list in ["", " ", "a*0", "a*x", "*4", "-oProxyCommand=x"] {
            assert!(mistake(Engine::Ssh, list).is_some(), "{list}");
        }
        assert_eq!(mistake(Engine::Ssh, "a b*4"), None);
    }

    #[test]
    fn options_that_a_branch_cannot_do_with() {
        for options in [
            "-n 2",
            "-n2",
            "--ntasks=2",
            "--ntasks 2",
            "--nta=2",
            "-N 2-3",
            "--nodes=2",
            "-l",
            "-vl",
            "--label",
            "--lab",
            "-o/tmp/x",
            "-kHo x",
            "--output=x",
            "-e x",
            "-i none",
            "--input none",
            "--pty",
            "--multi-prog",
            "--version",
            "-V",
            "--help",
            "-h",
            "--usage",
            "--test-only",
            "-E",
            "-Q",
            "--quiet",
            "-Z",
            "mem=4G",
            "--mem=4G --",
            "--mem=4G : --mem=2G",
            "--mem=4G -n 2",
        ] {
            assert!(mistake(Engine::Slurm, options).is_some(), "{options}");
        }
        let said = mistake(Engine::Slurm, "-p long -n 2");
        let expected = "`-n` can't be told to `srun`: a branch is one task on one node, and `--cpus-per-task=2` \
                        gives it two processors";
        assert_eq!(said.as_deref(), Some(expected));
    }

    #[test]
    fn options_that_are_for_the_engine_to_judge() {
        for options in [
            "",
            " ",
            "--mem=4G",
            "-p long --mem=4G",
            "-plong",
            "-c4",
            "-vv",
            "-n 1 -N 1-1",
            "--ntasks=1",
            "-x node1",
            "--exclude=node1,node2",
            "--exclusive",
            "-Jlabel",
            "--nosuch",
            "-K1",
            "--time=1 -C l",
            "--nice",
            "--overlap",
        ] {
            assert_eq!(mistake(Engine::Slurm, options), None, "{options}");
        }
    }
}
