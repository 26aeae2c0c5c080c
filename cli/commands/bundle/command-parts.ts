import type { Command, CommandContext } from '../../command/command.ts';
import { CHECK, DIFF } from '../diff/command.ts';
import { DOCTOR } from '../doctor/command.ts';
import { ADDRS, DUMP, LINKS, NEIGH, ROUTES, RULES } from '../dump/command.ts';
import { EVENTS } from '../events/command.ts';
import { PODS } from '../pool/command.ts';
import { STATUS } from '../status/command.ts';
import { type BundlePart, type PartContent, textPart, valuePart } from './bundle-part.ts';
import { explainBroken } from './explain-broken.ts';
import { type CapturedRun, runCaptured } from './run-captured.ts';

/** Nobody waits for a bundle as for a command: what the agent says late is worth more than the journal. */
const AGENT_TIMEOUT_MS = 5_000;

type CommandEnvironment = Pick<CommandContext, 'env' | 'clock' | 'isRoot' | 'global'>;

/** Returns the parts that are the output of other commands, run as a user would run them. */
export function commandParts(given: CommandEnvironment): readonly BundlePart[] {
  const agentTimeoutMs = Math.max(AGENT_TIMEOUT_MS, given.global.agentTimeoutMs);
  const context = { ...given, global: { ...given.global, agentTimeoutMs, isAgentTimeoutGiven: true } };
  const part = (path: string, command: Command, options: Readonly<Record<string, unknown>>): BundlePart => ({
    path,
    collect: async (signal) => contentOf(path, await runCaptured(command, options, context, signal)),
  });
  return [
    part('status.txt', STATUS, { output: 'wide', 'all-addresses': true }),
    part('check.txt', CHECK, { output: 'wide' }),
    part('diff.txt', DIFF, { output: 'wide' }),
    part('diff.json', DIFF, { output: 'json' }),
    part('doctor.txt', DOCTOR, { output: 'wide' }),
    part('doctor.json', DOCTOR, { output: 'json' }),
    { path: 'explain-broken-pods.txt', collect: (signal) => explainBroken(context, signal) },
    part('events.txt', EVENTS, { output: 'wide', last: 1_000 }),
    part('pods.txt', PODS, { output: 'wide' }),
    part('dump/state.ip', DUMP, { output: 'ip', nft: 'ours' }),
    part('dump/state.json', DUMP, { output: 'json', details: true, nft: 'none' }),
    ...Object.entries({ routes: ROUTES, rules: RULES, links: LINKS, addrs: ADDRS, neigh: NEIGH }).map(
      ([name, command]) => part(`dump/${name}.txt`, command, { output: 'wide', all: true }),
    ),
  ];
}

/**
 * Returns what a command printed as content. A complete JSON document is searched for secrets by its property names as
 * well.
 */
function contentOf(path: string, { text, printed, exitCode }: CapturedRun): PartContent {
  if (exitCode === 'error' && printed === '') return { kind: 'missing', why: text };
  if (!path.endsWith('.json')) return textPart(text);
  try {
    return valuePart(JSON.parse(text));
  } catch {
    // Not valid JSON: it was shortened, or an error follows it. It is still useful as text.
    return textPart(text);
  }
}
