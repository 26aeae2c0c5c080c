import { isMap, isPair, type Pair, parseDocument, type YAMLMap } from 'yaml';

/** One value of the chart: `agent.resources`. */
type ChartValue = {
  readonly path: string;
  /** As values.yaml has it. */
  readonly preset: unknown;
  /** The comment above it, one line. */
  readonly help: string;
  /** A map that only groups others. */
  readonly isGroup: boolean;
};

/** Maps whose keys are somebody else's: the values of the chart end there. */
const LEAVES = [
  ...['agent', 'ipamd', 'scheduler', 'webhook', 'cloudControllerManager'].flatMap((component) => [
    `${component}.settings`,
    `${component}.resources`,
  ]),
  'webhook.annotations',
  'monitoring.labels',
];

/** Lists the values of a values.yaml in its order, each with the comment above it. */
export function listValues(text: string): readonly ChartValue[] {
  const { contents } = parseDocument(text);
  return isMap(contents) ? valuesOf(contents, '', contents.commentBefore ?? '') : [];
}

function valuesOf(map: YAMLMap, prefix: string, firstComment: string): readonly ChartValue[] {
  return map.items.flatMap((item, index) => {
    if (!isPair(item)) return [];
    const { key, value } = item as Pair<{ readonly value: string; readonly commentBefore?: string }, unknown>;
    const path = `${prefix}${key.value}`;
    const comment = key.commentBefore ?? (index === 0 ? firstComment : '');
    const help = comment
      .split('\n')
      .map((line) => line.trim())
      .join(' ')
      .trim();
    const preset: unknown = isNode(value) ? value.toJSON() : value;
    if (!isMap(value) || LEAVES.includes(path)) return [{ path, preset, help, isGroup: false }];
    return [{ path, preset, help: '', isGroup: true }, ...valuesOf(value, `${path}.`, value.commentBefore ?? '')];
  });
}

function isNode(value: unknown): value is { toJSON(): unknown } {
  return typeof value === 'object' && value !== null && 'toJSON' in value;
}
