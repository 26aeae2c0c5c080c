import { UserError } from '../../runtime/user-error.ts';
import type { Command, CommandContext, GlobalArgs } from '../command/command.ts';
import { EXIT, type ExitCode, exitCodeOf } from '../command/exit-code.ts';
import { COMMANDS } from '../commands/commands.ts';
import { renderError } from '../output/render-error.ts';
import { builtInCommands, COMPLETE } from './built-in-commands.ts';
import { type CommandLine, type GlobalValues, readCommandLine } from './read-command-line.ts';

/** All commands; those about the program itself are last. */
export const ALL_COMMANDS: readonly Command[] = [...COMMANDS, ...builtInCommands(() => ALL_COMMANDS)];

/** The process around the program: streams, opened once the colour setting is known, and the environment. */
export type ProgramPorts = Omit<CommandContext, 'global' | 'stdout' | 'stderr'> & {
  openStream(name: 'stdout' | 'stderr', color: GlobalValues['color']): CommandContext['stdout'];
  /** Defaults of options that have no fixed default. */
  hostRoot(): string;
  kubeconfig(): string;
};

/** Reads the command line, runs the command, prints its error. Rejects only for a bug of this program. */
export async function runProgram(
  argv: readonly string[],
  ports: ProgramPorts,
  commands: readonly Command[] = ALL_COMMANDS,
): Promise<ExitCode> {
  if (argv[0] === COMPLETE.name && argv[1] === '--') return complete(argv.slice(2), ports, commands);
  const line = readCommandLine(argv, argv.includes(COMPLETE.name) ? [COMPLETE] : commands);
  try {
    return await runLine(line, ports, commands);
  } catch (error) {
    const shown = decideError(error, line.kind === 'run' ? line.command : { name: 'tke-eni' }, ports.isRoot);
    if (shown === undefined) throw error;
    const stderr = ports.openStream('stderr', colorOf(line));
    stderr.write(renderError(shown, stderr.isColored));
    return exitCodeOf(shown);
  }
}

async function complete(
  words: readonly string[],
  ports: ProgramPorts,
  commands: readonly Command[],
): Promise<ExitCode> {
  const { completeLine } = await import('../completion/complete-line.ts');
  return completeLine(words, commands, (options) => {
    const line = readCommandLine([COMPLETE.name, 'pod', ...options], [COMPLETE]);
    return line.kind === 'run' ? contextOf(line.global, ports) : undefined;
  });
}

async function runLine(line: CommandLine, ports: ProgramPorts, commands: readonly Command[]): Promise<ExitCode> {
  switch (line.kind) {
    case 'faulty': {
      const [first = ''] = line.faults;
      const list = line.faults.map((fault) => `\n  - ${fault}`).join('');
      const message = line.faults.length === 1 ? first : `the command line has ${line.faults.length} faults:${list}`;
      throw new UserError('USAGE', message, line.next);
    }
    case 'version': {
      const { run } = await import('./run-version.ts');
      return run({}, { stdout: ports.openStream('stdout', 'auto') });
    }
    case 'help': {
      const { printHelp } = await import('./run-help.ts');
      printHelp(line.words, commands, ports.openStream('stdout', line.global.color));
      return EXIT.ok;
    }
    case 'run': {
      const { run } = await line.command.load();
      // `load` keeps the types of declaration and body together. Here, where all commands meet, these types are lost.
      return await run(line.args as Parameters<typeof run>[0], contextOf(line.global, ports));
    }
  }
}

function colorOf(line: CommandLine): GlobalValues['color'] {
  return line.kind === 'run' || line.kind === 'help' ? line.global.color : 'auto';
}

function contextOf(values: GlobalValues, ports: ProgramPorts): CommandContext {
  const { openStream, hostRoot, kubeconfig, ...rest } = ports;
  const global: GlobalArgs = {
    socket: values.socket,
    stateDir: values.stateDir,
    agentTimeoutMs: values.agentTimeoutMs,
    ...(values.isAgentTimeoutGiven ? { isAgentTimeoutGiven: true } : {}),
    netns: values.netns,
    hostRoot: values.hostRoot ?? hostRoot(),
    kubeconfig: values.kubeconfig ?? kubeconfig(),
  };
  const { color } = values;
  return { ...rest, global, stdout: openStream('stdout', color), stderr: openStream('stderr', color) };
}

/**
 * Decides which error the user gets. A missing permission, wherever the kernel reported it, becomes FORBIDDEN with the
 * command's requirements. An unknown error becomes undefined: it is a bug of this program.
 */
function decideError(error: unknown, command: Pick<Command, 'name' | 'needs'>, isRoot: boolean): UserError | undefined {
  if (error instanceof UserError) return error;
  if (error instanceof Error && 'code' in error && FULL.has(error.code)) {
    return new UserError('KERNEL', `${command.name}: ${error.message}`, 'make room there, or print elsewhere', {
      cause: error,
    });
  }
  const refusal = findRefusal(error);
  if (refusal === undefined) return undefined;
  const reason = command.needs?.replace(/^root: /, '');
  const needs = reason === undefined || reason === 'root' ? 'it needs root' : `it needs root (${reason})`;
  const next = isRoot
    ? `${needs}; root alone does not suffice here: look at capabilities and seccomp of this container`
    : `${needs}: run it as root, \`sudo tke-eni ${command.name} …\`, or in the agent's container`;
  return new UserError('FORBIDDEN', `${command.name}: ${refusal}`, next, { cause: error });
}

/** Finds the message of a permission error, in the error itself or in its causes. */
function findRefusal(error: unknown): string | undefined {
  let current = error;
  for (let depth = 0; depth < MAX_CAUSES && current instanceof Error; depth++) {
    if ('code' in current && REFUSALS.has(current.code)) return current.message;
    current = current.cause;
  }
  return undefined;
}

/** Codes of missing permission. @see errno(3) */
const REFUSALS: ReadonlySet<unknown> = new Set(['EPERM', 'EACCES']);
/** Codes of an output without free space. @see write(2) */
const FULL: ReadonlySet<unknown> = new Set(['ENOSPC', 'EDQUOT', 'EFBIG']);
/** Limit for chains of causes: real ones are short, a longer one is a loop. */
const MAX_CAUSES = 8;
