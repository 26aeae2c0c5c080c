import { badRequest } from './api-error.ts';
import type { KubeObject } from './object.ts';

/** Reports whether an object is selected. */
export type Selector = (object: KubeObject) => boolean;

/** Parses a label selector: `a=b`, `a!=b`, `a in (b,c)`, `a notin (b)`, `a`, `!a`. @throws ApiError BadRequest */
export function parseLabelSelector(text: string): Selector {
  const requirements = splitOutsideBraces(text).map(parseLabelRequirement);
  return ({ metadata }) => requirements.every((holds) => holds(metadata.labels ?? {}));
}

type Labels = Readonly<Record<string, string>>;

const NAME = '[A-Za-z0-9][-A-Za-z0-9_./]*';
const SET = new RegExp(`^(${NAME})\\s+(in|notin)\\s+\\(([^)]*)\\)$`);
const COMPARE = new RegExp(`^(${NAME})\\s*(==|!=|=|>|<)\\s*([-A-Za-z0-9_.]*)$`);
const EXISTS = new RegExp(`^(!?)\\s*(${NAME})$`);

function parseLabelRequirement(text: string): (labels: Labels) => boolean {
  const set = SET.exec(text);
  if (set !== null) {
    const [, name = '', operator, values = ''] = set;
    const wanted = values.split(',').map((value) => value.trim());
    return (labels) => {
      const value = labels[name];
      return operator === 'in' ? value !== undefined && wanted.includes(value) : !wanted.includes(value ?? '\0');
    };
  }
  const compare = COMPARE.exec(text);
  if (compare !== null) {
    const [, name = '', operator = '', wanted = ''] = compare;
    return (labels) => holdsLabel(labels[name], operator, wanted);
  }
  const exists = EXISTS.exec(text);
  if (exists === null) throw badRequest(`unable to parse requirement: found '${text}', expected: a label selector`);
  const [, not, name = ''] = exists;
  return (labels) => Object.hasOwn(labels, name) === (not === '');
}

function holdsLabel(value: string | undefined, operator: string, wanted: string): boolean {
  if (operator === '!=') return value !== wanted;
  if (value === undefined) return false;
  if (operator === '>') return Number(value) > Number(wanted);
  if (operator === '<') return Number(value) < Number(wanted);
  return value === wanted;
}

function splitOutsideBraces(text: string): readonly string[] {
  return text
    .split(/,(?![^(]*\))/)
    .map((part) => part.trim())
    .filter((part) => part !== '');
}

/** Reads the fields by which a resource's objects may be selected, beside its name and namespace. */
export type SelectableFields = Readonly<Record<string, (object: KubeObject) => string>>;

/** Resources with fields of their own say it in other words than those with none. */
function unknownField(name: string, fields: SelectableFields): string {
  const known = Object.keys(fields).filter((field) => field !== OWN);
  if (OWN in fields) return `field label not supported: ${name}`;
  return `"${name}" is not a known field selector: only ${known.map((field) => `"${field}"`).join(', ')}`;
}

/** Marks the fields of a resource that has rules of its own for them. */
export const OWN = '';

/** Parses a field selector: `metadata.name=a,spec.nodeName!=b`. @throws ApiError BadRequest for any other field */
export function parseFieldSelector(text: string, fields: SelectableFields): Selector {
  const requirements = text
    .split(',')
    .filter((part) => part !== '')
    .map((part) => {
      const [, name = '', operator = '', value = ''] = /^([^=!]+)(==|!=|=)(.*)$/.exec(part) ?? [];
      if (name === '') throw badRequest(`invalid selector: '${text}'; can't understand '${part}'`);
      const read = fields[name];
      if (read === undefined) throw badRequest(unknownField(name, fields));
      return (object: KubeObject) => (read(object) === value) === (operator !== '!=');
    });
  return (object) => requirements.every((holds) => holds(object));
}

/** Returns the name that a field selector asks for, or undefined: what RBAC compares with resourceNames. */
export function nameInFieldSelector(text: string): string | undefined {
  const [, name] = /(?:^|,)metadata\.name==?([^,]+)/.exec(text) ?? [];
  return name;
}
