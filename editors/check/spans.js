// Writes to $LETTERS, of each script named in $SCRIPTS, its path and a letter for each of its bytes, by the grammar in
// $GRAMMAR and highlight.js, which NODE_PATH has.
const fs = require('fs');
const hljs = require('highlight.js/lib/core');

const LETTERS = {
  keyword: 'K', type: 'L', symbol: 'O', string: 'S', variable: 'V', comment: 'C', built_in: '.', meta: '.',
};

function letters(text) {
  const html = hljs.highlight(text, { language: 'ftsh' }).value;
  const classes = [];
  let out = '';
  for (const [piece, opened] of html.matchAll(/<span class="hljs-(\w+)">|<\/span>|&(?:\w+|#x27);|[^<&]+/g)) {
    if (opened) classes.push(LETTERS[opened]);
    else if (piece === '</span>') classes.pop();
    else {
      const length = piece.startsWith('&') ? 1 : Buffer.byteLength(piece);
      out += (classes.at(-1) || '.').repeat(length);
    }
  }
  return out;
}

hljs.registerLanguage('ftsh', require(process.env.GRAMMAR));
const names = fs.readFileSync(process.env.SCRIPTS, 'utf8').split('\n').filter(Boolean);
const told = names.flatMap((name) => [name, letters(fs.readFileSync(name, 'utf8'))]);
fs.writeFileSync(process.env.LETTERS, told.join('\n') + '\n');
