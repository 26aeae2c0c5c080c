import { UserError } from '../../../runtime/user-error.ts';
import { type OpsClient, openOpsClient } from '../../agent/ops-client.ts';
import type { CommandContext, Stream } from '../../command/command.ts';
import { EXIT, type ExitCode } from '../../command/exit-code.ts';
import { buildAgentPool } from '../pool/build-agent-pool.ts';
import type { TopArgs } from './arguments.ts';
import { buildTopView, type TopSample, withSample } from './build-top-view.ts';
import { renderTop, TOP_SORTS, type TopSort } from './render-top.ts';

/** Period for rates. With a shorter one the rates fluctuate; a longer one hides what has just begun. */
const WINDOW_MS = 60_000;
/** Interval at which the terminal's size is checked. */
const TICK_MS = 100;
const MIN_INTERVAL_S = 0.2;
const MAX_INTERVAL_S = 3_600;

/** Shows the agent live. @throws UserError NO_AGENT, FORBIDDEN; TERMINAL without a terminal; USAGE */
export async function run({ interval, once }: TopArgs, context: CommandContext): Promise<ExitCode> {
  if (!(interval >= MIN_INTERVAL_S && interval <= MAX_INTERVAL_S)) {
    const message = `--interval ${interval}: expected ${MIN_INTERVAL_S} to ${MAX_INTERVAL_S} seconds`;
    throw new UserError('USAGE', message, 'leave it out for 2');
  }
  if (once) return printOnce(context);
  if (!context.stdout.isTerminal) {
    throw new UserError('TERMINAL', 'top draws on a terminal, and standard output is none', 'tke-eni top --once');
  }
  if (context.env['TERM'] === 'dumb') {
    throw new UserError('TERMINAL', 'top draws in place, which a dumb terminal (TERM) cannot', 'tke-eni top --once');
  }
  await follow(context, interval * 1_000);
  return EXIT.ok;
}

async function printOnce({ global, stdout, clock }: CommandContext): Promise<ExitCode> {
  using client = await openOpsClient(global);
  const sample = await takeSample(client, clock.monotonicMs());
  const lines = renderTop(buildTopView(sample, undefined), {
    columns: stdout.columns(),
    rows: Number.POSITIVE_INFINITY,
    isColored: stdout.isColored,
    sort: 'ENI',
    isPaused: false,
    unixMs: clock.nowMs(),
    problem: '',
    hasKeys: false,
  });
  stdout.write(`${lines.join('\n')}\n`);
  return EXIT.ok;
}

/** The samples so far, and what the keys change. */
type State = {
  samples: readonly TopSample[];
  shownUnixMs: number;
  problem: string;
  sort: TopSort;
  isPaused: boolean;
  isOver: boolean;
};

async function follow(context: CommandContext, intervalMs: number): Promise<void> {
  const { stdout, clock, signal, global } = context;
  // Connect before the alternate screen opens: an error then stays visible on the normal screen.
  const first = await openOpsClient(global);
  let client: OpsClient | undefined = first;
  const sample = await takeSample(first, clock.monotonicMs());
  const state: State = {
    samples: [sample],
    shownUnixMs: clock.nowMs(),
    problem: '',
    sort: 'ENI',
    isPaused: false,
    isOver: false,
  };
  using screen = openScreen(stdout);
  const draw = () => screen.draw(frame(state, context));
  const unlisten = context.keys?.((key) => {
    onKey(state, key);
    draw();
  });
  try {
    let size = '';
    let nextMs = clock.monotonicMs() + intervalMs;
    while (!signal.aborted && !state.isOver) {
      const now = `${stdout.columns()}x${stdout.rows()}`;
      if (!state.isPaused && clock.monotonicMs() >= nextMs) {
        nextMs = clock.monotonicMs() + intervalMs;
        client = await refresh(state, client, context);
        draw();
      } else if (now !== size) draw();
      size = now;
      await clock.sleep(TICK_MS, signal).catch(() => undefined);
    }
  } finally {
    unlisten?.();
    client?.close();
  }
}

function onKey(state: State, key: string): void {
  if (key === 'q' || key === 'Q') state.isOver = true;
  if (key === 'p') state.isPaused = !state.isPaused;
  if (key === 's') state.sort = TOP_SORTS[(TOP_SORTS.indexOf(state.sort) + 1) % TOP_SORTS.length] ?? 'ENI';
}

/**
 * Takes a sample and returns the client. When the agent does not answer, the problem is shown and the next call
 * connects again.
 */
async function refresh(state: State, client: OpsClient | undefined, context: CommandContext) {
  let current = client;
  try {
    current ??= await openOpsClient(context.global);
    const sample = await takeSample(current, context.clock.monotonicMs());
    state.samples = withSample(state.samples, sample, WINDOW_MS);
    state.shownUnixMs = context.clock.nowMs();
    state.problem = '';
    return current;
  } catch (error) {
    if (!(error instanceof UserError)) throw error;
    current?.close();
    state.problem = `${error.message}; the figures shown are outdated`;
    return undefined;
  }
}

function frame(state: State, { stdout }: CommandContext): readonly string[] {
  const now = state.samples.at(-1);
  if (now === undefined) return [];
  const oldest = state.samples[0] === now ? undefined : state.samples[0];
  return renderTop(buildTopView(now, oldest), {
    columns: stdout.columns(),
    rows: stdout.rows(),
    isColored: stdout.isColored,
    sort: state.sort,
    isPaused: state.isPaused,
    unixMs: state.shownUnixMs,
    problem: state.problem,
    hasKeys: true,
  });
}

async function takeSample(client: OpsClient, atMs: number): Promise<TopSample> {
  const [pool, summary] = await Promise.all([client.pool(), client.summary()]);
  return { atMs, pool: buildAgentPool(pool, summary.nodeName), summary };
}

/** A whole terminal that is redrawn in place. */
type Screen = {
  /** Shows lines from the top; each must fit the width. */
  draw(lines: readonly string[]): void;
  /** Restores the previous screen. Idempotent. */
  close(): void;
  [Symbol.dispose](): void;
};

/**
 * Opens the terminal's alternate screen and hides the cursor. The caller must close it in any case.
 * @see xterm control sequences, DECSET 1049, 25 and 2026
 */
function openScreen(stdout: Pick<Stream, 'write'>): Screen {
  let isOpen = true;
  stdout.write('\u001b[?1049h\u001b[?25l\u001b[2J');
  const close = () => {
    if (!isOpen) return;
    isOpen = false;
    stdout.write('\u001b[?25h\u001b[?1049l');
  };
  return {
    draw: (lines) => {
      if (!isOpen) return;
      // Lines overwrite the old frame in one write, so nothing flickers. No newline after the last line: it would
      // scroll.
      const body = lines.map((line) => `${line}\u001b[K`).join('\r\n');
      stdout.write(`\u001b[?2026h\u001b[H${body}\u001b[J\u001b[?2026l`);
    },
    close,
    [Symbol.dispose]: close,
  };
}
