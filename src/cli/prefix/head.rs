//! One head, read by the parser of scripts.

use std::ffi::OsString;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;

use anyhow::{Error, Result};

use super::help::form;
use super::mistake::{self, Mark, marked};
use super::words::{Marks, WordPlace, quoted, word};
use crate::cli::messages::usage;
use crate::cli::options::flags::head;
use ftsh_syntax::ast::{CommandKind, Expr, Script, Try};
use ftsh_syntax::engine::EngineId;
use ftsh_syntax::parse::literal;
use ftsh_syntax::slug::Slug;
use ftsh_syntax::vocabulary::{TIMES, loop_clauses};
use ftsh_syntax::{SyntaxError, SyntaxErrors, parse};

/// Variable of a loop without a name on the command line.
const VARIABLE: &str = "word";

/// Word of the one branch of `on`, in place of the command's name.
pub(super) const ON: &str = "'x'";

const NO_HEAD: &str = "this is no head";

/// Command that the parser reads after a head.
const COMMAND: &str = " -- x";

/// Words that are looked at for a command, where there is no `--`.
const MAX_HEAD: usize = 40;

/// Part of a head that a word is, with the number of the word on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// Variable of a loop.
    Variable(usize),
    /// `in`, before a list.
    List(usize),
    /// Word of a list.
    Item(usize),
    /// `from`, before `input`.
    Input(usize),
    /// Text after `by`.
    Separator(usize),
    /// Engine after `on`.
    Engine(usize),
    /// Option or host of an engine.
    Option(usize),
    /// File after `once in`.
    File(usize),
    /// File of a branch, after `takes` or `gives`.
    BranchFile(usize),
    /// Word that the parser reads as it is.
    Raw(usize),
}

impl Piece {
    /// Returns the number of the word.
    fn word(self) -> usize {
        match self {
            Self::Variable(at)
            | Self::List(at)
            | Self::Item(at)
            | Self::Input(at)
            | Self::Separator(at)
            | Self::Engine(at)
            | Self::Option(at)
            | Self::File(at)
            | Self::BranchFile(at)
            | Self::Raw(at) => at,
        }
    }
}

/// A head.
#[derive(Debug)]
pub(super) struct Head {
    /// Keyword on the command line.
    pub keyword: &'static str,
    /// Text of the head in a script.
    pub text: String,
    /// Words of a loop, or the one branch of `on`.
    pub list: Option<LoopList>,
    /// True for a `try` of several attempts whose clauses leave their input as it is.
    pub is_repeated: bool,
}

/// List of a loop.
#[derive(Debug)]
pub(super) struct LoopList {
    /// Variable of the loop.
    pub variable: String,
    /// True if the command line names the variable.
    pub is_named: bool,
    /// True if the words come from standard input.
    pub is_input: bool,
}

impl Head {
    /// Reads a head from its pieces. `start` is the number of its keyword.
    ///
    /// # Errors
    ///
    /// Fails with one line that marks the wrong word.
    pub(super) fn read(pieces: &[Piece], words: &[OsString], start: usize) -> Result<Self> {
        let keyword = head(&words[start]).ok_or_else(|| {
            usage(
                Slug::PrefixHead,
                format_args!(
                    "{}: no head; write `ftsh {}`",
                    marked(words, Mark::Word(start)),
                    form("try")
                ),
            )
        })?;
        if keyword == "limit" && pieces.is_empty() {
            let place = marked(words, Mark::Word(start));
            return Err(usage(
                Slug::MissingValue,
                format_args!("{place}: the time is missing; write `ftsh {}`", form(keyword)),
            ));
        }
        let is_number = |piece: &&Piece| matches!(piece, Piece::Raw(at) if TIMES.iter().any(|word| words[*at] == *word));
        if keyword == "limit"
            && let Some(piece) = pieces.iter().find(is_number)
        {
            let place = marked(words, Mark::Word(piece.word()));
            return Err(usage(
                Slug::PrefixHead,
                format_args!(
                    "{place}: `limit` takes a time; a number of attempts belongs to `try`: write \
                     `ftsh {}`",
                    form("try")
                ),
            ));
        }
        if let Some(at) = range(pieces, words) {
            let (place, from, to) =
                (marked(words, Mark::Word(at)), words[at - 1].display(), words[at + 1].display());
            return Err(usage(
                Slug::PrefixHead,
                format_args!(
                    "{place}: a range is for scripts: `ftsh -c '{keyword} n in {from} .to. {to} -- \
                     COMMAND $n'`"
                ),
            ));
        }
        let source = Source::of(keyword, pieces, words, start)?;
        let refuse = |why: &str| -> Error {
            let place = marked(words, source.odd_word(words));
            usage(Slug::PrefixHead, format_args!("{place}: {why}; write `ftsh {}`", form(keyword)))
        };
        let fail = |source: &Source, mut errors: SyntaxErrors| {
            let error = &mut errors.errors[0];
            if error.slug == Slug::MissingEnd {
                // The head ends inside of a word.
                return refuse(NO_HEAD);
            }
            if keyword == "limit" {
                // The parser reads the head of a `try`.
                error.label = error.label.take().map(|label| label.replace("`times`, ", ""));
            }
            let mark = source.mark(error);
            if mark == Mark::End
                && let Some(label) = error.label.take()
            {
                error.message = label;
            }
            mistake::option(words, mark).unwrap_or_else(|| {
                usage(error.slug, mistake::line(words, mark, error, form(keyword)))
            })
        };
        let kind = match parse(keyword, &format!("{}{COMMAND}", source.text)) {
            Ok(script) => only_command(script, source.text.len() + COMMAND.len() - 1),
            Err(_) if keyword == "limit" => {
                let mut attempt = Source::of("try for", pieces, words, start)?;
                attempt.text += " or 1 time";
                match parse(keyword, &format!("{}{COMMAND}", attempt.text)) {
                    Err(errors) => return Err(fail(&attempt, errors)),
                    Ok(_) => {
                        let why = "`limit` takes only a time, `stalled`, `memory` and `signal`";
                        return Err(refuse(why));
                    }
                }
            }
            Err(errors) => return Err(fail(&source, errors)),
        };
        let (list, is_repeated) = match kind {
            Some(CommandKind::Try(details)) => (None, is_repeated(&details)),
            Some(CommandKind::For(head)) => {
                let is_named = pieces.iter().any(|piece| matches!(piece, Piece::Variable(_)));
                let (variable, is_input) = (head.variable.to_string(), head.input.is_some());
                (Some(LoopList { variable, is_named, is_input }), false)
            }
            _ => return Err(refuse(NO_HEAD)),
        };
        Ok(Self { keyword, text: source.text, list, is_repeated })
    }

    /// Returns the number of the first word that is no part of the head, so that it is probably the
    /// command. None if each word is a part, or if no word is.
    pub(super) fn command_among(
        pieces: &[Piece],
        words: &[OsString],
        start: usize,
    ) -> Option<usize> {
        let longest = pieces.len().min(MAX_HEAD);
        let is_head = |count: &usize| Self::read(&pieces[..*count], words, start).is_ok();
        let count = (0..=longest).rev().find(is_head)?;
        let Piece::Raw(at) = *pieces.get(count)? else { return None };
        let is_number = words[at].as_encoded_bytes().first().is_some_and(u8::is_ascii_digit);
        (!is_number).then_some(at)
    }

    /// True if the words of the loop come from standard input.
    pub(super) fn reads_words(&self) -> bool {
        self.list.as_ref().is_some_and(|list| list.is_input)
    }
}

/// Returns the number of a `.to.` between two numbers in a list, where the words would be three items.
fn range(pieces: &[Piece], words: &[OsString]) -> Option<usize> {
    let is_number = |at: usize| words[at].to_str().is_some_and(|it| it.parse::<i64>().is_ok());
    pieces.windows(3).find_map(|three| match *three {
        [Piece::Item(from), Piece::Item(at), Piece::Item(to)] => {
            (words[at] == ".to." && is_number(from) && is_number(to)).then_some(at)
        }
        _ => None,
    })
}

/// Returns true if attempts may follow the first, and the clauses do not say which input they read.
fn is_repeated(details: &Try) -> bool {
    let clauses = &details.clauses;
    let is_one = |number: &Expr| literal::expr(number).is_some_and(|text| text == "1");
    let has_one = clauses.times.as_ref().map_or(clauses.time.is_none(), is_one);
    !has_one && !details.is_limit && !clauses.atomic && !clauses.same_input
}

/// Returns the only command of a script, if that is a structure around the command at a position.
fn only_command(script: Script, at: usize) -> Option<CommandKind> {
    let [command] = <[_; 1]>::try_from(script.body.commands).ok()?;
    let is_around = match &command.blocks()[..] {
        [body] => body.commands.iter().all(|inner| inner.span.start == at),
        _ => false,
    };
    (command.one_line && is_around).then_some(command.kind)
}

/// Text that the parser reads, and the words that it was made of.
struct Source {
    text: String,
    /// Positions of the words in the text, in order.
    places: Vec<(Range<usize>, usize)>,
    /// Number of the keyword.
    start: usize,
    /// Mark of the loop's variable in names of files.
    marks: Marks,
}

impl Source {
    fn of(
        keyword: &'static str,
        pieces: &[Piece],
        words: &[OsString],
        start: usize,
    ) -> Result<Self> {
        let marks = Marks::default();
        let mut source = Self { text: String::new(), places: Vec::new(), start, marks };
        // Names of the command line come before.
        let fresh = |name: &str| {
            let is_taken = |name: &String| words.iter().any(|word| word == name.as_str());
            std::iter::successors(Some(name.to_owned()), |name| Some(format!("{name}_")))
                .find(|name| !is_taken(name))
                .unwrap_or_default()
        };
        match keyword {
            "on" => source.add(&format!("forall {} in {ON}", fresh("job")), start),
            keyword => source.add(keyword, start),
        }
        let named = pieces.iter().find_map(|piece| match piece {
            Piece::Variable(at) => words[*at].to_str(),
            _ => None,
        });
        if pieces.iter().any(|piece| matches!(piece, Piece::List(_) | Piece::Input(_))) {
            let variable = named.map_or_else(|| fresh(VARIABLE), str::to_owned);
            source.marks.enter(&variable, named.is_some());
            if named.is_none() {
                source.add(&variable, start);
            }
        }
        for (number, piece) in pieces.iter().enumerate() {
            source.add_piece(*piece, &pieces[number + 1..], words)?;
        }
        Ok(source)
    }

    /// Adds a piece, before these others.
    fn add_piece(&mut self, piece: Piece, after: &[Piece], words: &[OsString]) -> Result<()> {
        let at = piece.word();
        if at == words.len() {
            let (place, forms) = (marked(words, Mark::End), EngineId::usage());
            let text = format!("{place}: the engine is missing; after `on` comes {forms}");
            return Err(usage(Slug::PrefixHead, text));
        }
        if let Piece::Item(_) = piece {
            // The parser recognizes a misspelled clause by its first word.
            let pair = [Some(&words[at]), words.get(at + 1)];
            let is_clause = loop_clauses()
                .any(|(_, clause)| (0..2).all(|at| pair[at].is_some_and(|it| it == clause[at])));
            let place = if is_clause { WordPlace::List } else { WordPlace::Item };
            self.add(&word(words[at].as_bytes(), &Marks::default(), place), at);
            return Ok(());
        }
        if let Piece::BranchFile(_) = piece {
            self.add(&word(words[at].as_bytes(), &self.marks, WordPlace::Quoted), at);
            return Ok(());
        }
        let refuse = |why: String| {
            usage(Slug::PrefixHead, format_args!("{}: {why}", marked(words, Mark::Word(at))))
        };
        let word =
            words[at].to_str().ok_or_else(|| refuse("a word of a head has to be UTF-8".into()))?;
        match piece {
            Piece::Input(_) => self.add("from input", at),
            Piece::File(_) => self.add(&quoted(word), at),
            Piece::Separator(_) => self.add(&format!("by {}", quoted(word)), at),
            Piece::Engine(_) if EngineId::named(word).is_none() => {
                let usage = EngineId::usage();
                return Err(refuse(format!(
                    "`{word}` can't name an engine; after `on` comes {usage}"
                )));
            }
            Piece::Engine(_) => {
                self.add(&format!("on {word}"), at);
                // All options are one word for the engine.
                let options = after.iter().take_while(|it| matches!(it, Piece::Option(_)));
                let options: Vec<_> =
                    options.map(|it| words[it.word()].to_string_lossy()).collect();
                if !options.is_empty() {
                    self.add(&quoted(&options.join(" ")), at + 1);
                }
            }
            Piece::Option(_) | Piece::BranchFile(_) => {}
            Piece::Raw(_) if word.is_empty() => self.add("''", at),
            Piece::Variable(_) | Piece::List(_) | Piece::Raw(_) | Piece::Item(_) => {
                self.add(word, at);
            }
        }
        Ok(())
    }

    fn add(&mut self, text: &str, word: usize) {
        if !self.text.is_empty() {
            self.text.push(' ');
        }
        let from = self.text.len();
        self.text += text;
        self.places.push((from..self.text.len(), word));
    }

    /// Returns the word that a mistake is at.
    fn mark(&self, error: &SyntaxError) -> Mark {
        let at = error.span.start;
        let found = self.places.iter().find(|(place, _)| at < place.end);
        found.map_or(Mark::End, |(_, word)| Mark::Word(*word))
    }

    /// Returns the first word with a character that ends a head, or else the keyword.
    fn odd_word(&self, words: &[OsString]) -> Mark {
        let is_odd = |word: &usize| words[*word].to_string_lossy().contains(['\n', ';', '#']);
        let word = self.places.iter().map(|(_, word)| *word).find(is_odd);
        Mark::Word(word.unwrap_or(self.start))
    }
}
