import { CliError } from '../cli-error.ts';
import type { Command, CommandContext, OptionTable, Stream } from '../command.ts';
import type { ExitCode } from '../exit-code.ts';
import { boundText, PART_BYTES } from './bundle-part.ts';

/** What a command printed, and how it ended. */
export type CapturedRun = {
  /** Both streams, standard error last. */
  readonly text: string;
  /** On standard output alone. */
  readonly printed: string;
  readonly exitCode: ExitCode | 'error';
};

/** Width of what is laid out in columns. */
const COLUMNS = 160;

/**
 * Runs another command as its command line would, with the options that are given and the defaults of the rest, into a
 * text. What it says on standard error, and the error that it ends with, stand at the end. Never rejects with CliError.
 */
export async function runCaptured(
  command: Command,
  given: Readonly<Record<string, unknown>>,
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
    // Declared and given by name; the types of one command are not known where all are run.
    exitCode = await body.run({ ...defaultsOf(command.options), ...given } as Parameters<typeof body.run>[0], inner);
  } catch (error) {
    if (!(error instanceof CliError)) throw error;
    exitCode = 'error';
    stderr.stream.write(`${error.code}: ${error.message}\nnext: ${error.next}\n`);
  }
  const printed = stdout.text();
  const said = stderr.text();
  if (printed === '' || said === '') return { text: `${printed}${said}`.trim(), printed, exitCode };
  return { text: `${printed}\n--- standard error ---\n${said}`, printed, exitCode };
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
  const stream: Stream = {
    isTerminal: false,
    isColored: false,
    columns: () => COLUMNS,
    rows: () => 50,
    write: (text) => {
      // Twice what is kept: the end of a long text matters as well, the middle does not.
      if (length > 2 * PART_BYTES) return;
      chunks.push(text);
      length += text.length;
    },
  };
  return { stream, text: () => boundText(chunks.join('')) };
}
