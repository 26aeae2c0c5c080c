/**
 * `node --max-old-space-size=N test/foreign-input/try-decoders.ts [FOLDER...]`: feeds each exported decoder, or those of some folders, the largest
 * allowed body of wrong items, in several shapes, and prints a JSON line for each decoder. It prints the line before it
 * calls, too, so that the last line names the decoder that took too much memory. No file is written, no process started.
 */
import { join } from 'node:path';
import { MAX_BODY_BYTES } from '../../runtime/body-budget.ts';
import { Faults } from '../../runtime/decode.ts';
import { type FoundDecoder, findDecoders } from './find-decoders.ts';

/** What became of a decoder. */
type Tried = {
  readonly decoder: string;
  /** The longest message of an error or a fault, in characters. */
  readonly messageChars: number;
  /** Most faults that one call kept. */
  readonly faults: number;
};

const ROOT = join(import.meta.dirname, '..', '..');
const BYTES = MAX_BODY_BYTES;
/** How deep the wrong items are put. */
const DEPTHS = [0, 1, 2, 3, 4, 5];

/** A list of small items; as JSON it has the largest allowed size. */
const ITEMS: readonly (readonly [json: string, count: number])[] = [
  ['1', BYTES / 2],
  ['{}', BYTES / 3],
  [`"${'x'.repeat(100)}"`, BYTES / 103],
];
const LISTS = ITEMS.map(([json, count]): unknown => JSON.parse(`[${Array(Math.floor(count)).fill(json).join(',')}]`));
const LONG_TEXT = 'x'.repeat(BYTES);
const MANY_KEYS = Object.fromEntries(Array.from({ length: BYTES / 10 }, (_, key) => [`k${key}`, 1]));
const LONG_KEY = { [LONG_TEXT]: LONG_TEXT };
const DEEP: unknown = JSON.parse(`${'['.repeat(5_000)}${']'.repeat(5_000)}`);
const BAD: readonly unknown[] = [...LISTS, LONG_TEXT, MANY_KEYS, LONG_KEY, DEEP];

/** An object that has `value` under every name that is asked for; with known keys when its keys are asked for. */
function everywhere(value: unknown): unknown {
  const keys = ['metadata', 'spec', 'status', 'items', 'data'];
  return new Proxy(
    {},
    {
      get: (_, key) => (typeof key === 'string' ? value : undefined),
      has: () => true,
      ownKeys: () => keys,
      getOwnPropertyDescriptor: () => ({ value, enumerable: true, configurable: true }),
    },
  );
}

/** A bad value, in objects or in lists of one object, that many deep; then texts, and bytes. */
function* inputs(): Generator<unknown> {
  for (const bad of BAD) {
    for (const depth of DEPTHS) {
      let inObjects = bad;
      let inLists = bad;
      for (let level = 0; level < depth; level++) {
        inObjects = everywhere(inObjects);
        inLists = level % 2 === 0 ? everywhere(inLists) : [inLists];
      }
      yield inObjects;
      if (depth > 1) yield inLists;
    }
  }
  for (const [json, count] of ITEMS) yield `[${Array(Math.floor(count)).fill(json).join(',')}]`;
  yield `{"spec":${'['.repeat(5_000)}${']'.repeat(5_000)}}`;
  yield `a: ${'['.repeat(BYTES / 2)}`;
  for (const byte of [0, 0x7f, 0xff]) yield Buffer.alloc(BYTES, byte);
}

async function tryDecoder({ file, name, form }: FoundDecoder): Promise<Tried> {
  const module: Readonly<Record<string, unknown>> = await import(join(ROOT, file));
  const decode = module[name];
  if (!isFunction(decode)) throw new Error(`${file}: ${name} is no function`);
  let [messageChars, faults] = [0, 0];
  for (const input of inputs()) {
    if (form === 'text' && typeof input !== 'string') continue;
    const kept = form === 'decoder' ? faultsOf(decode, input) : errorOf(decode, input);
    messageChars = Math.max(messageChars, ...kept.map((text) => text.length));
    faults = Math.max(faults, kept.length);
  }
  return { decoder: `${file} ${name}`, messageChars, faults };
}

type AnyFunction = (...args: readonly unknown[]) => unknown;

function isFunction(value: unknown): value is AnyFunction {
  return typeof value === 'function';
}

function faultsOf(decode: AnyFunction, input: unknown): readonly string[] {
  const faults = new Faults();
  decode(input, '', faults);
  return faults.list.map(({ path, expected, got }) => `${path}: expected ${expected}, got ${got}`);
}

/** The other arguments of a function are labels, or contexts that an answer needs later. */
function errorOf(decode: AnyFunction, input: unknown): readonly string[] {
  try {
    const result = decode(input, 'label', 'label', 'label');
    return result instanceof Promise ? [] : textsOf(result);
  } catch (error) {
    return [error instanceof Error ? error.message : String(error)];
  }
}

/** Texts of a result that are messages: faults, problems, reasons. */
function textsOf(result: unknown): readonly string[] {
  if (typeof result !== 'object' || result === null) return [];
  // Names alone: a decoder may return all that it was given.
  const named = Object.keys(result).filter((key) => /fault|problem|why|warning|error/i.test(key));
  return named.flatMap((key): readonly string[] => {
    const value = Reflect.get(result, key);
    return (Array.isArray(value) ? value : [value]).map((one: unknown) => JSON.stringify(one) ?? '');
  });
}

const FOLDERS = process.argv.slice(2);

for (const found of findDecoders(ROOT)) {
  if (FOLDERS.length > 0 && !FOLDERS.some((folder) => found.file.startsWith(`${folder}/`))) continue;
  process.stdout.write(`${found.file} ${found.name}\n`);
  process.stdout.write(`${JSON.stringify(await tryDecoder(found))}\n`);
}
