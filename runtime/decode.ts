/** One fault of an input: its place, what was expected, what was found. */
export type Fault = { readonly path: string; readonly expected: string; readonly got: string };

/**
 * An input from outside that does not have the required shape. Carries the first faults and the number of all; its
 * message shows the first ones.
 */
export class ConfigError extends Error {
  readonly code = 'CONFIG';
  /** What was read: a file name, "flags", "stdin". */
  readonly source: string;
  readonly faults: readonly Fault[];
  /** How many faults the input has; `faults` may have fewer. */
  readonly count: number;

  constructor(source: string, faults: readonly Fault[], count: number = faults.length) {
    super(`${source}: ${renderFaults(faults, count)}`);
    this.name = 'ConfigError';
    this.source = source;
    this.faults = faults;
    this.count = count;
  }
}

/** Most faults that are kept of one input. An input of megabytes can have a fault in every second byte. */
export const MAX_FAULTS = 100;

/**
 * Collects faults while a decoder continues, so that the user can correct all of them at once. Keeps the first
 * `MAX_FAULTS` of them, and of as many further fields the first one, with short texts; counts the others. Its memory
 * does not depend on the input.
 */
export class Faults {
  readonly #kept: Fault[] = [];
  /** The fields of `#kept`: a body can have half a million faults, and each asks for its field. */
  readonly #fields = new Set<string>();
  #count = 0;

  /** The first faults. */
  get list(): readonly Fault[] {
    return this.#kept;
  }

  /** How many faults were added. */
  get count(): number {
    return this.#count;
  }

  /** Adds one fault. */
  add(path: string, expected: string, got: unknown): void {
    this.#count += 1;
    if (this.#kept.length >= MAX_FAULTS && !this.#isFirstOfField(path)) return;
    this.#keep({ path: cut(path, MAX_PATH_CHARS), expected, got: describeValue(got) });
  }

  /** Adds the faults of another input, with their places changed by `place`. */
  addAll({ faults, count }: ConfigError, place: (path: string) => string): void {
    this.#count += count;
    const budget = MAX_FAULTS - this.#kept.length;
    for (const fault of faults.slice(0, budget)) this.#keep({ ...fault, path: place(fault.path) });
  }

  #keep(fault: Fault): void {
    this.#kept.push(fault);
    this.#fields.add(fieldOf(fault.path));
  }

  /** Some readers drop the fields that have a fault and use the others: no field may hide behind many faults of another. */
  #isFirstOfField(path: string): boolean {
    return this.#kept.length < 2 * MAX_FAULTS && !this.#fields.has(fieldOf(cut(path, MAX_PATH_CHARS)));
  }

  /** @throws ConfigError naming `source` when there is any fault. */
  throwIfAny(source: string): void {
    if (this.#count > 0) throw new ConfigError(source, this.#kept, this.#count);
  }
}

/** Returns the first two names of a place: `status.eniInfos[3].mac` is in `status.eniInfos`. */
export function fieldOf(path: string): string {
  return /^[^.[]+(\.[^.[]+)?/.exec(path)?.[0] ?? '';
}

/** Turns a value of unknown shape into a `T`, or adds faults and returns undefined. */
export type Decoder<T> = (value: unknown, path: string, faults: Faults) => T | undefined;

/** Runs a decoder over the whole value. @throws ConfigError with every fault found. */
export function decodeOrThrow<T>(decoder: Decoder<T>, value: unknown, source: string): T {
  const faults = new Faults();
  const decoded = decoder(value, '', faults);
  faults.throwIfAny(source);
  if (decoded === undefined)
    throw new ConfigError(source, [{ path: '', expected: 'a value', got: describeValue(value) }]);
  return decoded;
}

/** Decodes a text, optionally one that matches `pattern`, described as `expected`. */
export function text(pattern?: RegExp, expected = 'a text'): Decoder<string> {
  return (value, path, faults) => {
    if (typeof value === 'string' && (pattern === undefined || pattern.test(value))) return value;
    faults.add(path, expected, value);
    return undefined;
  };
}

/** Decodes a whole number from `min` to `max`, both included. */
export function integer(min: number, max: number): Decoder<number> {
  return (value, path, faults) => {
    if (typeof value === 'number' && Number.isInteger(value) && value >= min && value <= max) return value;
    faults.add(path, `a whole number from ${min} to ${max}`, value);
    return undefined;
  };
}

/** Decodes true or false. */
export const boolean: Decoder<boolean> = (value, path, faults) => {
  if (typeof value === 'boolean') return value;
  faults.add(path, 'true or false', value);
  return undefined;
};

/** Decodes one of the given texts. */
export function oneOf<const T extends string>(values: readonly T[]): Decoder<T> {
  const expected = `one of ${values.map((v) => JSON.stringify(v)).join(', ')}`;
  return (value, path, faults) => {
    const found = values.find((candidate) => candidate === value);
    if (found === undefined) faults.add(path, expected, value);
    return found;
  };
}

/** Decodes a list, each item by `item`; null and absence are faults, an empty list is not. */
export function list<T>(item: Decoder<T>): Decoder<readonly T[]> {
  return (value, path, faults) => {
    if (!Array.isArray(value)) {
      faults.add(path, 'a list', value);
      return undefined;
    }
    const decoded: T[] = [];
    value.forEach((entry: unknown, index) => {
      const one = item(entry, `${path}[${index}]`, faults);
      if (one !== undefined) decoded.push(one);
    });
    return decoded;
  };
}

/** A field of `record`: its decoder, and whether it may be absent. */
export type Field<T> = { readonly decoder: Decoder<T>; readonly optional: boolean };

/** Marks a field that must be present. */
export function required<T>(decoder: Decoder<T>): Field<T> & { readonly optional: false } {
  return { decoder, optional: false };
}

/** Marks a field that may be absent; null counts as absent, as in Kubernetes objects. */
export function optional<T>(decoder: Decoder<T>): Field<T> & { readonly optional: true } {
  return { decoder, optional: true };
}

type Fields = Readonly<Record<string, Field<unknown>>>;
type RequiredKeys<F extends Fields> = { [K in keyof F]: F[K]['optional'] extends true ? never : K }[keyof F];
type ValueOf<D> = D extends Field<infer T> ? T : never;

/** The type that `record` decodes to. */
export type RecordOf<F extends Fields> = { readonly [K in RequiredKeys<F>]: ValueOf<F[K]> } & {
  readonly [K in Exclude<keyof F, RequiredKeys<F>>]?: ValueOf<F[K]>;
};

/**
 * Decodes an object field by field.
 * @param unknownKeys 'reject' in the configuration of this project, where an unknown key is a spelling mistake;
 * 'ignore' in objects of others (CNI, Kubernetes), whose version may be newer.
 */
export function record<const F extends Fields>(fields: F, unknownKeys: 'reject' | 'ignore'): Decoder<RecordOf<F>> {
  // Made once: a value of megabytes may have a fault in each byte.
  const entries = Object.entries(fields);
  const unknownField = `no such field; known are ${Object.keys(fields).join(', ')}`;
  return (value, path, faults) => {
    if (!isRecord(value)) {
      faults.add(path, 'an object', value);
      return undefined;
    }
    const before = faults.count;
    const decoded: Record<string, unknown> = {};
    for (const [key, field] of entries) {
      const at = join(path, key);
      const present = value[key] !== undefined && value[key] !== null;
      if (present) decoded[key] = field.decoder(value[key], at, faults);
      else if (!field.optional) faults.add(at, 'a value', value[key]);
    }
    if (unknownKeys === 'reject') {
      for (const key in value) {
        if (!Object.hasOwn(value, key) || Object.hasOwn(fields, key)) continue;
        faults.add(join(path, key), unknownField, value[key]);
      }
    }
    // The loop above filled `decoded` field by field from the same table that the type is derived from.
    return faults.count > before ? undefined : (decoded as RecordOf<F>);
  };
}

/** Reports whether a value is an object with keys, neither null nor a list. */
export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function join(path: string, key: string): string {
  // The key may be foreign and long, and each fault below it has it in its place.
  const short = cut(key, MAX_PATH_CHARS);
  return path === '' ? short : `${path}.${short}`;
}

/**
 * Most faults in one message. A file of thousands of addresses can have a fault in each; a log line must stay readable.
 */
const SHOWN_FAULTS = 20;

/** Renders the first of `count` faults for people, and how many more there are. */
export function renderFaults(faults: readonly Fault[], count: number, most = SHOWN_FAULTS): string {
  const shown = faults.slice(0, most).map(renderFault);
  const more = count - shown.length;
  return [...shown, ...(more > 0 ? [`and ${more} more`] : [])].join('; ');
}

/** Renders a fault for people. */
export function renderFault({ path, expected, got }: Fault): string {
  return `${path === '' ? 'the whole' : path}: expected ${expected}, got ${got}`;
}

/** Most characters of a place. Its keys may be foreign. */
const MAX_PATH_CHARS = 200;
const DESCRIBED_CHARS = 80;

/** Renders a value for an error message, shortened so that a wrong file does not fill the log. */
export function describeValue(value: unknown): string {
  return value === undefined ? 'nothing' : cut(renderStart(value, DESCRIBED_CHARS + 1), DESCRIBED_CHARS);
}

function cut(text: string, maxChars: number): string {
  return text.length > maxChars ? `${text.slice(0, maxChars)}…` : text;
}

/**
 * Renders the first characters of a value as JSON: at least `chars` of them, or all. Reads no more of the value than
 * that takes: a value of megabytes costs no more than a small one.
 * @param around the lists and objects that the value is in; a YAML alias can make a list its own item
 */
function renderStart(value: unknown, chars: number, around: readonly object[] = []): string {
  if (typeof value === 'string') return JSON.stringify(value.slice(0, chars));
  if (typeof value === 'bigint') return String(value);
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? String(value);
  if (around.includes(value)) return 'a value that refers to itself';
  return Array.isArray(value)
    ? renderList(value, chars, [...around, value])
    : renderObject(value, chars, [...around, value]);
}

function renderList(list: readonly unknown[], chars: number, around: readonly object[]): string {
  let text = '[';
  for (let index = 0; index < list.length && text.length < chars; index++) {
    text += `${index > 0 ? ',' : ''}${renderStart(list[index] ?? null, chars - text.length, around)}`;
  }
  return `${text}]`;
}

function renderObject(object: object, chars: number, around: readonly object[]): string {
  let text = '{';
  for (const key in object) {
    if (text.length >= chars) break;
    const value: unknown = Reflect.get(object, key);
    if (!Object.hasOwn(object, key) || value === undefined) continue;
    text += `${text.length > 1 ? ',' : ''}${renderStart(key, chars)}:`;
    text += renderStart(value, Math.max(1, chars - text.length), around);
  }
  return `${text}}`;
}
