import type { Command, OptionTable, PositionalSpec } from '../cli/command/command.ts';
import { GLOBAL_OPTIONS } from '../cli/command/global-options.ts';
import { exitTerms, optionMeaning, optionText, usageLine } from '../cli/output/render-help.ts';
import { paragraphsOf } from '../cli/output/render-text.ts';
import { ALL_COMMANDS } from '../cli/program/run-program.ts';

/** Renders `docs/reference/cli.md` of what the commands declare. */
export function renderCliDocs(commands: readonly Command[] = ALL_COMMANDS): string {
  return [
    '<!-- Written by `make gen` from what the commands declare (cli/*/command.ts). -->',
    '# Commands of tke-eni',
    '',
    'Every command, word and option. How to use them at a node is in [the guide](../cli.md). `tke-eni COMMAND --help` and',
    '`tke-eni man` describe exactly the release that is installed.',
    '',
    '| command | does |',
    '|---|---|',
    ...commands.map(({ name, summary }) => `| [\`${name}\`](#tke-eni-${anchor(name)}) | ${cell(summary)} |`),
    '',
    '## Options of every command',
    '',
    'Before the command or behind it.',
    '',
    ...optionTable(GLOBAL_OPTIONS),
    '',
    '## Exit codes',
    '',
    '| code | means |',
    '|---|---|',
    ...exitTerms('done, and something is wrong: a difference, a broken hop, a finding; each command says what').map(
      ([code, means]) => `| ${code} | ${cell(means)} |`,
    ),
    '| 130 | SIGINT or SIGTERM ended a command that had not answered yet; one that follows something ends with 0 then |',
    '',
    'A reader that closes the output early (`| head`) causes no error: the rest is not printed, and the exit code stays the same.',
    ...commands.flatMap(commandSection),
    '',
  ].join('\n');
}

function commandSection(command: Command): readonly string[] {
  const positionals = Object.entries<PositionalSpec>(command.positionals);
  const words = positionals.map(([name, { summary, choices, isOptional }]) => {
    const typed = isOptional === true ? `[${name}]` : `<${name}>`;
    return `| \`${typed}\` | ${cell(summary)}${choices === undefined ? '' : ` (${choices.join(', ')})`} |`;
  });
  return [
    '',
    `## tke-eni ${command.name}`,
    '',
    `\`${usageLine(command)}\``,
    '',
    ...paragraphsOf(command.description).flatMap((paragraph) => [plain(paragraph), '']),
    ...(words.length === 0 ? [] : ['| word | is |', '|---|---|', ...words, '']),
    ...(Object.keys(command.options).length === 0 ? [] : [...optionTable(command.options), '']),
    ...(command.wrongMeans === undefined ? [] : [`Exit code 1: ${plain(command.wrongMeans)}.`, '']),
    ...(command.needs === undefined ? [] : [`Needs ${plain(command.needs)}.`, '']),
    ...(command.examples.length === 0 ? [] : ['```']),
    ...command.examples.map(({ line, does }) => `${line.padEnd(exampleWidth(command))}  # ${does}`),
    ...(command.examples.length === 0 ? [] : ['```']),
  ];
}

function exampleWidth({ examples }: Command): number {
  return Math.max(...examples.map(({ line }) => line.length));
}

function optionTable(options: OptionTable): readonly string[] {
  return [
    '| option | is |',
    '|---|---|',
    ...Object.entries(options).map(
      ([name, spec]) => `| \`${optionText(name, spec)}\` | ${cell(optionMeaning(spec))} |`,
    ),
  ];
}

function anchor(name: string): string {
  return name.replaceAll(' ', '-');
}

function cell(text: string): string {
  return plain(text).replaceAll('|', '\\|');
}

/** Keeps what Markdown would take for HTML. */
function plain(text: string): string {
  return text.replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
