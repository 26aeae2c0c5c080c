import { connect } from 'node:net';
import { join } from 'node:path';
import type { Child, ChildExit } from '../../sim/support/child.ts';
import { childEnv } from '../../sim/support/child-env.ts';
import type { NetnsView } from '../../sim/support/netns.ts';
import { openAgentCaller } from './agent-call.ts';
import { executablePath } from './executables.ts';
import { waitUntil } from './wait-until.ts';

const ROOT = join(import.meta.dirname, '..', '..');

/** How to start an agent of a test node. All files lie in `dir`. */
export type AgentOptions = {
  /** The node's network namespace. */
  readonly netns: NetnsView;
  /** Folder of this node's files: socket, state, CNI folders. */
  readonly dir: string;
  /** NodeENIConfig file; default `<dir>/node.yaml`, 'none' for no such flag. */
  readonly supplyFile?: string;
  /** Runtime's socket; default none. */
  readonly criSocket?: string;
  /** Default 'packaged': dist/bin. 'sources' runs agent/main.ts with Node. A path is taken as it is. */
  readonly program?: 'packaged' | 'sources' | { readonly path: string };
  /** Further flags: `{'rule-mode': 'per-pod', 'port-mapping': true}`. They win over the defaults. */
  readonly flags?: Readonly<Record<string, string | boolean | readonly string[]>>;
  readonly env?: Readonly<Record<string, string>>;
  /** Put before the command line: `['strace', '-f', …]`. */
  readonly wrap?: readonly string[];
  /** Default 'ready': an ADD could be served. 'listening': the socket answers. 'started': do not wait. */
  readonly until?: 'ready' | 'listening' | 'started';
  /** Milliseconds; default 60,000. */
  readonly timeoutMs?: number;
};

/** A running agent. */
export type AgentProcess = {
  readonly pid: number;
  readonly socketPath: string;
  readonly stateDir: string;
  readonly cniBinDir: string;
  readonly cniConfDir: string;
  readonly child: Child;
  /** Waits until an ADD could be served, or the socket answers. */
  awaitUntil(state: 'ready' | 'listening', timeoutMs?: number): Promise<void>;
  /** Sends a signal to the agent. */
  kill(signal: NodeJS.Signals): void;
  /** SIGTERM, then SIGKILL after 30 s. Idempotent. */
  stop(): Promise<ChildExit>;
  /** All that it wrote: its log. */
  logs(): string;
};

/**
 * Starts the real agent in a node's network namespace and waits for it.
 * @throws Error with the end of its log when it ends or is not ready in time; it is stopped then.
 */
export async function startAgent(options: AgentOptions): Promise<AgentProcess> {
  const places = placesIn(options.dir);
  const child = options.netns.start(
    [...(options.wrap ?? []), ...programOf(options.program ?? 'packaged'), ...flagsOf(options, places)],
    // On a node that folder is the host's; agents of tests must not share one. As a variable: older agents have no such flag.
    { env: { ...childEnv(), TKE_ENI_GR_HOST_LOCAL_DIR: '', ...options.env } },
  );
  const agent: AgentProcess = {
    pid: child.pid,
    ...places,
    child,
    awaitUntil: (state, timeoutMs) => awaitAgent(child, places.socketPath, state, timeoutMs),
    kill: (signal) => child.kill(signal),
    stop: () => child.stop('SIGTERM', 30_000),
    logs: () => child.stdout + child.stderr,
  };
  const until = options.until ?? 'ready';
  if (until === 'started') return agent;
  try {
    await agent.awaitUntil(until, options.timeoutMs);
    return agent;
  } catch (error) {
    await child.stop('SIGKILL');
    throw error;
  }
}

/**
 * Waits until an agent that was started says, by STATUS or in its log, why no ADD could be served.
 * @throws Error when it serves, or does not say so within 60 s
 */
export async function awaitRefusal(agent: AgentProcess, says: RegExp): Promise<void> {
  let last = '';
  const isRefused = async (): Promise<boolean> => {
    last = await agent.awaitUntil('ready', 1_000).then(
      () => 'it serves',
      (error: unknown) => String(error),
    );
    if (last === 'it serves') throw new Error(last);
    return says.test(last);
  };
  await waitUntil(isRefused, { what: `a refusal that says ${says}`, timeoutMs: 60_000, explain: () => last });
}

type Places = Pick<AgentProcess, 'socketPath' | 'stateDir' | 'cniBinDir' | 'cniConfDir'>;

function placesIn(dir: string): Places {
  return {
    socketPath: join(dir, 'agent.sock'),
    stateDir: join(dir, 'state'),
    cniBinDir: join(dir, 'cni-bin'),
    cniConfDir: join(dir, 'cni-conf'),
  };
}

function programOf(program: 'packaged' | 'sources' | { readonly path: string }): readonly string[] {
  if (program === 'packaged') return [executablePath('tke-eni-agent')];
  if (program === 'sources') return [process.execPath, join(ROOT, 'agent', 'main.ts')];
  return [program.path];
}

function flagsOf(options: AgentOptions, places: Places): readonly string[] {
  const flags: Record<string, string | boolean | readonly string[]> = {
    socket: places.socketPath,
    'state-dir': places.stateDir,
    ...(options.supplyFile === 'none' ? {} : { 'supply-file': options.supplyFile ?? join(options.dir, 'node.yaml') }),
    'cni-bin-dir': places.cniBinDir,
    'cni-conf-dir': places.cniConfDir,
    // Tests exec the packaged file itself; an installation is asked for where it is the subject.
    'plugin-dir': '',
    // Tests' own mount namespace: what they name is where they name it.
    'host-root': '/',
    'cri-socket': options.criSocket ?? '',
    // No kubelet runs beside it, and nobody is to be told so on the Node.
    ...(options.flags?.['supply-source'] === 'cluster' ? { 'kubelet-dir': '' } : {}),
    ...options.flags,
  };
  return Object.entries(flags).flatMap(([name, value]) => {
    const values = Array.isArray(value) ? value : [value];
    return values.map((one) => (one === true ? `--${name}` : `--${name}=${String(one)}`));
  });
}

async function awaitAgent(
  child: Child,
  socketPath: string,
  state: 'ready' | 'listening',
  timeoutMs = 60_000,
): Promise<void> {
  let last = '';
  await waitUntil(
    async () => {
      if (!child.isRunning) throw new Error(`agent ended before it was ${state}:\n${tail(child)}`);
      if (!(await answers(socketPath))) return false;
      if (state === 'listening') return true;
      last = await whyNotReady(socketPath);
      return last === '';
    },
    { what: `agent ${state}`, timeoutMs, everyMs: 20, explain: () => `${last}\n${tail(child)}` },
  );
}

function answers(socketPath: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(socketPath);
    const end = (isOpen: boolean): void => {
      socket.destroy();
      resolve(isOpen);
    };
    socket.once('connect', () => end(true)).once('error', () => end(false));
  });
}

/** Asks the STATUS call; empty when an ADD could be served. */
async function whyNotReady(socketPath: string): Promise<string> {
  const caller = openAgentCaller(socketPath);
  try {
    const { error } = await caller.call('status', { plugin: 1 }, 2_000);
    return error === undefined ? '' : `STATUS says ${error.code}: ${error.msg} ${error.details}`;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  } finally {
    caller.close();
  }
}

function tail(child: Child): string {
  return (child.stdout + child.stderr).split('\n').slice(-30).join('\n');
}
