import { buildExplanation } from '../../../inspection/explain/build-explanation.ts';
import { buildExplainContext } from '../../../inspection/explain/explain-context.ts';
import { readPlannedNft } from '../../../inspection/explain/explain-node.ts';
import type { Explanation } from '../../../inspection/explain/explanation.ts';
import { openKernelLookup } from '../../../inspection/explain/open-kernel-lookup.ts';
import { readNodeFacts } from '../../../inspection/node/read-node-facts.ts';
import { UserError } from '../../../runtime/user-error.ts';
import { askHandlers } from '../../agent/ask-handlers.ts';
import type { Command, CommandContext, OptionTable, Stream } from '../../command/command.ts';
import type { ExitCode } from '../../command/exit-code.ts';
import { CHECK, DIFF } from '../diff/command.ts';
import { DOCTOR } from '../doctor/command.ts';
import { ADDRS, DUMP, LINKS, NEIGH, ROUTES, RULES } from '../dump/command.ts';
import { EVENTS } from '../events/command.ts';
import { renderExplanation } from '../explain/render-explanation.ts';
import { buildGraph } from '../graph/build-graph.ts';
import type { Graph } from '../graph/graph.ts';
import { DRAWING_SHEET, PAGE_SCRIPT, PAGE_SHEET } from '../graph/page/page-sources.inline.ts';
import { readGraphInput } from '../graph/read-graph-input.ts';
import { renderHtml } from '../graph/render-html.ts';
import { PODS } from '../pool/command.ts';
import { STATUS } from '../status/command.ts';
import { type BundlePart, boundText, PART_BYTES, type PartContent, textPart, valuePart } from './bundle-part.ts';
import { redactValue } from './redact-value.ts';

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

/** Output and exit code of a command. */
type CapturedRun = {
  /** Text of both streams, standard error last. */
  readonly text: string;
  /** Text on standard output alone. */
  readonly printed: string;
  readonly exitCode: ExitCode | 'error';
};

/** Width of tables, characters. */
const COLUMNS = 160;

/**
 * Runs another command with the given options, and the defaults of the others, and returns its output as a text. The
 * content of standard error and the error that ended the command stand at the end. Never rejects with UserError.
 */
async function runCaptured(
  command: Command,
  options: Readonly<Record<string, unknown>>,
  context: Pick<CommandContext, 'env' | 'clock' | 'isRoot' | 'global'>,
  signal: AbortSignal,
): Promise<CapturedRun> {
  const stdout = memoryStream();
  const stderr = memoryStream();
  const { keys: _keys, ...rest } = { keys: undefined, ...context };
  const inner: CommandContext = { ...rest, signal, stdout: stdout.stream, stderr: stderr.stream };
  const body = await command.load();
  let exitCode: CapturedRun['exitCode'];
  try {
    // Options are declared and passed by name here. The types of a single command are not known where any command can
    // run.
    exitCode = await body.run({ ...defaultsOf(command.options), ...options } as Parameters<typeof body.run>[0], inner);
  } catch (error) {
    if (!(error instanceof UserError)) throw error;
    exitCode = 'error';
    stderr.stream.write(`${error.code}: ${error.message}\nnext: ${error.next}\n`);
  }
  const printed = stdout.text();
  const errorOutput = stderr.text();
  if (printed === '' || errorOutput === '') return { text: `${printed}${errorOutput}`.trim(), printed, exitCode };
  return { text: `${printed}\n--- standard error ---\n${errorOutput}`, printed, exitCode };
}

function defaultsOf(options: OptionTable): Readonly<Record<string, unknown>> {
  return Object.fromEntries(
    Object.entries(options).map(([name, { type, default: fallback }]) => [
      name,
      fallback ?? (type === 'boolean' ? false : type === 'strings' ? [] : undefined),
    ]),
  );
}

function memoryStream(): { readonly stream: Stream; readonly text: () => string } {
  const chunks: string[] = [];
  let length = 0;
  const write = (text: string) => {
    // Keep twice the limit: boundText keeps the beginning and the end of the collected text.
    if (length > 2 * PART_BYTES) return;
    chunks.push(text);
    length += text.length;
  };
  const stream: Stream = {
    isTerminal: false,
    isColored: false,
    columns: () => COLUMNS,
    rows: () => 50,
    write,
    writeBytes: (bytes) => write(`[${bytes.length} bytes that are no text]\n`),
  };
  return { stream, text: () => boundText(chunks.join('')) };
}

/**
 * Time limit. On a node with many Pods only those explained in this time are included; the text says how many were not.
 */
const EXPLAIN_MS = 20_000;
const WIDTH = 160;

/**
 * Explains every Pod of the node as `tke-eni explain` does, and returns the explanations with a broken hop.
 * @throws UserError
 */
async function explainBroken(
  context: Pick<CommandContext, 'global' | 'clock'>,
  signal: AbortSignal,
): Promise<PartContent> {
  const facts = await readNodeFacts(context, { handlers: () => askHandlers(context.global) });
  using kernel = openKernelLookup(context, facts);
  const explainContext = buildExplainContext(facts, await readPlannedNft(facts), kernel);
  const endMs = context.clock.monotonicMs() + EXPLAIN_MS;
  const broken: string[] = [];
  let explained = 0;
  for (const { key } of facts.pods) {
    if (signal.aborted || context.clock.monotonicMs() > endMs) break;
    const explanation = buildExplanation(explainContext, { subject: key, to: undefined, from: undefined });
    explained += 1;
    if (isBroken(explanation)) {
      broken.push(`===== ${key}\n${renderExplanation(explanation, { width: WIDTH, isColored: false })}`);
    }
    // The work is synchronous. Yield to the event loop, so that an interrupt is handled between two Pods.
    await new Promise((resolve) => setImmediate(resolve));
  }
  const head = `${facts.pods.length} Pods, ${explained} looked at, ${broken.length} broken`;
  return textPart(`${head}\n\n${broken.join('\n')}`);
}

function isBroken({ paths }: Explanation): boolean {
  return paths.some(({ hops }) => hops.some(({ verdict }) => verdict === 'broken'));
}

/** Limit of Pods on a page. A drawing of more takes long to make and is unreadable; the tables contain all Pods. */
const MAX_PODS = 500;

/**
 * Returns the part with the node drawn as a page, as `tke-eni graph` does. Secrets are removed from the graph before it
 * is drawn: shortening or changing the finished page would break it.
 */
export function graphPart(context: Pick<CommandContext, 'global'>): BundlePart {
  return {
    path: 'graph.html',
    collect: async () => {
      const { pods } = await readNodeFacts(context, { insides: 'none', nft: false, sysctls: false });
      if (pods.length > MAX_PODS) {
        return {
          kind: 'skipped',
          why: `${pods.length} Pods are too many for a page here: tke-eni graph --file draws it`,
        };
      }
      const input = await readGraphInput(context, { subject: undefined, to: undefined });
      const page = renderHtml(redactValue(buildGraph(input.facts, input)) as Graph, undefined, {
        script: PAGE_SCRIPT,
        pageSheet: PAGE_SHEET,
        drawingSheet: DRAWING_SHEET,
      });
      if (Buffer.byteLength(page) > PART_BYTES) {
        return { kind: 'skipped', why: `the page has more than ${PART_BYTES} bytes: tke-eni graph --file writes it` };
      }
      return { kind: 'safe', text: page };
    },
  };
}
