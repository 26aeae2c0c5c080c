import { statSync } from 'node:fs';
import { Client, credentials, status } from '@grpc/grpc-js';
import { messageOf } from '../../runtime/error-text.ts';
import type { InitOf, MessageOf, MessageTable } from '../api/codec.ts';
import { type CallLimits, callUnary, type UnaryCall } from '../grpc/unary-call.ts';
import {
  type DevicePluginOptions,
  EMPTY,
  LIST_POD_RESOURCES_RESPONSE,
  REGISTER_REQUEST,
  type RegisterRequest,
} from './kubelet-messages.ts';

/** The version of the API that every kubelet since 1.10 supports. */
const API_VERSION = 'v1beta1';
const RECEIVE_BYTES = 16 << 20;

/**
 * An error for a call that kubelet did not accept. `KUBELET_REFUSED`: it answered with an error; the same call may
 * succeed later.
 */
export class KubeletError extends Error {
  readonly code: 'KUBELET_REFUSED' | 'KUBELET_UNREACHABLE';

  constructor(code: KubeletError['code'], message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'KubeletError';
    this.code = code;
  }
}

/** The registration of a plugin. */
export type Registration = {
  readonly resource: string;
  /** Name of the plugin's socket beside kubelet's. */
  readonly socketName: string;
};

/**
 * Our choice: kubelet makes neither optional call. All devices are alike; and if an agent dies during a call that is
 * part of an admission, kubelet refuses the Pod for good.
 */
export const DEVICE_PLUGIN_CHOICES: DevicePluginOptions = {
  preStartRequired: false,
  getPreferredAllocationAvailable: false,
};

/**
 * Registers the socket that serves a resource. Kubelet connects to it afterwards, so it must be served already.
 * @throws KubeletError; the reason of `signal` when aborted.
 * @see k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1 Registration.Register
 */
export async function register(
  kubeletSocket: string,
  { resource, socketName }: Registration,
  limits: CallLimits,
): Promise<void> {
  const request: RegisterRequest = {
    version: API_VERSION,
    endpoint: socketName,
    resourceName: resource,
    options: DEVICE_PLUGIN_CHOICES,
  };
  await callOnce(kubeletSocket, REGISTER, request, limits);
}

/**
 * Reads which devices of a resource Pods hold.
 * @throws KubeletError; the reason of `signal` when aborted.
 * @see k8s.io/kubelet/pkg/apis/podresources/v1 PodResourcesLister.List
 */
export async function listAllocated(
  podResourcesSocket: string,
  resource: string,
  limits: CallLimits,
): Promise<ReadonlySet<string>> {
  const { podResources } = await callOnce(podResourcesSocket, LIST_POD_RESOURCES, {}, limits);
  const devices = podResources.flatMap(({ containers }) => containers.flatMap((container) => container.devices));
  return new Set(devices.filter(({ resourceName }) => resourceName === resource).flatMap(({ deviceIds }) => deviceIds));
}

const REGISTER = { path: '/v1beta1.Registration/Register', request: REGISTER_REQUEST, response: EMPTY } as const;
const LIST_POD_RESOURCES = {
  path: '/v1.PodResourcesLister/List',
  request: EMPTY,
  response: LIST_POD_RESOURCES_RESPONSE,
} as const;

/** Makes one call on a connection of its own: kubelet may be another process each time, and calls are rare. */
async function callOnce<Q extends MessageTable, A extends MessageTable>(
  socket: string,
  call: UnaryCall<Q, A>,
  request: InitOf<Q>,
  limits: CallLimits,
): Promise<MessageOf<A>> {
  limits.signal.throwIfAborted();
  if (!statSync(socket, { throwIfNoEntry: false })?.isSocket()) {
    throw new KubeletError('KUBELET_UNREACHABLE', `${socket}: no such socket`);
  }
  const client = new Client(`unix:${socket}`, credentials.createInsecure(), {
    'grpc.max_receive_message_length': RECEIVE_BYTES,
    // A shared one would remember that the socket of an earlier kubelet refused, and wait.
    'grpc.use_local_subchannel_pool': 1,
    'grpc.enable_channelz': 0,
  });
  try {
    const answer = await callUnary(client, call, request, limits);
    if (answer === undefined) throw new KubeletError('KUBELET_REFUSED', `${call.path}: no answer`);
    return answer;
  } catch (error) {
    limits.signal.throwIfAborted();
    throw asKubeletError(call.path, error);
  } finally {
    client.close();
  }
}

const UNREACHABLE: readonly status[] = [status.UNAVAILABLE, status.DEADLINE_EXCEEDED, status.CANCELLED];

function asKubeletError(path: string, error: unknown): KubeletError {
  if (error instanceof KubeletError) return error;
  const isUnreachable = error instanceof Error && 'code' in error && UNREACHABLE.some((code) => code === error.code);
  const text = messageOf(error);
  return new KubeletError(isUnreachable ? 'KUBELET_UNREACHABLE' : 'KUBELET_REFUSED', `${path}: ${text}`, {
    cause: error,
  });
}
