import { isObject } from '../../sim/kube-api/object.ts';
import { readJsonPath } from '../../sim/kube-api/table/json-path.ts';

/** The arguments of a kubectl command. */
export type KubectlArguments = {
  readonly verb: string;
  /** What is neither verb nor flag. */
  readonly words: readonly string[];
  /** By name with its dashes; `true`: it has no value. */
  readonly flags: ReadonlyMap<string, string | true>;
};

/** Flags whose value is the next argument. */
const WITH_VALUE: ReadonlySet<string> = new Set(['-n', '-l', '-o', '-p', '-k', '-c', '--raw', '--field-selector']);

/** Reads the arguments of a kubectl command. */
export function readArguments(argv: readonly string[]): KubectlArguments {
  const words: string[] = [];
  const flags = new Map<string, string | true>();
  for (let at = 0; at < argv.length; at++) {
    const one = argv[at] ?? '';
    const [, name, value] = /^(--[a-z-]+)=(.*)$/s.exec(one) ?? [];
    if (name !== undefined) flags.set(name, value ?? '');
    else if (WITH_VALUE.has(one)) flags.set(one, argv[++at] ?? '');
    else if (one.startsWith('-')) flags.set(one, true);
    else words.push(one);
  }
  const [verb = '', ...rest] = words;
  return { verb, words: rest, flags };
}

/** Renders `-o jsonpath=`: texts, paths, and `{range}` without another one in it. @throws Error for what it does not know */
export function renderJsonPath(template: string, value: unknown): string {
  const [, before = '', path = '', inner = '', after = ''] =
    /^([\s\S]*?)\{range ([^}]+)\}([\s\S]*?)\{end\}([\s\S]*)$/.exec(template) ?? [];
  if (path === '') return renderParts(template, value);
  const items = readJsonPath(value, path).map((item) => renderParts(inner, item));
  return renderParts(before, value) + items.join('') + renderJsonPath(after, value);
}

function renderParts(template: string, value: unknown): string {
  return template.replaceAll(/\{("(?:[^"\\]|\\.)*"|[^}"]+)\}/g, (_all, part: string) => {
    if (part.startsWith('"')) return String(JSON.parse(part));
    if (!part.startsWith('.')) throw new Error(`unknown in a JSONPath: ${part}`);
    return readJsonPath(value, part).map(textOf).join(' ');
  });
}

/** Renders `-o custom-columns=`, a line for each object below the one of the names. */
export function renderColumns(spec: string, objects: readonly unknown[]): string {
  const columns = spec.split(',').map((column) => {
    const [name = '', ...path] = column.split(':');
    return { name, path: path.join(':') };
  });
  const rows = objects.map((object) =>
    columns.map(({ path }) => readJsonPath(object, path).map(textOf).join(',') || '<none>'),
  );
  return [columns.map(({ name }) => name), ...rows].map((row) => `${row.join('   ')}\n`).join('');
}

function textOf(value: unknown): string {
  return Array.isArray(value) || isObject(value) ? JSON.stringify(value) : String(value);
}
