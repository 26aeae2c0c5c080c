/**
 * Checks that the product uses the words of docs/glossary.md: none of the words below stands in the name of a file, in an
 * identifier or in a comment; that no comment of the repository has a path where a full stop was; and that no comment, text or
 * document has a phrase that a native reader reads twice. Prints every violation and exits 1; prints one line and exits 0 when
 * there is none.
 */
import { globSync, readFileSync } from 'node:fs';
import { basename } from 'node:path';

/** Words that do not name an idea of this field, and what to write instead. */
const WORDS: Readonly<Record<string, string>> = {
  book: 'cache, index, tracker or registry',
  diary: 'operation log',
  eyes: 'observer or view',
  fate: 'result or outcome',
  judge: 'evaluate, classify or check',
  lasting: 'static',
  ledger: 'state, index or availability',
  lent: 'leased or listed',
  mend: 'repair',
  narrator: 'describer',
  room: 'capacity, limit or budget',
  scene: 'context',
  sight: 'snapshot or view',
  taker: 'source',
  told: 'reported or known',
  wake: 'enqueue',
  wish: 'request',
};

/** Words that are personal and stand in comments only by mistake. */
const PERSONS: Readonly<Record<string, string>> = {
  nobody: 'nothing, or the client that is meant',
  somebody: 'another client, or the person that is meant',
};

/** Phrases that no one of this field writes; public names that have one are joined by a hyphen. */
const PHRASES: Readonly<Record<string, string>> = {
  anew: 'again',
  'for ever': 'forever',
  'of another make': 'from another vendor',
  '* Tells whether': '* Reports whether',
};

/** Texts that have such a phrase, and that scripts of others may search for. */
const FROZEN_TEXTS = /made anew|read anew/g;

/** First words of constants that have a limit. */
const LIMITS: Readonly<Record<string, string>> = { MOST: 'MAX_', LONGEST: 'MAX_', LEAST: 'MIN_', SHORTEST: 'MIN_' };

/** Public names, and names that others define. */
const FROZEN = new Set(['CFG_MAX_MISSED_WAKE_UPS', 'mend', 'mended', 'ObjectMended']);

const PRODUCT = [
  ...['agent', 'cli', 'cloud', 'cni-plugins', 'crd', 'dataplane', 'ipamd', 'kube', 'netlink', 'runtime', 'scheduler'],
  ...['sysctl', 'webhook', 'observability', 'cloud-controller-manager', 'pod-routes', 'inspection'],
];
const OTHERS = ['bench', 'sim', 'test', 'tools'];
/**
 * A relative path, or two full stops, right after a quotation mark: a rewrite of import specifiers took a full stop for one.
 * A path from here counts after a closing mark alone: commands begin with one too.
 */
const PATH_FOR_STOP = /[`'"](\.\.(?:\/[\w.-]+)*)(?=\s|$)|(?<=[\w)>\]][`'"])(\.\/[\w./-]+)(?=\s|$)/g;
const COMMENT = /\/\*[\s\S]*?\*\/|(?<![:'"`\w])\/\/.*$/gm;
const STRING = /'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|`(?:[^`\\]|\\.)*`/g;

/** Lists the words in one file that the glossary replaces, as `line: word in name; write …`. */
export function checkWords(path: string, text: string): readonly string[] {
  const inName = wordsOf(basename(path, '.ts')).flatMap((word) => found(1, word, basename(path), WORDS));
  const comments: string[] = [];
  const blank = (part: string): string => part.replace(/[^\n]/g, ' ');
  const code = text.replace(COMMENT, (comment, at: number) => {
    comments.push(`${lineOf(text, at)}`, comment);
    return blank(comment);
  });
  const inCode = [...code.replace(STRING, blank).matchAll(/[A-Za-z_$][\w$]*/g)].flatMap(({ 0: name, index }) => {
    if (FROZEN.has(name)) return [];
    const line = lineOf(text, index);
    const [first = ''] = name.split('_');
    const limit = LIMITS[first];
    if (limit !== undefined && name.includes('_')) return [`${line}: ${first}_ in ${name}; write ${limit}`];
    return wordsOf(name).flatMap((word) => found(line, word, name, WORDS));
  });
  const inComments = comments.flatMap((comment, index) => {
    if (index % 2 === 0) return [];
    const first = Number(comments[index - 1]);
    return [...comment.matchAll(/\b[a-z]+\b/g)].flatMap(({ 0: word, index: at }) =>
      found(first + lineOf(comment, at) - 1, word, 'a comment', { ...WORDS, ...PERSONS }),
    );
  });
  return [...new Set([...inName, ...inCode, ...inComments])];
}

/** Lists the comments of one file in which a path stands for a full stop, as `line: PATH …`. */
export function findPathsForStops(text: string): readonly string[] {
  return [...text.matchAll(COMMENT)].flatMap(({ 0: comment, index }) =>
    [...comment.matchAll(PATH_FOR_STOP)].map(
      ({ 1: path, 2: near, index: at }) =>
        `${lineOf(text, index + at)}: ${path ?? near} after a quotation mark; write a full stop`,
    ),
  );
}

/** Lists the phrases in one file that idiomatic English has other words for, as `line: phrase; write …`. */
export function findPhrases(text: string): readonly string[] {
  const anyCase = Object.keys(PHRASES).map((phrase) =>
    phrase.replace(/^./, (first) => `[${first}${first.toUpperCase()}]`),
  );
  const phrases = new RegExp(`(?<![-\\w])(?:${anyCase.join('|')})(?![-\\w])`, 'g');
  const judged = text.replace(FROZEN_TEXTS, (frozen) => ' '.repeat(frozen.length));
  return [...judged.matchAll(phrases)].map(
    ({ 0: phrase, index }) => `${lineOf(text, index)}: ${phrase}; write ${PHRASES[phrase.toLowerCase()]}`,
  );
}

function found(line: number, word: string, where: string, words: Readonly<Record<string, string>>): readonly string[] {
  const stems = [word, ...[/s$/, /es$/, /d$/, /ed$/, /ing$/].map((ending) => word.replace(ending, ''))];
  const base = [...stems, word.replace(/ing$/, 'e')].find((stem) => Object.hasOwn(words, stem));
  return base === undefined ? [] : [`${line}: ${base} in ${where}; write ${words[base]}`];
}

/** Splits `lookAtNode`, `LOOK_AT_NODE` and `look-at-node` into their words, in small letters. */
function wordsOf(name: string): readonly string[] {
  return name
    .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
    .replace(/([A-Z]+)([A-Z][a-z])/g, '$1 $2')
    .toLowerCase()
    .split(/[^a-z0-9]+/)
    .filter((word) => word !== '');
}

function lineOf(text: string, at: number): number {
  return text.slice(0, at).split('\n').length;
}

if (import.meta.main) {
  const filesOf = (folders: readonly string[]): string[] =>
    folders.flatMap((folder) => globSync(`${folder}/**/*.ts`)).sort();
  const product = filesOf(PRODUCT);
  const sources = [...product, ...filesOf(OTHERS)];
  const paths = [...sources, ...globSync(['*.md', 'docs/**/*.md']).sort()];
  const violations = paths.flatMap((path, index) => {
    const text = readFileSync(path, 'utf8');
    const inProduct = index < product.length ? checkWords(path, text) : [];
    const inSource = index < sources.length ? findPathsForStops(text) : [];
    const inProse = path === 'tools/check-words.ts' ? [] : findPhrases(text);
    return [...inProduct, ...inSource, ...inProse].map((violation) => `${path}:${violation}`);
  });
  for (const violation of violations) console.error(violation);
  console.error(`words: ${paths.length} files, ${violations.length} violations`);
  process.exitCode = violations.length === 0 ? 0 : 1;
}
