import { UserError } from '../../../runtime/user-error.ts';
import type { Command, CommandContext, OptionTable, Stream } from '../../command/command.ts';
import type { ExitCode } from '../../command/exit-code.ts';
import { boundText, PART_BYTES } from './bundle-part.ts';

/** Output and exit code of a command. */
export type CapturedRun = {
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
export async function runCaptured(
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
