import type { Command, OptionSpec, OptionTable, PositionalSpec } from '../command/command.ts';
import { EXIT } from '../command/exit-code.ts';
import { GLOBAL_OPTIONS } from '../command/global-options.ts';
import { paint } from './color.ts';
import { paragraphsOf, renderTerms, type Term, wrapText } from './render-text.ts';

/** How help is laid out. */
type HelpOptions = { readonly width: number; readonly isColored: boolean };

/** Renders the output of `tke-eni help`: commands in their order, global options, exit codes. */
export function renderHelp(commands: readonly Command[], { width, isColored }: HelpOptions): string {
  const title = (text: string) => paint(text, 'bold', isColored);
  const lines = [
    ...wrapText(
      'tke-eni reads what a node does with the packets of its Pods: from the kernel, from what the agent wrote down, and from the agent and the cluster where they answer.',
      width,
    ),
    '',
    title('Usage'),
    '  tke-eni COMMAND [WORD]... [OPTION]...',
    '',
    title('Commands'),
    ...renderTerms(
      commands.map((command): Term => [command.name, command.summary]),
      width,
    ),
    '',
    title('Options of every command'),
    ...renderTerms(optionTerms(GLOBAL_OPTIONS), width),
    '',
    title('Exit codes'),
    ...renderTerms(exitTerms('something is wrong: a difference, a broken hop, a finding'), width),
    '',
    ...wrapText(
      'tke-eni COMMAND --help has more; tke-eni completion --help makes the shell complete all of this.',
      width,
    ),
  ];
  return `${lines.join('\n')}\n`;
}

/** Renders the help of one command. */
export function renderCommandHelp(command: Command, { width, isColored }: HelpOptions): string {
  const title = (text: string) => paint(text, 'bold', isColored);
  const section = (name: string, lines: readonly string[]) => (lines.length === 0 ? [] : ['', title(name), ...lines]);
  const positionals = Object.entries<PositionalSpec>(command.positionals);
  const lines = [
    ...wrapText(`tke-eni ${command.name}: ${command.summary}`, width),
    ...section('Usage', [`  ${usageLine(command)}`]),
    ...section('About', wrapText(paragraphsOf(command.description).join('\n\n'), width, 2)),
    ...section(
      'Words',
      renderTerms(
        positionals.map(([name, spec]): Term => [positionalText(name, spec), withChoices(spec)]),
        width,
      ),
    ),
    ...section('Options', renderTerms(optionTerms(command.options), width)),
    ...section('Options of every command', renderTerms(optionTerms(GLOBAL_OPTIONS), width)),
    ...section(
      'Examples',
      command.examples.flatMap(({ line, does }) => [`  ${line}`, ...wrapText(does, width, 6)]),
    ),
    ...section('Exit codes', renderTerms(exitTerms(command.wrongMeans), width)),
    ...section('Needs', command.needs === undefined ? [] : wrapText(command.needs, width, 2)),
  ];
  return `${lines.join('\n')}\n`;
}

/** Renders the usage line of a command: `tke-eni explain <pod> [OPTION]...`. */
export function usageLine(command: Pick<Command, 'name' | 'positionals' | 'options'>): string {
  const words = Object.entries<PositionalSpec>(command.positionals).map(([name, spec]) => positionalText(name, spec));
  const options = Object.keys(command.options).length === 0 ? [] : ['[OPTION]...'];
  return ['tke-eni', command.name, ...words, ...options].join(' ');
}

/** Renders an option as it is typed, with its letter and its value: `-o, --output=FORMAT`. */
export function optionText(name: string, spec: OptionSpec): string {
  const letter = spec.alias === undefined ? '' : `-${spec.alias}, `;
  const value =
    spec.type === 'boolean' ? '' : `=${spec.metavar ?? (spec.choices === undefined ? 'VALUE' : name.toUpperCase())}`;
  return `${letter}--${name}${value}`;
}

/** Renders the meaning of an option, with choices and default. */
export function optionMeaning(spec: OptionSpec): string {
  const notes = [
    ...(spec.choices === undefined ? [] : [spec.choices.join(', ')]),
    ...(spec.type === 'strings' ? ['may be given several times or with commas'] : []),
    ...(spec.default === undefined || spec.default === false ? [] : [`default ${spec.default}`]),
  ];
  return notes.length === 0 ? spec.summary : `${spec.summary} (${notes.join('; ')})`;
}

/** Lists the exit codes of a command, or of all commands, with their meanings. */
export function exitTerms(wrongMeans: string | undefined): readonly Term[] {
  return [
    [String(EXIT.ok), 'done, and all is as it should be'],
    ...(wrongMeans === undefined ? [] : [[String(EXIT.wrong), wrongMeans] as const]),
    [String(EXIT.failed), 'the question could not be answered; standard error says why and what to do'],
    [String(EXIT.usage), 'the command line is wrong'],
  ];
}

function optionTerms(options: OptionTable): readonly Term[] {
  return Object.entries(options).map(([name, spec]): Term => [optionText(name, spec), optionMeaning(spec)]);
}

function positionalText(name: string, spec: PositionalSpec): string {
  return spec.isOptional === true ? `[${name}]` : `<${name}>`;
}

function withChoices(spec: PositionalSpec): string {
  return spec.choices === undefined ? spec.summary : `${spec.summary} (${spec.choices.join(', ')})`;
}
