/** A parsed label selector. */
export type LabelSelector = {
  /** As it was written. */
  readonly text: string;
  readonly matches: (labels: Readonly<Record<string, string>>) => boolean;
};

type Requirement = LabelSelector['matches'];

const NAME = '(?:[a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?';
const VALUE = '(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?)?';
const SET = new RegExp(`^(?<key>${NAME})\\s+(?<operator>in|notin)\\s*\\((?<values>[^()]*)\\)$`);
const EQUAL = new RegExp(`^(?<key>${NAME})\\s*(?<operator>==|!=|=)\\s*(?<value>${VALUE})$`);
const EXISTS = new RegExp(`^(?<not>!?)\\s*(?<key>${NAME})$`);
const WHOLE_VALUE = new RegExp(`^${VALUE}$`);
/** More than that is no selector that a person wrote. */
const MAX_CHARS = 2_048;

/**
 * Parses a label selector: `a=b`, `a!=b`, `a in (b,c)`, `a notin (b)`, `a`, `!a`, several with commas. Undefined when it
 * is malformed, or empty: an empty one selects everything, which is never what is meant.
 * @see https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#api
 */
export function parseLabelSelector(text: string): LabelSelector | undefined {
  if (text.length > MAX_CHARS) return undefined;
  const requirements: Requirement[] = [];
  for (const part of text.split(/,(?![^(]*\))/)) {
    const requirement = parseRequirement(part.trim());
    if (requirement === undefined) return undefined;
    requirements.push(requirement);
  }
  return { text, matches: (labels) => requirements.every((holds) => holds(labels)) };
}

function parseRequirement(text: string): Requirement | undefined {
  const set = SET.exec(text)?.groups;
  if (set !== undefined) {
    const { key = '', operator, values: list = '' } = set;
    const values = list.split(',').map((value) => value.trim());
    if (values.some((value) => !WHOLE_VALUE.test(value))) return undefined;
    return (labels) => {
      const isAmong = Object.hasOwn(labels, key) && values.includes(labels[key] ?? '');
      return isAmong === (operator === 'in');
    };
  }
  const equal = EQUAL.exec(text)?.groups;
  if (equal !== undefined) {
    const { key = '', operator, value = '' } = equal;
    return (labels) => (Object.hasOwn(labels, key) && labels[key] === value) === (operator !== '!=');
  }
  const exists = EXISTS.exec(text)?.groups;
  if (exists === undefined) return undefined;
  const { key = '', not } = exists;
  return (labels) => Object.hasOwn(labels, key) === (not === '');
}
