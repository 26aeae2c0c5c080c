import { POD_ANNOTATION } from '../../crd/names.ts';
import type { KubeObject } from '../../kube/kube-client.ts';
import { isKubeError } from '../../kube/kube-error.ts';
import { NODES, PODS, VPC_IP_CLAIMS } from '../../kube/resource-types.ts';
import { isObject } from '../../sim/support/netns.ts';
import { waitUntil } from '../support/wait-until.ts';
import { POD_NAMESPACE } from './cluster.ts';
import { explainClaim } from './explain-claim.ts';
import type { System } from './system.ts';
import type { RunPodOptions, SystemPod } from './system-node.ts';

const SETS = {
  ...{ group: 'apps', version: 'v1', plural: 'statefulsets', kind: 'StatefulSet', isNamespaced: true },
} as const;

/** What a set is made of. */
type StatefulSetSpec = {
  readonly name: string;
  /** Further annotations of its Pods. */
  readonly annotations?: Readonly<Record<string, string>>;
  /** What their network comes by; default tke-route-eni. */
  readonly plugin?: RunPodOptions['plugin'];
  /** Extended resources that they ask for; default an address of a shared ENI. */
  readonly resources?: readonly string[];
};

/** What a claim is, as tests read it. */
type SeenClaim = {
  readonly phase: string;
  readonly ips: readonly string[];
  readonly nodeName: string;
  readonly message: string;
  readonly object: KubeObject;
};

/**
 * A StatefulSet whose Pods keep their addresses, with the controller's, the scheduler's and the kubelets' parts played:
 * Pods of stable names come and go on the nodes that tests name.
 */
export class StatefulSet {
  readonly name: string;
  readonly #system: System;
  readonly #annotations: Readonly<Record<string, string>>;
  readonly #plugin: RunPodOptions['plugin'];
  readonly #resources: readonly string[] | undefined;
  readonly #nodes = new Map<string, string>();

  constructor(system: System, { name, annotations = {}, plugin, resources }: StatefulSetSpec) {
    this.#plugin = plugin;
    this.#resources = resources;
    this.#system = system;
    this.name = name;
    this.#annotations = { [POD_ANNOTATION.deletePolicy]: 'Never', ...annotations };
  }

  /** The node that a Pod was last started on; undefined while it is not there. */
  nodeOf(ordinal: number): string | undefined {
    return this.#nodes.get(this.podName(ordinal));
  }

  /** `web-0` */
  podName(ordinal: number): string {
    return `${this.name}-${ordinal}`;
  }

  /** Starts a Pod on a node and waits for its network. @throws Error when it has none in time */
  async start(ordinal: number, nodeName: string, waitMs = 60_000): Promise<SystemPod> {
    const name = this.podName(ordinal);
    this.#nodes.set(name, nodeName);
    const uid = await this.#uidOfSet();
    const ownerReferences = [{ apiVersion: 'apps/v1', kind: 'StatefulSet', name: this.name, uid, controller: true }];
    const marks = {
      ...{ annotations: this.#annotations, labels: { app: this.name }, ownerReferences },
      ...(this.#resources === undefined ? {} : { resources: this.#resources }),
    };
    const options = { waitMs, marks, ...(this.#plugin === undefined ? {} : { plugin: this.#plugin }) };
    try {
      return await this.#system.node(nodeName).runPod(name, options);
    } catch (error) {
      throw new Error(`${explainClaim(this.#system, name)}\n${String(error)}`, { cause: error });
    }
  }

  /** Ends a Pod in order. */
  async stop(ordinal: number): Promise<void> {
    await this.#system.node(this.#take(ordinal)).removePod(this.podName(ordinal));
  }

  /** Takes only the object away: the sandbox lives until what is returned is called. */
  async forceStop(ordinal: number): Promise<() => Promise<void>> {
    return this.#system.node(this.#take(ordinal)).forceRemovePod(this.podName(ordinal));
  }

  /** Ends a Pod and starts it again, on the same node or another. */
  async restart(ordinal: number, nodeName = this.nodeOf(ordinal) ?? ''): Promise<SystemPod> {
    await this.stop(ordinal);
    return this.start(ordinal, nodeName);
  }

  /** The claim of a Pod; undefined when there is none. */
  async claim(ordinal: number): Promise<SeenClaim | undefined> {
    const object = await this.#system.cluster.admin.get(VPC_IP_CLAIMS, {
      namespace: POD_NAMESPACE,
      name: this.podName(ordinal),
    });
    if (object === undefined) return undefined;
    const status = isObject(object['status']) ? object['status'] : {};
    return {
      phase: String(status['phase'] ?? ''),
      ips: Array.isArray(status['ips']) ? status['ips'].map(String) : [],
      nodeName: String(status['nodeName'] ?? ''),
      message: String(status['message'] ?? ''),
      object,
    };
  }

  /** Waits until a claim is as wanted, and returns it. */
  async awaitClaim(
    ordinal: number,
    what: string,
    isWanted: (claim: SeenClaim) => boolean,
    timeoutMs = 30_000,
  ): Promise<SeenClaim> {
    let last: SeenClaim | undefined;
    return waitUntil(
      async () => {
        last = await this.claim(ordinal);
        return last !== undefined && isWanted(last) && last;
      },
      {
        what: `${what} (claim of ${this.podName(ordinal)})`,
        timeoutMs,
        everyMs: 100,
        explain: () => `${JSON.stringify(last?.object)}\n${this.#system.logs().slice(-4_000)}`,
      },
    );
  }

  /** Gives a claim up, as `kubectl delete vipc` does. */
  async giveUp(ordinal: number): Promise<void> {
    await this.#system.cluster.admin.delete(VPC_IP_CLAIMS, { namespace: POD_NAMESPACE, name: this.podName(ordinal) });
  }

  /** Pods whose owner is not there are garbage, so the set is an object too. */
  async #uidOfSet(): Promise<string> {
    const { admin } = this.#system.cluster;
    const ref = { namespace: POD_NAMESPACE, name: this.name };
    const labels = { app: this.name };
    const spec = { selector: { matchLabels: labels }, serviceName: this.name, template: { metadata: { labels } } };
    const object = { apiVersion: 'apps/v1', kind: 'StatefulSet', metadata: ref, spec };
    const found = await admin.get(SETS, ref);
    if (found !== undefined) return found.metadata.uid ?? '';
    try {
      return (await admin.create(SETS, object)).metadata.uid ?? '';
    } catch (error) {
      if (!isKubeError(error, 'ALREADY_EXISTS')) throw error;
      return await this.#uidOfSet();
    }
  }

  #take(ordinal: number): string {
    const name = this.podName(ordinal);
    const nodeName = this.#nodes.get(name);
    if (nodeName === undefined) throw new Error(`${name} does not run`);
    this.#nodes.delete(name);
    return nodeName;
  }
}

/** Says of a node what its controller says when the kubelet is silent, or that it is back. */
export async function setNodeReady(system: System, nodeName: string, isReady: boolean): Promise<void> {
  const status = isReady ? 'True' : 'Unknown';
  const lastTransitionTime = new Date().toISOString().replace(/\.\d+Z$/, 'Z');
  const reason = isReady ? 'KubeletReady' : 'NodeStatusUnknown';
  const condition = { type: 'Ready', status, reason, message: reason, lastTransitionTime };
  const body = { status: { conditions: [condition] } };
  await system.cluster.admin.patch(NODES, { name: nodeName }, { kind: 'merge', body, subresource: 'status' });
}

/** Events of a kind of object, as `reason name: message`. */
export function eventsOf(system: System, kind: string): readonly string[] {
  return system.cluster.server.objects('events').flatMap((event) => {
    const involved = event['involvedObject'];
    if (!isObject(involved) || involved['kind'] !== kind) return [];
    return [`${String(event['reason'])} ${String(involved['name'])}: ${String(event['message'])}`];
  });
}

/** Pods that the API server has, by name. */
export function podObjects(system: System): readonly KubeObject[] {
  return system.cluster.server.objects(PODS.plural);
}
