//! Syntax tree of programs, independent of the shell's own.

/// A list of commands.
pub(super) type Block = Vec<Command>;

/// A variable.
pub(super) type Name = &'static str;

/// A command.
#[derive(Clone, Debug)]
pub(super) enum Command {
    /// `args first second=word rest...`
    Args([Name; 3], &'static str),
    Echo(Vec<Word>),
    /// `sh -c "exit n"`
    Status(u8),
    /// A missing program.
    Missing,
    /// `accept n command`, and a line with the status.
    Accept(u8, Box<Command>),
    /// `keep command`, which leaves no process.
    Keep(Box<Command>),
    /// `cat -< name`
    Show(Name),
    /// `echo words | cat`
    Pipe(Vec<Word>),
    /// Prints a text; `Show` before a redirection.
    Print(String),
    Assign(Name, Expr),
    /// `export name=expression`
    Export(Name, Expr),
    Unset(Name),
    /// `list name in words`, or else `list add name words`
    List(Name, Vec<Word>, bool),
    /// `local name=value`, or without a value; only in functions.
    Local(Name, Option<Expr>),
    /// `read names`
    Read(Vec<Name>, Input),
    If(Expr, Block, Block),
    /// `case value`, with the patterns of each arm, and `else`.
    Case(Expr, Vec<(Vec<Pattern>, Block)>, Option<Block>),
    /// `name=0; while $name .lt. n`, which counts first.
    Count(Name, i64, Block),
    For(Name, Vec<Word>, Block),
    /// `for name from input by text`, with an input of its own.
    Incoming(Name, Option<&'static str>, Input, Block),
    /// `for name in lines(value)`
    Lines(Name, Expr, Block),
    /// `for name in split(value, separator)`
    Split(Name, Expr, &'static str, Block),
    /// `for name in json(value, ".")`
    Values(Name, Expr, Block),
    /// `for name in a .to. b .step. c`
    Range(Name, [i64; 2], Option<i64>, Block),
    /// `while .succeeds. (read names)`, with a variable as input.
    Reading(Vec<Name>, Name, Block),
    /// `sh` that appends a line to a file in a directory.
    Write(&'static str),
    /// `cat` of that file.
    Written,
    /// `forany name in words in order`; true with `atomic in`.
    ForAny(Name, Vec<Word>, bool, Block),
    /// The same with `at most` and `hedge after`, whose time never comes.
    Hedge(Name, Vec<Word>, Option<Word>, Block),
    ForAll(ForAll),
    /// `if true; block; end | cat`
    Piped(Block),
    /// `echo words | while .succeeds. (read names); block; end`
    Fed(Vec<Word>, Vec<Name>, Block),
    Try(Try),
    /// `limit`, whose time never comes, with `catch`.
    Limit(Block, Option<Block>),
    /// `in`
    In(Block),
    /// `with` a command that sleeps.
    With(Block),
    /// A structure with `catch` and `finally`.
    Handled(Box<Command>, Option<Block>, Option<Block>),
    /// `limit 1 hour -- for name in words -- echo words`
    Line(Name, Vec<Word>, Vec<Word>),
    /// Prints if the directory is that of `in`.
    Where,
    /// A group with its output in a variable, or added to it.
    Capture(Box<Command>, Name, bool),
    Call(usize, Vec<Word>),
    /// Parameters in the head of a function: the required, one with a default, the rest.
    Parameters(Vec<Name>, Option<Name>, Option<Name>),
    Return(Option<Expr>),
    /// `break`, or else `continue`
    Jump(bool),
    Shift,
    Failure(Vec<Word>),
    Giveup,
    Exit(u8),
}

/// `try`, with its clauses.
#[derive(Clone, Debug)]
pub(super) struct Try {
    pub times: u32,
    pub pace: Pace,
    /// `while $error_kind .eq. kind`, or else `.ne.`
    pub condition: Option<(bool, &'static str)>,
    pub hold: Option<Hold>,
    pub body: Block,
    pub catch: Option<Block>,
    pub finally: Option<Block>,
}

/// Clauses that decide the times of attempts only.
#[derive(Clone, Copy, Debug)]
pub(super) enum Pace {
    None,
    Every,
    Full,
    Normal,
    Through,
}

/// Part of an attempt that ends with its failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hold {
    /// `same input`
    Input,
    /// `atomic`: the output as well.
    Output,
    /// `atomic in`: the files as well.
    Files,
}

/// Form of the output of branches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// `output grouped`
    Grouped,
    /// `output grouped in order`
    InOrder,
    /// `output tagged`
    Tagged,
}

/// `forall name in words`, with its clauses.
#[derive(Clone, Debug)]
pub(super) struct ForAll {
    pub name: Name,
    pub words: Vec<Word>,
    /// Input whose lines are the words instead.
    pub input: Option<Input>,
    /// Name of the file of `once in`.
    pub once: Option<Name>,
    pub at_most: Option<Word>,
    pub at_least: Option<Word>,
    pub keep_going: bool,
    pub finish_running: bool,
    pub form: Option<Form>,
    /// True with `atomic in`.
    pub is_atomic: bool,
    /// Name of a missing file that each branch takes.
    pub takes: Option<Name>,
    pub body: Block,
}

/// Input of a command.
#[derive(Clone, Debug)]
pub(super) enum Input {
    /// Input of the surroundings.
    Inherited,
    /// `-< name`
    Variable(Name),
    /// `<<< word`
    Line(Word),
}

/// A pattern of a `when`.
#[derive(Clone, Debug)]
pub(super) enum Pattern {
    /// A word without a wildcard.
    Word(Word),
    /// `${name}*`
    Begins(Name),
    /// `*text`
    Ends(&'static str),
    /// `[0-9]?`
    Digit,
}

/// Parts joined to a word.
pub(super) type Word = Vec<Piece>;

/// A part of a word.
#[derive(Clone, Debug)]
pub(super) enum Piece {
    Text(&'static str),
    Variable(Name),
    Quoted(Vec<Piece>),
    /// `"$@"`
    Arguments,
    /// `${name[@]}`, always a word of its own.
    Elements(Name),
    /// `${name[n..n]}`, always a word of its own.
    Slice(Name, Option<i64>, Option<i64>),
    /// `${name[n]}`
    Element(Name, i64),
    /// `${function(word)}`, with a function of the language.
    Of(&'static str, Word),
}

/// An expression.
#[derive(Clone, Debug)]
pub(super) enum Expr {
    Word(Word),
    Not(Box<Expr>),
    Binary(&'static str, Box<Expr>, Box<Expr>),
    Call(usize, Vec<Expr>),
    /// A function of the language, of one value.
    Of(&'static str, Box<Expr>),
    /// `newer(value, other)`
    Newer(Box<Expr>, Box<Expr>),
    /// `replace(value, this, with)`, of plain text.
    Replace(Box<Expr>, &'static str, &'static str),
    /// `match(value, '[0-9]+')`
    Digits(Box<Expr>),
    /// `json(value, filter)`
    Json(Box<Expr>, &'static str),
    /// `.succeeds. (command)`
    Succeeds(Box<Command>),
}
