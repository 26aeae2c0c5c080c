import type { CommandContext, GlobalArgs, Stream } from '../../../cli/command/command.ts';
import type { ExitCode } from '../../../cli/command/exit-code.ts';
import { COMMANDS } from '../../../cli/commands/commands.ts';
import { runProgram } from '../../../cli/program/run-program.ts';
import { systemClock } from '../../../runtime/clock.ts';
import { UserError } from '../../../runtime/user-error.ts';

/** What a run of the program left. */
export type Captured = {
  readonly code: ExitCode;
  readonly stdout: string;
  readonly stderr: string;
  /** What was written to either stream that is no text. */
  readonly bytes: Buffer;
};

/** How the process around the program is. */
type Surroundings = {
  readonly columns?: number;
  readonly isColored?: boolean;
  readonly isTerminal?: boolean;
  readonly clock?: CommandContext['clock'];
  readonly signal?: AbortSignal;
  readonly env?: CommandContext['env'];
  readonly isRoot?: boolean;
  /** Whether the agent has the time that users give it; by default it has more, for a loaded machine. */
  readonly isHasty?: boolean;
  /** Called with what is written, as it is. */
  readonly onStdout?: (text: string) => void;
};

/** Runs a command line as main would, in this process, into memory. */
export async function runCaptured(argv: readonly string[], around: Surroundings = {}): Promise<Captured> {
  const written = { stdout: '', stderr: '' };
  const bytes: Uint8Array[] = [];
  const code = await runProgram(
    around.isHasty === true ? argv : withPatience(argv),
    {
      env: around.env ?? {},
      clock: around.clock ?? systemClock,
      signal: around.signal ?? new AbortController().signal,
      isRoot: around.isRoot ?? true,
      hostRoot: () => '/',
      kubeconfig: () => '',
      openStream: (name) =>
        memoryStream(around, {
          write: (text) => {
            written[name] += text;
            if (name === 'stdout') around.onStdout?.(text);
          },
          writeBytes: (content) => void bytes.push(content),
        }),
    },
    COMMANDS,
  );
  return { code, ...written, bytes: Buffer.concat(bytes) };
}

/** Gives the agent of a test on a loaded machine more time than users have, unless the test says how much. */
function withPatience(argv: readonly string[]): readonly string[] {
  const isAsking = ['pool', 'enis', 'status'].includes(argv[0] ?? '') && !argv.includes('--agent-timeout');
  return isAsking ? [...argv, '--agent-timeout', '10'] : argv;
}

/** Makes a stream that is no terminal unless asked. */
function memoryStream(
  { columns = 80, isColored = false, isTerminal = false }: Pick<Surroundings, 'columns' | 'isColored' | 'isTerminal'>,
  writes: Pick<Stream, 'write' | 'writeBytes'>,
): Stream {
  return { isTerminal, columns: () => columns, rows: () => 24, isColored, ...writes };
}

/** Global arguments that point at nothing. */
export const NOWHERE: GlobalArgs = {
  socket: '/nonexistent/agent.sock',
  stateDir: '/nonexistent',
  netns: undefined,
  hostRoot: '/',
  agentTimeoutMs: 10_000,
  kubeconfig: '',
};

/** Awaits a UserError. @throws what else came, or that nothing did */
export async function cliErrorOf(work: Promise<unknown>): Promise<UserError> {
  try {
    await work;
  } catch (error) {
    if (error instanceof UserError) return error;
    throw error;
  }
  throw new Error('it was not refused');
}
