import { redactBlocks } from './redact-lines.ts';
import { redactPem } from './redact-pem.ts';

/**
 * Takes what may be secret out of a text, whatever it is: values of names that sound secret (in JSON, YAML, INI, flags,
 * environment, headers), blocks in PEM, tokens by their shape, credentials in URLs, and long random words. Rather too
 * much than too little: an archive travels. Takes time in proportion to the text. Pure; doing it twice changes nothing more.
 */
export function redactText(text: string): string {
  const assignments = redactBlocks(redactPem(text), isSecretName)
    .replace(URL_CREDENTIALS, '$1[removed]@')
    .replace(BARE_CREDENTIALS, '[removed]@')
    .replace(BEARER, '$1 [removed]')
    .replace(PAIR, (pair, head: string, name: string) => (isSecretName(name) ? `${head}[removed]` : pair))
    .replace(SAID_IN_WORDS, '$1[removed]')
    .replace(USER_FLAG, '$1[removed]');
  return redactNamed(redactNamed(assignments, ASSIGNMENT, ASSIGNED), FLAG, FLAGGED)
    .replace(KNOWN_TOKENS, '[removed: token]')
    .replace(LONG_WORD, (word) => (isRandom(word) || isEncodedText(word) ? '[removed: random]' : word));
}

/** Tells whether a name sounds as if its value were secret. Pure. */
export function isSecretName(name: string): boolean {
  return SECRET_NAME.test(name) || SHORT_NAME.test(name);
}

/** What names of secret values contain. Those that we read ourselves are among them: TENCENTCLOUD_SECRET_KEY, … */
const SECRET_NAME = new RegExp(
  [
    'passw(?:or)?d|passphrase|secret|token|api[-_.]?key|access[-_.]?key|private[-_.]?key|client[-_.]?key',
    'encryption[-_.]?key|credential|authorization|cert(?:ificate)?(?:-authority)?[-_]?data|ca[-_]?data|ca[-_]?bundle',
    'signature|cookie|tencentcloud_|kubeconfig[-_]?data|dockerconfig|session[-_.]?(?:key|id)|(?:ssh|tls)[-_.]?key',
  ].join('|'),
  'i',
);
/** Words too short to be looked for within others: they are all of a name or its last part. `ak` and `sk` are the cloud's. */
const SHORT_NAME =
  /(?:^|[-_.])(?:auths?|pass|pwd|ak|sk|psk|sig|hmac|otp|AUTHS?|PASS|PWD|AK|SK|PSK|SIG|HMAC|OTP)$|[a-z](?:Auth|Pass|Pwd)$/;

// Names are found whole, by what cannot be before them, and judged after: a pattern that looks for the secret word within
// a name tries each place of a long one again and again. What follows a harmless name is searched itself.
/** In quotes, which may be escaped, as in JSON within JSON; an open quote takes the rest of the line. */
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
/** `--token abc`, also as two members of a list in JSON or YAML; with '=' it is an assignment. */
const FLAG =
  /(?<![A-Za-z0-9_.-])(--?[A-Za-z][A-Za-z0-9_.-]*)(?:[ \t]+|\\*["'],?\s{0,40}(?:-[ \t]+)?|\n[ \t]{0,40}-[ \t]+)/g;
const FLAGGED = new RegExp(`${QUOTED}|(?!--)[^\\s,\\]}]\\S*`, 'y');
/** As curl takes it. */
const USER_FLAG = /((?<![\w-])(?:-u|--user|--proxy-user)[ \t=]{1,8})["']?[^\s:"']+:[^\s"']+["']?/g;
/** Of headers. */
const BEARER =
  /\b(Bearer|Basic|TC3-HMAC-SHA256)[ \t]+[^\s"',;\\]+(?:[ \t]*,[ \t]*(?:SignedHeaders|Signature)=[^\s"',;\\]+)*/gi;
/** Up to the last at sign before the path: a password may have one. */
const URL_CREDENTIALS = /(?<![a-z0-9+.-])([a-z][a-z0-9+.-]*:\/\/)[^/\s"'?#]*@/gi;
/** Without a scheme; a digest of an image is none. */
const BARE_CREDENTIALS = /(?<![\w.@/:%+-])[\w.%+-]+:[^\s:@/"'[\]]+@(?!sha\d)(?=[\w[])/g;
/** A variable as Kubernetes writes it: its name in one field, its value in the next. */
const PAIR =
  /(\b(?:name|key)\\*["']?[ \t]*[:=][ \t]*\\*["']?([\w.-]+)\\*["']?[\s,]{0,40}\\*["']?value\\*["']?[ \t]*[:=][ \t]*)(?:"[^"\n]*"?|'[^'\n]*'?|\\+"(?:(?!\\+")[^\n])*\\*"?|[^\s,}]+)/gi;
/** `Secret Access Key: …`, `password is …`, and as in .netrc. */
const SAID_IN_WORDS =
  /(\b(?:(?:secret|access|private|api|client|session)[ \t](?:access[ \t])?key(?:[ \t]id)?[ \t]{0,8}[:=][ \t]{0,8}|(?:password|passwd|passphrase)(?:[ \t]is)?[ \t]))(?![:=[])\S+/gi;
/**
 * JSON web tokens, those broken over lines too, ids of Tencent Cloud and AWS keys, tokens of GitHub, GitLab, Slack and
 * OpenShift, bootstrap tokens of Kubernetes, keys of age, and passwords as /etc/shadow has them.
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
/** Base64 in its two alphabets. */
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
    const value = wholeValue(text, { name: match[1] ?? '', nameAt: match.index, at: names.lastIndex, first });
    pieces.push(text.slice(at, names.lastIndex), redactedLike(value));
    at = names.lastIndex + value.length;
    names.lastIndex = at;
  }
  return [...pieces, text.slice(at)].join('');
}

type Value = { readonly name: string; readonly nameAt: number; readonly at: number; readonly first: string };

/** A value without quotes ends with its word, except in headers, and in YAML, where it has the rest of the line. */
function wholeValue(text: string, { name, nameAt, at, first }: Value): string {
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

/** Base64 of a readable text: something was hidden, or could not be written otherwise. By chance one word in 100,000 is. */
function isEncodedText(word: string): boolean {
  const bytes = Buffer.from(word, 'base64');
  return (
    word.replace(/=+$/, '').length === Math.ceil((bytes.length * 4) / 3) &&
    bytes.every((byte) => (byte >= 0x20 && byte < 0x7f) || (byte >= 0x09 && byte <= 0x0d))
  );
}
