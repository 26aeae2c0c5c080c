import type { CallContext } from '../../cloud/cloud.ts';
import { involvedObject } from '../../kube/involved-object.ts';
import { isKubeError } from '../../kube/kube-error.ts';
import { Reporter } from '../../kube/reporter.ts';
import { NODES } from '../../kube/resource-types.ts';
import { StampAges } from '../../runtime/stamp-ages.ts';
import { type CloudNode, readCloudNode, type Taint } from '../nodes/cloud-node.ts';
import type { NodeControllersDeps } from '../nodes/node-settings.ts';
import { decideAction, type NodeAction, SHUTDOWN_TAINT } from './decide-action.ts';
import { Observations } from './observations.ts';
import { planBatches } from './plan-batches.ts';

/** Between two requests: a quarter of the rate that the cloud documents, which other clusters of the account share. */
const REQUEST_GAP_MS = 100;
const CONTEXT = { priority: 'gc', owner: 'node-lifecycle' } as const;

/**
 * Taints Nodes whose instances are shut down, and deletes Nodes whose instances are gone, until aborted. Only instances
 * of Nodes that are not ready are asked for. Faults of the cloud and of the API server are reported and tried again.
 */
export async function runLifecycleController(deps: NodeControllersDeps, signal: AbortSignal): Promise<void> {
  const { clock, log, config } = deps;
  const sweeps = new LifecycleSweeps(deps);
  while (!signal.aborted) {
    await sweeps.sweep(signal).catch((error: unknown) => {
      if (!signal.aborted) log.error('a sweep over the Nodes failed, will try again', { error });
    });
    await clock.sleep(config.nodeMonitorMs, signal).catch(() => {});
  }
}

class LifecycleSweeps {
  readonly #deps: NodeControllersDeps;
  readonly #observations = new Observations();
  readonly #reports: Reporter<'NodeDeletionHeld'>;
  readonly #ages: StampAges;
  /** Names of the Nodes of the last sweep. */
  #names: ReadonlySet<string> = new Set();
  #isEmptyReported = false;

  constructor(deps: NodeControllersDeps) {
    this.#deps = deps;
    this.#reports = new Reporter('a Node', deps);
    this.#ages = new StampAges(deps.clock);
  }

  async sweep(signal: AbortSignal): Promise<void> {
    const { nodes, instances } = this.#deps;
    const all = [...nodes.values()].map(readCloudNode);
    this.#forgetAllBut(new Set(all.map(({ name }) => name)));
    const idsOf = new Map(all.flatMap((node) => (hasInstance(node) ? [[node.name, node.providerId.instanceId]] : [])));
    const namesOf = Map.groupBy(idsOf.keys(), (name) => idsOf.get(name) ?? '');
    this.#observations.retainOnly(new Set(namesOf.keys()));
    const ready = new Set(all.flatMap((node) => (node.isReady ? (idsOf.get(node.name) ?? []) : [])));
    for (const id of ready) this.#observations.clear(id);
    const asked = new Set(all.flatMap((node) => (node.isReady ? [] : (idsOf.get(node.name) ?? []))));
    const vpcNow = (): string | undefined => instances.vpcId;
    await this.#observe(asked, ready, vpcNow, signal);
    if (signal.aborted) return;
    const vpcId = vpcNow();
    for (const node of all) {
      const id = idsOf.get(node.name);
      if (id === undefined) continue;
      const rival = namesOf.get(id)?.find((name) => name !== node.name);
      const ageMs = this.#ages.ageMs(node.name, node.createdAt);
      const action = decideAction({ node, observation: this.#observations.of(id), vpcId, ageMs, rival });
      await this.#carryOut(node, action, signal).catch((error: unknown) => {
        if (signal.aborted) return;
        this.#deps.log.warn('a Node could not be changed, will try again', {
          node: node.name,
          action: action.kind,
          error,
        });
      });
    }
  }

  #forgetAllBut(names: ReadonlySet<string>): void {
    for (const name of this.#names) {
      if (names.has(name)) continue;
      this.#ages.ageMs(name, undefined);
      this.#reports.forget(name);
    }
    this.#names = names;
  }

  async #observe(
    asked: ReadonlySet<string>,
    ready: ReadonlySet<string>,
    vpcNow: () => string | undefined,
    signal: AbortSignal,
  ): Promise<void> {
    const { cloud, clock, log, config } = this.#deps;
    const observations = this.#observations;
    const ids = [...asked].sort(
      (first, second) => observations.of(first).askedAtMs - observations.of(second).askedAtMs,
    );
    const [missing, present] = [
      ids.filter((id) => observations.of(id).misses > 0),
      ids.filter((id) => observations.of(id).misses === 0),
    ];
    const witnesses = [...ready].filter((id) => !asked.has(id));
    const context: CallContext = { ...CONTEXT, signal, timeoutMs: config.cloudTimeoutMs };
    let proofs = 0;
    let lastError: unknown;
    let failures = 0;
    const batches = planBatches({ present, missing, ready: witnesses });
    await Promise.all(
      batches.map(async (batch, index) => {
        await clock.sleep(index * REQUEST_GAP_MS, signal).catch(() => {});
        if (signal.aborted) return;
        const subjects = batch.filter((id) => asked.has(id));
        try {
          const answer = await cloud.instances.describeAlone(batch, context);
          if (observations.noteAnswer(subjects, answer, vpcNow(), clock.monotonicMs())) proofs += 1;
        } catch (error) {
          observations.noteUnanswered(subjects, clock.monotonicMs());
          failures += 1;
          lastError = error;
        }
      }),
    );
    if (signal.aborted) return;
    if (failures > 0)
      log.warn('instances of Nodes that are not ready could not be described', {
        requests: batches.length,
        failures,
        error: lastError,
      });
    const isEmpty = batches.length > failures && proofs === 0;
    if (isEmpty && !this.#isEmptyReported)
      log.warn('the cloud describes no instance at all: no Node is deleted for that; check --region and the key', {
        instances: ids.length,
      });
    this.#isEmptyReported = isEmpty;
  }

  async #carryOut(node: CloudNode, action: NodeAction, signal: AbortSignal): Promise<void> {
    if (action.kind !== 'kept' && action.kind !== 'delete') this.#reports.report(involvedObject(NODES, node), []);
    switch (action.kind) {
      case 'none':
        return;
      case 'kept':
        this.#hold(node, action.why);
        return;
      case 'taint':
        return await this.#writeTaints(node, [...node.taints, SHUTDOWN_TAINT], signal);
      case 'untaint':
        return await this.#writeTaints(
          node,
          node.taints.filter(({ key }) => key !== SHUTDOWN_TAINT.key),
          signal,
        );
      case 'delete':
        return await this.#delete(node, signal);
    }
  }

  async #writeTaints(
    { name, uid, resourceVersion }: CloudNode,
    taints: readonly Taint[],
    signal: AbortSignal,
  ): Promise<void> {
    const body = { metadata: { uid, resourceVersion }, spec: { taints } };
    try {
      await this.#deps.kube.patch(NODES, { name }, { kind: 'merge', body }, signal);
      this.#deps.log.info('the shutdown taint of a Node was changed', { node: name, taints: taints.length });
    } catch (error) {
      // Another writer was first: the next sweep decides on what it wrote.
      if (!isKubeError(error, 'CONFLICT', 'NOT_FOUND')) throw error;
    }
  }

  async #delete(node: CloudNode, signal: AbortSignal): Promise<void> {
    const { kube, nodes, events, brake, log } = this.#deps;
    const { name, uid } = node;
    const allowed = await brake.request(name, nodes.size, brakedNodes(nodes.keys()));
    if (allowed.kind === 'held') return this.#hold(node, allowed.why);
    const read = await kube.get(NODES, { name }, signal);
    if (read === undefined) return;
    const current = readCloudNode(read);
    const isSame = current.uid === uid && current.providerIdText === node.providerIdText;
    if (!isSame || current.isReady || current.isLeaving || !current.isOurs) return;
    const message = `Deleting node ${name} because it does not exist in the cloud provider`;
    const only = { uid, resourceVersion: current.resourceVersion };
    try {
      if (!(await kube.delete(NODES, { name }, only, signal))) return;
    } catch (error) {
      // The Node has changed since the read: it may be ready again.
      if (isKubeError(error, 'CONFLICT')) return;
      throw error;
    }
    log.info('a Node was deleted: its instance is gone', { node: name, providerID: node.providerIdText });
    events.record({ involved: involvedObject(NODES, node), type: 'Normal', reason: 'DeletingNode', message });
    this.#reports.forget(name);
  }

  #hold(node: CloudNode, why: string): void {
    const message = `the cloud does not list its instance, and the Node is not deleted: ${why}`;
    this.#reports.report(involvedObject(NODES, node), [{ reason: 'NodeDeletionHeld', message }]);
  }
}

function hasInstance(
  node: CloudNode,
): node is CloudNode & { readonly providerId: { readonly kind: 'instance'; readonly instanceId: string } } {
  return node.isOurs && node.providerId.kind === 'instance';
}

function* brakedNodes(names: Iterable<string>) {
  for (const name of names) yield { name, begunAt: undefined };
}
