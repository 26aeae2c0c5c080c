import { type Command, defineCommand } from '../../../cli/command/command.ts';
import type { ProgramPorts } from '../../../cli/program/run-program.ts';
import { systemClock } from '../../../runtime/clock.ts';

/** What `walk` was called with, for its body to show. */
export const WALK = defineCommand({
  name: 'walk',
  summary: 'walk the way of a packet through tables and rules, hop by hop, to the card that sends it',
  description: `Walks from the Pod to the card.

Each hop is what the kernel says of it, beside what we read out of its tables; where the two differ one of them is wrong, and
the page says so.`,
  positionals: {
    pod: { summary: 'Pod, address or veth', completes: 'pod' },
    to: { summary: 'where the packet goes', isOptional: true },
  },
  options: {
    output: {
      type: 'string',
      summary: 'how to print it',
      alias: 'o',
      choices: ['table', 'wide', 'json'],
      default: 'table',
      metavar: 'FORMAT',
    },
    table: { type: 'string', summary: 'only this table', metavar: 'TABLE', completes: 'table' },
    depth: { type: 'number', summary: 'hops at most', default: 16 },
    kind: { type: 'strings', summary: 'only these kinds', choices: ['route', 'rule'] },
    all: { type: 'boolean', summary: 'foreign ones too', alias: 'a' },
  },
  examples: [
    { line: 'tke-eni walk default/web-1 10.0.0.1 -o wide', does: 'shows every hop from web-1 to the gateway' },
  ],
  wrongMeans: 'a hop is broken',
  needs: 'root: the Pod is looked into by setns(2)',
  load: async () => ({
    run: async (args, { stdout, global }) => {
      stdout.write(`${JSON.stringify({ args, global })}\n`);
      return 0;
    },
  }),
});

/** Two commands in one group. */
const GROUP = ['open', 'shut'].map((word) =>
  defineCommand({
    name: `door ${word}`,
    summary: `${word} the door`,
    description: 'A door.',
    positionals: {},
    options: {},
    examples: [],
    load: async () => ({
      run: async (_args, { stdout }) => {
        stdout.write(`${word}\n`);
        return 0;
      },
    }),
  }),
);

/** Commands that no release has, so that a change of a real one changes no golden. */
export const SAMPLE: readonly Command[] = [WALK, ...GROUP];

/** Ports that keep what is printed. */
export function memoryPorts(changes: Partial<ProgramPorts> = {}): ProgramPorts & { readonly printed: Printed } {
  const printed: Printed = { stdout: '', stderr: '' };
  return {
    printed,
    env: {},
    clock: systemClock,
    signal: new AbortController().signal,
    isRoot: true,
    hostRoot: () => '/',
    kubeconfig: () => '',
    openStream: (name, color) => ({
      isTerminal: false,
      isColored: color === 'always',
      columns: () => 80,
      rows: () => 24,
      write: (text) => {
        printed[name] += text;
      },
      writeBytes: (bytes) => {
        printed[name] += Buffer.from(bytes).toString('latin1');
      },
    }),
    ...changes,
  };
}

type Printed = { stdout: string; stderr: string };
