import { existsSync } from 'node:fs';
import { CNI_CODE } from '../agent/api/cni-code.ts';
import { release } from '../runtime/release.ts';
import { type AgentCall, createAgentCall } from './agent-client.ts';
import { type Backend, parseBackend } from './client/backend.ts';
import { type Delegation, execute, type Spool } from './commands.ts';
import { recordFolder, recordPath } from './delegate/record-path.ts';
import type { Plugins } from './plugin-calls.ts';
import { findPlugin, PLUGINS, type PluginName } from './plugins.ts';
import { DEFAULT_BACKEND, decodeConf, type PluginConf, peekVersion } from './skel/conf.ts';
import { type CniEnv, decodeEnv, type Environment } from './skel/env.ts';
import { CniError, renderError, toCniError } from './skel/error.ts';
import { NEWEST_VERSION, renderVersions, SUPPORTED_VERSIONS } from './skel/version.ts';

/**
 * Runs one call of the executable from its environment to its exit. Never rejects: every failure becomes a CNI error on
 * standard output.
 */
export async function run(invocation: Invocation): Promise<Exit> {
  let stdin = '';
  try {
    const plugin = findPlugin(invocation.name);
    if (plugin === undefined) throw unknownName(invocation.name);
    if (invocation.args.includes('--version')) return { code: 0, stdout: `${plugin} ${release}\n` };
    const env = decodeEnv(invocation.env);
    stdin = invocation.readStdin();
    if (env.command === 'VERSION') return { code: 0, stdout: renderVersions(peekVersion(stdin)) };
    const conf = decodeConf(stdin, plugin, env.command);
    return { code: 0, stdout: await execute(contextOf(plugin, env, conf, invocation)) };
  } catch (error) {
    return exitWith(error, stdin);
  }
}

/** Builds the exit of a failed call from any thrown value. Never throws. */
export function exitWith(error: unknown, stdin = ''): Exit {
  const requested = peekVersion(stdin);
  const cniVersion = SUPPORTED_VERSIONS.find((version) => version === requested) ?? NEWEST_VERSION;
  return { code: 1, stdout: renderError(toCniError(error), cniVersion) };
}

/** The inputs of the process. */
type Invocation = {
  /** Last part of the path by which the executable was called. */
  readonly name: string;
  readonly args: readonly string[];
  readonly env: Environment;
  /** Reads standard input to its end. */
  readonly readStdin: () => string;
  /** Milliseconds since the epoch. */
  readonly nowMs: () => number;
  /** Milliseconds since boot on the clock that the agent uses: CLOCK_MONOTONIC. */
  readonly bootMs: () => number;
  /** Set in the agent, which runs calls of the launcher. */
  readonly inAgent?: InAgent;
};

/** What differs where the agent runs a call. */
type InAgent = {
  /** Makes the calls without a socket. Throws for another agent's address. */
  readonly callOf: (backend: Backend) => AgentCall;
  /** Gives the call up: other plugins of the host run in the process that the runtime started. */
  readonly runYourself: () => never;
  /** Returns a path of the host as this process opens it. */
  readonly hostPath: (path: string) => string;
};

/** How the process exits. */
export type Exit = { readonly code: 0 | 1; readonly stdout: string };

function contextOf(plugin: PluginName, env: CniEnv, conf: PluginConf, invocation: Invocation) {
  const { inAgent, nowMs } = invocation;
  const backend = parseBackend(conf.backend) ?? parseBackend(DEFAULT_BACKEND);
  if (backend === undefined) throw new CniError(CNI_CODE.invalidConf, `backend: ${conf.backend} is no address`);
  const call: AgentCall = (inAgent?.callOf ?? createAgentCall)(backend);
  const openPlugins = async () => {
    inAgent?.runYourself();
    // child_process costs a millisecond, which only Pods with a hostPort need.
    const calls = await import('./plugin-calls.ts');
    return calls.openPlugins(invocation.env);
  };
  const spool = createSpool(plugin, backend, invocation);
  const delegation = createDelegation(env, conf, openPlugins, inAgent?.hostPath);
  return { plugin, env, conf, call, nowMs, spentMs: spentMsOf(invocation.env), spool, openPlugins, delegation };
}

/** Returns how long the launcher has worked on this call before it became this program. */
function spentMsOf({ TKE_ENI_SPENT_MS }: Environment): number {
  return /^\d{1,6}$/.test(TKE_ENI_SPENT_MS ?? '') ? Number(TKE_ENI_SPENT_MS) : 0;
}

function createDelegation(
  env: CniEnv,
  conf: PluginConf,
  openPlugins: () => Promise<Plugins>,
  hostPath: (path: string) => string = (path) => path,
): Delegation {
  const folder = recordFolder(conf.dataDir);
  return {
    isUsed: (of) => existsSync(hostPath(of === 'node' ? folder : recordPath(folder, env))),
    open: async () => {
      const plugins = await openPlugins();
      const { openDelegate } = await import('./delegate/delegate.ts');
      return openDelegate({ env, conf, plugins });
    },
  };
}

function createSpool(plugin: PluginName, backend: Backend, { nowMs, bootMs }: Invocation): Spool {
  return {
    store: async (sandbox, network) => {
      // Loaded on demand: the hash and the file functions would cost 2 ms in every call that stores nothing.
      const { removeDeletion, spoolDeletion, spoolDirectory } = await import('./spool.ts');
      const written = { writtenAtMs: nowMs(), writtenAtBootMs: bootMs() };
      const path = spoolDeletion(spoolDirectory(backend), { plugin: PLUGINS[plugin], network, sandbox, ...written });
      return () => removeDeletion(path);
    },
  };
}

function unknownName(name: string): CniError {
  return new CniError(
    CNI_CODE.internal,
    `called as ${name}, which is none of ${Object.keys(PLUGINS).join(', ')}`,
    'the executable selects its plugin by its own name: install or link it under one of these',
  );
}
