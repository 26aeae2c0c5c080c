import { isCloudError } from '../../cloud/cloud-error.ts';
import { ALLOW_RELEASE_ANNOTATION, RELEASE_BEGUN_ANNOTATION } from '../../crd/names.ts';
import { updateGuarded } from '../../kube/guarded-update.ts';
import type { KubeObject } from '../../kube/kube-client.ts';
import { NODE_ENI_CONFIGS, NODES } from '../../kube/resource-types.ts';
import type { NecEntry } from '../cache/decode-nec.ts';
import type { Term } from '../calls/term.ts';
import type { DepartureEvidence } from './decide-leaving.ts';
import type { InstanceCache } from './instance-cache.ts';
import type { KnownNodeFacts } from './node-facts.ts';
import { withAnnotation } from './render-config.ts';

/** Dependencies of the check. */
type DepartureDeps = Pick<Term, 'kube' | 'nodes' | 'necs' | 'brake' | 'clock' | 'log'> & {
  readonly facts: Pick<KnownNodeFacts, 'departureOf' | 'isReadDue' | 'noteRead'>;
  readonly instances: Pick<InstanceCache, 'describeAgain'>;
};

/** Result of the check. `held`: what the node has stays, and why. */
export type DepartureResult = {
  readonly evidence: DepartureEvidence;
  readonly held?: { readonly reason: string; readonly why: string };
};

/**
 * Checks whether a node that seems to be gone is gone. Reads the Node from the API server, describes its instance, and
 * asks the brake where one source alone lacks the node; an allowed release is recorded in the NodeENIConfig before anything follows from it.
 * Idempotent.
 * @throws KubeError when the API server does not answer: then nothing is released
 */
export async function checkDeparture(
  deps: DepartureDeps,
  name: string,
  entry: NecEntry,
  signal: AbortSignal,
): Promise<DepartureResult> {
  const { kube, nodes, facts, brake, necs } = deps;
  if (nodes.get(name) === undefined && facts.isReadDue(name)) {
    const found = await kube.get(NODES, { name }, signal);
    if (found === undefined) await describeInstance(deps, name, entry, signal);
    facts.noteRead(name, found === undefined);
  }
  const evidence = facts.departureOf(name, entry);
  if (evidence === 'contradicted') {
    const why = 'the API server finds the Node, and its lists lack it';
    return { evidence, held: { reason: 'Contradicted', why } };
  }
  if (evidence === 'none') await removeMarks(deps, name, entry, signal);
  if (evidence !== 'one-source') return { evidence };
  const decision = await brake.request(name, nodes.size, brakedConfigs(necs));
  if (decision.kind === 'held') return { evidence, held: decision };
  await markBegun(deps, name, entry, signal);
  // It is in force when the watch shows the mark.
  return { evidence };
}

/** Describes the instance again: a description from before the Node's deletion says nothing about the node. */
async function describeInstance(
  { instances, log }: DepartureDeps,
  name: string,
  { decoded }: NecEntry,
  signal: AbortSignal,
): Promise<void> {
  const instanceId = decoded?.status?.instanceID;
  if (instanceId === undefined) return;
  try {
    await instances.describeAgain(instanceId, signal);
  } catch (error) {
    if (!isCloudError(error)) throw error;
    log.warn('the instance of a missing node could not be described', { node: name, instanceId, error });
  }
}

function* brakedConfigs(necs: DepartureDeps['necs']) {
  for (const { object } of necs.values()) {
    yield { name: object.metadata.name, begunAt: object.metadata.annotations?.[RELEASE_BEGUN_ANNOTATION] };
  }
}

async function markBegun(
  { kube, clock, log }: DepartureDeps,
  name: string,
  { object }: NecEntry,
  signal: AbortSignal,
): Promise<void> {
  const change = (current: KubeObject): KubeObject | undefined => {
    const isMarked = current.metadata.annotations?.[RELEASE_BEGUN_ANNOTATION] !== undefined;
    const nowText = new Date(clock.nowMs()).toISOString();
    return isMarked ? undefined : withAnnotation(current, RELEASE_BEGUN_ANNOTATION, nowText);
  };
  await updateGuarded(kube, NODE_ENI_CONFIGS, { name }, change, { current: object, signal });
  log.info('the release of a missing node begins', { node: name });
}

/** Removes both annotations from a node that is there: a confirmation counts for one departure. */
async function removeMarks(
  { kube, log }: DepartureDeps,
  name: string,
  { object }: NecEntry,
  signal: AbortSignal,
): Promise<void> {
  const change = (current: KubeObject): KubeObject | undefined => {
    const { annotations = {} } = current.metadata;
    if (!(RELEASE_BEGUN_ANNOTATION in annotations) && !(ALLOW_RELEASE_ANNOTATION in annotations)) return undefined;
    const unmarked = withAnnotation(current, RELEASE_BEGUN_ANNOTATION, undefined);
    return withAnnotation(unmarked, ALLOW_RELEASE_ANNOTATION, undefined);
  };
  if (change(object) === undefined) return;
  await updateGuarded(kube, NODE_ENI_CONFIGS, { name }, change, { current: object, signal });
  log.info('a node is there: the marks of its release are removed', { node: name });
}
