/**
 * What a text consists of: pairs of a kind and a value. Written so: ids as 16 hex digits, addresses as `10.0.0.n`, ENIs as
 * `eni-n`, epochs as `@en`, times as `@tn`, epochs of leaders as `@ln`; the rest is taken as it is.
 */
type Tokens = readonly number[];

const KIND = { word: 0, id: 1, ip: 2, eni: 3, epoch: 4, time: 5, leader: 6 } as const;
const VOLATILE = /([0-9a-f]{16})|10\.0\.0\.(\d+)|eni-(\d+)|@e(-?\d+)|@t([\d.]+)|@l(\d+)/g;

const texts = new Map<string, Tokens>();
const words = new Map<string, number>();
/** Texts name ids, and these never come again: what was read long ago is let go. */
const MOST_TEXTS = 100_000;

/** Reads a text; one that was read before costs a look-up. */
export function tokensOf(text: string): Tokens {
  const known = texts.get(text);
  if (known !== undefined) return known;
  const tokens: number[] = [];
  let end = 0;
  for (const found of text.matchAll(VOLATILE)) {
    if (found.index > end) tokens.push(KIND.word, wordNumber(text.slice(end, found.index)));
    const kind = found.findIndex((part, i) => i > 0 && part !== undefined);
    const value = found[kind] ?? '';
    tokens.push(kind, kind === KIND.id ? Number.parseInt(value, 16) : Number(value));
    end = found.index + found[0].length;
  }
  if (end < text.length) tokens.push(KIND.word, wordNumber(text.slice(end)));
  if (texts.size >= MOST_TEXTS) texts.clear();
  texts.set(text, tokens);
  return tokens;
}

function wordNumber(word: string): number {
  const known = words.get(word) ?? words.size;
  words.set(word, known);
  return known;
}

/** Renames: what is compared for equality by first occurrence, what is compared for order by rank. */
export class Namer {
  #parts: Tokens[] = [];

  /** Adds a part; the order of the parts counts. */
  add(tokens: Tokens): void {
    this.#parts.push(tokens);
  }

  /** Returns the name of all parts together, good until the next call. @param exactFrom Of epochs above this one it counts how far apart they are. */
  name(leader: number, exactFrom: number): Int32Array {
    const [enis, epochs, times] = [new Ranks(), new Ranks(exactFrom), new Ranks()];
    for (const tokens of this.#parts) {
      for (let i = 0; i < tokens.length; i += 2) {
        const [kind, value] = [tokens[i], tokens[i + 1] ?? 0];
        if (kind === KIND.eni) enis.add(value);
        else if (kind === KIND.epoch) epochs.add(value);
        else if (kind === KIND.time) times.add(value);
      }
    }
    const [ids, ips] = [new Firsts(), new Firsts()];
    let length = 0;
    for (const tokens of this.#parts) {
      for (let i = 0; i < tokens.length; i += 2) {
        const [kind, value] = [tokens[i] ?? 0, tokens[i + 1] ?? 0];
        if (length === buffer.length) throw new Error('a state is larger than any that this was made for');
        buffer[length++] = kind + 8 * nameOf(kind, value);
      }
    }
    return buffer.subarray(0, length);

    function nameOf(kind: number, value: number): number {
      switch (kind) {
        case KIND.id:
          return ids.of(value);
        case KIND.ip:
          return ips.of(value);
        case KIND.eni:
          return enis.of(value);
        case KIND.epoch:
          return epochs.of(value);
        case KIND.time:
          return times.of(value);
        case KIND.leader:
          // Of an intent's epoch only one thing counts: whether it is the leader's own.
          return value === leader ? 1 : 0;
        default:
          return value;
      }
    }
  }
}

const buffer = new Int32Array(1 << 14);

/** Numbers values in the order in which they are first asked for. */
class Firsts {
  #seen: number[] = [];

  of(value: number): number {
    const known = this.#seen.indexOf(value);
    return known >= 0 ? known : this.#seen.push(value) - 1;
  }
}

/** Ranks values by size; above `exactFrom` their distances are kept. */
class Ranks {
  readonly #exactFrom: number;
  #sorted: number[] = [];

  constructor(exactFrom = Number.POSITIVE_INFINITY) {
    this.#exactFrom = exactFrom;
  }

  add(value: number): void {
    let place = this.#sorted.length;
    while (place > 0 && (this.#sorted[place - 1] ?? 0) > value) place--;
    if (place > 0 && this.#sorted[place - 1] === value) return;
    this.#sorted.splice(place, 0, value);
  }

  of(value: number): number {
    let rank = 0;
    for (let i = 1; i < this.#sorted.length && (this.#sorted[i] ?? 0) <= value; i++) {
      const [before, at] = [this.#sorted[i - 1] ?? 0, this.#sorted[i] ?? 0];
      rank += before >= this.#exactFrom ? at - before : 1;
    }
    return rank;
  }
}
