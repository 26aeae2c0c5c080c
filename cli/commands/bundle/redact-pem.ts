const BEGIN = '-----BEGIN ';
const END = '-----END ';
const DASHES = '-----';
const LABEL_CHARS = 100;
const REMOVED = '[removed: PEM]';

/**
 * Removes PEM blocks (keys and certificates) from a text. Of an incomplete block everything that is present is removed:
 * to the end of the text where its end is missing, back through the lines of base64 where its beginning is missing.
 */
export function redactPem(text: string): string {
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
