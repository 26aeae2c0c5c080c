import { isObject, type JsonObject, type NetnsView } from '../../../sim/support/netns.ts';
import type { RunResult } from '../../../sim/support/run.ts';
import { executablePath } from '../../support/executables.ts';

/** What of a node `tke-eni` needs to know. */
export type CliPlace = {
  readonly netns: NetnsView;
  readonly stateDir: string;
  readonly socketPath: string;
  /** Variables besides the test's own. */
  readonly env?: Readonly<Record<string, string>>;
  /** Seconds that the agent has to answer; by default many, for a loaded machine. */
  readonly agentTimeout?: string;
};

/** Runs the packaged `tke-eni` on a node. Returns its answer, failure included. */
export function runCli(place: CliPlace, ...args: readonly string[]): Promise<RunResult> {
  const { netns, stateDir, socketPath, env = {}, agentTimeout = '10' } = place;
  const variables = Object.entries(env).map(([name, value]) => `${name}=${value}`);
  const timeout = ['--agent-timeout', agentTimeout];
  const places = ['--state-dir', stateDir, '--socket', socketPath, '--host-root', '/', ...timeout];
  return netns.tryRun(['env', ...variables, executablePath('tke-eni'), ...args, ...places]);
}

/** Runs a command with `-o json` and reads its document. @throws Error when it printed none */
export async function askCli(
  place: CliPlace,
  ...args: readonly string[]
): Promise<{ readonly code: number | null; readonly document: JsonObject }> {
  const { code, stdout, stderr } = await runCli(place, ...args, '-o', 'json');
  try {
    const document: unknown = JSON.parse(stdout);
    if (isObject(document)) return { code, document };
  } catch {
    // Said below, with what it printed instead.
  }
  throw new Error(`tke-eni ${args.join(' ')} exited with ${code} and printed no document:\n${stdout}\n${stderr}`);
}

/** The members of a list in a document that are objects. */
export function listOf(document: JsonObject, name: string): readonly JsonObject[] {
  const list = document[name];
  return Array.isArray(list) ? list.filter(isObject) : [];
}
