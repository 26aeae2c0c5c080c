import { isObject } from '../object.ts';

/** Reads the values at a JSONPath of the kind that printer columns use: `.a.b[0]`, `[*]`, `['k']`, `[?(@.a=="b")]`, `[?(@.a)]`. */
export function readJsonPath(value: unknown, path: string): readonly unknown[] {
  return steps(path).reduce<readonly unknown[]>((values, step) => values.flatMap(step), [value]);
}

type Step = (value: unknown) => readonly unknown[];

const TOKEN =
  /\.([A-Za-z0-9_-]+|\*)|\[(\d+|\*)\]|\['((?:[^'\\]|\\.)+)'\]|\[\?\(@\.([\w.-]+)(?:\s*==\s*(["'])(.*?)\5)?\)\]/y;

function steps(path: string): readonly Step[] {
  // A dot in a label is written \. in a path: it is no step.
  const text = path.replaceAll('\\.', '\u0000');
  const found: Step[] = [];
  TOKEN.lastIndex = 0;
  while (TOKEN.lastIndex < text.length) {
    const match = TOKEN.exec(text);
    if (match === null) return [() => []];
    found.push(stepOf(match.map((part) => part?.replaceAll('\u0000', '.'))));
  }
  return found;
}

function stepOf([, field, index, quoted, filterField, , filterValue]: readonly (string | undefined)[]): Step {
  if (field === '*' || index === '*')
    return (value) => (Array.isArray(value) ? value : isObject(value) ? Object.values(value) : []);
  const name = field ?? quoted;
  if (name !== undefined) return (value) => (isObject(value) && value[name] !== undefined ? [value[name]] : []);
  if (index !== undefined)
    return (value) => (Array.isArray(value) && Number(index) < value.length ? [value[Number(index)]] : []);
  const matches = (item: unknown) =>
    readJsonPath(item, `.${filterField ?? ''}`).some((one) => filterValue === undefined || String(one) === filterValue);
  return (value) => (Array.isArray(value) ? value.filter(matches) : []);
}
