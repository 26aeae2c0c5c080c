/** One fault of an input: its place, what was expected, what was found. */
export type Fault = { readonly path: string; readonly expected: string; readonly got: string };

/**
 * An input from outside that does not have the required shape. Carries every fault; its message shows the first ones.
 */
export class ConfigError extends Error {
  readonly code = 'CONFIG';
  /** What was read: a file name, "flags", "stdin". */
  readonly source: string;
  readonly faults: readonly Fault[];

  constructor(source: string, faults: readonly Fault[]) {
    super(`${source}: ${renderFaults(faults)}`);
    this.name = 'ConfigError';
    this.source = source;
    this.faults = faults;
  }
}

/** Collects faults while a decoder continues, so that the user can correct all of them at once. */
export class Faults {
  readonly list: Fault[] = [];

  /** Adds one fault. */
  add(path: string, expected: string, got: unknown): void {
    this.list.push({ path, expected, got: describe(got) });
  }

  /** @throws ConfigError naming `source` when there is any fault. */
  throwIfAny(source: string): void {
    if (this.list.length > 0) throw new ConfigError(source, this.list);
  }
}

/** Turns a value of unknown shape into a `T`, or adds faults and returns undefined. */
export type Decoder<T> = (value: unknown, path: string, faults: Faults) => T | undefined;

/** Runs a decoder over the whole value. @throws ConfigError with every fault found. */
export function decodeOrThrow<T>(decoder: Decoder<T>, value: unknown, source: string): T {
  const faults = new Faults();
  const decoded = decoder(value, '', faults);
  faults.throwIfAny(source);
  if (decoded === undefined) throw new ConfigError(source, [{ path: '', expected: 'a value', got: describe(value) }]);
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
  return (value, path, faults) => {
    const found = values.find((candidate) => candidate === value);
    if (found === undefined) faults.add(path, `one of ${values.map((v) => JSON.stringify(v)).join(', ')}`, value);
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
  return (value, path, faults) => {
    if (!isRecord(value)) {
      faults.add(path, 'an object', value);
      return undefined;
    }
    const before = faults.list.length;
    const decoded: Record<string, unknown> = {};
    for (const [key, field] of Object.entries(fields)) {
      const at = join(path, key);
      const present = value[key] !== undefined && value[key] !== null;
      if (present) decoded[key] = field.decoder(value[key], at, faults);
      else if (!field.optional) faults.add(at, 'a value', value[key]);
    }
    if (unknownKeys === 'reject') {
      for (const key of Object.keys(value).filter((candidate) => !Object.hasOwn(fields, candidate))) {
        faults.add(join(path, key), `no such field; known are ${Object.keys(fields).join(', ')}`, value[key]);
      }
    }
    // The loop above filled `decoded` field by field from the same table that the type is derived from.
    return faults.list.length > before ? undefined : (decoded as RecordOf<F>);
  };
}

/** Tells whether a value is an object with keys, neither null nor a list. */
export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function join(path: string, key: string): string {
  return path === '' ? key : `${path}.${key}`;
}

/**
 * Most faults in one message. A file of thousands of addresses can have a fault in each; a log line must stay readable.
 */
const SHOWN_FAULTS = 20;

function renderFaults(faults: readonly Fault[]): string {
  const shown = faults.slice(0, SHOWN_FAULTS).map(renderFault);
  const more = faults.length - shown.length;
  return [...shown, ...(more > 0 ? [`and ${more} more`] : [])].join('; ');
}

function renderFault(fault: Fault): string {
  return `${fault.path === '' ? 'the whole' : fault.path}: expected ${fault.expected}, got ${fault.got}`;
}

const DESCRIBED_CHARS = 80;

/** Renders a value for an error message, shortened so that a wrong file does not fill the log. */
function describe(value: unknown): string {
  if (value === undefined) return 'nothing';
  const shown = render(value);
  return shown.length > DESCRIBED_CHARS ? `${shown.slice(0, DESCRIBED_CHARS)}…` : shown;
}

function render(value: unknown): string {
  try {
    return JSON.stringify(value) ?? String(value);
  } catch {
    // A YAML alias can make a list its own item.
    return typeof value === 'object' ? 'a value that refers to itself' : String(value);
  }
}
