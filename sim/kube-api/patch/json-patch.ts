import { isEqual, isObject } from '../object.ts';

/** A patch that does not fit the document; `code` says what is wrong: its form as a whole, an operation, or the fit. */
export class PatchError extends Error {
  readonly code: 'UNREADABLE' | 'MALFORMED' | 'DOES_NOT_APPLY';

  constructor(code: 'UNREADABLE' | 'MALFORMED' | 'DOES_NOT_APPLY', message: string) {
    super(message);
    this.name = 'PatchError';
    this.code = code;
  }
}

/**
 * Applies a JSON patch and returns the result; the document stays as it was.
 * @throws PatchError @see RFC 6902, RFC 6901
 */
export function applyJsonPatch(document: unknown, patch: unknown): unknown {
  if (!Array.isArray(patch)) throw new PatchError('UNREADABLE', 'a JSON patch is a list of operations');
  return patch.reduce((result: unknown, operation: unknown) => applyOperation(result, operation), document);
}

function applyOperation(document: unknown, operation: unknown): unknown {
  if (!isObject(operation)) throw new PatchError('MALFORMED', 'an operation is an object');
  const path = pointer(operation['path']);
  switch (operation['op']) {
    case 'add':
      return change(document, path, () => operation['value'], 'add');
    case 'replace':
      read(document, path);
      return change(document, path, () => operation['value'], 'replace');
    case 'remove':
      read(document, path);
      return change(document, path, () => undefined, 'remove');
    case 'test':
      if (isEqual(read(document, path), operation['value'])) return document;
      throw new PatchError('DOES_NOT_APPLY', `testing value ${String(operation['path'])} failed`);
    case 'copy': {
      const value = read(document, pointer(operation['from']));
      return change(document, path, () => value, 'add');
    }
    case 'move': {
      const from = pointer(operation['from']);
      const value = read(document, from);
      const taken = change(document, from, () => undefined, 'remove');
      return change(taken, path, () => value, 'add');
    }
    default:
      throw new PatchError('MALFORMED', `Unexpected kind: ${String(operation['op'])}`);
  }
}

function pointer(text: unknown): readonly string[] {
  if (typeof text !== 'string' || (text !== '' && !text.startsWith('/'))) {
    throw new PatchError('MALFORMED', `${JSON.stringify(text)} is no JSON pointer`);
  }
  return text
    .split('/')
    .slice(1)
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'));
}

function missing(path: readonly string[]): PatchError {
  return new PatchError('DOES_NOT_APPLY', `the path /${path.join('/')} is not there`);
}

function read(document: unknown, path: readonly string[]): unknown {
  return path.reduce((value: unknown, key) => {
    if (Array.isArray(value) && /^(0|[1-9]\d*)$/.test(key) && Number(key) < value.length) return value[Number(key)];
    if (isObject(value) && Object.hasOwn(value, key)) return value[key];
    throw missing(path);
  }, document);
}

type Mode = 'add' | 'replace' | 'remove';

function change(document: unknown, path: readonly string[], value: () => unknown, mode: Mode): unknown {
  const [key, ...rest] = path;
  if (key === undefined) return mode === 'remove' ? null : value();
  if (Array.isArray(document)) return changeList(document, key, rest, value, mode);
  if (!isObject(document)) throw missing(path);
  if (rest.length > 0) {
    if (!Object.hasOwn(document, key)) throw missing(path);
    return { ...document, [key]: change(document[key], rest, value, mode) };
  }
  if (mode !== 'remove') return { ...document, [key]: value() };
  return Object.fromEntries(Object.entries(document).filter(([name]) => name !== key));
}

function changeList(
  items: readonly unknown[],
  key: string,
  rest: readonly string[],
  value: () => unknown,
  mode: Mode,
): unknown {
  const index = key === '-' ? items.length : Number(key);
  const last = mode === 'add' && rest.length === 0 ? items.length : items.length - 1;
  if (!Number.isInteger(index) || index < 0 || index > last) throw missing([key, ...rest]);
  if (rest.length > 0) return items.with(index, change(items[index], rest, value, mode));
  if (mode === 'add') return items.toSpliced(index, 0, value());
  return mode === 'remove' ? items.toSpliced(index, 1) : items.with(index, value());
}
