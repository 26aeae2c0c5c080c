/**
 * Removes possible secrets from a text of any format: values of secret-sounding names (in JSON, YAML, INI, flags,
 * environment, headers), PEM blocks, known forms of tokens, credentials in URLs, and long random words. It removes
 * rather too much than too little, because the archive leaves the node. It runs in time proportional to the text and is
 * idempotent.
 */
export function redactText(text: string): string {
  const assignments = redactBlocks(redactPem(text), isSecretName)
    .replace(URL_CREDENTIALS, '$1[removed]@')
    .replace(BARE_CREDENTIALS, '[removed]@')
    .replace(BEARER, '$1 [removed]')
    .replace(PAIR, (pair, head: string, name: string) => (isSecretName(name) ? `${head}[removed]` : pair))
    .replace(PROSE_SECRET, '$1[removed]')
    .replace(USER_FLAG, '$1[removed]');
  return redactNamed(redactNamed(assignments, ASSIGNMENT, ASSIGNED), FLAG, FLAGGED)
    .replace(KNOWN_TOKENS, '[removed: token]')
    .replace(LONG_WORD, (word) => (isRandom(word) || isEncodedText(word) ? '[removed: random]' : word));
}

/** Returns whether a name sounds as if its value were secret. */
export function isSecretName(name: string): boolean {
  return SECRET_NAME.test(name) || SHORT_NAME.test(name);
}

/** Parts of names of secret values. The variables that we read ourselves match too: TENCENTCLOUD_SECRET_KEY, … */
const SECRET_NAME = new RegExp(
  [
    'passw(?:or)?d|passphrase|secret|token|api[-_.]?key|access[-_.]?key|private[-_.]?key|client[-_.]?key',
    'encryption[-_.]?key|credential|authorization|cert(?:ificate)?(?:-authority)?[-_]?data|ca[-_]?data|ca[-_]?bundle',
    'signature|cookie|tencentcloud_|kubeconfig[-_]?data|dockerconfig|session[-_.]?(?:key|id)|(?:ssh|tls)[-_.]?key',
  ].join('|'),
  'i',
);
/**
 * Short words that match only as a whole name or as its last part. `ak` and `sk` are the cloud's access key and secret
 * key.
 */
const SHORT_NAME =
  /(?:^|[-_.])(?:auths?|pass|pwd|ak|sk|psk|sig|hmac|otp|AUTHS?|PASS|PWD|AK|SK|PSK|SIG|HMAC|OTP)$|[a-z](?:Auth|Pass|Pwd)$/;

// These patterns match whole names first, anchored by the character before the name, and test the name afterwards. A
// pattern that searches the secret word within a name would retry each position of a long name. The text after a
// harmless name is searched itself.
/** A quoted value. Quotes may be escaped, as in JSON within JSON; an unclosed quote extends to the end of the line. */
const QUOTED = [
  '"(?:[^"\\\\\\n]|\\\\[^\\n])*"',
  '(?<escape>\\\\+)"(?:(?!(?<!\\\\)\\k<escape>")[^\\n])*\\k<escape>"',
  "'[^'\\n]*'",
  '&(?:quot|#34|#39);[^&\\n]*',
  '\\\\*["\'][^\\n]*',
  '\\[(?!removed)[^\\]\\n]*\\]?|\\{[^}\\n]*\\}?',
].join('|');
const ASSIGNMENT =
  /(?<![A-Za-z0-9_.$-])([A-Za-z0-9_.$-]+)(?:\\*["']|&(?:quot|#34|#39);|\\u0022|%22)?[ \t]*(?::=|=>|=|:|%3[DdAa])[ \t]*/g;
const ASSIGNED = new RegExp(`${QUOTED}|[^\\s,;}\\]"'&]+`, 'y');
/** A flag and its value: `--token abc`, also as two items of a list in JSON or YAML. With '=' it is an assignment. */
const FLAG =
  /(?<![A-Za-z0-9_.-])(--?[A-Za-z][A-Za-z0-9_.-]*)(?:[ \t]+|\\*["'],?\s{0,40}(?:-[ \t]+)?|\n[ \t]{0,40}-[ \t]+)/g;
const FLAGGED = new RegExp(`${QUOTED}|(?!--)[^\\s,\\]}]\\S*`, 'y');
/** User and password as curl accepts them. */
const USER_FLAG = /((?<![\w-])(?:-u|--user|--proxy-user)[ \t=]{1,8})["']?[^\s:"']+:[^\s"']+["']?/g;
/** Credentials in HTTP headers. */
const BEARER =
  /\b(Bearer|Basic|TC3-HMAC-SHA256)[ \t]+[^\s"',;\\]+(?:[ \t]*,[ \t]*(?:SignedHeaders|Signature)=[^\s"',;\\]+)*/gi;
/** Credentials in a URL, up to the last at sign before the path: a password may contain one. */
const URL_CREDENTIALS = /(?<![a-z0-9+.-])([a-z][a-z0-9+.-]*:\/\/)[^/\s"'?#]*@/gi;
/** Credentials without a scheme; the digest of an image is excluded. */
const BARE_CREDENTIALS = /(?<![\w.@/:%+-])[\w.%+-]+:[^\s:@/"'[\]]+@(?!sha\d)(?=[\w[])/g;
/** A variable as Kubernetes writes it: the name in one field, the value in the next. */
const PAIR =
  /(\b(?:name|key)\\*["']?[ \t]*[:=][ \t]*\\*["']?([\w.-]+)\\*["']?[\s,]{0,40}\\*["']?value\\*["']?[ \t]*[:=][ \t]*)(?:"[^"\n]*"?|'[^'\n]*'?|\\+"(?:(?!\\+")[^\n])*\\*"?|[^\s,}]+)/gi;
/** Secrets in prose: `Secret Access Key: …`, `password is …`, and as in .netrc. */
const PROSE_SECRET =
  /(\b(?:(?:secret|access|private|api|client|session)[ \t](?:access[ \t])?key(?:[ \t]id)?[ \t]{0,8}[:=][ \t]{0,8}|(?:password|passwd|passphrase)(?:[ \t]is)?[ \t]))(?![:=[])\S+/gi;
/**
 * Tokens with a known form: JSON web tokens (also broken over lines), ids of Tencent Cloud and AWS keys, tokens of
 * GitHub, GitLab, Slack and OpenShift, bootstrap tokens of Kubernetes, keys of age, and password hashes as in
 * /etc/shadow.
 */
const KNOWN_TOKENS = new RegExp(
  `(?<![A-Za-z0-9_-])(?:${[
    'eyJ[A-Za-z0-9_-]{6,}(?:\\.[A-Za-z0-9_-]*){0,2}(?:\\n(?:\\d{4}-\\S{1,40} std(?:out|err) [FP] )?[ \\t]{0,40}[A-Za-z0-9_.-]{6,}(?=[ \\t]*(?:\\n|$)))*',
    'AKID[A-Za-z0-9]{8,}|A[KS]IA[A-Z0-9]{12,}|gh[pousr]_[A-Za-z0-9]{16,}|github_pat_\\w{16,}|glpat-[\\w-]{16,}',
    'xox[a-z]-[\\w-]{10,}|sha256~[\\w-]{16,}|AGE-SECRET-KEY-1[0-9A-Z]+|[a-z0-9]{6}\\.[a-z0-9]{16}(?![a-z0-9])',
    '\\$(?:1|2[abxy]?|5|6|7|y|gy|argon2[a-z]{1,2}|scrypt)\\$[^\\s:"\\u0027,;]{8,}',
  ].join('|')})`,
  'g',
);
/** A long word in one of the two base64 alphabets. */
const LONG_WORD = /[A-Za-z0-9+/_=-]{16,}/g;

function redactNamed(text: string, names: RegExp, values: RegExp): string {
  const pieces: string[] = [];
  let at = 0;
  names.lastIndex = 0;
  for (let match = names.exec(text); match !== null; match = names.exec(text)) {
    if (!isSecretName(match[1] ?? '')) continue;
    values.lastIndex = names.lastIndex;
    const first = values.exec(text)?.[0];
    if (first === undefined || isHarmless(first)) continue;
    const value = fullValue(text, { name: match[1] ?? '', nameAt: match.index, at: names.lastIndex, first });
    pieces.push(text.slice(at, names.lastIndex), redactedLike(value));
    at = names.lastIndex + value.length;
    names.lastIndex = at;
  }
  return [...pieces, text.slice(at)].join('');
}

type Value = { readonly name: string; readonly nameAt: number; readonly at: number; readonly first: string };

/**
 * Returns the whole value. A value without quotes ends with its word, except in headers and in YAML, where it extends
 * to the end of the line.
 */
function fullValue(text: string, { name, nameAt, at, first }: Value): string {
  if (/^(?:\\*["']|[[{&])/.test(first)) return first;
  if (/cookie|authorization/i.test(name)) {
    const rest = /^Digest\b/i.test(first) ? /[^\n]*/y : /[^\n"']*/y;
    rest.lastIndex = at;
    return rest.exec(text)?.[0] ?? first;
  }
  const isYaml = text[at - 1] === ' ' && /:[ \t]+$/.test(text.slice(at - 8, at));
  if (
    !isYaml ||
    !/(?:^|\n)[ \t]*(?:- )?$/.test(`${nameAt < 64 ? '\n' : ''}${text.slice(Math.max(0, nameAt - 64), nameAt)}`)
  )
    return first;
  const end = text.indexOf('\n', at);
  return text.slice(at, end < 0 ? text.length : end);
}

/** Returns whether a value is a number, a constant or already removed; `tokens: 12` is a count. */
function isHarmless(value: string): boolean {
  return /^(?:\d{1,9}|true|false|null|undefined|\[removed.*|\\*["']\[removed.*|\[\]|\{\})$/.test(value);
}

function redactedLike(value: string): string {
  const quote = /^\\*["']/.exec(value)?.[0];
  return quote === undefined ? '[removed]' : `${quote}[removed]${quote}`;
}

/**
 * Returns whether a word looks random: capitals, small letters and digits in one long word. Our names and those of
 * Kubernetes and the kernel have no such mixture, nor have hexadecimal ids; keys and certificates have. The parts of a
 * path are tested one by one.
 */
function isRandom(word: string): boolean {
  const segments = word.startsWith('/') ? word.split('/') : [word];
  return segments.some((part) => part.length >= 20 && /[A-Z]/.test(part) && /[a-z]/.test(part) && /\d/.test(part));
}

/** Returns whether a word is base64 of a readable text, which may hide a secret. By chance one word in 100,000 is. */
function isEncodedText(word: string): boolean {
  const bytes = Buffer.from(word, 'base64');
  return (
    word.replace(/=+$/, '').length === Math.ceil((bytes.length * 4) / 3) &&
    bytes.every((byte) => (byte >= 0x20 && byte < 0x7f) || (byte >= 0x09 && byte <= 0x0d))
  );
}

/**
 * Removes blocks under secret-sounding names from a text. It finds them by indentation: YAML (`password: |` and the
 * lines below it, mappings, lists), and JSON written over several lines. Lines may have the prefix that container
 * runtimes write.
 */
function redactBlocks(text: string, isSecretName: (name: string) => boolean): string {
  const lines: string[] = [];
  let hidden: Block | undefined;
  for (const line of joinPartialLines(text).split('\n')) {
    const content = line.replace(RUNTIME_PREFIX, '');
    const indent = content.length - content.trimStart().length;
    if (hidden !== undefined && isWithin(hidden, content, indent)) continue;
    hidden = undefined;
    const match = BLOCK_END.test(content) ? BLOCK_HEAD.exec(content) : null;
    if (match?.[2] === undefined || !isSecretName(match[2])) lines.push(line);
    else {
      hidden = { indent, isItem: match[1] !== undefined };
      lines.push(`${line.replace(BLOCK_END, '$1')} [removed]`);
    }
  }
  return lines.join('\n');
}

/** Joins lines that a container runtime has split, so that no secret is spread over two lines. */
function joinPartialLines(text: string): string {
  if (!text.includes(' P ')) return text;
  let isOpen = false;
  const pieces: string[] = [];
  for (const line of text.split('\n')) {
    const flag = RUNTIME_PREFIX.exec(line)?.[1];
    if (isOpen && flag !== undefined) pieces.push(line.replace(RUNTIME_PREFIX, ''));
    else pieces.push(pieces.length === 0 ? line : `\n${line}`);
    isOpen = flag === 'P';
  }
  return pieces.join('');
}

/** A name whose value is in the lines below it. */
type Block = { readonly indent: number; readonly isItem: boolean };

/** Returns whether a line belongs to a block. Items of a list may have the same indentation as the name of the list. */
function isWithin({ indent: head, isItem }: Block, content: string, indent: number): boolean {
  return content.trim() === '' || indent > head || (indent === head && !isItem && content.startsWith('- ', indent));
}

/** Prefix of a log line: time, stream, whole (F) or partial (P). @see Kubernetes CRI, log format */
const RUNTIME_PREFIX = /^\d{4}-\S{1,40} (?:stdout|stderr) ([FP]) /;
const BLOCK_HEAD = /^\s*(- )?\\*["']?([\w.-]+)\\*["']?:/;
const BLOCK_END = /(:)[ \t]{0,8}(?:[|>][-+\d]{0,2}|[[{])?[ \t]{0,8}$/;

const BEGIN = '-----BEGIN ';
const END = '-----END ';
const DASHES = '-----';
const LABEL_CHARS = 100;
const REMOVED = '[removed: PEM]';

/**
 * Removes PEM blocks (keys and certificates) from a text. Of an incomplete block everything that is present is removed:
 * to the end of the text where its end is missing, back through the lines of base64 where its beginning is missing.
 */
function redactPem(text: string): string {
  const pieces: string[] = [];
  let at = 0;
  let begin = text.indexOf(BEGIN);
  let end = text.indexOf(END);
  for (;;) {
    // Search again only when the last match lies behind `at`. A marker that does not occur would otherwise be searched
    // to the end of the text in every round.
    if (begin >= 0 && begin < at) begin = text.indexOf(BEGIN, at);
    if (end >= 0 && end < at) end = text.indexOf(END, at);
    if (begin < 0 && end < 0) return [...pieces, text.slice(at)].join('');
    if (end >= 0 && (begin < 0 || end < begin)) {
      pieces.push(withoutTail(text.slice(at, end)), REMOVED);
      at = afterLabel(text, end + END.length);
      continue;
    }
    pieces.push(text.slice(at, begin), REMOVED);
    if (end < 0) return pieces.join('');
    at = afterLabel(text, end + END.length);
  }
}

function afterLabel(text: string, from: number): number {
  // Labels are short; 'ENCRYPTED PRIVATE KEY' is one of the longest.
  const rest = text.slice(from, from + LABEL_CHARS);
  const dashes = rest.indexOf(DASHES);
  const line = rest.indexOf('\n');
  if (dashes >= 0 && (line < 0 || dashes < line)) return from + dashes + DASHES.length;
  return from + (line < 0 ? rest.length : line);
}

/** Removes the lines of base64 at the end of a text. */
function withoutTail(text: string): string {
  const lines = text.split('\n');
  while (lines.length > 0 && /^(?:\d{4}-\S{1,40} (?:stdout|stderr) [FP] )?[A-Za-z0-9+/=\s]*$/.test(lines.at(-1) ?? ''))
    lines.pop();
  return lines.length === 0 ? '' : `${lines.join('\n')}\n`;
}
