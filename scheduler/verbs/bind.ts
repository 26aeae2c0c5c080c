import type { KubeClient } from '../../kube/kube-client.ts';
import { isKubeError } from '../../kube/kube-error.ts';
import { POD_BINDINGS, PODS } from '../../kube/resource-types.ts';
import { isRecord } from '../../runtime/decode.ts';
import type { Logger } from '../../runtime/log.ts';
import { type BindQuestion, decodeBindQuestion } from '../api/extender-messages.ts';
import { decideFit } from '../decide/decide-fit.ts';
import { questionOf } from '../decide/fit-question.ts';
import type { PodDemand } from '../index/pod-demand.ts';
import type { RecentPods } from './recent-pods.ts';
import { type ClaimReservation, reserveClaim, unreserveClaim } from './reserve-claim.ts';
import { beginTurn, type VerbDeps } from './verb-deps.ts';

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
  const question = decodeBindQuestion(body);
  const demand = deps.index.pod(question.uid) ?? deps.recent.get(question.uid);
  if (demand === undefined) return failed(question, 'the Pod is not known here yet; the scheduler tries again');
  if (demand === 'none') return resultOf(question, await post(deps.client, question, term));
  // The answer to an earlier attempt was lost; the watch has delivered the binding since.
  if (demand.nodeName === question.nodeName) return { Error: '' };
  if (demand.nodeName !== '') return failed(question, `it is bound to ${demand.nodeName}`);
  const now = beginTurn(deps);
  if (demand.isStatic && deps.index.claim(demand.key) === undefined) {
    return failed(question, `VpcIPClaim ${demand.key} is not there yet; tke-eni-ipamd makes it`);
  }
  const refusal = decideFit(questionOf(deps.index, demand), deps.index.node(question.nodeName));
  if (refusal !== undefined) return failed(question, refusal.reason);
  deps.index.reserve(question.nodeName, demand, now);
  const reservation = { nodeName: question.nodeName, at: new Date(now.wallMs).toISOString() };
  const binding = await bindReserved(deps, question, demand, reservation, term);
  if (binding.kind === 'failed') await giveBack(deps, question, demand, reservation, term);
  return resultOf(question, binding);
}

async function bindReserved(
  { client }: BindDeps,
  question: BindQuestion,
  demand: PodDemand,
  reservation: ClaimReservation,
  term: AbortSignal,
): Promise<Binding> {
  if (demand.isStatic) {
    try {
      const isThere = await reserveClaim(client, question, reservation, term);
      if (!isThere) return { kind: 'failed', why: `VpcIPClaim ${demand.key} is gone` };
    } catch (error) {
      // Nothing is bound, and nothing will be. At worst the claim carries a useless reservation until it expires.
      return { kind: 'failed', why: `its claim could not be reserved: ${textOf(error)}` };
    }
  }
  return await post(client, question, term);
}

async function post(client: KubeClient, question: BindQuestion, term: AbortSignal): Promise<Binding> {
  const { namespace, name, uid, nodeName } = question;
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
    const why = textOf(error);
    if (!isKubeError(error) || isKubeError(error, 'UNAVAILABLE', 'TIMEOUT', 'BAD_ANSWER'))
      return { kind: 'unclear', why };
    // The answer to an earlier attempt may have been lost.
    if (isKubeError(error, 'CONFLICT', 'ALREADY_EXISTS') && (await isBoundThere(client, question, term))) {
      return { kind: 'bound' };
    }
    return { kind: 'failed', why };
  }
}

async function isBoundThere(client: KubeClient, question: BindQuestion, term: AbortSignal): Promise<boolean> {
  try {
    const pod = await client.get(PODS, question, term);
    const spec = pod?.['spec'];
    return pod?.metadata.uid === question.uid && isRecord(spec) && spec['nodeName'] === question.nodeName;
  } catch {
    // The caller then reports the original error, a conflict.
    return false;
  }
}

async function giveBack(
  { index, client, log }: BindDeps,
  question: BindQuestion,
  demand: PodDemand,
  reservation: ClaimReservation,
  term: AbortSignal,
): Promise<void> {
  // A second request for the same Pod may have made a reservation on another node meanwhile.
  if (index.reservationOf(question.uid)?.nodeName === question.nodeName) index.unreserve(question.uid);
  if (!demand.isStatic) return;
  try {
    await unreserveClaim(client, question, reservation, term);
  } catch (error) {
    log.warn('a reservation could not be taken back, it runs out', { claim: demand.key, error });
  }
}

function resultOf(question: BindQuestion, binding: Binding): BindResult {
  if (binding.kind === 'bound') return { Error: '' };
  const unclear = binding.kind === 'unclear' ? 'whether it is bound is not known, its place is held: ' : '';
  return failed(question, `${unclear}${binding.why}`);
}

function failed({ namespace, name, nodeName }: BindQuestion, why: string): BindResult {
  return { Error: `Pod ${namespace}/${name} is not bound to ${nodeName}: ${why}` };
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
