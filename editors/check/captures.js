// Writes to $LETTERS, of each script named in $SCRIPTS, its path and a letter for each of its bytes, by the grammar and
// the highlights in $GRAMMAR, of which tree-sitter makes a parser in $PLACE. What that can't parse is `!`.
const fs = require('fs');
const path = require('path');
const { execFileSync } = require('child_process');

const CLASSES = { comment: 'C', keyword: 'K', operator: 'O', type: 'L', string: 'S', variable: 'V' };
const CAPTURE = /^ +pattern: *\d+, capture: \d+ - ([\w.]+), start: \((\d+), (\d+)\), end: \((\d+), (\d+)\)/;

const { SCRIPTS, LETTERS, GRAMMAR, PLACE } = process.env;
const environment = { ...process.env, XDG_CACHE_HOME: PLACE, XDG_CONFIG_HOME: PLACE };
const options = { cwd: PLACE, env: environment, encoding: 'utf8', maxBuffer: 1 << 28 };
const treeSitter = (...words) => execFileSync('tree-sitter', words, options);

function captures() {
  const grammar = path.join(PLACE, 'grammar');
  fs.cpSync(GRAMMAR, grammar, { recursive: true });
  options.cwd = grammar;
  treeSitter('generate', '--abi', '14');
  treeSitter('test');
  const query = path.join(PLACE, 'all.scm');
  const highlights = fs.readFileSync(path.join(grammar, 'queries/highlights.scm'), 'utf8');
  fs.writeFileSync(query, `${highlights}\n(ERROR) @error\n(MISSING) @error\n`);
  return treeSitter('query', '--captures', '-p', '.', '--paths', SCRIPTS, query);
}

function letters(names, told) {
  const files = new Map(names.map((name) => [name, fs.readFileSync(name)]));
  const classes = new Map(names.map((name) => [name, Buffer.alloc(files.get(name).length, '.')]));
  const found = [];
  let bytes, starts;
  for (const line of told.split('\n')) {
    const capture = CAPTURE.exec(line);
    if (files.has(line)) {
      bytes = classes.get(line);
      starts = [0];
      files.get(line).forEach((byte, at) => byte === 10 && starts.push(at + 1));
    } else if (capture) {
      const [, name, ...at] = capture.map((it, index) => (index > 1 ? +it : it));
      found.push({ bytes, name, start: starts[at[0]] + at[1], end: starts[at[2]] + at[3] });
    }
  }
  // What is inside wins, and of the same what comes later.
  found.sort((one, other) => one.start - other.start || other.end - one.end);
  for (const { bytes, name, start, end } of found) bytes.fill(CLASSES[name] || '.', start, end);
  // Mistakes win over all; what is missing has no length.
  for (const { bytes, name, start, end } of found) {
    if (name !== 'error') continue;
    const last = bytes.length - 1;
    bytes.fill('!', Math.min(start, last), Math.min(Math.max(end, start + 1), last + 1));
  }
  return names.map((name) => `${name}\n${classes.get(name)}\n`).join('');
}

// Where these are, what fails is a mistake.
treeSitter('--version');
execFileSync('cc', ['--version']);
try {
  fs.writeFileSync(LETTERS, letters(fs.readFileSync(SCRIPTS, 'utf8').split('\n').filter(Boolean), captures()));
} catch (error) {
  fs.writeFileSync(LETTERS, `${error.message}\n${error.stdout || ''}\n`);
}
