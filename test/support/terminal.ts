import { spawn } from 'node:child_process';
import headless from '@xterm/headless';
import { childEnv } from '../../sim/support/child-env.ts';
import { run } from '../../sim/support/run.ts';
import { waitUntil } from './wait-until.ts';

/** How a command is run in a terminal of its own. */
type TerminalOptions = {
  /** Size; 80 × 24 by default. */
  readonly columns?: number;
  readonly rows?: number;
  /** Added to what child processes get; TERM is xterm-256color unless given, and COLUMNS, LINES and NO_COLOR are unset. */
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
};

/** A command that runs in a real pseudo-terminal, and the screen that a person would see. */
type OpenTerminal = {
  /** Visible lines from top to bottom, blanks at their ends left out. */
  screen(): readonly string[];
  /** Every line that was not overwritten, those that scrolled out of sight included; empty ones at the end left out. */
  lines(): readonly string[];
  /** Every byte that came, as text. */
  raw(): string;
  /** True while the alternate screen is shown, as full-screen programs do. */
  isAlternate(): boolean;
  isCursorHidden(): boolean;
  /** Resolves with the screen once the predicate holds. @throws Error with the screen after `timeoutMs` (default 30,000). */
  waitFor(what: string, holds: (screen: readonly string[]) => boolean, timeoutMs?: number): Promise<readonly string[]>;
  /** Types: '\r' is Enter, '\u0003' Ctrl-C, '\u001b[B' arrow down. */
  type(keys: string): void;
  /** Gives the terminal another size, as a person drags the window; the program gets SIGWINCH. */
  resize(columns: number, rows: number): Promise<void>;
  /** Settles with the command's exit code. */
  readonly exited: Promise<number>;
  /** Ends the command if it still runs. Idempotent. */
  [Symbol.asyncDispose](): Promise<void>;
};

/** What a command showed. */
type TerminalOutcome = {
  /** When `until` held, else when the command had ended. */
  readonly screen: readonly string[];
  /** Those that scrolled out of sight included, when the command had ended. */
  readonly lines: readonly string[];
  readonly raw: string;
  readonly exitCode: number;
};

/**
 * Runs a command in a real pseudo-terminal to its end. With `until` the screen is taken when that holds, then `keys` are
 * typed, which ought to end the command; without `keys` it gets Ctrl-C.
 */
export async function runInTerminal(
  argv: readonly string[],
  options: TerminalOptions & {
    readonly until?: (screen: readonly string[]) => boolean;
    readonly keys?: string;
    readonly timeoutMs?: number;
  } = {},
): Promise<TerminalOutcome> {
  const { until, keys = '\u0003', timeoutMs } = options;
  await using terminal = await openTerminal(argv, options);
  const seen = until === undefined ? undefined : await terminal.waitFor('the awaited screen', until, timeoutMs);
  if (until !== undefined) terminal.type(keys);
  const exitCode = await terminal.exited;
  return { screen: seen ?? terminal.screen(), lines: terminal.lines(), raw: terminal.raw(), exitCode };
}

/** Starts a command in a real pseudo-terminal; `await using` ends it. */
export async function openTerminal(argv: readonly string[], options: TerminalOptions = {}): Promise<OpenTerminal> {
  const { columns = 80, rows = 24, cwd } = options;
  const emulator = new headless.Terminal({ cols: columns, rows, scrollback: 100_000, allowProposedApi: true });
  // util-linux's script opens the terminal; the shell in it sets the size, tells the terminal's name and its pid, and becomes the command.
  const inner = `stty cols ${columns} rows ${rows}; echo "$(tty) $$" >&3; exec 3>&-; exec ${argv.map(quote).join(' ')}`;
  const { COLUMNS: _columns, LINES: _lines, NO_COLOR: _noColor, ...inherited } = childEnv();
  const child = spawn('script', ['--quiet', '--flush', '--return', '--command', inner, '/dev/null'], {
    stdio: ['pipe', 'pipe', 'pipe', 'pipe'],
    env: { ...inherited, SHELL: '/bin/sh', TERM: 'xterm-256color', ...options.env },
    ...(cwd === undefined ? {} : { cwd }),
  });
  let raw = '';
  let told = '';
  const exited = new Promise<number>((resolve, reject) => {
    child.on('error', reject);
    // All output is parsed before anybody looks at the last screen.
    child.on('close', (code) => emulator.write('', () => resolve(code ?? -1)));
  });
  exited.catch(() => undefined);
  child.stdin?.on('error', () => undefined);
  child.stdout?.on('data', (data: Buffer) => {
    raw += data.toString('utf8');
    emulator.write(data);
  });
  child.stdio[3]?.on('data', (data: Buffer) => {
    told += data.toString('utf8');
  });
  // What the program asks of the terminal (size, cursor) the terminal answers.
  emulator.onData((answer) => child.stdin?.write(answer));
  const screen = () => linesOf(emulator, emulator.buffer.active.baseY, emulator.rows);
  const waitFor: OpenTerminal['waitFor'] = (what, holds, timeoutMs) =>
    waitUntil(() => holds(screen()) && screen(), {
      what,
      ...(timeoutMs === undefined ? {} : { timeoutMs }),
      explain: () => `The screen:\n${screen().join('\n')}`,
    });
  return {
    screen,
    lines: () => trimEmpty(linesOf(emulator, 0, emulator.buffer.active.length)),
    raw: () => raw,
    isAlternate: () => emulator.buffer.active.type === 'alternate',
    isCursorHidden: () => raw.lastIndexOf(HIDE_CURSOR) > raw.lastIndexOf(SHOW_CURSOR),
    waitFor,
    type: (keys) => child.stdin?.write(keys),
    resize: async (toColumns, toRows) => {
      const { device } = await waitUntil(() => readTold(told), { what: 'the name of the terminal' });
      emulator.resize(toColumns, toRows);
      await run(['stty', '-F', device, 'cols', String(toColumns), 'rows', String(toRows)]);
    },
    exited,
    [Symbol.asyncDispose]: async () => {
      const pid = readTold(told)?.pid;
      if (child.exitCode === null && child.signalCode === null) {
        // script ends when the command does, and reaps it.
        if (pid === undefined) child.kill('SIGTERM');
        else kill(pid);
      }
      await exited.catch(() => undefined);
      emulator.dispose();
    },
  };
}

function readTold(told: string): { readonly device: string; readonly pid: number } | undefined {
  const match = /^(\S+) (\d+)\n/.exec(told);
  return match === null ? undefined : { device: match[1] ?? '', pid: Number(match[2]) };
}

/** Ends a process whatever it does with signals; one that has ended is no error. */
function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ESRCH')) throw error;
  }
}

const HIDE_CURSOR = '\u001b[?25l';
const SHOW_CURSOR = '\u001b[?25h';

function linesOf(emulator: InstanceType<typeof headless.Terminal>, from: number, count: number): readonly string[] {
  return Array.from({ length: count }, (_, index) => {
    const line = emulator.buffer.active.getLine(from + index);
    return line === undefined ? '' : line.translateToString(true).trimEnd();
  });
}

function trimEmpty(lines: readonly string[]): readonly string[] {
  return lines.slice(0, lines.findLastIndex((line) => line !== '') + 1);
}

function quote(word: string): string {
  return `'${word.replaceAll("'", "'\\''")}'`;
}
