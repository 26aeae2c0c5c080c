import { CliError } from '../cli-error.ts';
import type { Command, CommandContext, GlobalArgs } from '../command.ts';
import { COMMANDS } from '../commands.ts';
import { EXIT, type ExitCode } from '../exit-code.ts';
import { renderError } from '../output/render-error.ts';
import { decideError } from './decide-error.ts';
import { COMPLETE, ownCommands } from './own-commands.ts';
import { type CommandLine, type GlobalValues, readCommandLine } from './read-command-line.ts';

/** Every command, those about the program itself last. */
export const ALL_COMMANDS: readonly Command[] = [...COMMANDS, ...ownCommands(() => ALL_COMMANDS)];

/** The process, as the program sees it: streams once it is known whether colours are wanted, and the rest. */
export type ProgramPorts = Omit<CommandContext, 'global' | 'stdout' | 'stderr'> & {
  openStream(name: 'stdout' | 'stderr', color: GlobalValues['color']): CommandContext['stdout'];
  /** What stands for an option that was not given and has no fixed default. */
  hostRoot(): string;
  kubeconfig(): string;
};

/** Reads the command line, runs the command, prints its error. Rejects only with a fault of ours. */
export async function runProgram(
  argv: readonly string[],
  ports: ProgramPorts,
  commands: readonly Command[] = ALL_COMMANDS,
): Promise<ExitCode> {
  const line = readCommandLine(argv, argv.includes(COMPLETE.name) ? [COMPLETE] : commands);
  try {
    return await runLine(line, ports, commands);
  } catch (error) {
    const told = decideError(error, line.kind === 'run' ? line.command : { name: 'tke-eni' }, ports.isRoot);
    if (told === undefined) throw error;
    const stderr = ports.openStream('stderr', colorOf(line));
    stderr.write(renderError(told, stderr.isColored));
    return told.exitCode;
  }
}

async function runLine(line: CommandLine, ports: ProgramPorts, commands: readonly Command[]): Promise<ExitCode> {
  switch (line.kind) {
    case 'faulty': {
      const [first = ''] = line.faults;
      const list = line.faults.map((fault) => `\n  - ${fault}`).join('');
      const message = line.faults.length === 1 ? first : `the command line has ${line.faults.length} faults:${list}`;
      throw new CliError('USAGE', message, line.next);
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
      // The declaration's types are those of its body; here, where all commands meet, they are gone.
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
    netns: values.netns,
    hostRoot: values.hostRoot ?? hostRoot(),
    kubeconfig: values.kubeconfig ?? kubeconfig(),
  };
  const { color } = values;
  return { ...rest, global, stdout: openStream('stdout', color), stderr: openStream('stderr', color) };
}
