import { isRecord } from '../../runtime/decode.ts';
import type { Command, CommandContext } from '../command.ts';
import { CHECK, DIFF } from '../diff/command.ts';
import { DOCTOR } from '../doctor/command.ts';
import { ADDRS, DUMP, LINKS, NEIGH, ROUTES, RULES } from '../dump/command.ts';
import { EVENTS } from '../events/command.ts';
import { EXIT } from '../exit-code.ts';
import { EXPLAIN } from '../explain/command.ts';
import { podTitle } from '../node/find-pod.ts';
import type { PodFacts } from '../node/node-facts.ts';
import { readNodeFacts } from '../node/read-node-facts.ts';
import { PODS } from '../pool/command.ts';
import { STATUS } from '../status/command.ts';
import { type BundlePart, type PartContent, textPart, valuePart } from './bundle-part.ts';
import { type CapturedRun, runCaptured } from './run-captured.ts';

type Around = Pick<CommandContext, 'env' | 'clock' | 'isRoot' | 'global'>;

/** Of a node with many Pods those that are looked at in this time; the archive says how many were not. */
const EXPLAIN_MS = 30_000;

/** What other commands print, each as a person would call it. */
export function commandParts(context: Around): readonly BundlePart[] {
  const part = (path: string, command: Command, given: Readonly<Record<string, unknown>>): BundlePart => ({
    path,
    collect: async (signal) => contentOf(path, await runCaptured(command, given, context, signal)),
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

/** A document that came whole is searched for secrets by its names as well. */
function contentOf(path: string, { text, printed, exitCode }: CapturedRun): PartContent {
  if (exitCode === 'error' && printed === '') return { kind: 'missing', why: text };
  if (!path.endsWith('.json')) return textPart(text);
  try {
    return valuePart(JSON.parse(text));
  } catch {
    // Cut, or followed by an error: still worth reading.
    return textPart(text);
  }
}

async function explainBroken(context: Around, signal: AbortSignal): Promise<PartContent> {
  const facts = await readNodeFacts(context, { insides: 'none', nft: false, sysctls: false });
  // Those that differ from their record first: on a busy node there may be no time for all.
  const { text: verdicts } = await runCaptured(CHECK, { output: 'json' }, context, signal);
  const broken = brokenSubjects(verdicts);
  const isBroken = (pod: PodFacts) => broken.some((subject) => subject.includes(podTitle(pod)));
  const pods = facts.pods.toSorted((a, b) => Number(isBroken(b)) - Number(isBroken(a)));
  const endMs = context.clock.monotonicMs() + EXPLAIN_MS;
  const found: string[] = [];
  let looked = 0;
  for (const { key } of pods) {
    if (signal.aborted || context.clock.monotonicMs() > endMs) break;
    const { text, exitCode } = await runCaptured(EXPLAIN, { subject: key }, context, signal);
    looked += 1;
    if (exitCode !== EXIT.ok) found.push(`===== ${key}\n${text}`);
    // Each is all synchronous work: an interrupt must be heard in between.
    await new Promise((resolve) => setImmediate(resolve));
  }
  const head = `${pods.length} Pods, ${looked} looked at, ${found.length} broken`;
  return textPart(`${head}\n\n${found.join('\n')}`);
}

/** Without a journal there are no verdicts, and no order. */
function brokenSubjects(document: string): readonly string[] {
  try {
    const { verdicts } = JSON.parse(document) as { readonly verdicts?: readonly unknown[] };
    const broken = (verdicts ?? []).filter(isRecord).filter((verdict) => verdict['ok'] === false);
    return broken.map(({ subject }) => String(subject));
  } catch {
    return [];
  }
}
