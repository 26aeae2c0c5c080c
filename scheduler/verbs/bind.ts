import { RESERVED_AT_ANNOTATION } from '../../crd/names.ts';
import { updateGuarded } from '../../kube/guarded-update.ts';
import type { KubeClient, KubeObject, ObjectRef } from '../../kube/kube-client.ts';
import { isKubeError } from '../../kube/kube-error.ts';
import { POD_BINDINGS, PODS, VPC_IP_CLAIMS } from '../../kube/resource-types.ts';
import { isRecord } from '../../runtime/decode.ts';
import { messageOf } from '../../runtime/error-text.ts';
import { recordOf } from '../../runtime/json.ts';
import type { Logger } from '../../runtime/log.ts';
import { type BindArgs, decodeBindArgs } from '../api/extender-messages.ts';
import { decideFit } from '../decide/decide-fit.ts';
import { buildFitContext } from '../decide/fit-context.ts';
import type { PodRequest } from '../index/pod-request.ts';
import type { RecentPods } from './recent-pods.ts';
import { expireReservations, type VerbDeps } from './verb-deps.ts';

/** Dependencies of bind. */
type BindDeps = VerbDeps & {
  readonly client: KubeClient;
  readonly recent: RecentPods;
  readonly log: Logger;
};

/** The answer of bind; empty when the Pod is bound. @see k8s.io/kube-scheduler extender/v1 ExtenderBindingResult */
type BindResult = { readonly Error: string };

/** The outcome of a binding. `unclear`: it may be done already, or be done later. */
type Binding = { readonly kind: 'bound' } | { readonly kind: 'failed' | 'unclear'; readonly why: string };

/**
 * Binds a Pod to a node and reserves the capacity it needs there.
 *
 * ```
 * check capacity -> reserve in memory -> (static address) write node and time into the claim -> POST binding with uid
 * ```
 * The check and the reservation run in one turn of the event loop, so two requests cannot get the same last address.
 * When the binding surely failed, the reservation is removed. When the outcome is not known, it stays until the Pod is
 * seen as bound or --reservation-ttl is over.
 * @param term aborted when another replica may lead
 */
export async function bind(deps: BindDeps, body: unknown, term: AbortSignal): Promise<BindResult> {
  const args = decodeBindArgs(body);
  const demand = deps.index.pod(args.uid) ?? deps.recent.get(args.uid);
  if (demand === undefined) return failed(args, 'the Pod is not known here yet; the scheduler tries again');
  if (demand === 'none') return resultOf(args, await post(deps.client, args, term));
  // The answer to an earlier attempt was lost; the watch has delivered the binding since.
  if (demand.nodeName === args.nodeName) return { Error: '' };
  if (demand.nodeName !== '') return failed(args, `it is bound to ${demand.nodeName}`);
  const now = expireReservations(deps);
  if (demand.isStatic && deps.index.claim(demand.key) === undefined) {
    return failed(args, `VpcIPClaim ${demand.key} is not there yet; tke-eni-ipamd makes it`);
  }
  const refusal = decideFit(buildFitContext(deps.index, demand), deps.index.node(args.nodeName));
  if (refusal !== undefined) return failed(args, refusal.reason);
  deps.index.reserve(args.nodeName, demand, now);
  const reservation = { nodeName: args.nodeName, at: new Date(now.wallMs).toISOString() };
  const binding = await bindReserved(deps, args, demand, reservation, term);
  if (binding.kind === 'failed') await releaseReservation(deps, args, demand, reservation, term);
  return resultOf(args, binding);
}

async function bindReserved(
  { client }: BindDeps,
  args: BindArgs,
  demand: PodRequest,
  reservation: ClaimReservation,
  term: AbortSignal,
): Promise<Binding> {
  if (demand.isStatic) {
    try {
      const isThere = await reserveClaim(client, args, reservation, term);
      if (!isThere) return { kind: 'failed', why: `VpcIPClaim ${demand.key} is gone` };
    } catch (error) {
      // Nothing is bound, and nothing will be. At worst the claim carries a useless reservation until it expires.
      return { kind: 'failed', why: `its claim could not be reserved: ${messageOf(error)}` };
    }
  }
  return await post(client, args, term);
}

async function post(client: KubeClient, args: BindArgs, term: AbortSignal): Promise<Binding> {
  const { namespace, name, uid, nodeName } = args;
  const binding = {
    apiVersion: 'v1',
    kind: 'Binding',
    metadata: { namespace, name, uid },
    target: { apiVersion: 'v1', kind: 'Node', name: nodeName },
  };
  try {
    await client.create(POD_BINDINGS, binding, term);
    return { kind: 'bound' };
  } catch (error) {
    const why = messageOf(error);
    if (!isKubeError(error) || isKubeError(error, 'UNAVAILABLE', 'TIMEOUT', 'BAD_ANSWER'))
      return { kind: 'unclear', why };
    // The answer to an earlier attempt may have been lost.
    if (isKubeError(error, 'CONFLICT', 'ALREADY_EXISTS') && (await isBoundThere(client, args, term))) {
      return { kind: 'bound' };
    }
    return { kind: 'failed', why };
  }
}

async function isBoundThere(client: KubeClient, args: BindArgs, term: AbortSignal): Promise<boolean> {
  try {
    const pod = await client.get(PODS, args, term);
    const spec = pod?.['spec'];
    return pod?.metadata.uid === args.uid && isRecord(spec) && spec['nodeName'] === args.nodeName;
  } catch {
    // The caller then reports the original error, a conflict.
    return false;
  }
}

async function releaseReservation(
  { index, client, log }: BindDeps,
  args: BindArgs,
  demand: PodRequest,
  reservation: ClaimReservation,
  term: AbortSignal,
): Promise<void> {
  // A second request for the same Pod may have made a reservation on another node meanwhile.
  if (index.reservationOf(args.uid)?.nodeName === args.nodeName) index.unreserve(args.uid);
  if (!demand.isStatic) return;
  try {
    await unreserveClaim(client, args, reservation, term);
  } catch (error) {
    log.warn('a reservation could not be removed, it expires by itself', { claim: demand.key, error });
  }
}

function resultOf(args: BindArgs, binding: Binding): BindResult {
  if (binding.kind === 'bound') return { Error: '' };
  const unclear = binding.kind === 'unclear' ? 'whether it is bound is not known, its place is held: ' : '';
  return failed(args, `${unclear}${binding.why}`);
}

function failed({ namespace, name, nodeName }: BindArgs, why: string): BindResult {
  return { Error: `Pod ${namespace}/${name} is not bound to ${nodeName}: ${why}` };
}

/** The node that an address is reserved for, and the start of the reservation (RFC 3339). Both together identify it. */
type ClaimReservation = { readonly nodeName: string; readonly at: string };

/**
 * Writes a reservation into the claim of a Pod. It replaces an existing one: the scheduler binds a Pod to one node at a
 * time, so an earlier attempt failed. Returns false when the claim does not exist.
 * @throws KubeError
 */
async function reserveClaim(
  client: KubeClient,
  { namespace, name }: ObjectRef,
  { nodeName, at }: ClaimReservation,
  signal: AbortSignal,
): Promise<boolean> {
  const ref = { name, ...(namespace === undefined ? {} : { namespace }) };
  const written = await updateGuarded(client, VPC_IP_CLAIMS, ref, (current) => withReservation(current, nodeName, at), {
    signal,
  });
  return written !== undefined;
}

/** Removes a reservation from the claim, unless another one has replaced it. @throws KubeError */
async function unreserveClaim(
  client: KubeClient,
  { namespace, name }: ObjectRef,
  { nodeName, at }: ClaimReservation,
  signal: AbortSignal,
): Promise<void> {
  const ref = { name, ...(namespace === undefined ? {} : { namespace }) };
  const change = (current: KubeObject): KubeObject | undefined => {
    const isOurs =
      current.metadata.annotations?.[RESERVED_AT_ANNOTATION] === at && specOf(current)['nodeName'] === nodeName;
    return isOurs ? withReservation(current, undefined, undefined) : undefined;
  };
  await updateGuarded(client, VPC_IP_CLAIMS, ref, change, { signal });
}

function withReservation(current: KubeObject, nodeName: string | undefined, at: string | undefined): KubeObject {
  const { nodeName: _name, ...spec } = specOf(current);
  const { [RESERVED_AT_ANNOTATION]: _at, ...annotations } = current.metadata.annotations ?? {};
  return {
    ...current,
    metadata: {
      ...current.metadata,
      annotations: { ...annotations, ...(at === undefined ? {} : { [RESERVED_AT_ANNOTATION]: at }) },
    },
    spec: { ...spec, ...(nodeName === undefined ? {} : { nodeName }) },
  };
}

function specOf(object: KubeObject): Readonly<Record<string, unknown>> {
  return recordOf(object['spec']);
}
