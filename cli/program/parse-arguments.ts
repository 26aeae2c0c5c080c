import { editDistance } from '../../runtime/edit-distance.ts';
import type { Command, OptionSpec, OptionTable, PositionalSpec } from '../command/command.ts';

/** Arguments by their declared names, or all faults of the command line. */
type Arguments =
  | { readonly kind: 'good'; readonly values: Readonly<Record<string, unknown>> }
  | { readonly kind: 'faulty'; readonly faults: readonly string[] };

/**
 * Checks options and words against a command's declaration and converts them to its arguments: numbers are parsed,
 * lists split at commas, defaults added. Finds all faults at once.
 *
 * @param known the command's options and the global ones; any other option is a fault
 */
export function parseArguments(
  command: Pick<Command, 'name' | 'positionals'>,
  known: OptionTable,
  rest: readonly string[],
  options: Readonly<Record<string, unknown>>,
): Arguments {
  const faults: string[] = [];
  const values: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(options)) {
    const spec = known[name];
    if (spec === undefined) faults.push(unknownOption(command.name, name, value, known));
    else values[name] = readOption(name, spec, value, faults);
  }
  for (const [name, spec] of Object.entries(known)) {
    if (values[name] === undefined) values[name] = absent(spec);
  }
  readPositionals(command, rest, values, faults);
  return faults.length === 0 ? { kind: 'good', values } : { kind: 'faulty', faults };
}

/** Returns the message for an unknown command, with the name that may have been meant. */
export function unknownCommand(typed: string, names: readonly string[]): string {
  const meant = findSuggestion(typed, names);
  return `there is no command ${quote(typed)}${meant === undefined ? '' : `; did you mean ${quote(meant)}?`}`;
}

function unknownOption(commandName: string, name: string, value: unknown, known: OptionTable): string {
  const typed = value === false ? `--no-${name}` : dashed(name);
  const meant = name.length === 1 ? undefined : findSuggestion(name, Object.keys(known));
  const hint = meant === undefined ? '' : `; did you mean --${meant}?`;
  return `${commandName === '' ? 'tke-eni' : commandName} has no option ${typed}${hint}`;
}

function readOption(name: string, spec: OptionSpec, value: unknown, faults: string[]): unknown {
  const all = (Array.isArray(value) ? value : [value]) as readonly unknown[];
  if (spec.type === 'boolean') return all.at(-1) === true;
  const texts = all.filter((value) => typeof value === 'string');
  if (texts.length < all.length) {
    faults.push(`--${name} cannot be negated`);
    return undefined;
  }
  if (texts.includes('')) {
    faults.push(`--${name} needs a value${spec.metavar === undefined ? '' : ` (${spec.metavar})`}`);
    return undefined;
  }
  if (spec.type === 'strings') {
    const items = texts.flatMap((text) => text.split(',')).filter((item) => item !== '');
    for (const item of items) checkChoice(`--${name}`, spec, item, faults);
    return items;
  }
  const lastText = texts.at(-1) ?? '';
  checkChoice(`--${name}`, spec, lastText, faults);
  return spec.type === 'number' ? readNumber(name, lastText, faults) : lastText;
}

function readNumber(name: string, text: string, faults: string[]): number | undefined {
  if (NUMBER.test(text)) return Number(text);
  faults.push(`--${name} takes a number, not ${quote(text)}`);
  return undefined;
}

const NUMBER = /^-?\d+(\.\d+)?$/;

function checkChoice(
  what: string,
  { choices, formerChoices = {} }: Pick<OptionSpec, 'choices' | 'formerChoices'>,
  value: string,
  faults: string[],
): void {
  if (choices === undefined || choices.includes(value)) return;
  if (Object.hasOwn(formerChoices, value)) {
    faults.push(`${what} takes ${quote(value)} no longer: ${formerChoices[value]}`);
    return;
  }
  const meant = findSuggestion(value, choices);
  const hint = meant === undefined ? '' : `; did you mean ${quote(meant)}?`;
  faults.push(`${what} takes ${orList(choices)}, not ${quote(value)}${hint}`);
}

function absent(spec: OptionSpec): unknown {
  if (spec.default !== undefined) return spec.default;
  if (spec.type === 'boolean') return false;
  return spec.type === 'strings' ? [] : undefined;
}

function readPositionals(
  command: Pick<Command, 'name' | 'positionals'>,
  rest: readonly string[],
  values: Record<string, unknown>,
  faults: string[],
): void {
  const specs = Object.entries<PositionalSpec>(command.positionals);
  for (const [index, [name, spec]] of specs.entries()) {
    const text = rest[index];
    values[name] = text;
    if (text === undefined && spec.isOptional !== true) {
      faults.push(`${command.name} needs <${name}>: ${spec.summary}`);
    } else if (text !== undefined) {
      checkChoice(`<${name}>`, spec, text, faults);
    }
  }
  for (const text of rest.slice(specs.length)) {
    const takes = specs.length === 0 ? 'takes no words' : `takes ${specs.map(([name]) => `<${name}>`).join(' ')} only`;
    faults.push(`${command.name} ${takes}; ${quote(text)} is one too many`);
  }
}

function dashed(name: string): string {
  return name.length === 1 ? `-${name}` : `--${name}`;
}

function quote(text: string): string {
  return JSON.stringify(text);
}

function orList(texts: readonly string[]): string {
  return texts.length < 2 ? texts.join('') : `${texts.slice(0, -1).join(', ')} or ${texts.at(-1)}`;
}

/** Finds the word that a user who typed `typed` most likely meant; undefined when none is similar. */
function findSuggestion(typed: string, known: readonly string[]): string | undefined {
  if (typed === '') return undefined;
  const started = known.filter((word) => word.startsWith(typed));
  if (started.length === 1) return started[0];
  const limit = typed.length <= 3 ? 1 : typed.length <= 6 ? 2 : 3;
  let best: { readonly word: string; readonly distance: number } | undefined;
  for (const word of known) {
    const distance = editDistance(typed, word);
    if (distance <= limit && distance < (best?.distance ?? Number.POSITIVE_INFINITY)) best = { word, distance };
  }
  return best?.word;
}
