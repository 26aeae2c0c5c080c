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
  VERSION_REQUEST,
  VERSION_RESPONSE,
} from './cri-messages.ts';
import { CriError, type CriSandbox, type CriSandboxNetwork, type SandboxView } from './sandbox-view.ts';

/**
 * A runtime under load lists some hundred sandboxes in well under a second; ten seconds also cover one that is
 * restarted.
 */
const CALL_MS = 10_000;
const RECEIVE_BYTES = 16 << 20;

const SERVICE = '/runtime.v1.RuntimeService';
const VERSION = { path: `${SERVICE}/Version`, request: VERSION_REQUEST, response: VERSION_RESPONSE } as const;
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

/**
 * Opens a view of the node's container runtime. It uses the first of `sockets` that answers, and probes them again when
 * that one stops answering: so it finds a runtime that starts later or is replaced.
 */
export function openCriView(sockets: readonly string[]): SandboxView {
  let current: { readonly socket: string; readonly client: Client } | undefined;
  const drop = () => {
    current?.client.close();
    current = undefined;
  };
  const connected = async (signal: AbortSignal): Promise<Client> => {
    current ??= await probe(sockets, signal);
    return current.client;
  };
  const query = async <T>(run: (client: Client) => Promise<T>, signal: AbortSignal): Promise<T> => {
    const client = await connected(signal);
    try {
      return await run(client);
    } catch (error) {
      if (isGrpcError(error, status.UNAVAILABLE, status.DEADLINE_EXCEEDED)) drop();
      throw error;
    }
  };
  return {
    list: async (signal) => {
      try {
        const { items } = await query((client) => unary(client, LIST, {}, signal), signal);
        return items.map(sandboxOf);
      } catch (error) {
        throw asCriError('list the sandboxes', error);
      }
    },
    network: async (id, signal) => {
      try {
        return networkOf(
          await query((client) => unary(client, STATUS, { podSandboxId: id, verbose: true }, signal), signal),
        );
      } catch (error) {
        if (isGrpcError(error, status.NOT_FOUND)) return undefined;
        throw asCriError(`describe sandbox ${id}`, error);
      }
    },
    close: drop,
  };
}

/** @throws CriError naming every socket tried. */
async function probe(
  sockets: readonly string[],
  signal: AbortSignal,
): Promise<{ readonly socket: string; readonly client: Client }> {
  const tried: string[] = [];
  for (const socket of sockets) {
    // grpc-js would try to connect to a socket that does not exist until the deadline.
    if (!statSync(socket, { throwIfNoEntry: false })?.isSocket()) {
      tried.push(`${socket}: no such socket`);
      continue;
    }
    const client = new Client(`unix:${socket}`, credentials.createInsecure(), {
      'grpc.max_receive_message_length': RECEIVE_BYTES,
    });
    try {
      await unary(client, VERSION, { version: 'v1' }, signal);
      return { socket, client };
    } catch (error) {
      client.close();
      tried.push(`${socket}: ${messageOf(error)}`);
    }
  }
  throw new CriError('CRI_UNREACHABLE', `no container runtime answers: ${tried.join('; ') || 'no --cri-socket'}`);
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
