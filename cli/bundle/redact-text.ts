import { redactPem } from './redact-pem.ts';

/**
 * Takes what may be secret out of a text, whatever it is: values of names that sound secret (in JSON, YAML, INI, flags,
 * environment, headers), blocks in PEM, tokens by their shape, credentials in URLs, and long random words. Rather too
 * much than too little: an archive travels. Takes time in proportion to the text. Pure; doing it twice changes nothing more.
 */
export function redactText(text: string): string {
  const assignments = redactYamlBlocks(redactPem(text))
    .replace(URL_CREDENTIALS, '$1[removed]@')
    .replace(BEARER, '$1 [removed]');
  return redactNamed(redactNamed(assignments, ASSIGNMENT, ASSIGNED), FLAG, FLAGGED)
    .replace(KNOWN_TOKENS, '[removed: token]')
    .replace(LONG_WORD, (word) => (isRandom(word) ? '[removed: random]' : word));
}

/** Tells whether a name sounds as if its value were secret. Pure. */
export function isSecretName(name: string): boolean {
  return SECRET_NAME.test(name);
}

/** What names of secret values contain. Those that we read ourselves are among them: TENCENTCLOUD_SECRET_KEY, … */
const SECRET_NAME = new RegExp(
  [
    'passw(?:or)?d|passphrase|secret|token|api[-_.]?key|access[-_.]?key|private[-_.]?key|client[-_.]?key',
    'encryption[-_.]?key|credential|authorization|cert(?:ificate)?(?:-authority)?[-_]?data|ca[-_]?data|ca[-_]?bundle',
    'signature|cookie|tencentcloud_|kubeconfig[-_]?data',
  ].join('|'),
  'i',
);

// Names are found whole, by what cannot be before them, and judged after: a pattern that looks for the secret word within
// a name tries each place of a long one again and again. What follows a harmless name is searched itself.
/** In quotes, which may be escaped, as in JSON within JSON; an open quote takes the rest of the line. */
const QUOTED = [
  '"(?:[^"\\\\\\n]|\\\\[^\\n])*"',
  '(?<escape>\\\\+)"(?:(?!(?<!\\\\)\\k<escape>")[^\\n])*\\k<escape>"',
  "'[^'\\n]*'",
  '\\\\*["\'][^\\n]*',
  '\\[(?!removed)[^\\]\\n]*\\]?|\\{[^}\\n]*\\}?',
].join('|');
const ASSIGNMENT = /(?<![A-Za-z0-9_.$-])([A-Za-z0-9_.$-]+)\\*["']?[ \t]*(?::=|=>|=|:)[ \t]*/g;
const ASSIGNED = new RegExp(`${QUOTED}|[^\\s,;}\\]"'&]+`, 'y');
/** `--token abc`; with '=' it is an assignment. */
const FLAG = /(?<![A-Za-z0-9_.-])(--?[A-Za-z][A-Za-z0-9_.-]*)[ \t]+/g;
const FLAGGED = new RegExp(`${QUOTED}|[^\\s-]\\S*`, 'y');
const BEARER =
  /\b(Bearer|Basic|TC3-HMAC-SHA256)[ \t]+[^\s"',;\\]+(?:[ \t]*,[ \t]*(?:SignedHeaders|Signature)=[^\s"',;\\]+)*/gi;
const URL_CREDENTIALS = /(?<![a-z0-9+.-])([a-z][a-z0-9+.-]*:\/\/)[^/\s:@"']+(?::[^/\s@"']*)?@/gi;
/** JSON web tokens, ids of Tencent Cloud and AWS keys, tokens of GitHub, bootstrap tokens of Kubernetes. */
const KNOWN_TOKENS =
  /(?<![A-Za-z0-9_-])(?:eyJ[A-Za-z0-9_-]{6,}\.[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]*)?|AKID[A-Za-z0-9]{8,}|A[KS]IA[A-Z0-9]{12,}|gh[pousr]_[A-Za-z0-9]{16,}|[a-z0-9]{6}\.[a-z0-9]{16}(?![a-z0-9]))/g;
/** Base64 in its two alphabets. */
const LONG_WORD = /[A-Za-z0-9+/_=-]{24,}/g;

function redactNamed(text: string, names: RegExp, values: RegExp): string {
  const pieces: string[] = [];
  let at = 0;
  names.lastIndex = 0;
  for (let match = names.exec(text); match !== null; match = names.exec(text)) {
    if (!isSecretName(match[1] ?? '')) continue;
    values.lastIndex = names.lastIndex;
    const value = values.exec(text)?.[0];
    if (value === undefined || isHarmless(value)) continue;
    pieces.push(text.slice(at, names.lastIndex), redactedLike(value));
    at = names.lastIndex + value.length;
    names.lastIndex = at;
  }
  return [...pieces, text.slice(at)].join('');
}

/** Numbers and the like are counts: `tokens: 12`. */
function isHarmless(value: string): boolean {
  return /^(?:\d{1,9}|true|false|null|undefined|\[removed.*|\\*["']\[removed.*|\[\]|\{\})$/.test(value);
}

function redactedLike(value: string): string {
  const quote = /^\\*["']/.exec(value)?.[0];
  return quote === undefined ? '[removed]' : `${quote}[removed]${quote}`;
}

/**
 * Capitals, small letters and digits all in one long word: names of ours, of Kubernetes and of the kernel have no such
 * mixture, hexadecimal ids neither; keys and certificates have. Of a path each part is judged alone.
 */
function isRandom(word: string): boolean {
  const parts = word.startsWith('/') ? word.split('/') : [word];
  return parts.some((part) => part.length >= 20 && /[A-Z]/.test(part) && /[a-z]/.test(part) && /\d/.test(part));
}

const BLOCK_SCALAR = /[|>][-+]?[ \t]*$/;

/** `password: |` and the indented lines under it. */
function redactYamlBlocks(text: string): string {
  if (!text.includes('|') && !text.includes('>')) return text;
  const lines: string[] = [];
  let hiddenBelow: number | undefined;
  for (const line of text.split('\n')) {
    const indent = line.length - line.trimStart().length;
    if (hiddenBelow !== undefined && (line.trim() === '' || indent > hiddenBelow)) continue;
    hiddenBelow = undefined;
    const name = BLOCK_SCALAR.test(line) ? /^\s*(?:- )?["']?([\w.-]+)["']?:/.exec(line)?.[1] : undefined;
    if (name !== undefined && isSecretName(name)) {
      hiddenBelow = indent;
      lines.push(line.replace(BLOCK_SCALAR, '[removed]'));
    } else lines.push(line);
  }
  return lines.join('\n');
}
