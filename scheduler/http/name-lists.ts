/**
 * Recent lists of node names, as text and as strings. kube-scheduler sends the list that filter answered to prioritize, and often
 * the same list for the next Pod. A list that is known by its text is not parsed again, and its array stays the same one,
 * so that what was made of it can be used again.
 */
export class NameLists {
  readonly #recent: Known[] = [];

  /** Parses the body of a request, as JSON.parse does. @throws SyntaxError */
  parse(body: Buffer): unknown {
    const at = body.lastIndexOf(KEY);
    const end = body.lastIndexOf(END);
    // The names come last: `…"NodeNames":[…]}`.
    const isLast = at >= 0 && end > at && body.toString('latin1', end + 1).trimEnd() === '}';
    if (!isLast) return JSON.parse(body.toString('utf8'));
    const text = body.subarray(at + KEY.length - 1, end + 1);
    const known = this.#recent.find((one) => one.text.equals(text));
    if (known === undefined) return this.#remember(JSON.parse(body.toString('utf8')), text);
    // Parses only where a key of the outermost object can stand in that place; else the list is a part of something else.
    const rest = objectIn(`${body.toString('utf8', 0, at)}"NodeNames":null}`);
    return rest === undefined ? JSON.parse(body.toString('utf8')) : { ...rest, NodeNames: known.names };
  }

  #remember(value: unknown, text: Buffer): unknown {
    if (typeof value !== 'object' || value === null || !('NodeNames' in value)) return value;
    const { NodeNames: names } = value;
    // The text may be of another list, inside of the Pod: it counts only where it says the same names.
    if (!Array.isArray(names) || text.length < MIN_BYTES || text.length > MAX_BYTES) return value;
    if (text.toString('utf8') !== JSON.stringify(names)) return value;
    this.#recent.unshift({ text: Buffer.from(text), names });
    this.#recent.length = Math.min(this.#recent.length, MAX_LISTS);
    return value;
  }
}

type Known = { readonly text: Buffer; readonly names: readonly unknown[] };

const KEY = '"NodeNames":[';
const END = ']}';
/** Lists that are remembered: of a few Pods at once, before and after filter. */
const MAX_LISTS = 4;
/** A shorter list is parsed in no time. */
const MIN_BYTES = 1_000;
/** A longer list is not remembered: 10,000 names take 200 kB. */
const MAX_BYTES = 1_048_576;

function objectIn(text: string): object | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}
