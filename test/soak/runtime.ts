import { status } from '@grpc/grpc-js';
import type { AgentCall } from '../../cni-plugins/agent-client.ts';
import { CallError } from '../../cni-plugins/client/call-error.ts';
import { execute, type Spool } from '../../cni-plugins/commands.ts';
import { PLUGINS } from '../../cni-plugins/plugins.ts';
import { decodeConf } from '../../cni-plugins/skel/conf.ts';
import { type CniError, toCniError } from '../../cni-plugins/skel/error.ts';
import { removeDeletion, spoolDeletion, spoolDirectory } from '../../cni-plugins/spool.ts';
import { systemClock } from '../../runtime/clock.ts';
import { isObject } from '../../sim/support/netns.ts';
import { ipsOf } from '../e2e/support/cni-answers.ts';
import { type AgentCaller, openAgentCaller } from '../support/agent-call.ts';

/** A sandbox as a runtime names it to a CNI plugin. */
export type Sandbox = {
  readonly containerId: string;
  readonly netns: string;
  readonly podName: string;
  readonly podUid: string;
};

/** What came of an ADD. `isUnanswered`: the agent gave no answer. */
export type AddOutcome =
  | { readonly kind: 'added'; readonly ip: string }
  | { readonly kind: 'failed'; readonly error: CniError; readonly isUnanswered: boolean };

/** What came of a DEL; `spooled` names the file that the agent will find. */
type DelOutcome =
  | { readonly kind: 'deleted'; readonly spooled: string | undefined }
  | { readonly kind: 'failed'; readonly error: CniError };

/** Milliseconds since the epoch and since boot. */
const { nowMs, bootMs } = systemClock;
const IF_NAME = 'eth0';

/**
 * Calls an agent as the CNI executables do, with their own code: their bounds, their spool, their errors; but from this
 * process and over one connection, so that twenty thousand calls fit into minutes.
 */
export class CniRuntime {
  #socketPath: string;
  #caller: AgentCaller | undefined;

  constructor(socketPath: string) {
    this.#socketPath = socketPath;
  }

  /** Calls ADD. Never rejects. */
  async add(sandbox: Sandbox): Promise<AddOutcome> {
    let isUnanswered = false;
    try {
      const call = this.#call((failed) => {
        isUnanswered = failed;
      });
      const text = await execute(this.#context('ADD', sandbox, call, noSpool));
      const result: unknown = JSON.parse(text);
      return { kind: 'added', ip: (isObject(result) ? ipsOf(result)[0] : undefined) ?? '' };
    } catch (error) {
      return { kind: 'failed', error: toCniError(error), isUnanswered };
    }
  }

  /** Calls DEL. Never rejects. */
  async del(sandbox: Sandbox): Promise<DelOutcome> {
    let spooled: string | undefined;
    const spool: Spool = {
      store: async (one, network) => {
        const written = { writtenAtMs: nowMs(), writtenAtBootMs: bootMs() };
        const directory = spoolDirectory({ kind: 'unix', path: this.#socketPath });
        const plugin = PLUGINS['tke-route-eni'];
        const path = spoolDeletion(directory, { plugin, network, sandbox: one, ...written });
        spooled = path;
        return () => {
          removeDeletion(path);
          spooled = undefined;
        };
      },
    };
    try {
      await execute(this.#context('DEL', sandbox, this.#call(), spool));
      return { kind: 'deleted', spooled };
    } catch (error) {
      return { kind: 'failed', error: toCniError(error) };
    }
  }

  /** Closes the connection; the next call opens another. */
  close(): void {
    this.#caller?.close();
    this.#caller = undefined;
  }

  #context(command: 'ADD' | 'DEL', { containerId, netns, podName, podUid }: Sandbox, call: AgentCall, spool: Spool) {
    const backend = `unix:${this.#socketPath}`;
    const text = JSON.stringify({ cniVersion: '1.0.0', name: 'tke-route-eni', type: 'tke-route-eni', backend });
    const args = { podNamespace: 'default', podName, podUid };
    const env = { command, containerId, netns, ifName: IF_NAME, args };
    return {
      plugin: 'tke-route-eni' as const,
      env,
      conf: decodeConf(text, 'tke-route-eni', command),
      call,
      nowMs,
      spool,
      // Its Pods have no hostPort.
      openPlugins: () => Promise.reject(new Error('no other plugin is needed')),
      delegation: { isUsed: () => false, open: () => Promise.reject(new Error('no other network is asked for')) },
    };
  }

  #call(tell: (isUnanswered: boolean) => void = () => undefined): AgentCall {
    return async (method, request, timeoutMs) => {
      this.#caller ??= openAgentCaller(this.#socketPath);
      const caller = this.#caller;
      try {
        return await caller.call(method, request, timeoutMs);
      } catch (error) {
        tell(true);
        const failure = callErrorOf(error);
        // One that lost its connection would wait before it tries again; the executables never do.
        if (failure.code === 'UNREACHABLE' && this.#caller === caller) this.close();
        throw failure;
      }
    };
  }
}

const noSpool: Spool = {
  store: async () => {
    throw new Error('only a DEL is left for later');
  },
};

function callErrorOf(error: unknown): CallError {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  const text = error instanceof Error ? error.message : String(error);
  if (code === status.DEADLINE_EXCEEDED) return new CallError('DEADLINE', text);
  return new CallError(code === status.UNAVAILABLE ? 'UNREACHABLE' : 'CLOSED', text);
}
