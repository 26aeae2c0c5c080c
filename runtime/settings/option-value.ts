import { isAbsolute } from 'node:path';
import { durationForm, integerRange, listForm, patternForm, UNIT_MS, type ValueForm } from './value-form.ts';

/** How one kind of option is written and parsed. `parse` receives the text of a flag, a variable or a YAML scalar. */
export type OptionValue<T> = {
  /** The placeholder after the flag in the help text; empty for a switch. */
  readonly metavar: string;
  /** Text after "expected …" in a fault. */
  readonly expected: string;
  /** What of the value the chart's schema checks. */
  readonly form: ValueForm;
  /** Returns undefined when the text is not such a value. */
  parse(text: string): T | undefined;
  /** True when the option may be repeated and its value is the list of all. */
  readonly isList?: boolean;
  /** The items of a list as rules read them, without commas. The chart's helper `tke-eni.items` takes them from the text. */
  items?(value: T): readonly string[];
};

/** An absolute path; '' is accepted when `allowEmpty` is true. */
export function pathValue(allowEmpty = false): OptionValue<string> {
  return {
    metavar: 'PATH',
    expected: allowEmpty ? "an absolute path, or '' for none" : 'an absolute path',
    form: { kind: 'text', body: allowEmpty ? '(/[\\s\\S]*)?' : '/[\\s\\S]*' },
    parse: (text) => (isAbsolute(text) || (allowEmpty && text === '') ? text : undefined),
  };
}

const MAX_PORT = 65_535;
const HOST_BODY = '(\\[[0-9a-fA-F:.]+\\]|[A-Za-z0-9_.-]+)';

/** A host and port to listen on; '' for none. */
export const listenValue: OptionValue<string> = {
  metavar: 'HOST:PORT',
  expected: "an address such as 127.0.0.1:61680 or [::1]:61680, or '' for none",
  form: { kind: 'text', body: `(${HOST_BODY}:${integerRange(1, MAX_PORT)})?` },
  parse: (text) => {
    if (text === '') return text;
    const port = Number(/^(?:\[[0-9a-f:.]+\]|[\w.-]+):(\d{1,5})$/i.exec(text)?.[1]);
    return port >= 1 && port <= MAX_PORT ? text : undefined;
  },
};

/** A time such as 500ms, 120s, 1m30s; the value is in milliseconds. */
export function durationValue(minMs: number, maxMs: number): OptionValue<number> {
  return {
    metavar: 'TIME',
    expected: `a time from ${renderDuration(minMs)} to ${renderDuration(maxMs)}, such as 500ms, 120s or 1m30s`,
    form: durationForm(minMs, maxMs),
    parse: (text) => {
      if (!/^(\d+(ms|s|m|h))+$/.test(text)) return undefined;
      const parts = text.matchAll(/(\d+)(ms|s|m|h)/g);
      const ms = parts.reduce((sum, [, count, unit]) => sum + Number(count) * (UNIT_MS[unit ?? ''] ?? Number.NaN), 0);
      return ms >= minMs && ms <= maxMs ? ms : undefined;
    },
  };
}

/** Renders milliseconds with the largest unit that divides them. */
function renderDuration(ms: number): string {
  const unit = Object.entries(UNIT_MS).findLast(([, length]) => ms >= length && ms % length === 0);
  return unit === undefined ? `${ms}ms` : `${ms / unit[1]}${unit[0]}`;
}

/** A whole number from `min` to `max`, both included. */
export function wholeNumberValue(min: number, max: number): OptionValue<number> {
  return {
    metavar: 'NUMBER',
    expected: `a whole number from ${min} to ${max}`,
    form: { kind: 'number', min, max },
    parse: (text) => {
      const number = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
      return number >= min && number <= max ? number : undefined;
    },
  };
}

/** A text that matches `pattern`, which has both anchors; faults describe it as `expected`. */
export function textValue(pattern: RegExp, metavar: string, expected: string): OptionValue<string> {
  return {
    metavar,
    expected,
    form: patternForm(pattern),
    parse: (text) => (pattern.test(text) ? text : undefined),
  };
}

/** One of the given words. */
export function choiceValue<const T extends string>(...choices: readonly T[]): OptionValue<T> {
  return {
    metavar: choices.join('|'),
    expected: `one of ${choices.join(', ')}`,
    form: { kind: 'words', words: choices },
    parse: (text) => choices.find((choice) => choice === text),
  };
}

/** On or off. As a flag it needs no value: `--port-mapping`. */
export const switchValue: OptionValue<boolean> = {
  metavar: '',
  expected: 'true or false',
  form: { kind: 'switch' },
  parse: (text) => (text === 'true' ? true : text === 'false' ? false : undefined),
};

/** A node name; '' when the name is not to be checked. */
export const nodeNameValue = textValue(
  /^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?)?$/,
  'NAME',
  "a node name in lower case, or ''",
);

/** Several paths. */
export const pathsValue = listOf({ ...pathValue(), form: { kind: 'text', body: '/[^,]*' } });

/** Common names of client certificates, such as system:kube-scheduler. */
export const clientNamesValue: OptionValue<readonly string[]> = listOf(
  textValue(/^[^\s,]{1,64}$/, 'NAME', 'a common name of a certificate, such as system:kube-scheduler'),
);

/** Makes a list option from a kind; `parse` receives the texts joined by commas, '' is the empty list. */
export function listOf(item: OptionValue<string>): OptionValue<readonly string[]> {
  return {
    metavar: item.metavar,
    expected: `${item.expected}; several: repeat the flag, or commas between them`,
    form: listForm(item.form),
    isList: true,
    items: (values) => values,
    parse: (text) => {
      const parts = text.split(',').filter((part) => part !== '');
      const values = parts.flatMap((part) => item.parse(part) ?? []);
      return values.length === parts.length ? Object.freeze(values) : undefined;
    },
  };
}
