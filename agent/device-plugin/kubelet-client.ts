import { statSync } from 'node:fs';
import { Client, credentials, type ServiceError, status } from '@grpc/grpc-js';
import { decodeMessage, encodeMessage, type InitOf, type MessageOf, type MessageTable } from '../api/codec.ts';
import { EMPTY, LIST_POD_RESOURCES_RESPONSE, REGISTER_REQUEST } from './kubelet-messages.ts';

/** The version of the API that every kubelet since 1.10 speaks. */
const API_VERSION = 'v1beta1';
const RECEIVE_BYTES = 16 << 20;

/** Kubelet did not take a call. `KUBELET_REFUSED`: it answered no; the same call may pass later. */
export class KubeletError extends Error {
  readonly code: 'KUBELET_REFUSED' | 'KUBELET_UNREACHABLE';

  constructor(code: KubeletError['code'], message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'KubeletError';
    this.code = code;
  }
}

/** What kubelet is told of a plugin. */
export type Registration = {
  readonly resource: string;
  /** Name of the plugin's socket beside kubelet's. */
  readonly socketName: string;
};

/**
 * Tells kubelet which socket serves a resource. It calls there afterwards, so who asks must serve already.
 * @throws KubeletError; the reason of `signal` when aborted.
 * @see k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1 Registration.Register
 */
export async function register(
  kubeletSocket: string,
  { resource, socketName }: Registration,
  limits: CallLimits,
): Promise<void> {
  const request = {
    version: API_VERSION,
    endpoint: socketName,
    resourceName: resource,
    options: { preStartRequired: false, getPreferredAllocationAvailable: true },
  };
  await callOnce(kubeletSocket, REGISTER, request, limits);
}

/**
 * Asks which devices of a resource Pods hold.
 * @throws KubeletError; the reason of `signal` when aborted.
 * @see k8s.io/kubelet/pkg/apis/podresources/v1 PodResourcesLister.List
 */
export async function listHeld(
  podResourcesSocket: string,
  resource: string,
  limits: CallLimits,
): Promise<ReadonlySet<string>> {
  const { podResources } = await callOnce(podResourcesSocket, LIST_POD_RESOURCES, {}, limits);
  const devices = podResources.flatMap(({ containers }) => containers.flatMap((container) => container.devices));
  return new Set(devices.filter(({ resourceName }) => resourceName === resource).flatMap(({ deviceIds }) => deviceIds));
}

/** Bounds of one call; milliseconds. */
export type CallLimits = { readonly timeoutMs: number; readonly signal: AbortSignal };

type Call<Q extends MessageTable, A extends MessageTable> = {
  readonly path: string;
  readonly request: Q;
  readonly response: A;
};

const REGISTER = { path: '/v1beta1.Registration/Register', request: REGISTER_REQUEST, response: EMPTY } as const;
const LIST_POD_RESOURCES = {
  path: '/v1.PodResourcesLister/List',
  request: EMPTY,
  response: LIST_POD_RESOURCES_RESPONSE,
} as const;

/** A connection of its own for each call: kubelet is another process each time, and calls are seldom. */
async function callOnce<Q extends MessageTable, A extends MessageTable>(
  socket: string,
  call: Call<Q, A>,
  request: InitOf<Q>,
  { timeoutMs, signal }: CallLimits,
): Promise<MessageOf<A>> {
  signal.throwIfAborted();
  if (!statSync(socket, { throwIfNoEntry: false })?.isSocket()) {
    throw new KubeletError('KUBELET_UNREACHABLE', `${socket}: no such socket`);
  }
  const client = new Client(`unix:${socket}`, credentials.createInsecure(), {
    'grpc.max_receive_message_length': RECEIVE_BYTES,
    // A shared one would remember that the socket of the kubelet before refused, and wait.
    'grpc.use_local_subchannel_pool': 1,
    'grpc.enable_channelz': 0,
  });
  const answer = Promise.withResolvers<MessageOf<A>>();
  const running = client.makeUnaryRequest<InitOf<Q>, MessageOf<A>>(
    call.path,
    (message) => encodeMessage(call.request, message),
    (bytes) => decodeMessage(call.response, bytes),
    request,
    { deadline: Date.now() + timeoutMs },
    (error, response) => {
      if (error !== null) answer.reject(asKubeletError(call.path, error));
      else if (response === undefined) answer.reject(new KubeletError('KUBELET_REFUSED', `${call.path}: no answer`));
      else answer.resolve(response);
    },
  );
  const cancel = () => running.cancel();
  signal.addEventListener('abort', cancel, { once: true });
  try {
    return await answer.promise;
  } catch (error) {
    signal.throwIfAborted();
    throw error;
  } finally {
    signal.removeEventListener('abort', cancel);
    client.close();
  }
}

const UNREACHABLE: readonly status[] = [status.UNAVAILABLE, status.DEADLINE_EXCEEDED, status.CANCELLED];

function asKubeletError(path: string, error: ServiceError): KubeletError {
  const code = UNREACHABLE.includes(error.code) ? 'KUBELET_UNREACHABLE' : 'KUBELET_REFUSED';
  return new KubeletError(code, `${path}: ${error.message}`, { cause: error });
}
