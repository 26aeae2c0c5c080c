import { release } from '../../runtime/release.ts';
import type { Command, CommandBody, OptionTable, PositionalSpec } from '../command/command.ts';
import { EXIT } from '../command/exit-code.ts';
import { GLOBAL_OPTIONS } from '../command/global-options.ts';
import { exitTerms, optionMeaning, optionText } from '../output/render-help.ts';
import { paragraphsOf } from '../output/render-text.ts';

/** Builds the body of `man`. */
export function manBody(commands: readonly Command[]): CommandBody {
  return {
    run: async (_args, { stdout }) => {
      stdout.write(renderMan(commands, release));
      return EXIT.ok;
    },
  };
}

/** Renders the man page, tke-eni(8), with all commands. @see man-pages(7); groff_man(7) */
export function renderMan(commands: readonly Command[], release: string): string {
  return `${[
    `.TH TKE-ENI 8 "" ${quote(`tke-eni ${release}`)} "System Administration"`,
    '.SH NAME',
    'tke-eni \\- explain what a node does with the packets of its Pods',
    '.SH SYNOPSIS',
    '.B tke-eni',
    '.I COMMAND',
    '[\\fIWORD\\fR]... [\\fIOPTION\\fR]...',
    '.SH DESCRIPTION',
    ...paragraphs(ABOUT),
    '.SH COMMANDS',
    ...commands.flatMap(commandLines),
    '.SH OPTIONS OF EVERY COMMAND',
    ...optionLines(GLOBAL_OPTIONS),
    '.SH EXIT STATUS',
    ...exitTerms('something is wrong; each command says what').flatMap(([code, means]) => [
      '.TP',
      `.B ${code}`,
      text(means),
    ]),
    '.SH ENVIRONMENT',
    ...term('NO_COLOR', 'not empty: no colours, unless --color=always'),
    ...term('TERM', 'dumb: no colours and nothing redrawn in place'),
    ...term('COLUMNS', 'width of tables where standard output is no terminal; 160 without it'),
    ...term('KUBECONFIG', 'how to reach the API server, unless --kubeconfig'),
    '.SH FILES',
    ...term('/run/tke-eni/agent.sock', "the agent's socket; root only"),
    ...term('/run/tke-eni/journal.db', "the agent's journal: leases, cooldowns, the last supply; root only"),
    ...term('/run/tke-eni/node.json', 'the node as the agent last planned it; root only'),
    '.SH SEE ALSO',
    '.BR ip (8),',
    '.BR ip\\-route (8),',
    '.BR ip\\-rule (8),',
    '.BR nft (8)',
  ].join('\n')}\n`;
}

const ABOUT = `tke-eni shows why a Pod's packet does not arrive, and what the node has that it should not have: from the kernel's own state, from what the agent wrote down, and from the agent and the cluster where they answer. What the kernel alone shows needs no agent; what the node alone shows needs no cluster.

It changes nothing, but for repair, and bench, which uses a network namespace of its own.`;

function commandLines(command: Command): readonly string[] {
  const positionals = Object.entries<PositionalSpec>(command.positionals);
  const usage = positionals.map(([name, { isOptional }]) =>
    isOptional ? `[\\fI${text(name)}\\fR]` : `\\fI${text(name)}\\fR`,
  );
  return [
    `.SS ${quote(`tke-eni ${command.name}`)}`,
    `.B ${text(`tke-eni ${command.name}`)}`,
    ...(usage.length === 0 ? [] : [usage.join(' ')]),
    ...(Object.keys(command.options).length === 0 ? [] : ['[\\fIOPTION\\fR]...']),
    ...paragraphs(command.description),
    ...positionals.flatMap(([name, { summary, choices }]) =>
      term(name, choices === undefined ? summary : `${summary} (${choices.join(', ')})`),
    ),
    ...optionLines(command.options),
    ...(command.wrongMeans === undefined ? [] : ['.PP', text(`Exit status 1: ${command.wrongMeans}.`)]),
    ...(command.needs === undefined ? [] : ['.PP', text(`Needs ${command.needs}.`)]),
    ...command.examples.flatMap(({ line, does }) => [
      '.PP',
      text(`${does}:`),
      '.RS 4',
      '.nf',
      text(line),
      '.fi',
      '.RE',
    ]),
  ];
}

function optionLines(options: OptionTable): readonly string[] {
  return Object.entries(options).flatMap(([name, spec]) => term(optionText(name, spec), optionMeaning(spec)));
}

function term(name: string, means: string): readonly string[] {
  return ['.TP', `.B ${text(name)}`, text(means)];
}

function paragraphs(description: string): readonly string[] {
  return paragraphsOf(description).flatMap((paragraph) => ['.PP', text(paragraph)]);
}

/** Escapes a line, so that roff takes no part of it as a request, an escape or a hyphen. */
function text(line: string): string {
  const escaped = line.replaceAll('\\', '\\e').replaceAll('-', '\\-').replaceAll('’', '\\(cq').replaceAll('…', '...');
  return /^[.']/.test(escaped) ? `\\&${escaped}` : escaped;
}

function quote(value: string): string {
  return `"${text(value).replaceAll('"', '\\(dq')}"`;
}
