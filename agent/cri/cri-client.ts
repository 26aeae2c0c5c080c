import { statSync } from 'node:fs';
import { Client, credentials, type ServiceError, status } from '@grpc/grpc-js';
import { isRecord } from '../../runtime/decode.ts';
import { messageOf } from '../../runtime/error-text.ts';
import { recordOf } from '../../runtime/json.ts';
import type { InitOf, MessageOf, MessageTable } from '../api/codec.ts';
import { callUnary, type UnaryCall } from '../grpc/unary-call.ts';
import {
  LIST_POD_SANDBOX_REQUEST,
  LIST_POD_SANDBOX_RESPONSE,
  POD_SANDBOX_STATE,
  POD_SANDBOX_STATUS_REQUEST,
  POD_SANDBOX_STATUS_RESPONSE,
} from './cri-messages.ts';
import { CriError, type CriSandbox, type CriSandboxNetwork, type SandboxView } from './sandbox-view.ts';

/**
 * A runtime under load lists some hundred sandboxes in well under a second; ten seconds also cover one that is
 * restarted.
 */
const CALL_MS = 10_000;
const RECEIVE_BYTES = 16 << 20;

const SERVICE = '/runtime.v1.RuntimeService';
const LIST = {
  path: `${SERVICE}/ListPodSandbox`,
  request: LIST_POD_SANDBOX_REQUEST,
  response: LIST_POD_SANDBOX_RESPONSE,
} as const;
const STATUS = {
  path: `${SERVICE}/PodSandboxStatus`,
  request: POD_SANDBOX_STATUS_REQUEST,
  response: POD_SANDBOX_STATUS_RESPONSE,
} as const;

/** One runtime that may be there. */
type Runtime = {
  /** Whether there is a socket: without one there is no such runtime on this node. */
  isThere(): boolean;
  query<T>(run: (client: Client) => Promise<T>): Promise<T>;
  close(): void;
};

/**
 * Opens a view of the node's container runtimes: what any socket of `sockets` answers. A node may have two (docker-ce brings
 * a containerd, k3s has one of its own), and no order of names tells which of them runs the Pods: each sandbox is that of
 * the runtime which lists it. So a runtime that starts later, or is replaced, is found.
 */
export function openCriView(sockets: readonly string[]): SandboxView {
  const runtimes = sockets.map(openRuntime);
  const owners = new Map<string, Runtime>();
  return {
    list: async (signal) => {
      const outcomes = await Promise.allSettled(
        runtimes.map(async (runtime) => {
          const { items } = await runtime.query((client) => unary(client, LIST, {}, signal));
          return { runtime, sandboxes: items.map(sandboxOf) };
        }),
      );
      const answers = outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? [outcome.value] : []));
      if (answers.length === 0) throw unreachable(sockets, outcomes);
      owners.clear();
      const byId = new Map<string, CriSandbox>();
      for (const { runtime, sandboxes } of answers) {
        for (const sandbox of sandboxes.filter(({ id }) => byId.get(id)?.state !== 'ready')) {
          byId.set(sandbox.id, sandbox);
          owners.set(sandbox.id, runtime);
        }
      }
      return [...byId.values()];
    },
    network: async (id, signal) => {
      const owner = owners.get(id);
      const failures: unknown[] = [];
      for (const runtime of owner === undefined ? runtimes.filter(({ isThere }) => isThere()) : [owner]) {
        try {
          const request = { podSandboxId: id, verbose: true };
          return networkOf(await runtime.query((client) => unary(client, STATUS, request, signal)));
        } catch (error) {
          if (!isGrpcError(error, status.NOT_FOUND)) failures.push(error);
        }
      }
      // One that does not answer may have it.
      if (failures.length === 0) return undefined;
      throw asCriError(`describe sandbox ${id}`, failures[0]);
    },
    close: () => {
      for (const runtime of runtimes) runtime.close();
    },
  };
}

/** A connection is opened at the first question, and again after one that was not answered. */
function openRuntime(socket: string): Runtime {
  let current: Client | undefined;
  const close = (): void => {
    current?.close();
    current = undefined;
  };
  const isThere = (): boolean => statSync(socket, { throwIfNoEntry: false })?.isSocket() === true;
  return {
    isThere,
    close,
    query: async (run) => {
      // grpc-js would try to connect to a socket that does not exist until the deadline.
      if (!isThere()) {
        close();
        throw new CriError('CRI_UNREACHABLE', 'no such socket');
      }
      current ??= new Client(`unix:${socket}`, credentials.createInsecure(), {
        'grpc.max_receive_message_length': RECEIVE_BYTES,
      });
      try {
        return await run(current);
      } catch (error) {
        if (isGrpcError(error, status.UNAVAILABLE, status.DEADLINE_EXCEEDED)) close();
        throw error;
      }
    },
  };
}

function unreachable(sockets: readonly string[], outcomes: readonly PromiseSettledResult<unknown>[]): CriError {
  const tried = outcomes.flatMap((outcome, at) =>
    outcome.status === 'rejected' ? [`${sockets[at]}: ${messageOf(outcome.reason)}`] : [],
  );
  const reasons = tried.join('; ') || 'no --cri-socket';
  return new CriError('CRI_UNREACHABLE', `cannot list the sandboxes: no container runtime answers: ${reasons}`);
}

async function unary<Q extends MessageTable, A extends MessageTable>(
  client: Client,
  call: UnaryCall<Q, A>,
  request: InitOf<Q>,
  signal: AbortSignal,
): Promise<MessageOf<A>> {
  const answer = await callUnary(client, call, request, { timeoutMs: CALL_MS, signal });
  if (answer === undefined) throw new CriError('CRI_ANSWER', `${call.path}: no answer`);
  return answer;
}

function sandboxOf(item: MessageOf<typeof LIST_POD_SANDBOX_RESPONSE>['items'][number]): CriSandbox {
  return {
    id: item.id,
    state: item.state === POD_SANDBOX_STATE.SANDBOX_READY ? 'ready' : 'not-ready',
    podName: item.metadata?.name ?? '',
    podNamespace: item.metadata?.namespace ?? '',
    podUid: item.metadata?.uid ?? '',
    ...(item.runtimeHandler === '' ? {} : { handler: item.runtimeHandler }),
  };
}

function networkOf(response: MessageOf<typeof POD_SANDBOX_STATUS_RESPONSE>): CriSandboxNetwork {
  const network = response.status?.network;
  const ips = [network?.ip ?? '', ...(network?.additionalIps ?? []).map(({ ip }) => ip)].filter((ip) => ip !== '');
  const netns = response.info.map(({ value }) => netnsInInfo(value)).find((path) => path !== undefined);
  return { ips, ...(netns === undefined ? {} : { netns }) };
}

/**
 * Finds the netns path in a runtime's verbose info. containerd and CRI-O both put the sandbox's OCI spec there, as
 * `runtimeSpec.linux.namespaces[{type: "network", path}]`. Returns undefined for any other shape.
 */
export function netnsInInfo(info: string): string | undefined {
  const parsed = parseJson(info);
  const spec = recordOf(parsed)['runtimeSpec'];
  const linux = recordOf(spec)['linux'];
  const namespaces = recordOf(linux)['namespaces'];
  if (!Array.isArray(namespaces)) return undefined;
  const network = namespaces.filter(isRecord).find((namespace) => namespace['type'] === 'network');
  const path = network?.['path'];
  return typeof path === 'string' && path !== '' ? path : undefined;
}

function parseJson(content: string): unknown {
  try {
    return JSON.parse(content);
  } catch {
    // Other keys of `info` hold plain text.
    return undefined;
  }
}

function isGrpcError(error: unknown, ...codes: readonly status[]): error is ServiceError {
  return error instanceof Error && 'code' in error && codes.some((code) => code === error.code);
}

function asCriError(action: string, error: unknown): CriError {
  if (error instanceof CriError) return error;
  return new CriError('CRI_UNREACHABLE', `cannot ${action}: ${messageOf(error)}`, { cause: error });
}
